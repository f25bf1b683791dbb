"""The ledger on the command line, as an officer and an analyst use it."""

from __future__ import annotations

import csv
import json
import sys

import pytest

import dpmarkov as dpm

from .conftest import TARGET, TRIPS

BUDGET = ("--unit", "transition", "--epsilon", 3, "--delta", 1e-5)
CHARGED = ("--ledger", "ledger.db", "--dataset", "trips")
GEOMETRIC = ("--mechanism", "geometric")


@pytest.fixture
def budget(here, events):
    """Make a ledger with a data set."""
    assert here("ledger", "init", "ledger.db").code == 0
    assert here("ledger", "add", "ledger.db", "trips", *BUDGET).code == 0


def test_from_a_budget_to_an_audit_as_processes(process, here, events, tmp_path):
    done = process("ledger", "init", "ledger.db")
    assert done.code == 0, done.err
    assert "ledger.db is ready" in done.out
    done = here("ledger", "add", "ledger.db", "trips", *BUDGET)
    assert "Added 'trips'" in done.out
    done = process("release", *TRIPS, *TARGET, *GEOMETRIC, *CHARGED, "-o", "out.json")
    assert done.code == 0, done.err
    charge = dpm.load(tmp_path / "out.json").charge
    assert f"Charged to a ledger as {charge}" in done.out
    done = here("ledger", "show", "ledger.db", "--dataset", "trips")
    assert charge in done.out
    assert "out.json" in done.out
    done = here("ledger", "remaining", "ledger.db", "trips", *GEOMETRIC, "--delta", 1e-6)
    left = float(done.out.partition("may have epsilon = ")[2].split()[0])
    assert 2 <= left < 3
    more = ("release", *TRIPS, "--unit", "transition", "--delta", 1e-6, *GEOMETRIC, *CHARGED)
    done = process(*more, "--epsilon", left * 1.01, "-o", "more.json")
    assert done.code == 2
    assert f"may have epsilon = {left:g} at most" in done.message
    assert "Traceback" not in done.err
    assert not (tmp_path / "more.json").exists()
    done = here(*more, "--epsilon", left, "-o", "more.json")
    assert done.code == 0, done.err
    done = process("ledger", "verify", "ledger.db")
    assert "The ledger is whole: 5 entries" in done.out
    head = done.out.split()[-1]
    assert here("ledger", "verify", "ledger.db", "--head", head).code == 0
    done = here("ledger", "export", "ledger.db", "-o", "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows] == ["dataset", *["charge", "confirmation"] * 2]
    assert head == f"5:{rows[-1]['hash']}"


def test_json_is_all_that_is_printed(here, budget, tmp_path):
    commands = [
        ("ledger", "init", "other.db"),
        ("ledger", "add", "other.db", "walks", *BUDGET),
        ("release", *TRIPS, *TARGET, *CHARGED, "--part", "2025-01", "-o", "out.json"),
        ("ledger", "show", "ledger.db"),
        ("ledger", "remaining", "ledger.db", "trips", *GEOMETRIC, "--part", "2025-02"),
        ("ledger", "verify", "ledger.db"),
        ("ledger", "export", "ledger.db", "-o", "rows.json"),
    ]
    said = []
    for command in commands:
        done = here(*command, "--json")
        assert done.code == 0, done.err
        assert done.err == ""
        said.append(json.loads(done.out))
    charge = said[3]["datasets"][0]["charges"][0]
    assert charge["id"] == said[2]["charge"]
    assert (charge["part"], charge["artefacts"]) == ("2025-01", ["out.json"])
    assert said[4]["remaining"] == 3
    assert said[3]["head"] == said[5]["head"]
    assert json.loads((tmp_path / "rows.json").read_text())["head"] == said[5]["head"]


def test_what_fits_at_no_epsilon_is_told(here, events):
    assert here("ledger", "init", "ledger.db").code == 0
    pure = ("--unit", "transition", "--epsilon", 1, "--delta", 0)
    assert here("ledger", "add", "ledger.db", "trips", *pure).code == 0
    done = here("ledger", "remaining", "ledger.db", "trips", *GEOMETRIC, "--delta", 1e-6)
    assert "does not fit, at any epsilon. Of the budget, epsilon = 0 of 1 is spent" in done.out


def test_merging_takes_its_share_from_the_ledger(here, budget, tmp_path):
    ring = "a,b\nnorth,east\neast,south\nsouth,west\nwest,north\n"
    (tmp_path / "ring.csv").write_text(ring)
    merge = ("--merge", "ring.csv", "--merge-to", 3)
    done = here("release", *TRIPS, *TARGET, *CHARGED, *merge, "-o", "out.json")
    assert done.code == 0, done.err
    (trips,) = dpm.Ledger(tmp_path / "ledger.db").datasets()
    assert [charge.purpose for charge in trips.charges()] == ["merging", "release"]
    assert trips.charges()[0].guarantee.epsilon == 0.1
    assert "for merging" in here("ledger", "show", "ledger.db", "--dataset", "trips").out


def test_merging_takes_nothing_from_a_budget_that_the_release_does_not_fit(here, budget, tmp_path):
    (tmp_path / "ring.csv").write_text("a,b\nnorth,east\neast,south\nsouth,west\n")
    merge = ("--merge", "ring.csv", "--merge-to", 3, "--merge-epsilon", 0.5)
    target = ("--unit", "transition", "--delta", 1e-6, "--epsilon", 9)
    done = here("release", *TRIPS, *target, *CHARGED, *merge, "-o", "out.json")
    assert done.code == 2
    assert "Nothing was charged, nor was the 0.5 that would go before it" in done.message
    assert not dpm.Ledger(tmp_path / "ledger.db").dataset("trips").charges()


def test_every_command_has_help_with_an_example(here):
    for command in ("init", "add", "show", "remaining", "verify", "export"):
        done = here("ledger", command, "--help")
        assert done.code == 0
        assert f"dpmarkov ledger {command} ledger.db" in done.out.split("Example:")[1]
        assert "--json" in done.out


CASES = {
    "no ledger": (("show", "none.db"), "make one with dpmarkov ledger init"),
    "an unknown data set": (("remaining", "ledger.db", "trps"), "did you mean 'trips'"),
    "a data set twice": (("add", "ledger.db", "trips", *BUDGET), "already"),
    "no budget": (("add", "ledger.db", "x", "--unit", "transition"), "--epsilon"),
    "a budget that is none": (("add", "ledger.db", "x", *BUDGET[:3], 0, *BUDGET[4:]), "above 0"),
    "delta 0 with gamma noise": (
        ("remaining", "ledger.db", "trips", "--delta", 0), "--mechanism geometric"),
    "a head that is none": (("verify", "ledger.db", "--head", "abc"), "a head is"),
    "an export that exists": (("export", "ledger.db", "-o", "there.csv"), "--force"),
    "an export of another kind": (("export", "ledger.db", "-o", "rows.txt"), ".csv or .json"),
    "a database of another kind": (("init", "oracle://me:pa55word@host/x"), "no place"),
    "a server that is not there": (
        ("show", "postgresql://me:pa55word@127.0.0.1:1/x"), "cannot be used"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_told_in_a_paragraph(here, budget, tmp_path, case):
    (tmp_path / "there.csv").write_text("mine")
    before = sorted(tmp_path.iterdir())
    command, word = CASES[case]
    done = here("ledger", *command)
    assert done.code == 2
    assert word in done.message
    assert "Traceback" not in done.err
    assert "pa55word" not in done.err
    assert done.out == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (CHARGED[:2], "--ledger and --dataset go together"),
        (CHARGED[2:], "--ledger and --dataset go together"),
        (("--part", "x"), "--ledger and --dataset go together"),
        ((*CHARGED[:3], "trps"), "did you mean 'trips'"),
        (("--ledger", "none.db", *CHARGED[2:]), "dpmarkov ledger init"),
        ((*CHARGED, "--unit", "destination"), "--unit destination does not add up"),
    ],
)
def test_a_ledger_that_cannot_be_charged_is_told_before_counting(
    here, budget, monkeypatch, options, word
):
    monkeypatch.setattr(dpm.counting, "count_transitions", None)  # counting would fail
    done = here("release", *TRIPS, *TARGET, *options, "-o", "out.json")
    assert done.code == 2
    assert word in done.message


def test_a_damaged_ledger_ends_with_2_and_names_the_entry(here, budget, tmp_path):
    import sqlite3

    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute("DROP TRIGGER dpmarkov_ledger_entries_update")
    connection.execute("UPDATE dpmarkov_ledger_entries SET epsilon = 300")
    connection.commit()
    connection.close()
    for command in (
        ("ledger", "verify", "ledger.db"),
        ("release", *TRIPS, *TARGET, *CHARGED, "-o", "out.json"),
    ):
        done = here(*command)
        assert done.code == 2
        assert "entry 1 (dataset of 'trips') was altered" in done.message
    assert not (tmp_path / "out.json").exists()


def test_a_full_disk_leaves_the_charge_and_says_so(process, here, budget, tmp_path):
    arguments = ("release", *TRIPS, *TARGET, *CHARGED, "-o", "out.json")
    # SQLite syncs by itself, so this disk is full for the release alone.
    program = (
        "import os, dpmarkov.cli as c\n"
        "def full(_): raise OSError(28, 'No space left on device')\n"
        "os.fsync = full\nc.main()"
    )
    done = process(*arguments, program=(sys.executable, "-c", program))
    assert done.code == 2
    assert "No space left" in done.message
    assert "counts all the same" in done.message
    assert "Traceback" not in done.err
    assert not (tmp_path / "out.json").exists()
    assert dpm.Ledger(tmp_path / "ledger.db").dataset("trips").spent() > 0.8
