"""The three questions: how many transitions, how many steps of paths, how many of each category."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from dpmarkov.contributions import AUTO
from dpmarkov.counting.bounding import Bounds
from dpmarkov.counting.cells import Policy
from dpmarkov.counting.pairing import Gap
from dpmarkov.counting.question import Path, Question
from dpmarkov.counts import TransitionCounts
from dpmarkov.errors import DpmarkovError
from dpmarkov.states import Label

if TYPE_CHECKING:
    from dpmarkov.ledger import Dataset

__all__ = ["count_categories", "count_paths", "count_transitions"]

Invalid = Literal["error", "drop", "other"]


def count_transitions(
    data: Any,
    *,
    origin: str,
    destination: str,
    states: Any = None,
    support: Any = None,
    count: str | None = None,
    invalid: Invalid = "error",
    other: Label | None = None,
    user: str | None = None,
    max_cells: int | Literal["auto"] | None = None,
    max_per_cell: int | Literal["auto"] | None = None,
    bounds_epsilon: float | None = None,
    ledger: Dataset | None = None,
    key: str | None = None,
    database: Any = None,
) -> TransitionCounts:
    """Count rows of (origin, destination).

    Parameters
    ----------
    data : path, glob, list of paths, SQL text or frame
        Files of CSV, TSV, Parquet or JSON (compressed or not), read out of core; a DuckDB
        relation; a pandas, Polars (eager or lazy), pyarrow or PySpark frame, counted on its own
        engine; or a SELECT, with `database`.
    origin, destination : str
        The columns of the two states.
    states : list, range, path or StateSpace
        The declared states, public. ``"from-data"`` reads them off the data instead, which marks
        the counts as not private.
    support : edges, boolean matrix or path, optional
        The feasible transitions, public; all of them without it.
    count : str, optional
        A column of how many transitions each row stands for, for data that are counted already.
    invalid : {"error", "drop", "other"}
        What becomes of values outside the declared states or support, of nulls and of lines
        that do not parse. A row without a usable count or user has no state to be sent to and
        is left out under ``"other"`` too. How many rows were affected is sensitive: it is in
        ``affected_rows`` of the result, on the curator's side.
    other : label, optional
        The declared catch-all state, with ``invalid="other"``.
    user : str, optional
        The column of the person, for the unit ``user``; with the two bounds.
    max_cells, max_per_cell : int or "auto", optional
        Each user keeps at most `max_cells` distinct cells, drawn by lot, and in each of them at
        most `max_per_cell` transitions. The draw depends on the user's own rows and `key` only.
        With ``"auto"`` the bound is chosen so that some three quarters of the users lie within.
    bounds_epsilon : float, optional
        With ``"auto"``: the share of the budget that choosing takes at the unit `user`
        (`dpmarkov.contributions`). It is spent when this function returns.
    ledger : Dataset, optional
        With ``"auto"``: the data set of a `dpmarkov.Ledger` that is charged for that share before
        its noise is drawn; the release then charges the rest.
    key : str, optional
        Which draw; the same key gives the same result on every engine. Fresh without it.
    database : DuckDB connection, path of a DuckDB or SQLite file, or PostgreSQL address, optional
        Where `data`, the text of a SELECT, is run.

    Returns
    -------
    TransitionCounts
        Sensitive. It remembers its bounds, and whether its states came from the data.

    Raises
    ------
    DpmarkovError
        If something is missing, cannot be read or does not fit; no message shows a value of the
        data.

    Examples
    --------
    >>> import pyarrow as pa
    >>> trips = pa.table({"from": ["a", "a", "b"], "to": ["b", "b", "a"]})
    >>> counts = count_transitions(trips, origin="from", destination="to", states=["a", "b"])
    >>> counts.to_dense()
    array([[0, 2],
           [1, 0]])
    """
    return Question(
        data, database, states, support, (("origin", origin), ("destination", destination)),
        Policy(invalid, other), _bounds(user, max_cells, max_per_cell, bounds_epsilon, ledger, key),
        user, count=count,
    ).answer()  # fmt: skip


def count_categories(
    data: Any,
    *,
    category: str,
    categories: Any = None,
    count: str | None = None,
    invalid: Invalid = "error",
    other: Label | None = None,
    user: str | None = None,
    max_cells: int | Literal["auto"] | None = None,
    max_per_cell: int | Literal["auto"] | None = None,
    bounds_epsilon: float | None = None,
    ledger: Dataset | None = None,
    key: str | None = None,
    database: Any = None,
) -> TransitionCounts:
    """Count the rows of each category: the paper's count query C(D, rho), a single row.

    Parameters
    ----------
    data : path, glob, list of paths, SQL text or frame
        As for `count_transitions`.
    category : str
        The column of the category.
    categories : list, range, path or StateSpace
        The declared categories, public; ``"from-data"`` marks the counts as not private.
    count, invalid, other, user, max_cells, max_per_cell, bounds_epsilon, ledger : optional
        As for `count_transitions`.
    key, database : optional
        As for `count_transitions`.

    Returns
    -------
    TransitionCounts

    Examples
    --------
    >>> import pyarrow as pa
    >>> grades = pa.table({"grade": ["A", "B", "A"]})
    >>> count_categories(grades, category="grade", categories=["A", "B", "F"]).cells
    array([2, 1, 0])
    """
    return Question(
        data, database, categories, None, (("destination", category),),
        Policy(invalid, other), _bounds(user, max_cells, max_per_cell, bounds_epsilon, ledger, key),
        user, count=count,
    ).answer()  # fmt: skip


def count_paths(
    data: Any,
    *,
    entity: str,
    time: str,
    state: str,
    states: Any = None,
    support: Any = None,
    tie_break: str | Sequence[str] = (),
    max_gap: Gap | None = None,
    drop_self: bool = False,
    invalid: Invalid = "error",
    other: Label | None = None,
    user: str | None = None,
    max_cells: int | Literal["auto"] | None = None,
    max_per_cell: int | Literal["auto"] | None = None,
    bounds_epsilon: float | None = None,
    ledger: Dataset | None = None,
    key: str | None = None,
    database: Any = None,
) -> TransitionCounts:
    """Count the consecutive pairs of states of each entity.

    Events of an entity are ordered by time; at equal times by the columns `tie_break` (nulls
    first, text by code points), and after that by the position of their state among the
    declared states (undeclared ones first), so that every engine gives the same answer. An
    entity with a single event is counted nowhere.

    Under ``invalid="drop"`` an event with an undeclared state is not bridged: neither of its two
    pairs counts, and its neighbours make no pair. (To join across certain events, take them out
    of the data first.) An event without entity or time has no place in a path and is left out.

    Parameters
    ----------
    data : path, glob, list of paths, SQL text or frame
        As for `count_transitions`.
    entity, time, state : str
        The columns of who, when and where. A time is a date, a time or a number; in files of text
        written as in ISO 8601, and in UTC where it has no offset.
    states, support : optional
        As for `count_transitions`; `states` must be given.
    tie_break : str or list of str
        Columns that order events of equal time.
    max_gap : timedelta or number, optional
        Pairs further apart than this do not count; of the kind that the time is.
    drop_self : bool
        Leave out pairs of equal states. The diagonal stays feasible unless `support` says
        otherwise (``support=~numpy.eye(n, dtype=bool)``).
    invalid, other, max_cells, max_per_cell, bounds_epsilon, ledger, key, database : optional
        As for `count_transitions`.
    user : str, optional
        As for `count_transitions`. Where it is not the entity, only events of the same entity
        and the same user make a pair, so that each pair is one user's.

    Returns
    -------
    TransitionCounts

    Examples
    --------
    >>> import pyarrow as pa
    >>> events = pa.table({"bike": [1, 1, 1, 2], "hour": [7, 9, 8, 7], "at": ["a", "b", "b", "a"]})
    >>> counts = count_paths(events, entity="bike", time="hour", state="at", states=["a", "b"])
    >>> counts.to_dense()
    array([[0, 1],
           [0, 1]])
    """
    ties = (tie_break,) if isinstance(tie_break, str) else tuple(tie_break)
    return Question(
        data, database, states, support, (("state", state),),
        Policy(invalid, other), _bounds(user, max_cells, max_per_cell, bounds_epsilon, ledger, key),
        user, path=Path(entity, time, ties, max_gap, drop_self),
    ).answer()  # fmt: skip


def _bounds(
    user: str | None,
    max_cells: int | Literal["auto"] | None,
    max_per_cell: int | Literal["auto"] | None,
    epsilon: float | None,
    ledger: Dataset | None,
    key: str | None,
) -> Bounds | None:
    if user is None and max_cells is None and max_per_cell is None and epsilon is None:
        return None
    if user is None or max_cells is None or max_per_cell is None:
        raise DpmarkovError(
            "user=, max_cells= and max_per_cell= go together: a user's contribution is bounded "
            "in both ways or not at all"
        )
    if (AUTO in (max_cells, max_per_cell)) != (epsilon is not None):
        raise DpmarkovError(
            "'auto' bounds and bounds_epsilon= go together: choosing bounds from the data takes a "
            "share of the budget (a tenth of the release's epsilon, say)"
        )
    if epsilon is not None and not 0 < epsilon < math.inf:
        raise DpmarkovError(f"bounds_epsilon={epsilon!r} must be above 0 and finite")
    return Bounds(
        None if max_cells == AUTO else max_cells,
        None if max_per_cell == AUTO else max_per_cell,
        secrets.token_hex(16) if key is None else key,
        epsilon or 0.0,
        None if epsilon is None else ledger,
    )
