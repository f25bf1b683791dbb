"""Stopped by Ctrl-C nothing stays behind; on a terminal a long count shows that it moves."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpmarkov.counting.engines import plain_errors

# Counts a cross join that would take hours, unless it is told how many rows to make.
SCRIPT = """
import sys, duckdb
from dpmarkov.counting import count_transitions, files
rows = int(sys.argv[1])
query = f"SELECT a.range % 2 AS o, b.range % 2 AS d FROM range({rows}) a, range({rows}) b"
def read(connection, *_, **__):
    ((shows,),) = connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()
    if shows:
        connection.execute("SET progress_bar_time = 1")  # milliseconds; would also enable it
    print("counting", flush=True)
    return connection.sql(query)
files._parquet = read
count_transitions(sys.argv[2], origin="o", destination="d", states=[0, 1])
"""


@contextmanager
def start(tmp_path: Path, rows: int, **streams: int) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "temp").mkdir()
    (tmp_path / "rows.parquet").write_bytes(b"replaced by the query above")
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(rows), str(tmp_path / "rows.parquet")],
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


# While it begins, while DuckDB gathers the rows of one side, and while it joins and counts.
@pytest.mark.parametrize("seconds", [0.1, 0.45, 0.8])
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, seconds: float) -> None:
    with start(tmp_path, 10**8, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    assert os.listdir(tmp_path / "temp") == []
    assert sorted(os.listdir(tmp_path)) == ["rows.parquet", "temp"]


def test_a_query_that_duckdb_calls_interrupted_is_a_keyboard_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), plain_errors():
        raise RuntimeError("Query interrupted")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_long_counting_shows_progress_on_a_terminal(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    with start(tmp_path, 5_000, stdout=follower, stderr=follower) as process:
        os.close(follower)
        shown = b""
        while chunk := _read(leader):
            shown += chunk
        assert process.wait(60) == 0
    os.close(leader)
    assert b"%" in shown


def test_nothing_is_shown_where_nobody_watches(tmp_path: Path) -> None:
    with start(tmp_path, 5_000, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        printed, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert printed == b"counting\n"
    assert errors == b""


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 4096)
    except OSError:  # the other end is closed
        return b""
