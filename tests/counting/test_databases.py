"""SQL is counted on the database it is for: DuckDB, SQLite and a real PostgreSQL server."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpmarkov.counting import count_paths, count_transitions
from dpmarkov.errors import DpmarkovError

ROWS = [(1, 10, "007", "ann"), (1, 20, "7", "ann"), (2, 5, "7", "bob"), (1, 20, "007", "ann"),
        (2, 6, None, "bob"), (2, 7, "007", "bob")]  # fmt: skip
CREATE = 'CREATE TABLE events (bike integer, "Time" integer, place text, rider text)'
PATHS: dict[str, Any] = {
    "entity": "bike", "time": "Time", "state": "place", "states": ["007", "7"], "invalid": "drop",
}  # fmt: skip
QUERY = "SELECT * FROM events WHERE bike < 9;"


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    path = tmp_path / "events.db"
    connection = sqlite3.connect(path)
    connection.execute(CREATE)
    connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", ROWS)
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def duckdb_file(tmp_path: Path) -> Path:
    path = tmp_path / "events.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(CREATE)
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", ROWS)
    return path


def check(database: Any) -> None:
    counts = count_paths(QUERY, database=database, **PATHS)
    assert counts.to_dense().tolist() == [[1, 1], [0, 0]]
    assert counts.affected_rows == 1
    bounded = count_paths(
        QUERY, database=database, user="rider", max_cells=1, max_per_cell=1, **PATHS
    )
    assert bounded.total == 1
    again = count_transitions(
        QUERY, database=database, origin="place", destination="rider",
        states="from-data", invalid="drop",
    )  # fmt: skip
    assert again.total == 5
    with pytest.raises(DpmarkovError, match="did you mean 'place'"):
        count_paths(QUERY, database=database, **PATHS | {"state": "plaice"})
    with pytest.raises(DpmarkovError, match="the query failed"):
        count_paths("SELECT nothing FROM nowhere", database=database, **PATHS)


def test_a_duckdb_file_and_an_open_connection(duckdb_file: Path) -> None:
    check(duckdb_file)
    with duckdb.connect(str(duckdb_file)) as connection:
        check(connection)
        relation = connection.sql(QUERY)
        assert count_paths(relation, **PATHS).total == 2
        assert connection.execute("SHOW TABLES").fetchall() == [("events",)]
        views = "SELECT count(*) FROM duckdb_views() WHERE NOT internal"
        assert connection.execute(views).fetchall() == [(0,)]


def test_a_sqlite_file(sqlite_file: Path) -> None:
    pytest.importorskip("adbc_driver_sqlite")
    check(sqlite_file)
    check(f"sqlite:///{sqlite_file}")


def test_a_postgresql_server(postgres: str) -> None:
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")

    values = ", ".join(
        f"({b}, {t}, {'NULL' if p is None else repr(p)}, {r!r})" for b, t, p, r in ROWS
    )
    with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute(CREATE)
        cursor.execute(f"INSERT INTO events VALUES {values}")
        connection.commit()
    check(postgres)
    with pytest.raises(DpmarkovError, match="'place' stands 2 times"):
        count_paths("SELECT *, rider AS place FROM events", database=postgres, **PATHS)


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("just some notes")
    with pytest.raises(DpmarkovError, match="neither"):
        count_paths(QUERY, database=tmp_path / "notes.db", **PATHS)
    with pytest.raises(DpmarkovError, match="no file"):
        count_paths(QUERY, database=tmp_path / "none.db", **PATHS)
    with pytest.raises(DpmarkovError, match="mysql:") as caught:
        count_paths(QUERY, database="mysql://me:password@host/db", **PATHS)
    assert "password" not in str(caught.value)
    with pytest.raises(DpmarkovError, match="text of a SELECT"):
        count_paths(42, database=tmp_path / "none.db", **PATHS)
