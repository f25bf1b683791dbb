"""Stopped by Ctrl-C nothing stays behind; on a terminal a long count shows that it moves."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import duckdb
import polars as pl
import pytest

from dpmarkov.counting import count_transitions, watching
from dpmarkov.counting.engines import plain_errors

# Counts a cross join that would take hours, unless it is told how many rows to make.
SCRIPT = """
import sys, duckdb
from dpmarkov.counting import count_transitions, files
rows = int(sys.argv[1])
query = f"SELECT a.range % 2 AS o, b.range % 2 AS d FROM range({rows}) a, range({rows}) b"
def read(connection, *_, **__):
    print("counting", flush=True)
    return connection.sql(query)
files._parquet = read
for module in sys.argv[3:]:
    __import__(module)
count_transitions(sys.argv[2], origin="o", destination="d", states=[0, 1])
print("counted", flush=True)
"""

WATCHED = """
import sys
from dpmarkov.counting import count_transitions, watching
watching._PATIENCE = watching._BETWEEN = 0.001
count_transitions(sys.argv[1], origin="o", destination="d", states=[0, 1])
print("counted", flush=True)
"""

SLOW = """
import sys
from dpmarkov.counting import count_transitions
query = "SELECT k % 2 AS o, 1 AS d, pg_sleep(60) FROM generate_series(1, 1000) AS k"
count_transitions(query, database=sys.argv[1], origin="o", destination="d", states=[0, 1])
"""
SLEEPING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


@contextmanager
def start(
    tmp_path: Path, rows: int, *modules: str, **streams: int
) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "temp").mkdir()
    (tmp_path / "rows.parquet").write_bytes(b"PAR1, replaced by the query above")
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(rows), str(tmp_path / "rows.parquet"), *modules],
        env={**os.environ, "TMPDIR": str(tmp_path / "temp")},
        cwd=tmp_path,
        preexec_fn=heed_ctrl_c,
        **streams,
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # a count that did not stop shall not go on for hours


def heed_ctrl_c() -> None:
    """Undo that a shell lets what runs in the background ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


# While it begins, while DuckDB gathers the rows of one side, and while it joins and counts. Polars
# puts a handler of its own beside Python's, with which Ctrl-C ends no waiting for a lock.
@pytest.mark.parametrize(
    ("seconds", "modules"), [(0.1, ()), (0.45, ()), (0.8, ()), (0.8, ("polars",))]
)
def test_ctrl_c_leaves_nothing_behind(
    tmp_path: Path, seconds: float, modules: tuple[str, ...]
) -> None:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(tmp_path, 10**8, *modules, **streams) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    assert os.listdir(tmp_path / "temp") == []
    assert sorted(os.listdir(tmp_path)) == ["rows.parquet", "temp"]


def test_ctrl_c_stops_a_query_that_postgresql_still_works_on(postgres: str) -> None:
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with (
        subprocess.Popen(
            [sys.executable, "-c", SLOW, postgres],
            preexec_fn=heed_ctrl_c,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
        dbapi.connect(postgres) as connection,
        connection.cursor() as cursor,
    ):
        while not cursor.execute(SLEEPING).fetchone()[0]:
            connection.rollback()  # what is seen of others is frozen in a transaction
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        connection.rollback()
        assert cursor.execute(SLEEPING).fetchone() == (0,)
    assert b"KeyboardInterrupt" in errors
    assert b"DpmarkovError" not in errors


def test_a_query_that_duckdb_calls_interrupted_is_a_keyboard_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), plain_errors():
        raise RuntimeError("Query interrupted")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_long_counting_shows_progress_on_a_terminal_and_takes_it_away(tmp_path: Path) -> None:
    rows = "SELECT range % 2 AS o, range % 3 % 2 AS d FROM range(10_000_000)"
    duckdb.execute(f"COPY ({rows}) TO '{tmp_path / 'long.parquet'}'")
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", WATCHED, str(tmp_path / "long.parquet")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower) as process:
        os.close(follower)
        shown = b""
        while chunk := _read(leader):
            shown += chunk
        assert process.stdout is not None
        assert process.stdout.read() == b"counted\n"
        assert process.wait(60) == 0
    os.close(leader)
    assert re.search(rb"counting, \d+ s", shown)
    assert shown.endswith(b"\r\x1b[2K")


def test_progress_is_told_as_the_engine_tells_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = iter([-1.0, 12.4, 99.6])
    outcome: Future[str] = Future()

    def progress() -> float:
        percent = next(told)
        if percent > 99:
            outcome.set_result("done")
        return percent

    monkeypatch.setattr(watching, "_PATIENCE", 0.0)
    monkeypatch.setattr(watching, "_BETWEEN", 0.0)
    watching._show(outcome, progress)
    erased = "\r\x1b[2K"
    lines = ["counting, 0 s", "counting, 0 s, 12%", "counting, 0 s, 100%"]
    assert capsys.readouterr() == ("", "".join(erased + line for line in [*lines, ""]))


def test_what_runs_in_the_thread_of_the_caller_is_shown_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watching, "is_watched", lambda: True)
    monkeypatch.setattr(watching, "_PATIENCE", 0.0)
    data = pl.LazyFrame({"o": [0, 1], "d": [1, 1]}).map_batches(
        lambda rows: time.sleep(0.3) or rows
    )
    count_transitions(data, origin="o", destination="d", states=[0, 1])
    printed, shown = capsys.readouterr()
    assert printed == ""
    assert "counting, 0 s" in shown
    assert shown.endswith("\r\x1b[2K")


def test_nothing_is_shown_where_nobody_watches(tmp_path: Path) -> None:
    with start(tmp_path, 5_000, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        printed, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert printed == b"counting\ncounted\n"
    assert errors == b""


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 4096)
    except OSError:  # the other end is closed
        return b""
