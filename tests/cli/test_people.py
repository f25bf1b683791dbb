"""Whole people on the command line: bounds, given or chosen from a share of the budget."""

from __future__ import annotations

import json

import pytest

import dpmarkov as dpm

from .conftest import TARGET, TRIPS

PERSON = ("--epsilon", 2, "--delta", 1e-6, "--unit", "user")


@pytest.fixture
def people(tmp_path, events):
    """Give every trip to one of 5,000 people."""
    lines = events.read_text().splitlines()
    named = [f"{line},{i % 5000}" for i, line in enumerate(lines[1:])]
    (tmp_path / "trips.csv").write_text("\n".join([f"{lines[0]},who", *named]) + "\n")


def test_release_of_people_as_a_process(process, people, tmp_path):
    bounds = ("--max-cells", 4, "--max-per-cell", 2)
    planned = process("plan", *TRIPS, *PERSON, *bounds, "--expected-total", 20_000)
    assert planned.code == 0, planned.err
    assert "What other bounds of a user would cost" in planned.out
    made = process("release", *TRIPS, *PERSON, *bounds, "--user", "who", "-o", "out.json")
    assert made.code == 0, made.err
    assert "It hides whether any single person is in the data at all" in made.out
    assert dpm.load(tmp_path / "out.json").guarantee.max_cells == 4
    shown = process("show", "out.json", "--json")
    assert json.loads(shown.out)["guarantee"]["max_per_cell"] == 2


def test_bounds_from_a_share_on_the_command_line(here, people, tmp_path):
    options = ("--user", "who", "--max-cells", "auto", "--max-per-cell", "auto")
    made = here("release", *TRIPS, *PERSON, *options, "-o", "out.json")
    assert made.code == 0, made.err
    guarantee = dpm.load(tmp_path / "out.json").guarantee
    assert (guarantee.max_cells, guarantee.spent_epsilon) == (4, 0.2)
    compared = here("compare", *TRIPS, *PERSON, *options, "--draws", 3)
    assert compared.code == 0, compared.err
    assert "CURATOR ONLY" in compared.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("release", *TRIPS, *PERSON, "-o", "o.json"), "--unit user needs --user COLUMN"),
        (
            ("release", *TRIPS, *PERSON, "--user", "who", "--max-cells", "few", "--max-per-cell",
             "1", "-o", "o.json"),
            "--max-cells must be a whole number of at least 1, not 'few'",
        ),
        (("release", *TRIPS, *TARGET, "--user", "who", "-o", "o.json"), "go with --unit user"),
        (("plan", *TRIPS, *PERSON), "needs --max-cells: how much"),
        (("plan", *TRIPS, *PERSON, "--max-cells", "auto"), "--max-cells must be a whole number"),
        (
            ("release", *TRIPS, *PERSON, "--user", "who", "--max-cells", "4", "--max-per-cell",
             "1", "--bounds-epsilon", "0.1", "-o", "o.json"),
            "--bounds-epsilon go together",
        ),
    ],
)  # fmt: skip
def test_bounds_that_do_not_fit_are_named_as_options(here, people, arguments, message, tmp_path):
    done = here(*arguments)
    assert done.code == 2, done.out
    assert message in done.message
    assert not (tmp_path / "o.json").exists()
