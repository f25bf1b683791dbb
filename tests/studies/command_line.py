"""Run a study as a newcomer does, and read what it wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: Any, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def strict(text: str, **how: Any) -> Any:
    """Read JSON, in which there is no NaN and no infinity."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"), **how)
