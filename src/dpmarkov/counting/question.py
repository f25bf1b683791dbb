"""One question about one set of data: its columns, the steps in their order, and the answer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from dpmarkov.contributions import Contributions, choose_bounds
from dpmarkov.counting.bounding import Bounds, bounded, contributed
from dpmarkov.counting.cells import (
    Policy,
    coded_unusable,
    encoded,
    judged,
    located,
    missing,
    summed,
)
from dpmarkov.counting.declared import FROM_DATA, declared_space, label_role
from dpmarkov.counting.engines import engine_of, plain_errors
from dpmarkov.counting.pairing import Gap, paired
from dpmarkov.counting.roles import Column, Role
from dpmarkov.counting.sorting import PairKeys, counted_runs
from dpmarkov.counting.sources import Source, opened
from dpmarkov.counting.tally import Tally
from dpmarkov.counts import TransitionCounts
from dpmarkov.errors import DpmarkovError
from dpmarkov.states import Label, StateSpace

__all__ = ["Path", "Question"]

_LARGEST = 2**53  # whole numbers up to here are exact in float64, also when an engine adds them
_MANY = 2**20
_FETCHED = (
    "origin", "destination", "position", "n", "rows", "undeclared", "unusable", "infeasible"
)  # fmt: skip


@dataclass(frozen=True)
class Path:
    """How events make paths."""

    entity: str
    time: str
    ties: tuple[str, ...]
    max_gap: Gap | None
    drop_self: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of who, when and in which order."""
        ties = (Column(name, f"tie_{n}", "order") for n, name in enumerate(self.ties))
        return (Column(self.entity, "entity", "id"), Column(self.time, "time", "time"), *ties)


@dataclass(frozen=True)
class Question:
    """What is asked, of which data.

    Parameters
    ----------
    data, database, states, support
        As the user gave them.
    labels : tuple of (our name, the user's column)
        Origin and destination; destination alone for a single row; or the state of events.
    policy : Policy
        What becomes of rows that have no cell.
    bounds : Bounds, optional
        How users are bounded; with `user`.
    user, count : str, optional
        The columns of the person and of how many transitions a row stands for.
    path : Path, optional
        How rows make paths; without it a row is a transition.
    """

    data: Any
    database: Any
    states: Any
    support: Any
    labels: tuple[tuple[str, str], ...]
    policy: Policy
    bounds: Bounds | None
    user: str | None
    count: str | None = None
    path: Path | None = None

    def answer(self) -> TransitionCounts:
        """Count, and hold the policy against what was found."""
        from_data = isinstance(self.states, str) and self.states == FROM_DATA
        states = self._states_from_data() if from_data else self.states
        space = declared_space(states, self.support, row=self._is_row)
        if self.path and space.kind != "square":
            raise DpmarkovError("paths need one set of states; give a list or a square StateSpace")
        self.policy.check(space)
        if self.bounds and not self.bounds.chosen:
            return replace(self, bounds=self._chosen(self.bounds, space)).answer()
        tally = self._tally(space)
        labels = [name for _, name in self.labels]
        tally.check(self.policy, labels, self._names_of_keys, timed=self.path is not None)
        return TransitionCounts(
            space,
            tally.cells,
            max_cells=self.bounds.max_cells if self.bounds else None,
            max_per_cell=self.bounds.max_per_cell if self.bounds else None,
            bounds_epsilon=self.bounds.epsilon if self.bounds else 0.0,
            spent_epsilon=self.bounds.epsilon if self.bounds else 0.0,
            charge=self.bounds.charge if self.bounds else None,
            states_from_data=from_data,
            affected_rows=tally.affected,
        )

    # -- columns ---------------------------------------------------------------------------

    @property
    def _is_row(self) -> bool:
        return self.path is None and len(self.labels) == 1

    @property
    def _names_of_keys(self) -> list[str]:
        return [c.name for c in self._columns("label") if c.role in ("id", "time", "count")]

    @property
    def _coded(self) -> list[str]:
        """The columns of codes in which an undeclared label is reported, once for each row."""
        return ["destination"] if self.path else [alias for alias, _ in self.labels]

    def _columns(self, role: Role) -> list[Column]:
        columns = [Column(name, alias, role) for alias, name in self.labels]
        columns += self.path.columns if self.path else ()
        columns += [Column(self.user, "user", "id")] if self.user is not None else ()
        columns += [Column(self.count, "count", "count")] if self.count is not None else ()
        return columns

    # -- reading ---------------------------------------------------------------------------

    def _states_from_data(self) -> list[Label]:
        found: set[Label] = set()
        for alias, name in self.labels:
            column = Column(name, alias, "label")
            with opened(
                self.data, [column], lenient=self.policy.lenient, database=self.database
            ) as source:
                labels = source.fetched(source.frame.group_by(alias).agg(n=nw.len()))
                found |= set(labels[alias].to_pylist())
        if not found - {None}:
            raise DpmarkovError("the data hold no states at all; declare them with states=")
        return sorted(found - {None})

    def _opened(self, space: StateSpace) -> AbstractContextManager[Source]:
        labels = {*space.destinations} if self._is_row else {*space.origins, *space.destinations}
        columns = self._columns(label_role(tuple(labels)))
        return opened(self.data, columns, lenient=self.policy.lenient, database=self.database)

    def _chosen(self, bounds: Bounds, space: StateSpace) -> Bounds:
        """Choose the bounds that were not declared, from the share of the budget."""
        with self._opened(space) as source:
            frame = self._located(self._pairs(source.frame, space), space)
            table = source.fetched(contributed(frame))
        cells, per_cell, users = (table[name].to_numpy() for name in ("cells", "per_cell", "users"))
        charge = None
        if bounds.ledger is not None:
            charge = bounds.ledger.charge_share("user", bounds.epsilon, "bounds")
        found = Contributions(cells, per_cell, users, space.n_cells)
        max_cells, max_per_cell = choose_bounds(
            found, epsilon=bounds.epsilon, max_cells=bounds.max_cells,
            max_per_cell=bounds.max_per_cell,
        )  # fmt: skip
        return replace(bounds, max_cells=max_cells, max_per_cell=max_per_cell, charge=charge)

    def _located(self, frame: nw.LazyFrame[Any], space: StateSpace) -> nw.LazyFrame[Any]:
        return located(judged(frame, self._coded, space, self.policy), space, self.policy)

    def _tally(self, space: StateSpace) -> Tally:
        with self._opened(space) as source:
            keys = (
                None
                if self.path or self.bounds or self.count
                else PairKeys.fitting(source.frame, space)
            )
            if keys is not None:
                return self._sorted(source, keys, space)
            frame = self._pairs(source.frame, space)
            if self.bounds:
                frame = summed(bounded(self._located(frame, space), self.bounds), "position")
            table, unparsable = source.fetched(_cells(frame)), source.rejected()
        if self.bounds:
            return Tally.of_cells(table, space, unparsable)
        return Tally.of_pairs(table, self._coded, space, self.policy, unparsable)

    def _sorted(self, source: Source, keys: PairKeys, space: StateSpace) -> Tally:
        """Count by sorting, which big supports of whole numbers allow."""
        with plain_errors():
            relation = source.frame.to_native()

            def work() -> Tally:
                runs = counted_runs(relation, keys, most=4 * space.n_cells)
                tallies = (
                    Tally.of_pairs(keys.codes(run), self._coded, space, self.policy, 0)
                    for run in runs
                )
                return sum(tallies, start=Tally.nothing(space))

            tally = source.run(work)
        return replace(tally, unparsable=source.rejected())

    # -- counting --------------------------------------------------------------------------

    def _pairs(self, frame: nw.LazyFrame[Any], space: StateSpace) -> nw.LazyFrame[Any]:
        """Count pairs of codes, by user where users are bounded."""
        if self.path:
            frame = self._steps(frame, space, self.path)
        elif self.bounds or self.count:
            frame = self._weighed(self._encoded(frame, space))
        else:
            return self._one_origin(self._grouped(frame, space))
        frame = self._one_origin(frame)
        keys = ["user", "origin", "destination"] if self.bounds else ["origin", "destination"]
        if self.count:
            return frame.group_by(*keys).agg(nw.col("n").sum(), rows=nw.len().cast(nw.Int64))
        counted = frame.group_by(*keys).agg(n=nw.len().cast(nw.Int64))
        return counted.with_columns(rows=nw.col("n")) if self.bounds else counted

    def _grouped(self, frame: nw.LazyFrame[Any], space: StateSpace) -> nw.LazyFrame[Any]:
        """Count by the engine's own GROUP BY, with everything else on its few groups.

        Labels that are not declared share a code, however many they are, so the groups are then
        grouped once more. Where there are millions of cells this takes a tenth of the whole time
        and is left out, except on Spark, whose driver may be the smallest of its machines.
        """
        grouped = frame.group_by(*self._coded).agg(n=nw.len().cast(nw.Int64))
        coded = self._encoded(grouped, space)
        if space.n_cells > _MANY and engine_of(frame) != "spark":
            return coded
        return coded.group_by(*self._coded).agg(nw.col("n").sum())

    def _steps(self, frame: nw.LazyFrame[Any], space: StateSpace, path: Path) -> nw.LazyFrame[Any]:
        return paired(
            encoded(frame, "state", space.origins),
            within=["entity", "user"] if self.bounds else ["entity"],
            ties=[column.alias for column in path.columns if column.role == "order"],
            max_gap=path.max_gap,
            drop_self=path.drop_self,
            catch_all=self.policy.catch_all(space)[0],
        )

    def _encoded(self, frame: nw.LazyFrame[Any], space: StateSpace) -> nw.LazyFrame[Any]:
        for name in self._coded:
            frame = encoded(frame, name, space.origins if name == "origin" else space.destinations)
        return frame

    def _one_origin(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        return frame.with_columns(origin=nw.lit(0, nw.Int32)) if self._is_row else frame

    def _weighed(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Say what each row counts for, and mark the rows without a usable count or user."""
        if self.bounds:
            frame = coded_unusable(frame, "destination", missing(frame, "user"))
        if self.count is None:
            return frame
        count = nw.col("count")
        useless = count.is_null() | (count < 0) | (count > _LARGEST)
        frame = coded_unusable(frame, "destination", useless)
        # Added up as float64, a total beyond 2^53 is refused later instead of wrapping around.
        weight = nw.when(useless).then(nw.lit(0.0)).otherwise(count.cast(nw.Float64))
        return frame.with_columns(n=weight)


def _cells(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Name what is fetched, with the same types on every engine."""
    schema = frame.collect_schema()
    types: dict[str, Any] = {"origin": nw.Int32, "destination": nw.Int32}
    if schema["n"].is_float():
        types["n"] = nw.Float64
    return frame.select(
        nw.col(name).cast(types.get(name, nw.Int64)) for name in _FETCHED if name in schema
    )
