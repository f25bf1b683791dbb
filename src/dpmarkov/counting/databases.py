"""SQL on a database: DuckDB, SQLite or PostgreSQL.

A DuckDB database answers by itself. The other two are read through ADBC, which streams Arrow
batches into our DuckDB, so that counting needs no memory for the rows; the query is narrowed
to the wanted columns first. A stream can be read once, and counting reads it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmarkov.counting.engines import plain_errors
from dpmarkov.counting.files import embedded
from dpmarkov.counting.roles import Column, check_distinct
from dpmarkov.counting.watching import stoppable
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    import duckdb

__all__ = ["queried"]

_POSTGRES = ("postgresql://", "postgres://")
_SQLITE = "sqlite:///"


@contextmanager
def queried(
    query: Any, database: Any, columns: Sequence[Column]
) -> Iterator[tuple[duckdb.DuckDBPyRelation, duckdb.DuckDBPyConnection]]:
    """Run a query on a database.

    Parameters
    ----------
    query : str
        A SELECT statement.
    database : DuckDB connection, path of a DuckDB or SQLite file, or PostgreSQL address
        Where it runs.
    columns : sequence of Column
        The columns that are wanted.

    Yields
    ------
    duckdb.DuckDBPyRelation, duckdb.DuckDBPyConnection
        The result, and where it is computed.
    """
    import duckdb

    if not isinstance(query, str):
        raise DpmarkovError(
            f"with database= the data is the text of a SELECT, not a {type(query).__name__}"
        )
    with plain_errors("the query"):
        if isinstance(database, duckdb.DuckDBPyConnection):
            yield database.sql(query), database
        elif _kind(database) == "duckdb":
            with duckdb.connect(fspath(database), read_only=True) as theirs:
                yield theirs.sql(query), theirs
        else:
            with embedded() as connection, _stream(database, query, columns) as reader:
                yield connection.from_arrow(reader), connection


def _kind(database: Any) -> str:
    if str(database).startswith(_POSTGRES):
        return "postgresql"
    path = Path(str(database).removeprefix(_SQLITE))
    if not path.is_file():
        scheme, is_address, _ = str(database).partition("://")  # what follows may hold a password
        shown = f"{scheme}://..." if is_address and scheme != "sqlite" else str(path)
        raise DpmarkovError(
            f"database={shown!r} is no file; give the path of a DuckDB or SQLite database, "
            "postgresql://user@host/name, or an open DuckDB connection"
        )
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"SQLite format 3"):
        return "sqlite"
    if head[8:12] == b"DUCK":
        return "duckdb"
    raise DpmarkovError(f"{str(path)!r} is neither a DuckDB nor a SQLite database; check the path")


@contextmanager
def _stream(database: Any, query: str, columns: Sequence[Column]) -> Iterator[Any]:
    kind = _kind(database)
    driver = _driver(kind)
    uri = str(database) if kind == "postgresql" else str(database).removeprefix(_SQLITE)
    wanted = ", ".join('"' + name.replace('"', '""') + '"' for name in _names(columns))
    with driver.connect(uri) as theirs, theirs.cursor() as cursor:
        _execute(cursor, f"SELECT * FROM ({query.strip().rstrip(';')}) AS data LIMIT 0")
        present = [field[0] for field in cursor.description]
        check_distinct(columns, present)
        if set(_names(columns)) <= set(present):
            _execute(cursor, f"SELECT {wanted} FROM ({query.strip().rstrip(';')}) AS data")
        yield cursor.fetch_record_batch()


def _execute(cursor: Any, query: str) -> None:
    """Run a query up to its first rows, which a database may have to work long for."""

    def stop() -> None:
        with suppress(Exception):  # SQLite's driver cannot; then the first rows come first
            cursor.adbc_cancel()

    stoppable(lambda: cursor.execute(query), stop=stop)


def _driver(kind: str) -> Any:
    try:
        return import_module(f"adbc_driver_{kind}.dbapi")
    except ImportError:
        extra = {"postgresql": "postgres", "sqlite": "sqlite"}[kind]
        raise DpmarkovError(
            f"reading {kind} needs a driver that is not installed: pip install 'dpmarkov[{extra}]'"
        ) from None


def _names(columns: Sequence[Column]) -> list[str]:
    return list(dict.fromkeys(column.name for column in columns))
