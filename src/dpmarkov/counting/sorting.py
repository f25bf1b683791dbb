"""Counting whole-number labels in a big support: codes are sorted, a chunk at a time.

Where there are millions of cells a table of counts misses the processor's cache at every row, and
sorting takes less time than the engine's own GROUP BY (`benchmarks/counting.py`). So DuckDB only
reads the rows and makes one number of each pair; NumPy sorts a chunk of these, counts equal
neighbours, and adds the counts to those of the chunks before. No more than three chunks and
the counted pairs are in memory at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpmarkov.counting.cells import UNDECLARED
from dpmarkov.counting.engines import engine_of
from dpmarkov.states import Label, StateSpace

__all__ = ["PairKeys", "counted_runs"]

Ints = npt.NDArray[np.int64]

_CHUNK = 15 * 2**20  # 120 MiB of keys
_WIDEST = 2**24  # between the smallest and the largest label
_FEW_CELLS = 2**20  # the engine's own GROUP BY is as fast


@dataclass(frozen=True)
class PairKeys:
    """How a pair of labels becomes one number, and back.

    Parameters
    ----------
    origins, destinations : _Side
        The declared labels of both sides, whole numbers.
    """

    origins: _Side
    destinations: _Side

    @classmethod
    def fitting(cls, frame: nw.LazyFrame[Any], space: StateSpace) -> Self | None:
        """Give the keys for columns of whole numbers on DuckDB and a big support, else nothing."""
        if space.kind == "row" or space.n_cells <= _FEW_CELLS or engine_of(frame) != "duckdb":
            return None
        schema = frame.collect_schema()
        types = [schema[name] for name in ("origin", "destination")]
        if not all(kind.is_integer() and not isinstance(kind, nw.Int128) for kind in types):
            return None
        origins, destinations = _Side.of(space.origins), _Side.of(space.destinations)
        return None if origins is None or destinations is None else cls(origins, destinations)

    def sql(self) -> str:
        """Write the key of a row; labels out of range have the number 0."""
        i, j = self.origins.sql("origin"), self.destinations.sql("destination")
        return f"({i}) * {self.destinations.width} + ({j}) AS pair"

    def codes(self, runs: Runs) -> pa.Table:
        """Turn counted keys back to codes of labels, as the engines give them."""
        i, j = np.divmod(runs.keys, self.destinations.width)
        codes = {"origin": self.origins.codes[i], "destination": self.destinations.codes[j]}
        return pa.table({**codes, "n": runs.counts})


class _Side(NamedTuple):
    """The labels of one side: the least, how many numbers there are, and the code of each."""

    least: int
    width: int
    codes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, labels: tuple[Label, ...]) -> Self | None:
        if not all(type(label) is int and abs(label) < 2**62 for label in labels):
            return None
        numbers = np.array(labels, dtype=np.int64)
        least, width = int(numbers.min()), int(numbers.max()) - int(numbers.min()) + 2
        if width > _WIDEST:
            return None
        codes = np.full(width, UNDECLARED, dtype=np.int32)
        codes[numbers - least + 1] = np.arange(len(labels))
        return cls(least, width, codes)

    def sql(self, name: str) -> str:
        number = f'TRY_CAST("{name}" AS BIGINT)'
        last = self.least + self.width - 2
        return f"CASE WHEN {number} BETWEEN {self.least} AND {last} " + (
            f"THEN {number} - ({self.least - 1}) ELSE 0 END"
        )


class Runs(NamedTuple):
    """Distinct keys in ascending order, and how often each occurs."""

    keys: Ints
    counts: Ints

    @classmethod
    def of(cls, keys: Ints) -> Self:
        """Sort keys in place and count them."""
        keys.sort()
        starts = np.flatnonzero(keys[1:] != keys[:-1]) + 1
        starts = np.concatenate([[0], starts])
        return cls(keys[starts], np.diff(starts, append=keys.size))

    def plus(self, more: Runs) -> Runs:
        """Add the counts of other runs to these."""
        place = np.searchsorted(self.keys, more.keys)
        place[place == self.keys.size] = 0
        known = self.keys[place] == more.keys
        self.counts[place[known]] += more.counts[known]
        if known.all():
            return self
        keys = np.concatenate([self.keys, more.keys[~known]])
        order = np.argsort(keys, kind="stable")
        return Runs(keys[order], np.concatenate([self.counts, more.counts[~known]])[order])


def counted_runs(relation: Any, keys: PairKeys, most: int) -> Iterator[Runs]:
    """Count the pairs of a DuckDB relation.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
        With whole numbers as ``origin`` and ``destination``.
    keys : PairKeys
        Of its labels.
    most : int
        How many distinct pairs may be held before they are handed out.

    Yields
    ------
    Runs
        Counted pairs; in most cases all of them at once.
    """
    held: Runs | None = None
    with ThreadPoolExecutor(2) as workers:
        sorting: deque[Future[Runs]] = deque()
        for chunk in _chunks(relation.project(keys.sql())):
            if len(sorting) == 2:
                held = _joined(held, sorting.popleft().result())
            sorting.append(workers.submit(Runs.of, chunk))
            if held is not None and held.keys.size > most:
                yield held
                held = None
        while sorting:
            held = _joined(held, sorting.popleft().result())
    if held is not None:
        yield held


def _joined(held: Runs | None, more: Runs) -> Runs:
    return more if held is None else held.plus(more)


def _chunks(relation: Any) -> Iterator[Ints]:
    """Gather the batches that DuckDB streams to chunks that are worth sorting."""
    chunk, filled = np.empty(_CHUNK, dtype=np.int64), 0
    for batch in pa.RecordBatchReader.from_stream(relation):
        pairs = batch.column(0).to_numpy()
        while pairs.size:
            taken = min(pairs.size, _CHUNK - filled)
            chunk[filled : filled + taken] = pairs[:taken]
            filled, pairs = filled + taken, pairs[taken:]
            if filled == _CHUNK:
                yield chunk
                chunk, filled = np.empty(_CHUNK, dtype=np.int64), 0
    if filled:
        yield chunk[:filled]
