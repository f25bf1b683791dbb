"""What several test files need: where the reference data lie, and the hypothesis profile."""

from __future__ import annotations

import json
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
