"""What differs between the engines: four facts, for DuckDB, Polars and Spark each.

Everything else is written once, in narwhals. Here is only what narwhals has no word for: a
small table of ours beside the user's frame, a keyed hash that is the same everywhere, how to
fetch a result, and what an engine's failure may tell (its own text may quote a value of the
data, so it is not passed on).

narwhals has no hash that all engines share, so each computes SHA-256 its own way and the rest
is whole-number arithmetic, which is the same on all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, cast

import narwhals as nw
import pyarrow as pa
from narwhals import Implementation

from dpmarkov.errors import DpmarkovError

__all__ = [
    "COEFFICIENTS",
    "PRIME",
    "beside",
    "coefficients",
    "engine_of",
    "fetched",
    "on_one_clock",
    "plain_errors",
]

# The field of the hash in `bounding`: products of two residues fit into 64 bits.
PRIME = 2**31 - 1
COEFFICIENTS = ("a0", "a1", "a2", "a3")
_HEX_DIGITS = 15  # 60 bits of the digest for each coefficient

_ENGINE_OF = {
    Implementation.DUCKDB: "duckdb",
    Implementation.POLARS: "polars",
    Implementation.PYSPARK: "spark",
    Implementation.PYSPARK_CONNECT: "spark",
}
_ENGINE_MODULES = {
    "_duckdb",
    "adbc_driver_manager",
    "duckdb",
    "narwhals",
    "polars",
    "py4j",
    "pyarrow",
    "pyspark",
}
_INTERRUPTED = "Query interrupted"  # DuckDB's RuntimeError for Ctrl-C in some of its calls
# These speak of a query's text, which the user wrote, and never of a value.
_ABOUT_THE_QUERY = ("ParserException", "BinderException", "CatalogException")


def engine_of(frame: nw.LazyFrame[Any]) -> str:
    """Name the engine that a frame lives on."""
    try:
        return _ENGINE_OF[frame.implementation]
    except KeyError:
        raise DpmarkovError(
            f"frames of {frame.implementation.value} cannot be counted where they are; give a "
            "DuckDB relation, a Polars, pandas, pyarrow or PySpark frame, or a path"
        ) from None


# -- a small table beside the frame --------------------------------------------------------


def beside(frame: nw.LazyFrame[Any], table: pa.Table) -> nw.LazyFrame[Any]:
    """Put a small table of ours on the engine of a frame, so that the two can be joined.

    Nothing is created in a user's DuckDB database, not even a view: the relation reads an Arrow
    table by the name that it has in Python.
    """
    put = {"duckdb": _beside_duckdb, "polars": _beside_polars, "spark": _beside_spark}
    return _lazy(put[engine_of(frame)](frame.to_native(), table))


def _beside_duckdb(relation: Any, table: pa.Table) -> Any:
    dpmarkov_declared = table  # noqa: F841 (the query below reads it by its name)
    return relation.query("dpmarkov_rows", "SELECT * FROM dpmarkov_declared")


def _beside_polars(_: Any, table: pa.Table) -> Any:
    import polars as pl

    return cast(pl.DataFrame, pl.from_arrow(table)).lazy()


def _beside_spark(frame: Any, table: pa.Table) -> Any:
    from pyspark.sql import functions

    return functions.broadcast(frame.sparkSession.createDataFrame(table))


def _lazy(native: Any) -> nw.LazyFrame[Any]:
    return cast("nw.LazyFrame[Any]", nw.from_native(native))


# -- a keyed hash of the user --------------------------------------------------------------


def coefficients(frame: nw.LazyFrame[Any], user: str, key: str) -> nw.LazyFrame[Any]:
    """Add four numbers below `PRIME`, read off SHA-256 of the key and the user's text."""
    engine = engine_of(frame)
    add = {"duckdb": _duckdb_hash, "polars": _polars_hash, "spark": _spark_hash}[engine]
    return _lazy(add(frame.to_native(), user, f"{key}/"))


def _duckdb_hash(relation: Any, user: str, prefix: str) -> Any:
    text = prefix.replace("'", "''")
    parts = (
        f"('0x' || substr(digest, {start}, {_HEX_DIGITS}))::BIGINT % {PRIME} AS {name}"
        for name, start in _slices()
    )
    digested = relation.project(f"*, sha256('{text}' || \"{user}\"::VARCHAR) AS digest")
    return digested.project(f"* EXCLUDE (digest), {', '.join(parts)}")


def _spark_hash(frame: Any, user: str, prefix: str) -> Any:
    from pyspark.sql import functions

    digest = functions.sha2(
        functions.concat(functions.lit(prefix), functions.col(user).cast("string")), 256
    )
    return frame.withColumns(
        {
            name: functions.conv(functions.substring(digest, start, _HEX_DIGITS), 16, 10).cast(
                "long"
            )
            % PRIME
            for name, start in _slices()
        }
    )


def _polars_hash(frame: Any, user: str, prefix: str) -> Any:
    import polars as pl

    def digests(users: pl.Series) -> pl.Series:
        distinct = users.unique()
        rows = [_python_hash(prefix, text) for text in distinct.cast(pl.String)]
        hashed = pl.Series([list(row) for row in rows], dtype=pl.List(pl.Int64))
        table = pl.DataFrame({"user": distinct, "hashed": hashed})
        looked_up = users.to_frame("user").join(
            table, on="user", how="left", nulls_equal=True, maintain_order="left"
        )
        return looked_up["hashed"]

    hashed = pl.col(user).map_batches(digests, pl.List(pl.Int64), is_elementwise=True)
    return (
        frame.with_columns(hashed.alias("digest"))
        .with_columns(
            pl.col("digest").list.get(position).alias(name)
            for position, name in enumerate(COEFFICIENTS)
        )
        .drop("digest")
    )


def _python_hash(prefix: str, user: str | None) -> tuple[int | None, ...]:
    if user is None:
        return (None,) * len(COEFFICIENTS)
    digest = sha256((prefix + user).encode()).hexdigest()
    return tuple(
        int(digest[start - 1 : start - 1 + _HEX_DIGITS], 16) % PRIME for _, start in _slices()
    )


def _slices() -> list[tuple[str, int]]:
    """Where in the 64 hexadecimal digits each coefficient begins, counting from 1."""
    return [(name, 1 + 16 * position) for position, name in enumerate(COEFFICIENTS)]


# -- instants ------------------------------------------------------------------------------


def on_one_clock(frame: nw.LazyFrame[Any], time: str) -> nw.LazyFrame[Any]:
    """Take the zone off times, where differences follow the clocks or calendar of the session.

    On a day on which the clocks change, midnight to midnight is 23 or 25 hours. DuckDB calls that
    a day of 24, and so does Spark, to which half an hour across the change is an hour and a half.
    """
    dtype = frame.collect_schema()[time]
    zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
    take_off = {"duckdb": _utc_on_duckdb, "spark": _utc_on_spark}.get(engine_of(frame))
    if take_off is None or not zoned:
        return frame
    return _lazy(take_off(frame.to_native(), time))


def _utc_on_duckdb(relation: Any, time: str) -> Any:
    return relation.project(f'* REPLACE (timezone(\'UTC\', "{time}") AS "{time}")')


def _utc_on_spark(frame: Any, time: str) -> Any:
    from pyspark.sql import functions

    since_1970 = f"unix_micros(`{time}`) * INTERVAL '0.000001' SECOND"
    return frame.withColumn(time, functions.expr(f"TIMESTAMP_NTZ '1970-01-01' + {since_1970}"))


# -- results and failures ------------------------------------------------------------------


def fetched(frame: nw.LazyFrame[Any]) -> pa.Table:
    """Run the query where the data are and bring its (small) result here."""
    with plain_errors():
        if engine_of(frame) == "polars":
            return frame.collect("polars", engine="streaming").to_arrow()
        return frame.collect("pyarrow").to_native()


@contextmanager
def plain_errors(doing: str = "counting") -> Iterator[None]:
    """Turn an engine's exception into one of ours, without the values that its text may quote."""
    try:
        yield
    except DpmarkovError:
        raise
    except Exception as error:
        kind = type(error)
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from None
        if kind.__module__.partition(".")[0] not in _ENGINE_MODULES:
            raise
        if kind.__name__ in _ABOUT_THE_QUERY:
            raise DpmarkovError(f"{doing} failed in the engine: {error}") from None
        if kind.__name__ == "OutOfMemoryException":
            raise DpmarkovError(
                f"{doing} takes more memory than DuckDB may have; give a relation of your own "
                "connection, with a higher limit: duckdb.connect(config={'memory_limit': '8GiB'})"
                ".read_parquet(path), say"
            ) from None
        raise DpmarkovError(
            f"{doing} failed in the engine ({kind.__name__}); its message may quote values of "
            "the data and is kept back: check that the data can be read, row by row"
        ) from None
