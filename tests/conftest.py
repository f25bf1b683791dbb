"""What several test files need: reference data, a PostgreSQL server, the hypothesis profile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("dpmarkov", deadline=None, derandomize=True)
settings.load_profile("dpmarkov")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def oracles() -> dict[str, list[dict[str, Any]]]:
    """Reference values to 18 digits, computed with mpmath at 60 digits."""
    path = SHARED / "oracles" / "privacy.json"
    if not path.exists():
        pytest.skip(f"no reference values at {path}")
    return json.loads(path.read_text())


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real data sets, which lies beside the project and never in it."""
    path = SHARED / "data"
    if not path.exists():
        pytest.skip(f"no real data at {path}")
    return path


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Start a PostgreSQL server of our own on a free local port, as a user that may run it."""
    programs = [shutil.which("initdb"), *sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    found = next((program for program in programs if program), None)
    if found is None:
        pytest.skip("no PostgreSQL server on this machine")
    bin_ = Path(found).resolve().parent
    as_user: dict[str, Any] = {"user": "postgres"} if os.geteuid() == 0 else {}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if as_user:
            shutil.chown(folder, "postgres")
        silent: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL,
                                  "stderr": subprocess.DEVNULL, **as_user}  # fmt: skip
        cluster = [bin_ / "initdb", "-D", f"{folder}/data", "-U", "tester", "-A", "trust", "-N"]
        subprocess.run(cluster, check=True, **silent)
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
        server = subprocess.Popen(
            [bin_ / "postgres", "-D", f"{folder}/data", "-p", str(port), "-F", *options], **silent
        )
        ready = [bin_ / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-t", "30"]
        try:
            while server.poll() is None and subprocess.run(ready, **silent).returncode:
                time.sleep(0.1)
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
            server.wait(30)
