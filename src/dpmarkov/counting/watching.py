"""A query while it runs: Ctrl-C stops it at once, and a terminal sees how far it is.

DuckDB would do both by itself, and neither well enough: Ctrl-C makes it wait for running tasks,
which may take hours, and its bar goes to standard output, where a program's results are. ADBC's
drivers swallow the first Ctrl-C. So these run in a thread of their own, and the caller's watches
them (`watched`, `stoppable`). Polars and the connection behind a user's DuckDB relation heed
Ctrl-C only in the caller's thread, so there it is the bar that has a thread (`shown`). Spark has
both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import duckdb

__all__ = ["is_watched", "shown", "stoppable", "watched"]

T = TypeVar("T")

_PATIENCE = 1.0  # seconds that nobody minds waiting for
_BETWEEN = 0.1
_ERASED = "\r\x1b[2K"


def is_watched() -> bool:
    """Tell whether somebody looks at standard error, on a terminal."""
    return sys.stderr.isatty()


def _untold() -> float:
    return -1.0


def watched(query: Callable[[], T], connection: duckdb.DuckDBPyConnection) -> T:
    """Run a query on a DuckDB connection.

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
    return stoppable(query, stop=connection.interrupt, progress=connection.query_progress)


def stoppable(
    query: Callable[[], T],
    *,
    stop: Callable[[], object],
    progress: Callable[[], float] = _untold,
) -> T:
    """Run a query in a thread of its own.

    Parameters
    ----------
    query : callable
        Runs it.
    stop : callable
        Makes the running query end, from another thread.
    progress : callable
        Tells its percentage; not above 0 where it cannot be told.

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
        _wait(outcome, progress)
        return outcome.result()
    except KeyboardInterrupt:
        stopped.set()
        while thread.is_alive():  # once is not enough if the query has not begun
            stop()
            thread.join(_BETWEEN)
        raise


@contextmanager
def shown() -> Iterator[None]:
    """Show on a terminal how long it takes what runs inside, in the caller's own thread."""
    if not is_watched():
        yield
        return
    running: Future[None] = Future()
    thread = Thread(target=_show, args=(running, _untold), daemon=True)
    thread.start()
    try:
        yield
    finally:
        running.set_result(None)
        thread.join()


def _wait(running: Future[T], progress: Callable[[], float]) -> None:
    """Wait for a query, never so long in one go that Ctrl-C would have to wait, too.

    Where a library (Polars) has put its own handler beside Python's, Ctrl-C ends no waiting.
    """
    if is_watched():
        _show(running, progress)
    while not running.done():
        wait([running], timeout=_BETWEEN)


def _show(running: Future[T], progress: Callable[[], float]) -> None:
    """Show how long and how far a query is, if it takes long, and leave no trace of that."""
    begun = monotonic()
    wait([running], timeout=_PATIENCE)
    try:
        while not running.done():
            percent = progress()
            far = f", {percent:.0f}%" if percent > 0 else ""
            line = f"{_ERASED}counting, {monotonic() - begun:.0f} s{far}"
            print(line, end="", file=sys.stderr, flush=True)
            wait([running], timeout=_BETWEEN)
    finally:
        print(_ERASED, end="", file=sys.stderr, flush=True)
