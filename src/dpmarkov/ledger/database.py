"""Where a ledger lies: an SQLite file, or a PostgreSQL database for a team.

What is asked of either is the same, and small:

* **One writer at a time.** Reading what is left and charging it is one transaction that no other
  writer can enter: ``BEGIN IMMEDIATE`` in SQLite; an advisory lock, held to the end of the
  transaction, in PostgreSQL (a lock on the table would ask for rights to alter rows, which a
  careful administrator does not give). At READ COMMITTED what is read after the lock is what the
  last writer left. The place of an entry is its primary key besides, so that two entries can
  never follow the same one.
* **A commit is on disk when it returns**: ``synchronous=EXTRA``; no ``synchronous_commit=off``.
* **Every transaction has a connection of its own**, so that processes share nothing.

Passwords are never shown: a database is named by host and name only, and what drivers say is
searched for the password.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dpmarkov.errors import DpmarkovError

__all__ = ["Database"]

# How long to wait for another writer, and for a server, in seconds.
_PATIENCE = 60
_CONNECT = 10
# "dpmarkov" as a number: whoever locks this in a database is writing to its ledger.
_LOCK = int.from_bytes(b"dpmarkov", "big") >> 1

_KINDS = (
    "a ledger is a path or sqlite:///path of an SQLite file, or postgresql://user@host/database"
)


class Database:
    """An SQLite file or a PostgreSQL database.

    Parameters
    ----------
    url : str or path
        A path, ``sqlite:///path`` or ``postgresql://user@host/database``.
    may_create : bool
        Whether an SQLite file is made if there is none.
    """

    def __init__(self, url: Any, *, may_create: bool = False) -> None:
        given = _parsed(str(url))
        self.name = _shown(given)
        self.is_sqlite = given.get_backend_name() == "sqlite"
        self._url = _from_the_root(given) if self.is_sqlite else given
        self._may_create = may_create
        if self.is_sqlite and not may_create and not Path(self._url.database or "").is_file():
            raise DpmarkovError(
                f"there is no ledger {self.name}; make one with Ledger.create (ledger init)"
            )

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a transaction in which all that is read is of one moment."""
        with self._plainly(), self._connected("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Open a transaction of the only writer; it is on disk when this has ended."""
        with self._plainly(), self._connected("BEGIN IMMEDIATE") as connection:
            if not self.is_sqlite:
                _lock(connection)
            yield connection

    @contextmanager
    def _connected(self, begin: str) -> Iterator[sa.Connection]:
        engine = _engine(self._url, self._may_create)
        opened = engine.connect().execution_options(dpmarkov_begin=begin)
        with opened as connection, connection.begin():
            yield connection

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn what a driver says into a line that names the ledger and no password."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            said = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
            for secret in self._secrets():
                said = said.replace(secret, "***")
            raise DpmarkovError(f"the ledger {self.name} cannot be used: {said}") from None

    def _secrets(self) -> list[str]:
        given = (self._url.password, *self._url.query.values())
        return [str(secret) for secret in given if secret]


def _parsed(url: str) -> URL:
    try:
        parsed = sa.make_url(url) if "://" in url else URL.create("sqlite", database=url)
    except (ArgumentError, ValueError):
        raise DpmarkovError(f"this address cannot be read: {_KINDS}") from None
    scheme = parsed.drivername
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if scheme != "sqlite":
        raise DpmarkovError(f"{scheme}:// is no place for a ledger: {_KINDS}")
    if not parsed.database or parsed.database == ":memory:":
        raise DpmarkovError(f"a ledger outlives the process that writes it: {_KINDS}")
    return parsed


def _shown(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    user = f"{url.username}@" if url.username else ""
    port = f":{url.port}" if url.port else ""
    return f"postgresql://{user}{url.host or ''}{port}/{url.database or ''}"


def _from_the_root(url: URL) -> URL:
    """Name a file so that it stays the same one, whatever becomes the working folder."""
    return url.set(database=str(Path(url.database or "").expanduser().absolute()))


@cache
def _engine(url: URL, may_create: bool) -> sa.Engine:
    """Make what connects; it holds no connection, so that a fork does no harm."""
    if url.get_backend_name() == "sqlite":
        file = partial(_open_file, Path(url.database or ""), "rwc" if may_create else "rw")
        engine = sa.create_engine("sqlite://", creator=file, poolclass=NullPool)
        sa.event.listen(engine, "begin", _begin)
        return engine
    try:
        return sa.create_engine(
            url,
            poolclass=NullPool,
            isolation_level="READ COMMITTED",
            connect_args={"connect_timeout": _CONNECT},
        )
    except ImportError:
        raise DpmarkovError(
            "a ledger on PostgreSQL needs a driver that is not installed: "
            "pip install 'dpmarkov[postgres]'"
        ) from None


def _open_file(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False,
    )  # fmt: skip
    with closing(connection.execute("PRAGMA synchronous = EXTRA")):
        return connection


def _begin(connection: sa.Connection) -> None:
    """Begin as SQLite needs it: its Python driver would begin only at the first change."""
    connection.exec_driver_sql(connection.get_execution_options()["dpmarkov_begin"])


def _lock(connection: sa.Connection) -> None:
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_PATIENCE}s'")
    connection.exec_driver_sql(
        "SELECT set_config('synchronous_commit', 'on', true) "
        "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    )
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
