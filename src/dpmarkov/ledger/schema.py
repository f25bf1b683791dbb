"""The tables of a ledger, their versions, and how an older ledger is brought up to date.

Two tables: the entries, and the versions that the schema has had, to which a migration adds a row.
The database itself refuses to alter or delete a row of either, by triggers. Whoever owns the
tables can drop a trigger; the chain of hashes is there to show what they did then.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from dpmarkov.errors import DpmarkovError
from dpmarkov.ledger.entries import Entry

__all__ = ["VERSION", "add_entry", "bring_up_to_date", "check_version", "read_entries"]

VERSION = 3

_metadata = sa.MetaData()
_NUMBERS: dict[str, sa.types.TypeEngine[Any]] = {
    "epsilon": sa.Double(),
    "delta": sa.Double(),
    "max_cells": sa.BigInteger(),
    "max_per_cell": sa.BigInteger(),
}
_REQUIRED = ("kind", "dataset", "made_at", "made_by", "made_with", "previous", "hash")

_entries = sa.Table(
    "dpmarkov_ledger_entries",
    _metadata,
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    *(
        sa.Column(field.name, _NUMBERS.get(field.name, sa.Text()),
                  nullable=field.name not in _REQUIRED)
        for field in fields(Entry)
        if field.name != "position"
    ),
)  # fmt: skip
_versions = sa.Table(
    "dpmarkov_ledger_versions",
    _metadata,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("made_at", sa.Text, nullable=False),
    sa.Column("made_with", sa.Text, nullable=False),
)

# What leads from each version to the next.
_MIGRATIONS = {
    1: ("ALTER TABLE dpmarkov_ledger_entries ADD COLUMN part TEXT",),
    2: ("ALTER TABLE dpmarkov_ledger_entries ADD COLUMN follows TEXT",),
}

_REFUSAL = "a ledger is append-only: its rows are neither altered nor deleted"

# An INSERT OR REPLACE deletes without asking the trigger for deletion, hence the third.
_SQLITE_GUARDS = (
    "CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} "
    "BEGIN SELECT RAISE(ABORT, '{refusal}'); END",
    "CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} "
    "BEGIN SELECT RAISE(ABORT, '{refusal}'); END",
    "CREATE TRIGGER {table}_replace BEFORE INSERT ON {table} "
    "WHEN EXISTS (SELECT 1 FROM {table} WHERE {key} >= NEW.{key}) "
    "BEGIN SELECT RAISE(ABORT, '{refusal}'); END",
)
_POSTGRES_GUARDS = (
    "CREATE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION '{refusal}'; END $$",
    "CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
    "FOR EACH STATEMENT EXECUTE FUNCTION {table}_refuse()",
)


def check_version(connection: sa.Connection, name: str) -> None:
    """Refuse what is no ledger, and a ledger of another version.

    Parameters
    ----------
    connection : sqlalchemy.Connection
        A transaction.
    name : str
        What the ledger is called in messages.
    """
    found = _version(connection)
    if found is None:
        raise DpmarkovError(f"{name} holds no ledger; make one with Ledger.create (ledger init)")
    if found > VERSION:
        raise _newer(name, found)
    if found < VERSION:
        raise DpmarkovError(
            f"the ledger {name} has schema version {found}, and this dpmarkov writes {VERSION}; "
            "bring it up to date with Ledger.create (ledger init), which keeps every entry"
        )


def bring_up_to_date(connection: sa.Connection, name: str, *, made_at: str, made_with: str) -> None:
    """Make the tables, or lead older ones to this version; do nothing where all is as it should be.

    Parameters
    ----------
    connection : sqlalchemy.Connection
        A transaction of the only writer.
    name : str
        What the ledger is called in messages.
    made_at, made_with : str
        When, and with which dpmarkov.
    """
    found = _version(connection)
    if found is None:
        _metadata.create_all(connection)
        _guard(connection)
    elif found > VERSION:
        raise _newer(name, found)
    elif found < VERSION:
        for version in range(found, VERSION):
            for statement in _MIGRATIONS[version]:
                connection.exec_driver_sql(statement)
    if found != VERSION:
        row = {"version": VERSION, "made_at": made_at, "made_with": made_with}
        connection.execute(sa.insert(_versions).values(row))


def read_entries(connection: sa.Connection) -> list[Entry]:
    """Read all entries in order."""
    rows = connection.execute(sa.select(_entries).order_by(_entries.c.position))
    return [Entry(**row) for row in rows.mappings()]


def add_entry(connection: sa.Connection, entry: Entry) -> None:
    """Write one more entry."""
    connection.execute(sa.insert(_entries).values(vars(entry)))


def _version(connection: sa.Connection) -> int | None:
    if not sa.inspect(connection).has_table(_versions.name):
        return None
    found = connection.execute(sa.select(sa.func.max(_versions.c.version))).scalar()
    return None if found is None else int(found)


def _newer(name: str, found: int) -> DpmarkovError:
    return DpmarkovError(
        f"the ledger {name} has schema version {found}, and this dpmarkov knows {VERSION}; install "
        "a newer one"
    )


def _guard(connection: sa.Connection) -> None:
    guards = _SQLITE_GUARDS if connection.dialect.name == "sqlite" else _POSTGRES_GUARDS
    for table in (_entries, _versions):
        (key,) = table.primary_key.columns.keys()
        for guard in guards:
            connection.exec_driver_sql(guard.format(table=table.name, key=key, refusal=_REFUSAL))
