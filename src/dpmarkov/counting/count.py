"""The three questions: how many transitions, how many steps of paths, how many of each category."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

from dpmarkov.counting.bounding import Bounds, bounded
from dpmarkov.counting.cells import Policy, encoded, judged, located, summed, whole
from dpmarkov.counting.declared import FROM_DATA, declared_space, label_role
from dpmarkov.counting.engines import fetched
from dpmarkov.counting.pairing import Gap, paired, placed
from dpmarkov.counting.roles import Column
from dpmarkov.counting.sources import opened
from dpmarkov.counting.tally import Tally
from dpmarkov.counts import TransitionCounts
from dpmarkov.errors import DpmarkovError
from dpmarkov.states import Label, StateSpace

__all__ = ["count_categories", "count_paths", "count_transitions"]

Invalid = Literal["error", "drop", "other"]
_LARGEST = 2**53  # whole numbers up to here are exact in float64, also when an engine adds them


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
    max_cells: int | None = None,
    max_per_cell: int | None = None,
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
    max_cells, max_per_cell : int, optional
        Each user keeps at most `max_cells` distinct cells, drawn by lot, and in each of them at
        most `max_per_cell` transitions. The draw depends on the user's own rows and `key` only.
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
    return _Question(
        data, database, states, support, (("origin", origin), ("destination", destination)),
        Policy(invalid, other), _bounds(user, max_cells, max_per_cell, key), user, count=count,
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
    max_cells: int | None = None,
    max_per_cell: int | None = None,
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
    count, invalid, other, user, max_cells, max_per_cell, key, database : optional
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
    return _Question(
        data, database, categories, None, (("destination", category),),
        Policy(invalid, other), _bounds(user, max_cells, max_per_cell, key), user, count=count,
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
    max_cells: int | None = None,
    max_per_cell: int | None = None,
    key: str | None = None,
    database: Any = None,
) -> TransitionCounts:
    """Count the consecutive pairs of states of each entity.

    Events of an entity are ordered by time; at equal times by the columns `tie_break` (nulls
    first, text by code points), and after that by the position of their state among the
    declared states, so that every engine gives the same answer. An entity with a single event
    is counted nowhere.

    Under ``invalid="drop"`` an event with an undeclared state is not bridged: neither of its two
    pairs counts, and its neighbours make no pair. (To join across certain events, take them out
    of the data first.) An event without entity or time has no place in a path and is left out.

    Parameters
    ----------
    data : path, glob, list of paths, SQL text or frame
        As for `count_transitions`.
    entity, time, state : str
        The columns of who, when and where. A time is a date, a time or a number.
    states, support : optional
        As for `count_transitions`; `states` must be given.
    tie_break : str or list of str
        Columns that order events of equal time.
    max_gap : timedelta or number, optional
        Pairs further apart than this do not count; of the kind that the time is.
    drop_self : bool
        Leave out pairs of equal states. The diagonal stays feasible unless `support` says
        otherwise (``support=~numpy.eye(n, dtype=bool)``).
    invalid, other, max_cells, max_per_cell, key, database : optional
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
    return _Question(
        data, database, states, support, (("state", state),),
        Policy(invalid, other), _bounds(user, max_cells, max_per_cell, key), user,
        path=_Path(entity, time, ties, max_gap, drop_self),
    ).answer()  # fmt: skip


def _bounds(
    user: str | None, max_cells: int | None, max_per_cell: int | None, key: str | None
) -> Bounds | None:
    if user is None and max_cells is None and max_per_cell is None:
        return None
    if user is None or max_cells is None or max_per_cell is None:
        raise DpmarkovError(
            "user=, max_cells= and max_per_cell= go together: a user's contribution is bounded "
            "in both ways or not at all"
        )
    return Bounds(max_cells, max_per_cell, secrets.token_hex(16) if key is None else key)


@dataclass(frozen=True)
class _Path:
    """How events make paths."""

    entity: str
    time: str
    ties: tuple[str, ...]
    max_gap: Gap | None
    drop_self: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        ties = (Column(name, f"tie_{n}", "order") for n, name in enumerate(self.ties))
        return (Column(self.entity, "entity", "id"), Column(self.time, "time", "time"), *ties)


@dataclass(frozen=True)
class _Question:
    """What is asked, of which data."""

    data: Any
    database: Any
    states: Any
    support: Any
    labels: tuple[tuple[str, str], ...]
    policy: Policy
    bounds: Bounds | None
    user: str | None
    count: str | None = None
    path: _Path | None = None

    def answer(self) -> TransitionCounts:
        """Count, and hold the policy against what was found."""
        from_data = isinstance(self.states, str) and self.states == FROM_DATA
        states = self._states_from_data() if from_data else self.states
        space = declared_space(states, self.support, row=self._is_row)
        if self.path and space.kind != "square":
            raise DpmarkovError("paths need one set of states; give a list or a square StateSpace")
        self.policy.check(space)
        tally = self._tally(space)
        tally.check(self.policy, [name for _, name in self.labels], self._other_names)
        return TransitionCounts(
            space,
            tally.cells,
            max_cells=self.bounds.max_cells if self.bounds else None,
            max_per_cell=self.bounds.max_per_cell if self.bounds else None,
            states_from_data=from_data,
            affected_rows=tally.affected,
        )

    @property
    def _is_row(self) -> bool:
        return self.path is None and len(self.labels) == 1

    @property
    def _other_names(self) -> list[str]:
        return [c.name for c in self._columns("label") if c.role in ("id", "time", "count")]

    def _columns(self, role: Any) -> list[Column]:
        columns = [Column(name, alias, role) for alias, name in self.labels]
        columns += self.path.columns if self.path else ()
        columns += [Column(self.user, "user", "id")] if self.user is not None else ()
        columns += [Column(self.count, "count", "count")] if self.count is not None else ()
        return columns

    def _states_from_data(self) -> list[Label]:
        found: set[Label] = set()
        for alias, name in self.labels:
            wanted = [Column(name, alias, "label")]
            with opened(
                self.data, wanted, lenient=self.policy.lenient, database=self.database
            ) as source:
                labels = source.frame.group_by(alias).agg(n=nw.len())
                found |= set(fetched(labels)[alias].to_pylist())
        return sorted(found - {None})

    def _tally(self, space: StateSpace) -> Tally:
        labels = {*space.destinations} if self._is_row else {*space.origins, *space.destinations}
        columns = self._columns(label_role(tuple(labels)))
        with opened(
            self.data, columns, lenient=self.policy.lenient, database=self.database
        ) as source:
            pairs = self._pairs(source.frame, space)
            if self.bounds is None:
                table = fetched(_plain(pairs))
                return Tally.of_pairs(table, space, self.policy, source.rejected())
            cells = bounded(located(pairs, space, self.policy), self.bounds)
            table = fetched(_plain(summed(cells, "position")))
            return Tally.of_cells(table, space, source.rejected())

    def _pairs(self, frame: nw.LazyFrame[Any], space: StateSpace) -> nw.LazyFrame[Any]:
        pairs = self._steps(frame, space) if self.path else self._transitions(frame, space)
        return pairs.with_columns(origin=nw.lit(0, nw.Int32)) if self._is_row else pairs

    def _transitions(self, frame: nw.LazyFrame[Any], space: StateSpace) -> nw.LazyFrame[Any]:
        names = [alias for alias, _ in self.labels]
        if self.bounds:
            frame = _weighed(placed(frame, ["user"]), self.count)
        elif self.count:
            frame = summed(_weighed(frame.with_columns(unusable=whole(0)), self.count), *names)
        else:
            frame = frame.group_by(*names).agg(n=nw.len().cast(nw.Int64))
        for name in names:
            frame = encoded(frame, name, space.origins if name == "origin" else space.destinations)
        return judged(frame, *names, space=space, policy=self.policy) if self.bounds else frame

    def _steps(self, frame: nw.LazyFrame[Any], space: StateSpace) -> nw.LazyFrame[Any]:
        assert self.path is not None
        within = ["entity", "user"] if self.bounds else ["entity"]
        events = encoded(_weighed(placed(frame, [*within, "time"]), None), "state", space.origins)
        pairs = paired(
            judged(events, "state", space=space, policy=self.policy),
            within=within,
            ties=[column.alias for column in self.path.columns if column.role == "order"],
            max_gap=self.path.max_gap,
            drop_self=self.path.drop_self,
        )
        return pairs if self.bounds else summed(pairs, "origin", "destination")


def _weighed(frame: nw.LazyFrame[Any], count: str | None) -> nw.LazyFrame[Any]:
    """Say what each row counts for: one, or its count if that is usable."""
    if count is None:
        return frame.with_columns(n=whole(1), rows=whole(1))
    n = nw.col("count")
    usable = (~n.is_null()) & (n >= 0) & (n <= _LARGEST)
    # Added up as float64, a total beyond 2^53 is refused later instead of wrapping around.
    return frame.with_columns(
        n=nw.when(usable).then(n.cast(nw.Float64)).otherwise(nw.lit(0.0)),
        rows=whole(1),
        unusable=nw.when(usable).then(nw.col("unusable")).otherwise(whole(1)),
    )


def _plain(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Name the types of what comes back, for engines whose sums are wider."""
    schema = frame.collect_schema()
    types: dict[str, type[nw.dtypes.DType]] = {"origin": nw.Int32, "destination": nw.Int32}
    if schema["n"].is_float():
        types["n"] = nw.Float64
    return frame.select(
        nw.col(name).cast(types.get(name, nw.Int64)) for name in _FETCHED if name in schema
    )


_FETCHED = (
    "origin", "destination", "position", "n", "rows", "undeclared", "unusable", "infeasible"
)  # fmt: skip
