"""The package as a stranger meets it: light to import, complete, and as the README says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpmarkov as dpm

ROOT = Path(__file__).resolve().parents[1]


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, dpmarkov; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"numpy", "scipy", "pyarrow", "flint", "duckdb", "pandas"}


def test_every_public_name_exists_and_stands_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    for name in dpm.__all__:
        assert getattr(dpm, name) is not None
        assert name in readme, name
    assert set(dpm.__all__) < set(dir(dpm))
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = dpm.absent


def test_the_public_side_never_imports_the_sensitive_side():
    public = ["artefact", "files", "guarantee", "chain", "accuracy", "privacy", "states", "ledger"]
    public += ["mechanisms", "noise", "postprocessing"]
    code = f"import sys, {', '.join('dpmarkov.' + name for name in public)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "dpmarkov.artefact" in loaded
    assert not [m for m in loaded if m.startswith(("dpmarkov.counts", "dpmarkov.counting"))]


def test_the_readme_s_example_is_the_one_that_runs(tmp_path):
    readme = (ROOT / "README.md").read_text()
    example = (ROOT / "examples" / "commute.py").read_text()
    section = readme.split("## The same in Python")[1]
    shown = re.search(r"```python\n(.*?)```\n.*?```text\n(.*?)```", section, re.S)
    assert shown[1] in example
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "commute.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    # All but the digits of the noise is as shown.
    noisy = r"\d\.\d{4}|\d+ cells|mixing time \d+"
    for line, ran in zip(shown[2].splitlines(), done.stdout.splitlines(), strict=True):
        assert re.sub(noisy, "#", line) == re.sub(noisy, "#", ran)
    assert (tmp_path / "commute.json").exists()


def test_the_figures_in_the_readme_are_what_the_library_gives():
    readme = (ROOT / "README.md").read_text()
    # the paper's New York setting: smallest count 11, k = 1.5 / eta, hence r = k / N = 1.5 / 11
    exact = dpm.privacy.epsilon("destination", rate=1.5 / 11, mass=11, delta=3e-6)
    assert f"epsilon is {exact:.2f} where the paper's bound says 3.73" in readme
    one = dpm.privacy.epsilon("destination", rate=1.0, mass=20, delta=1e-6)
    assert f"delta=1e-6)  # {one:.4f}" in readme
    least = dpm.privacy.minimum_mass("destination", epsilon=1.0, delta=1e-6)
    assert f"delta=1e-6)  # {least:.3f}" in readme


def test_the_version_is_the_one_installed():
    from importlib.metadata import version

    assert version("dpmarkov") == dpm.__version__
