"""The engines that are counted on, each with a way to hand it the same rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

Rows = pa.Table
Hand = Callable[[Rows], Any]


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Start a Spark of two local threads, where there is a Java to run it."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java on this machine, which Spark needs")
    sql = pytest.importorskip("pyspark.sql")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")  # compiling costs more than counting
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Hand]:
    """Name every engine on this machine but Spark, and how it is handed a table."""
    folder = tmp_path_factory.mktemp("rows")
    connection = duckdb.connect()
    return {
        "csv.gz": lambda rows: _csv(rows, folder / "rows.csv.gz"),
        "parquet": lambda rows: _parquet(rows, folder / "rows.parquet"),
        "json lines": lambda rows: _json(rows, folder / "rows.jsonl"),
        "duckdb relation": connection.from_arrow,
        "pandas": lambda rows: rows.to_pandas(integer_object_nulls=True),
        "polars": pl.from_arrow,
        "polars lazy": lambda rows: pl.from_arrow(rows).lazy(),
        "pyarrow": lambda rows: rows,
    }


def _csv(rows: Rows, path: Path) -> Path:
    with pa.output_stream(path) as file:  # compresses by suffix
        pa.csv.write_csv(rows, file)
    return path


def _parquet(rows: Rows, path: Path) -> Path:
    pa.parquet.write_table(rows, path)
    return path


def _json(rows: Rows, path: Path) -> Path:
    connection = duckdb.connect()
    connection.from_arrow(rows).query(
        "rows", f"COPY rows TO '{path}' (FORMAT json, TIMESTAMPFORMAT '%Y-%m-%d %H:%M:%S.%f')"
    )
    return path
