"""Ledgers on both databases, and a way to tamper with them as their owner could."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dpmarkov as dpm
from dpmarkov.ledger.database import Database

NewUrl = Callable[[], str]
_TABLES = ("dpmarkov_ledger_entries", "dpmarkov_ledger_versions")


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewUrl]:
    """Name places where no ledger is yet."""
    if request.param == "sqlite":
        yield lambda: str(tmp_path / f"{secrets.token_hex(4)}.db")
        return
    psycopg = pytest.importorskip("psycopg")
    server = request.getfixturevalue("postgres")

    def new() -> str:
        schema = f"ledger_{secrets.token_hex(6)}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return f"{server}?options=-csearch_path%3D{schema}"

    yield new


@pytest.fixture
def url(new_url: NewUrl) -> str:
    """Name a place where no ledger is yet."""
    return new_url()


@pytest.fixture
def ledger(url: str) -> dpm.Ledger:
    """Make an empty ledger."""
    return dpm.Ledger.create(url)


@pytest.fixture
def counts() -> dpm.TransitionCounts:
    """Count something."""
    space = dpm.StateSpace(["home", "work", "shop"])
    return dpm.TransitionCounts(space, [120, 3000, 400, 2500, 900, 600, 900, 100, 20])


def run_sql(url: str, *statements: str) -> None:
    """Run statements on a ledger's database."""
    with Database(url, may_create=True).writing() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def without_guards(url: str) -> None:
    """Take the triggers away, as only the owner of the tables can."""
    if url.startswith("postgresql"):
        run_sql(url, *(f"ALTER TABLE {table} DISABLE TRIGGER ALL" for table in _TABLES))
    else:
        ends = ("update", "delete", "replace")
        run_sql(url, *(f"DROP TRIGGER {table}_{end}" for table in _TABLES for end in ends))
