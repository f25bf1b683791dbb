"""Whatever is done to a row is found and named; the database itself refuses to do it."""

from __future__ import annotations

import pytest

import dpmarkov as dpm
from dpmarkov.guarantee import Guarantee
from dpmarkov.noise import Geometric

from .conftest import run_sql, without_guards

TABLE = "dpmarkov_ledger_entries"
PURE = Guarantee("transition", 0.25, 0.0, Geometric(4.0), conditions=("as declared",))


@pytest.fixture
def charged(ledger):
    """Make six entries: a data set, four charges, a confirmation."""
    trips = ledger.add_dataset("trips", unit="transition", epsilon=2, delta=1e-6)
    ids = [ledger.dataset("trips", part="01").charge(PURE) for _ in range(4)]
    trips.confirm(ids[0], "out.json")
    assert ledger.verify().startswith("6:")
    return ledger


@pytest.mark.parametrize(
    "change",
    [
        "epsilon = 0.125", "epsilon = 0.25000000000000006", "delta = 1e-9", "noise = '{}'",
        "part = '02'", "part = NULL", "unit = 'destination'", "dataset = 'other'",
        "made_at = '2020-01-01'", "made_by = 'me'", "conditions = '[]'", "kind = 'confirmation'",
        "charge = '0'", "mechanism = 'gaussian'", "artefact = 'x'", "max_cells = 3",
        "purpose = 'merging'", f"hash = '{'0' * 64}'",
    ],
)  # fmt: skip
def test_an_altered_entry_is_named(charged, url, change):
    without_guards(url)
    run_sql(url, f"UPDATE {TABLE} SET {change} WHERE position = 3")
    with pytest.raises(dpm.DpmarkovError, match=r"entry 3 .* was altered"):
        charged.verify()


def test_a_removed_entry_is_named(charged, url):
    without_guards(url)
    run_sql(url, f"DELETE FROM {TABLE} WHERE position = 3")
    with pytest.raises(dpm.DpmarkovError, match=r"entry 3 is missing: .* entry 4"):
        charged.verify()
    run_sql(
        url, *(f"UPDATE {TABLE} SET position = {i - 1} WHERE position = {i}" for i in (4, 5, 6))
    )
    with pytest.raises(dpm.DpmarkovError, match=r"entry 3 .* was altered"):
        charged.verify()


def test_exchanged_entries_are_named(charged, url):
    without_guards(url)
    moves = ((3, 99), (4, 3), (99, 4))
    run_sql(url, *(f"UPDATE {TABLE} SET position = {b} WHERE position = {a}" for a, b in moves))
    with pytest.raises(dpm.DpmarkovError, match=r"entry 3 .* was altered"):
        charged.verify()


def test_an_entry_in_between_or_anew_is_named(charged, url, new_url):
    """An entry of another ledger, whole in itself, does not fit in here."""
    other = dpm.Ledger.create(new_url())
    for name in ("a", "b", "c"):
        other.add_dataset(name, unit="transition", epsilon=1, delta=0)
    foreign = other.entries()[2]
    without_guards(url)
    said = {k: v for k, v in vars(foreign).items() if v is not None}
    columns, values = ", ".join(said), ", ".join(map(repr, said.values()))
    run_sql(url, f"DELETE FROM {TABLE} WHERE position = 3",
            f"INSERT INTO {TABLE} ({columns}) VALUES ({values})")  # fmt: skip
    with pytest.raises(dpm.DpmarkovError, match=r"entry 3 \(dataset of 'c'\) does not follow"):
        charged.verify()


def test_an_added_entry_with_a_wrong_hash_is_named(charged, url):
    columns = "kind, dataset, made_at, made_by, made_with, previous"
    run_sql(url, f"INSERT INTO {TABLE} (position, hash, {columns}) "
                 f"SELECT 7, hash, {columns} FROM {TABLE} WHERE position = 6")  # fmt: skip
    with pytest.raises(dpm.DpmarkovError, match=r"entry 7 .* was altered"):
        charged.verify()


def test_an_end_that_was_cut_off_shows_against_the_head(charged, url):
    head = charged.verify()
    charged.add_dataset("more", unit="transition", epsilon=1, delta=0)
    charged.verify(head)
    without_guards(url)
    run_sql(url, f"DELETE FROM {TABLE} WHERE position > 4")
    charged.verify()
    with pytest.raises(dpm.DpmarkovError, match=r"there were 6 entries .* 4 are left"):
        charged.verify(head)
    for _ in range(3):
        charged.dataset("trips").charge(PURE)
    with pytest.raises(dpm.DpmarkovError, match="written anew"):
        charged.verify(head)
    with pytest.raises(dpm.DpmarkovError, match="a head is"):
        charged.verify("head")


def test_nothing_is_charged_to_a_damaged_ledger(charged, url):
    trips = charged.dataset("trips")
    without_guards(url)
    run_sql(url, f"UPDATE {TABLE} SET epsilon = 0.1 WHERE position = 2")
    with pytest.raises(dpm.DpmarkovError, match="damaged: entry 2 "):
        trips.charge(PURE)
    with pytest.raises(dpm.DpmarkovError, match="damaged: entry 2 "):
        charged.add_dataset("more", unit="transition", epsilon=1, delta=0)
    assert len(charged.entries()) == 6


@pytest.mark.parametrize("table", [TABLE, "dpmarkov_ledger_versions"])
@pytest.mark.parametrize(
    "statement",
    ["UPDATE {} SET made_with = 'x'", "DELETE FROM {}", "TRUNCATE {}",
     "INSERT OR REPLACE INTO {} SELECT * FROM {}"],
)  # fmt: skip
def test_the_database_refuses_to_alter_or_delete(charged, url, table, statement):
    postgres = url.startswith("postgresql")
    if ("TRUNCATE" in statement and not postgres) or ("REPLACE" in statement and postgres):
        pytest.skip("no statement of this database")
    with pytest.raises(dpm.DpmarkovError, match="append-only"):
        run_sql(url, statement.format(table, table))
    charged.verify()


def test_a_second_budget_that_was_smuggled_in_changes_nothing(charged):
    with charged.writing() as page:
        page.add("dataset", "trips", unit="transition", epsilon=99.0, delta=0.5)
    charged.verify()  # whoever may write can write this, but it does not raise the budget
    assert charged.dataset("trips").budget.epsilon == 2
