"""Bad input gets a clear message, the right exit code, and loses nothing."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest

import dpmarkov as dpm

from .conftest import STATES, TARGET, TRIPS

OUT = ("-o", "out.json")


def edit(options, **changed):
    """Replace the values of options in a command line."""
    new = list(options)
    for name, value in changed.items():
        new[new.index(f"--{name}") + 1] = value
    return tuple(new)


@pytest.fixture
def published(tmp_path):
    """Publish something."""
    space = dpm.StateSpace(STATES)
    counts = dpm.TransitionCounts(space, np.arange(16) * 100 + 500)
    dpm.release(counts, epsilon=1, delta=1e-6, unit="transition").save(tmp_path / "out.json")
    return tmp_path / "out.json"


CASES = {
    "a missing column": (edit(TRIPS, origin="form"), TARGET, "did you mean 'from'"),
    "no such file": (("trips.parquet", *TRIPS[1:]), TARGET, "no file 'trips.parquet'"),
    "an unknown suffix": (("states.xyz", *TRIPS[1:]), TARGET, "states.xyz"),
    "unknown states": (edit(TRIPS, states="north,east"), TARGET, "--invalid drop"),
    "no states file": (edit(TRIPS, states="sates.txt"), TARGET, "sates.txt"),
    "no states": (TRIPS[:-2], TARGET, "--states"),
    "states twice": (edit(TRIPS, states="a,b,a"), TARGET, "'a' stands twice"),
    "no columns": (("trips.csv", *TRIPS[-2:]), TARGET, "--origin and --destination"),
    "two kinds of columns": ((*TRIPS, "--category", "from"), TARGET, "one of three ways"),
    "epsilon below 0": (TRIPS, edit(TARGET, epsilon=-1), "epsilon"),
    "epsilon not a number": (TRIPS, edit(TARGET, epsilon="nan"), "epsilon"),
    "epsilon a word": (TRIPS, edit(TARGET, epsilon="much"), "epsilon"),
    "delta above 1": (TRIPS, edit(TARGET, delta=2), "delta"),
    "delta 0": (TRIPS, edit(TARGET, delta=0), "delta"),
    "an unknown unit": (TRIPS, edit(TARGET, unit="trip"), "'trip'"),
    "no target": (TRIPS, (), "--epsilon"),
    "an infeasible target": (TRIPS, (*TARGET, "--prior", 2), "three ways out"),
    "a prior that is none": (TRIPS, (*TARGET, "--prior", "big"), "--prior"),
    "settings of another mechanism": (
        TRIPS, (*TARGET, "--mechanism", "geometric", "--prior", 9), "dirichlet"),
    "a floor under transition": (TRIPS, (*TARGET, "--assume-floor", 0.1), "--assume-floor"),
    "an exception that is no state": (
        (*TRIPS, "--state-except", "up"), TARGET, "'up'"),
    "an empty file": (("empty.csv", *TRIPS[1:]), TARGET, "'empty.csv' is empty"),
    "a file that is not what its suffix says": (("fake.parquet", *TRIPS[1:]), TARGET,
        "begins as text, not as Parquet"),
    "a support that is not strongly connected": (
        (*TRIPS, "--support", "halves.csv"), TARGET, "not strongly connected"),
    "a catch-all that is not named": ((*TRIPS, "--invalid", "other"), TARGET, "--other"),
    "the data as its own declaration": (
        (*edit(TRIPS, states="./trips.csv"), "--state-column", "from"), TARGET, "the data itself"),
    "the data by a pattern, and as its own declaration": (
        ("tr*.csv", *edit(TRIPS[1:], states="trips.csv"), "--state-column", "from"), TARGET,
        "the data itself"),
    "categories of transitions": (
        (*TRIPS[:-2], "--categories", "a,b"), TARGET, "--categories and --category go together"),
    "states beyond counting": (edit(TRIPS, states="1..99999999999"), TARGET, "99999999999 states"),
    "a total below 0": ((*TRIPS, "--expected-total", -5), TARGET, "--expected-total"),
    "a share above the whole": (
        (*TRIPS, "--merge", "halves.csv", "--merge-to", 2, "--merge-epsilon", 2), TARGET,
        "--merge-epsilon"),
    "counts of paths": (
        ("trips.csv", "--entity", "from", "--time", "to", "--state", "to", "--count", "to",
         "--states", "a,b"), TARGET, "not with paths"),
    "a gap between transitions": ((*TRIPS, "--max-gap", "2h"), TARGET, "go with paths"),
    "a gap that is no length of time": (
        ("trips.csv", "--entity", "from", "--time", "to", "--state", "to", "--max-gap", "soon",
         "--states", "a,b"), TARGET, "such as 30min, not 'soon'"),
    "a gap in hours where times are numbers": (
        ("walks.csv", "--entity", "id", "--time", "step", "--state", "at", "--max-gap", "2h",
         "--states", "a,b"), TARGET, "max_gap"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_told_in_a_paragraph(here, events, tmp_path, case):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "fake.parquet").write_text("from,to\nnorth,east\n")
    (tmp_path / "walks.csv").write_text("id,step,at\n1,1,a\n1,2,b\n")
    halves = [(a, b) for a in STATES for b in STATES if (a in STATES[:2]) == (b in STATES[:2])]
    (tmp_path / "halves.csv").write_text("a,b\n" + "\n".join(f"{a},{b}" for a, b in halves))
    before = sorted(tmp_path.iterdir())
    data, target, word = CASES[case]
    done = here("release", *data, *target, *OUT)
    assert done.code == 2
    assert word.lower() in done.message.lower()
    assert "Traceback" not in done.err
    assert done.out == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (("simulate", "out.json", "--walkers", 1, "--steps", 1, "-o", "w.csv", "--seed", -1),
         "--seed"),
        (("compare", "--states", "a,b", "--expected-total", 9e4, *TARGET, "--seed", -1), "--seed"),
        (("demo", "--seed", -1), "--seed"),
        (("simulate", "row.json", "--walkers", 1, "--steps", 1, "-o", "w.csv"), "no chain"),
        (("plan", *TRIPS[-2:], "--epsilon", 1, "--delta", 1e-6, "--unit", "destination",
          "--with-public-row-totals"), "needs DATA"),
    ],
)  # fmt: skip
def test_other_commands_tell_bad_input_too(here, events, published, tmp_path, command, word):
    counts = dpm.TransitionCounts(dpm.StateSpace(categories=["a", "b"]), np.array([900, 800]))
    dpm.release(counts, epsilon=1, delta=1e-6, unit="transition").save(tmp_path / "row.json")
    done = here(*command)
    assert done.code == 2
    assert word in done.message
    assert "unexpected" not in done.err


def test_the_states_that_cannot_be_reached_are_named(here, events, tmp_path):
    edges = [(a, b) for a in STATES for b in STATES if b != "west" or a == "west"]
    (tmp_path / "support.csv").write_text("a,b\n" + "\n".join(f"{a},{b}" for a, b in edges))
    for command in ("plan", "compare"):
        done = here(command, "--states", "states.txt", "--support", "support.csv", *TARGET)
        assert done.code == 2
        assert "{'west'} cannot be reached" in done.message


def test_nothing_is_overwritten_without_force(here, events, published):
    before = published.read_bytes()
    for command in (
        ("release", *TRIPS, *TARGET, *OUT),
        ("simulate", published, "--walkers", 1, "--steps", 1, "-o", "trips.csv"),
        ("demo", "--folder", ".", "--zones", 5, "--trips", 5000),
    ):
        (published.parent / "release.json").write_text("mine")
        done = here(*command)
        assert done.code == 2, command
        assert "--force" in done.message
    assert published.read_bytes() == before
    assert not (published.parent / "trips.parquet").exists()
    assert (published.parent / "release.json").read_text() == "mine"
    assert here("release", *TRIPS, *TARGET, *OUT, "--force").code == 0
    assert published.read_bytes() != before


def test_a_target_that_cannot_be_written_is_refused_before_any_work(here, events, monkeypatch):
    monkeypatch.setattr(dpm.counting, "count_transitions", None)  # counting would fail
    (events.parent / "folder.json").mkdir()
    for target, word in (
        ("absent/out.json", "no folder absent"),
        ("out.txt", "must end in .json or .parquet"),
        ("folder.json", "is a folder"),
    ):
        done = here("release", *TRIPS, *TARGET, "-o", target, "--force")
        assert done.code == 2
        assert word in done.message
    monkeypatch.setattr(os, "access", lambda *_: False)
    done = here("release", *TRIPS, *TARGET, *OUT)
    assert (done.code, done.out) == (2, "")
    assert "the folder . cannot be written to" in done.message


@pytest.mark.parametrize("command", ["release", "simulate", "demo"])
def test_a_full_disk_leaves_nothing_behind(process, events, tmp_path, command):
    space = dpm.StateSpace(range(60))
    counts = dpm.TransitionCounts(space, np.full(3600, 50))
    dpm.release(counts, epsilon=1, delta=1e-6, unit="transition").save(tmp_path / "big.parquet")
    arguments = {
        "release": (*TRIPS, *TARGET, *OUT),
        "simulate": ("big.parquet", "--walkers", 4000, "--steps", 20, "-o", "walks.csv"),
        "demo": ("--folder", "city", "--zones", 5, "--trips", 50_000),
    }[command]
    before = files(tmp_path)
    # A limit on the size of files stands in for a disk without room.
    done = process(command, *arguments, preexec_fn=lambda: limit_files(1000))
    assert done.code == 2, done.err
    assert "cannot write" in done.message
    assert "Traceback" not in done.err
    assert files(tmp_path) == before


def files(folder):
    """Read all files below a folder, hidden ones too."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_demo_that_fails_leaves_the_city_of_an_earlier_one_as_it_was(process, here, tmp_path):
    small = ("demo", "--folder", "city", "--zones", 5, "--trips", 9000)
    assert here(*small).code == 0
    before = files(tmp_path)
    again = ("demo", "--folder", "city", "--zones", 5, "--trips", 50_000, "--force")
    assert process(*again, preexec_fn=lambda: limit_files(1000)).code == 2
    assert files(tmp_path) == before
    for wrong in (("--epsilon", -1), ("--delta", 0)):  # refused before anything is written
        assert here("demo", "--folder", "new", "--zones", 5, "--trips", 9000, *wrong).code == 2
    assert files(tmp_path) == before


def limit_files(size):
    """Let this process write files up to a size."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("command", ["show", "simulate"])
def test_an_altered_artefact_is_refused(here, published, command):
    more = ("--walkers", 1, "--steps", 1, "-o", "w.csv") if command == "simulate" else ()
    text = published.read_text()
    for altered, word in (
        (text.replace('"epsilon": 1.0', '"epsilon": 0.5'), "checksum"),
        (text.replace("probability", "likelihood"), "out.json"),
        (text[: len(text) // 2], "not a release that can be read"),
        ("[1, 2]", "out.json"),
    ):
        published.write_text(altered)
        done = here(command, published, *more)
        assert done.code == 2
        assert word in done.message
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("state,total\nnorth,5\n", "no total for 'east'"),
        ("state,total\nnorth,many\n", "a number in each line"),
        ("state,total\n", "no line after its header"),
    ],
)
def test_bad_public_totals_are_told(here, events, tmp_path, text, word):
    (tmp_path / "totals.csv").write_text(text)
    done = here("plan", "--states", "states.txt", "--row-totals", "totals.csv", *TARGET)
    assert done.code == 2
    assert word in done.message


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--state-column", "ctiy"), "did you mean 'city'"),
        (("--state-where", "city"), "COLUMN=VALUE"),
        (("--state-where", "city=lost"), "no line"),
    ],
)
def test_bad_choices_of_states_are_told(here, tmp_path, options, word):
    (tmp_path / "zones.csv").write_text("id,city\n1,old\n2,new\n")
    done = here("plan", "--states", "zones.csv", *options, *TARGET)
    assert done.code == 2
    assert word in done.message


def test_no_message_shows_a_value_of_the_data(here, events, tmp_path):
    secret = "xq7secret"
    lines = events.read_text().splitlines()
    events.write_text("\n".join([*lines, f"{secret},north", f"north,{secret}"]) + "\n")
    (tmp_path / "counted.csv").write_text(f"from,to,n\nnorth,east,{secret}\nnorth,south,-12345\n")
    (tmp_path / "bad.json").write_text('{"from": "north", "to": "xq7secret"')
    (tmp_path / "zeros.csv").write_text("from,to\n" + "north,east\n" * 4321)
    for data, more in (
        (TRIPS, ()),
        (("counted.csv", *TRIPS[1:], "--count", "n"), ()),
        (("bad.json", *TRIPS[1:]), ()),
        (("zeros.csv", *TRIPS[1:]), ("--assume-floor", 0.01)),
    ):
        target = edit(TARGET, unit="destination")
        done = here("release", *data, *target, *more, *OUT)
        assert done.code == 2
        for value in (secret, "12345", "4321", "20000", "20002"):
            assert value not in done.err + done.out


def test_a_mistake_of_ours_ends_with_1_and_shows_its_place_on_demand(here, events, monkeypatch):
    import dpmarkov.privatize

    def broken(*_, **__):
        raise KeyError("xq7secret")

    monkeypatch.setattr(dpmarkov.privatize, "release", broken)
    done = here("release", *TRIPS, *TARGET, *OUT)
    assert done.code == 1
    assert "unexpected KeyError" in done.message
    assert "xq7secret" not in done.err
    assert "Traceback" not in done.err
    done = here("release", *TRIPS, *TARGET, *OUT, "--debug")
    assert done.code == 1
    assert "Traceback" in done.err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("show", "none.json"), "no file"),
        (("plan", "--states", "a,b"), "--epsilon"),
        (("show",), "FILE"),
        (("relase",), "'release'"),
        (("ledger", "show", "none.db"), "no ledger"),
    ],
)
def test_whoever_asked_for_json_gets_errors_as_json(process, arguments, word):
    done = process(*arguments, "--json")
    assert done.code == 2
    assert word in json.loads(done.out)["error"]
    assert done.message.startswith("error: ")


def test_a_full_standard_output_is_an_error_and_no_traceback(process, published):
    # Unbuffered, what cannot be written is gone at once; else Python tries once more at its end.
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        for more in ((), ("--json",)):
            arguments = [sys.executable, "-m", "dpmarkov", "show", str(published), *more]
            done = subprocess.run(
                arguments, stdout=full, stderr=subprocess.PIPE, text=True, env=buffered
            )
            assert done.returncode == 2
            assert done.stderr.startswith("error: output: ")
            assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("moment", ["typer", "numpy", "dpmarkov.files"])
def test_an_interruption_ends_with_130_and_says_nothing(process, published, moment):
    # As if Ctrl-C were pressed while this is imported: the command line, or the command's work.
    code = (
        "import sys; from importlib.abc import MetaPathFinder as Finder\n"
        "class Pressed(Finder):\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == '{moment}': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        f"sys.argv = ['dpmarkov', 'show', '{published}', *sys.argv[1:]]\n"
        "from dpmarkov.cli import main; main()"
    )
    for more in ((), ("--json",)):
        done = process("-c", code, *more, program=(sys.executable,))
        assert (done.code, done.out, done.err) == (130, "", "")


def test_debug_shows_the_traceback_of_an_expected_error_too(here, events):
    done = here("release", *edit(TRIPS, origin="form"), *TARGET, *OUT, "--debug")
    assert done.code == 2
    assert "Traceback" in done.err


def test_warnings_are_lines_on_standard_error(here, events, monkeypatch):
    import warnings

    import dpmarkov.privatize

    true = dpmarkov.privatize.release

    def warning(*args, **kwargs):
        warnings.warn("take care", UserWarning, stacklevel=2)
        return true(*args, **kwargs)

    monkeypatch.setattr(dpmarkov.privatize, "release", warning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = here("release", *TRIPS, *TARGET, *OUT, "--json")
    assert done.err == "warning: take care\n"
    assert json.loads(done.out)["file"] == "out.json"


def test_a_closed_pipe_is_no_error(process, published):
    done = process(
        "-c", f"{sys.executable} -m dpmarkov show {published} | head -n 1",
        program=("bash",), env={**os.environ},
    )  # fmt: skip
    assert done.code == 0
    assert "Traceback" not in done.err
