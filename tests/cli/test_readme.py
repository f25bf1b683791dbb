"""The README's commands do what the README says, pasted into a shell."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from .conftest import script

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def shell_blocks() -> list[str]:
    return re.findall(r"```sh\n(.*?)```", README, re.S)


def without_noise(line: str) -> str:
    """Mask what differs from run to run: numbers, their width, and who of two equals is first."""
    masked = " ".join(re.sub(r"[\d.,e-]*\d", "#", line).split())
    return re.sub(r"^[A-Z]\w+ [A-Z]\w+ #$", "a state and its share", masked)


def run(command: str, folder: Path) -> str:
    beside = {**os.environ, "PATH": f"{Path(script()[0]).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-ec", command], cwd=folder, env=beside, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the README's first command, but for the installation."""
    folder = tmp_path_factory.mktemp("readme")
    install, _, demo = shell_blocks()[0].strip().partition(" && ")
    assert install == "pip install ."
    assert demo == "dpmarkov demo"
    return folder, run(demo, folder)


def test_the_demo_prints_what_the_readme_shows(demonstrated):
    _, printed = demonstrated
    shown = README.split("It printed:")[1].split("```text\n")[1].split("```")[0]
    lines = {without_noise(line) for line in printed.splitlines()}
    assert [line for line in shown.splitlines() if without_noise(line) not in lines] == []


def test_the_commands_for_one_s_own_trips_can_be_pasted(demonstrated):
    folder, _ = demonstrated
    (own,) = [block for block in shell_blocks() if block.startswith("dpmarkov plan")]
    for command in ("release", "show", "simulate"):
        assert f"\ndpmarkov {command} " in own
    printed = run(own, folder / "dpmarkov-demo")
    for words in ("Feasible: yes", "Wrote chain.json", "mixing time", "Wrote walks.csv"):
        assert words in printed
    assert "Advice" not in printed.split("Wrote chain.json")[1]  # the best noise was chosen
