"""Names of states: which may be declared, and where in a list they stand.

A label is a string, an integer or a tuple of these, which every file keeps exactly. True is not 1
and 1.0 is not 1, though Python's dictionaries say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError

__all__ = ["Label", "checked_labels", "plain_label", "positions"]

Label = str | int | tuple[Any, ...]


def checked_labels(name: str, labels: Iterable[Label] | None) -> tuple[Label, ...]:
    """Give declared labels as a tuple, or say which one cannot be.

    Examples
    --------
    >>> checked_labels("labels", np.array([3, 1]))
    (3, 1)
    """
    if not isinstance(labels, Iterable) or isinstance(labels, (str, bytes)):
        raise DpmarkovError(f"{name} must be a list of labels, not {labels!r}")
    checked = tuple(plain_label(name, label) for label in labels)
    if not checked:
        raise DpmarkovError(f"{name} must not be empty")
    if len(set(checked)) != len(checked):
        twice = next(label for label, times in Counter(checked).items() if times > 1)
        raise DpmarkovError(f"label {twice!r} stands twice in {name}; labels must differ")
    return checked


def plain_label(name: str, label: Any) -> Label:
    """Turn NumPy scalars into Python's own, and refuse what a file would not keep exactly."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return tuple(plain_label(name, part) for part in label)
    if isinstance(label, str):
        return _encodable(name, label)
    if isinstance(label, int) and not isinstance(label, bool):
        return label
    raise DpmarkovError(
        f"label {label!r} in {name} is a {type(label).__name__}; labels are strings, integers or "
        "tuples of these: convert it (a date to its ISO form, say)"
    )


def _encodable(name: str, label: str) -> str:
    try:
        label.encode()
    except UnicodeEncodeError:
        raise DpmarkovError(
            f"label {label!r} in {name} has half a character (a lone surrogate), which no file "
            "keeps; read the names with their right encoding"
        ) from None
    return label


def positions(index: dict[Hashable, int], labels: Iterable[Any]) -> npt.NDArray[np.int64]:
    """Look labels up in an index, -1 where one is not there."""
    if isinstance(labels, np.ndarray):
        labels = labels.tolist()
    return np.fromiter((_position(index, label) for label in labels), dtype=np.int64)


def _position(index: dict[Hashable, int], label: Any) -> int:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, (bool, float)) or not isinstance(label, Hashable):
        return -1
    return index.get(label, -1)
