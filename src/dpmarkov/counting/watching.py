"""A query while it runs: Ctrl-C stops it at once, and a terminal sees how far it is.

DuckDB would do both by itself, and neither well enough: Ctrl-C makes it wait for running tasks,
which may take hours, and its bar goes to standard output, where a program's results are. So the
query runs in a thread of its own, and the caller's watches it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import duckdb

__all__ = ["is_watched", "watched"]

T = TypeVar("T")

_PATIENCE = 1.0  # seconds that nobody minds waiting for
_BETWEEN = 0.1
_ERASED = "\r\x1b[2K"


def is_watched() -> bool:
    """Tell whether somebody looks at standard error, on a terminal."""
    return sys.stderr.isatty()


def watched(query: Callable[[], T], connection: duckdb.DuckDBPyConnection) -> T:
    """Run a query on a connection.

    Parameters
    ----------
    query : callable
        Runs it.
    connection : duckdb.DuckDBPyConnection
        Where it runs.

    Returns
    -------
    object
        What the query gives.
    """
    outcome: Future[T] = Future()
    stopped = Event()

    def run() -> None:
        try:
            if not stopped.is_set():
                outcome.set_result(query())
        except BaseException as error:
            outcome.set_exception(error)

    thread = Thread(target=run)
    try:
        thread.start()
        if is_watched():
            _show(outcome, connection)
        return outcome.result()
    except KeyboardInterrupt:
        stopped.set()
        while thread.is_alive():  # once is not enough if the query has not begun
            connection.interrupt()
            thread.join(_BETWEEN)
        raise


def _show(running: Future[T], connection: duckdb.DuckDBPyConnection) -> None:
    """Show how long and how far a query is, if it takes long, and leave no trace of that."""
    begun = monotonic()
    wait([running], timeout=_PATIENCE)
    try:
        while not running.done():
            percent = connection.query_progress()  # not above 0 where it cannot be told
            far = f", {percent:.0f}%" if percent > 0 else ""
            line = f"{_ERASED}counting, {monotonic() - begun:.0f} s{far}"
            print(line, end="", file=sys.stderr, flush=True)
            wait([running], timeout=_BETWEEN)
    finally:
        print(_ERASED, end="", file=sys.stderr, flush=True)
