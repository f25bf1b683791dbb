"""The public side, as the user declares it: states and support from a list, a file or a range.

In a text file a label is an integer when every label of the file is written as one (no leading
zeros), and text otherwise, so that zero-padded codes keep their zeros. JSON and Parquet say what
is text: there ``"7"`` is not 7.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from os import fspath
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpmarkov.counting.engines import plain_errors
from dpmarkov.errors import DpmarkovError
from dpmarkov.states import Label, StateSpace

__all__ = ["FROM_DATA", "declared_space", "label_role", "labels_of_text"]

FROM_DATA = "from-data"
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
_TEXT = (".csv", ".tsv", ".txt")
_MOST_CELLS = 2**31
_MOST_STATES = 10**8


def declared_space(states: Any, support: Any, *, row: bool = False) -> StateSpace:
    """Make the state space that a user declares.

    Parameters
    ----------
    states : StateSpace, list, range or path
        The declared states (or categories).
    support : optional
        The feasible transitions: edges, a boolean matrix, or the path of a file whose first two
        columns are the edges.
    row : bool
        Whether it is a single row of categories.

    Returns
    -------
    StateSpace
    """
    if states is None:
        raise DpmarkovError(
            "states= is missing: states are declared and never read off the data, because a "
            "label that shows up only when somebody was there gives that person away. Give a "
            "list, a file, a range or a StateSpace; or states='from-data', which marks the "
            "counts as not private"
        )
    if isinstance(states, StateSpace):
        return _given(states, support, row)
    if isinstance(states, (set, frozenset)):
        raise DpmarkovError(
            "states= is a set, whose order differs from run to run; give a list: sorted(states)"
        )
    if isinstance(states, range) and len(states) > _MOST_STATES:
        raise DpmarkovError(f"{states} has {len(states)} states, more than {_MOST_STATES}")
    labels = _labels_of_file(Path(states)) if isinstance(states, (str, Path)) else list(states)
    if row:
        return StateSpace(categories=labels)
    edges = _edges(support, labels)
    if edges is None and len(labels) ** 2 > _MOST_CELLS:
        raise DpmarkovError(
            f"{len(labels)} states have {len(labels) ** 2} transitions, more than {_MOST_CELLS}; "
            "declare the feasible ones with support="
        )
    return StateSpace(labels, support=edges)


def _given(space: StateSpace, support: Any, row: bool) -> StateSpace:
    if support is not None:
        raise DpmarkovError("a StateSpace has its support already; leave support= out")
    if row != (space.kind == "row"):
        needed = "a single row of categories" if row else "origins and destinations"
        raise DpmarkovError(f"the StateSpace is of kind {space.kind!r}, needed is {needed}")
    return space


def label_role(labels: Sequence[Label]) -> Literal["text label", "integer label"]:
    """Tell whether labels are text or integers; a mixture cannot be a column's type."""
    if all(isinstance(label, str) for label in labels):
        return "text label"
    if not all(isinstance(label, int) for label in labels):
        raise DpmarkovError(
            "the declared states mix integers, text or tuples; a column has one type: declare "
            "all as integers or all as strings"
        )
    beyond = [label for label in labels if not -(2**63) <= int(str(label)) < 2**63]
    if beyond:
        raise DpmarkovError(f"state {beyond[0]} does not fit 64 bits; declare it as a string")
    return "integer label"


# -- files ---------------------------------------------------------------------------------


def _labels_of_file(path: Path) -> list[Label]:
    columns = _columns_of_file(path)
    if len(columns) != 1:
        raise DpmarkovError(
            f"file {fspath(path)!r} has {len(columns)} columns; states are read from a file of one"
        )
    (labels,) = columns
    return labels_of_text(labels) if path.suffix.lower() in _TEXT else labels


def labels_of_text(written: list[str]) -> list[Any]:
    """Read labels as integers where all are written as such, and as text otherwise."""
    return [int(x) for x in written] if all(map(_WHOLE.fullmatch, written)) else written


def _columns_of_file(path: Path) -> list[list[Any]]:
    """Read a small file of declarations: CSV and TSV with a header line, text without."""
    path = path.expanduser()
    if not path.is_file():
        raise DpmarkovError(f"there is no file {fspath(path)!r} to declare states or support from")
    readers = dict.fromkeys(_TEXT, _rows_of_text)
    readers |= {".json": _rows_of_json, ".parquet": _rows_of_parquet}
    if path.suffix.lower() not in readers:
        raise DpmarkovError(f"{fspath(path)!r}: declare from a file of {', '.join(readers)}")
    try:
        with plain_errors(f"reading {fspath(path)!r}"):
            return readers[path.suffix.lower()](path)
    except DpmarkovError:
        raise
    except (ValueError, csv.Error):
        raise DpmarkovError(f"{fspath(path)!r} does not hold what its suffix says") from None


def _rows_of_text(path: Path) -> list[list[Any]]:
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() == ".txt":
        return [[line.strip() for line in text.splitlines() if line.strip()]]
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = [row for row in csv.reader(text.splitlines(), delimiter=delimiter) if row]
    if len({len(row) for row in rows}) > 1:
        raise DpmarkovError(f"the lines of {fspath(path)!r} differ in their number of columns")
    return [list(column) for column in zip(*rows[1:], strict=True)]


def _rows_of_json(path: Path) -> list[list[Any]]:
    values = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(values, list):
        raise DpmarkovError(f"{fspath(path)!r} must hold a list")
    if values and all(isinstance(value, list) for value in values):
        return [list(column) for column in zip(*values, strict=True)]
    return [values]


def _rows_of_parquet(path: Path) -> list[list[Any]]:
    import pyarrow.parquet as pq

    return [column.to_pylist() for column in pq.read_table(path).columns]


# -- support -------------------------------------------------------------------------------


def _edges(support: Any, labels: Sequence[Label]) -> Any:
    """Give the support in a form that a StateSpace takes; files become a sparse matrix at once."""
    if isinstance(support, np.ndarray) and support.dtype != bool:
        support = support.tolist()
    if not isinstance(support, (str, Path)):
        return support
    columns = _columns_of_file(Path(support))
    if len(columns) < 2:
        raise DpmarkovError(
            f"file {support!r} has no two columns; an edge has an origin and an end"
        )
    ends = [_like(labels, column) for column in columns[:2]]
    return list(zip(*ends, strict=True))


def _like(labels: Sequence[Label], column: Iterable[Any]) -> list[Any]:
    """Read the ends of edges as the labels are typed: integers only where labels are."""
    if label_role(labels) == "text label":
        return [str(end) for end in column]
    return [int(end) if isinstance(end, str) and _WHOLE.fullmatch(end) else end for end in column]
