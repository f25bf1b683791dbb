"""The declared states and support, as they are given on the command line.

A file, a list ``A,B,C``, a range ``1..63``, or a column of a table of which some lines count. All
of it is public; so none of it may be the sensitive file itself.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from difflib import get_close_matches
from glob import glob
from os.path import expanduser, isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmarkov.cli.options import Declared
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from dpmarkov.states import StateSpace

__all__ = ["FROM_DATA", "check_not_the_data", "declared_space", "table"]

FROM_DATA = "from-data"
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")


def declared_space(declared: Declared) -> StateSpace:
    """Read the declared states, and refuse those that make no chain.

    Parameters
    ----------
    declared : Declared
        What was given.

    Returns
    -------
    StateSpace
    """
    from dpmarkov.counting.declared import declared_space as declared_by_api
    from dpmarkov.planning.shape import check_connected

    row = declared.categories is not None
    if row == (declared.states is not None):
        raise DpmarkovError(
            "give either --states (a chain) or --categories (a single distribution): states are "
            "public, and declared without looking at the data"
        )
    given = declared.categories if row else declared.states
    assert given is not None  # for the type checker: one of the two
    if given == FROM_DATA:
        raise DpmarkovError("states from the data cannot be known beforehand; declare them")
    space = declared_by_api(_labels(given, declared), declared.support, row=row)
    check_connected(space)
    return space


def check_not_the_data(data: str, declared: Declared) -> None:
    """Refuse to take for declared what stands in the data, before either is opened.

    Parameters
    ----------
    data : str
        Path or glob of the events.
    declared : Declared
        What was given.
    """
    pattern = expanduser(data)
    files = {Path(name).resolve() for name in (pattern, *glob(pattern, recursive=True))}
    for name in ("states", "categories", "support"):
        given = getattr(declared, name)
        if given is not None and Path(given).expanduser().resolve() in files:
            raise DpmarkovError(
                f"--{name} {given} is the data itself; what is public is declared without looking "
                "at it: list it elsewhere, or take --states from-data, which is not private"
            )


def _labels(given: str, declared: Declared) -> Any:
    path = Path(expanduser(given))
    chosen = (declared.state_column, declared.state_where)
    labels: Any
    if chosen != (None, None):
        labels = _of_table(path, declared)
    elif isfile(path) or ("," not in given and not _RANGE.fullmatch(given)):
        labels = given
    else:
        labels = _listed(given)
    if declared.state_except is None:
        return labels
    if isinstance(labels, str):
        from dpmarkov.counting.declared import declared_space as declared_by_api

        labels = list(declared_by_api(labels, None).labels)
    return _without(labels, declared.state_except)


def _listed(given: str) -> range | list[Any]:
    from dpmarkov.counting.declared import labels_of_text

    bounds = _RANGE.fullmatch(given)
    if bounds:
        first, last = map(int, bounds.groups())
        return range(first, last + 1)
    return labels_of_text([part.strip() for part in given.split(",") if part.strip()])


def _without(labels: Sequence[Any], left_out: str) -> list[Any]:
    names = [part.strip() for part in left_out.split(",")]
    unknown = set(names) - {str(label) for label in labels}
    if unknown:
        raise DpmarkovError(
            f"--state-except names {sorted(unknown)[0]!r}, which is not among the states"
        )
    return [label for label in labels if str(label) not in names]


def _of_table(path: Path, declared: Declared) -> list[Any]:
    """Take a column of a CSV file, of those lines that fulfil the conditions."""
    from dpmarkov.counting.declared import labels_of_text

    header, rows = table(path)
    column = _position(declared.state_column or header[0], header, path)
    for condition in declared.state_where or ():
        name, mark, value = condition.partition("=")
        if not mark:
            raise DpmarkovError(f"--state-where {condition} must be COLUMN=VALUE")
        where = _position(name, header, path)
        rows = [row for row in rows if row[where] == value]
    if not rows:
        raise DpmarkovError(f"no line of {path} fulfils {' and '.join(declared.state_where or ())}")
    return labels_of_text(list(dict.fromkeys(row[column] for row in rows)))


def _position(name: str, header: list[str], path: Path) -> int:
    if name not in header:
        near = get_close_matches(name, header)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {header}"
        raise DpmarkovError(f"there is no column {name!r} in {path}; {hint}")
    return header.index(name)


def table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Read a small public CSV file: its header, and its lines as long as that.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    header : list of str
    rows : list of list of str
    """
    path = path.expanduser()
    if not path.is_file():
        raise DpmarkovError(f"there is no file {path}")
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (UnicodeDecodeError, csv.Error):
        raise DpmarkovError(f"{path} cannot be read as CSV text") from None
    if len(rows) < 2:
        raise DpmarkovError(f"{path} has no line after its header")
    return rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
