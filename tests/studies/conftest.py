"""All studies run once, from the command line, in their fast variant and without real data."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import run, strict

from dpmarkov.planning import Estimate


@pytest.fixture(scope="session")
def all_studies(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], Path]:
    folder = tmp_path_factory.mktemp("studies")
    out = folder / "not" / "there" / "yet"
    return run("studies", "--fast", "--out", out, "--data", folder), out


@pytest.fixture(scope="session")
def figures_of(all_studies: Any) -> Any:
    """Return a function that gives the figures of a study by its name."""
    _, out = all_studies

    def estimates(found: dict[str, Any]) -> Any:
        return Estimate(**found) if set(found) == {"mean", "low", "high"} else found

    return lambda name: strict((out / f"{name}.json").read_text(), object_hook=estimates)["figures"]
