"""The border: whatever a user has becomes a narwhals ``LazyFrame`` with our column names.

* Paths, globs and SQL are read by DuckDB, out of core.
* A DuckDB relation, a Polars frame and a PySpark frame are counted on their own engine.
* pandas and pyarrow have no lazy engine: the needed columns cross as Arrow to DuckDB, without a
  copy for numbers. A measurement decided that: narwhals over pandas needs the same time for
  counting (0.3 s against 0.4 s for 10 million integer rows, 1.8 s against 1.9 s for text) and
  3.5 times as long for pairing (6.8 s against 2.0 s for 5 million events). Arrow also refuses
  columns of mixed types, which pandas would count in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import narwhals as nw
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from dpmarkov.counting.databases import queried
from dpmarkov.counting.engines import engine_of, fetched, plain_errors
from dpmarkov.counting.files import embedded, from_files, rejected_lines
from dpmarkov.counting.roles import Column, check_present, prepared
from dpmarkov.counting.watching import shown, watched
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    import duckdb

__all__ = ["Source", "opened"]

T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """An open source.

    Parameters
    ----------
    frame : LazyFrame
        The wanted columns, under our names.
    connection : duckdb.DuckDBPyConnection, optional
        Where the frame is read, if that is known here.
    rejected : callable
        Tells how many lines had to be rejected, once the frame has been read.
    """

    frame: nw.LazyFrame[Any]
    connection: duckdb.DuckDBPyConnection | None
    rejected: Callable[[], int]

    def fetched(self, query: nw.LazyFrame[Any]) -> pa.Table:
        """Run a query over the frame, watched where that is possible."""
        return self.run(lambda: fetched(query))

    def run(self, work: Callable[[], T]) -> T:
        """Do work on the frame, watched where that is possible."""
        if self.connection is not None:
            return watched(work, self.connection)
        if engine_of(self.frame) == "spark":  # shows it by itself
            return work()
        with shown():
            return work()


@contextmanager
def opened(
    data: Any, columns: Sequence[Column], *, lenient: bool = False, database: Any = None
) -> Iterator[Source]:
    """Open data for counting; what was opened here is closed and removed on leaving.

    Parameters
    ----------
    data : path, glob, list of paths, SQL text or frame
        What the user has.
    columns : sequence of Column
        The columns that are wanted.
    lenient : bool
        Whether lines of a text file that do not parse are left out and counted.
    database : optional
        Where SQL text runs.

    Yields
    ------
    Source
    """
    if database is not None:
        with queried(data, database, columns) as (relation, connection):
            yield _source(relation, columns, connection)
    elif _is_files(data):
        with embedded() as connection:
            relation = from_files(connection, data, columns, lenient=lenient)
            yield _source(relation, columns, connection, lambda: rejected_lines(connection))
    else:
        with _lazy(data, columns) as (native, connection):
            yield _source(native, columns, connection)


def _source(
    native: Any,
    columns: Sequence[Column],
    connection: duckdb.DuckDBPyConnection | None,
    rejected: Callable[[], int] = lambda: 0,
) -> Source:
    with plain_errors("opening the data"):
        return Source(prepared(nw.from_native(native), columns), connection, rejected)


def _is_files(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return all(isinstance(item, (str, Path)) for item in data)
    return isinstance(data, (str, Path))


@contextmanager
def _lazy(
    data: Any, columns: Sequence[Column]
) -> Iterator[tuple[Any, duckdb.DuckDBPyConnection | None]]:
    """Give a native lazy frame; eager frames other than Polars' cross to DuckDB as Arrow."""
    frame = _recognised(data)
    if isinstance(frame, nw.LazyFrame):
        engine_of(frame)
        yield frame.to_native(), None
    elif frame is not None and frame.implementation.is_polars():
        yield frame.lazy().to_native(), None
    else:
        with embedded() as connection:
            table = data if frame is None else _as_arrow(frame, columns)
            yield connection.from_arrow(table), connection


def _as_arrow(frame: nw.DataFrame[Any], columns: Sequence[Column]) -> pa.Table:
    check_present(columns, frame.columns)
    return pa.table({column.name: _arrow_column(frame, column) for column in columns})


def _recognised(data: Any) -> nw.LazyFrame[Any] | nw.DataFrame[Any] | None:
    """See a frame through narwhals; None for an Arrow dataset, which DuckDB scans by itself."""
    if type(data).__module__.startswith("pyarrow") and hasattr(data, "scanner"):
        return None
    if isinstance(data, pa.RecordBatch):
        data = pa.table(data)
    try:
        return cast("nw.LazyFrame[Any] | nw.DataFrame[Any]", nw.from_native(data))
    except DuplicateError:
        raise DpmarkovError(
            "several columns of the data share a name; rename them, or leave out all but one"
        ) from None
    except TypeError:
        raise DpmarkovError(
            f"a {type(data).__name__} cannot be counted; give a path or glob, SQL with database=, "
            "a DuckDB relation, or a pandas, Polars, pyarrow or PySpark frame"
        ) from None


def _arrow_column(frame: nw.DataFrame[Any], column: Column) -> pa.ChunkedArray | pa.Array:
    """Take one column as Arrow, which has one type for all its values."""
    series = frame[column.name]
    if column.role == "time" and series.dtype == nw.Object:
        raise DpmarkovError(
            f"column {column.name!r} holds Python objects, which may mix time zones; convert it "
            "first (pandas.to_datetime(..., utc=True))"
        )
    try:
        array = series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError):
        raise DpmarkovError(
            f"column {column.name!r} holds values of mixed types; convert it to one type"
        ) from None
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit))  # the same instants, in UTC
    return array
