"""Running commands: as a user does, in a process of their own; or here, where that is enough."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from dpmarkov.cli.app import app

STATES = ["north", "east", "south", "west"]


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """Standard error without line breaks."""
        return " ".join(self.err.split())


Run = Callable[..., Done]


@pytest.fixture
def process(tmp_path: Path) -> Run:
    """Run ``python -m dpmarkov`` in a process of its own, in the temporary folder."""

    def run(*arguments: object, program: tuple[str, ...] = (), **more: object) -> Done:
        command = [*(program or (sys.executable, "-m", "dpmarkov")), *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, **more)
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Run:
    """Run a command in this process, in the temporary folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Done:
        with pytest.raises(SystemExit) as end:
            app([*map(str, arguments)], prog_name="dpmarkov")
        return Done(int(end.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Write 20,000 trips between four states, the states, and a support that has them all."""
    rng = np.random.default_rng(8)
    rows = [f"{STATES[i]},{STATES[j]}" for i, j in rng.integers(0, 4, (20_000, 2))]
    (tmp_path / "trips.csv").write_text("from,to\n" + "\n".join(rows) + "\n")
    (tmp_path / "states.txt").write_text("\n".join(STATES) + "\n")
    return tmp_path / "trips.csv"


def script() -> tuple[str, ...]:
    """Find the installed script."""
    beside = Path(sys.executable).parent / "dpmarkov"
    found = str(beside) if beside.exists() else shutil.which("dpmarkov")
    if found is None:
        pytest.skip("the package is not installed with its script")
    return (found,)


TRIPS = ("trips.csv", "--origin", "from", "--destination", "to", "--states", "states.txt")
TARGET = ("--epsilon", 1, "--delta", 1e-6, "--unit", "transition")
