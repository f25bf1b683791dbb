"""Where a ledger lies: versions and migration, places that cannot be, and what is said of them."""

from __future__ import annotations

import importlib
import json
import pickle
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dpmarkov as dpm
from dpmarkov.guarantee import Guarantee
from dpmarkov.ledger import database
from dpmarkov.ledger.entries import Entry, linked
from dpmarkov.noise import Geometric

from .conftest import run_sql, without_guards

PURE = Guarantee("transition", 0.25, 0.0, Geometric(4.0), conditions=())

# Version 1 knew no parts, and version 2 not which charge another one follows.
V1 = (
    """CREATE TABLE dpmarkov_ledger_entries (
        position INTEGER NOT NULL PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL,
        made_at TEXT NOT NULL, made_by TEXT NOT NULL, made_with TEXT NOT NULL, unit TEXT,
        epsilon DOUBLE PRECISION, delta DOUBLE PRECISION, charge TEXT, purpose TEXT,
        mechanism TEXT, noise TEXT, max_cells BIGINT, max_per_cell BIGINT, conditions TEXT,
        artefact TEXT, previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    """CREATE TABLE dpmarkov_ledger_versions (
        version INTEGER NOT NULL PRIMARY KEY, made_at TEXT NOT NULL, made_with TEXT NOT NULL)""",
    "INSERT INTO dpmarkov_ledger_versions VALUES (1, '2026-01-01T00:00:00+00:00', '0.0.9')",
)
V2 = (
    *V1,
    "ALTER TABLE dpmarkov_ledger_entries ADD COLUMN part TEXT",
    "INSERT INTO dpmarkov_ledger_versions VALUES (2, '2026-02-01T00:00:00+00:00', '0.0.9')",
)


@pytest.fixture(params=[V1, V2], ids=["version 1", "version 2"])
def old(request, url):
    """Write an older ledger: a data set and a charge."""
    made = {"made_at": "2026-01-01T00:00:00+00:00", "made_by": "ann", "made_with": "0.0.9"}
    said = {"epsilon": 0.1, "delta": 0.0, "unit": "transition", "mechanism": "geometric"}
    entries: list[Entry] = []
    for content in (
        {"kind": "dataset", "unit": "transition", "epsilon": 1.0, "delta": 1e-7},
        {"kind": "charge", "charge": "c0ffee", "purpose": "release", "conditions": "[]",
         "noise": json.dumps({"scale": 10.0}), **said},
    ):  # fmt: skip
        entries.append(linked(Entry(position=0, dataset="trips", **made, **content), entries))
    run_sql(url, *request.param)
    for entry in entries:
        row = {k: v for k, v in vars(entry).items() if v is not None}
        values = ", ".join(map(repr, row.values()))
        run_sql(url, f"INSERT INTO dpmarkov_ledger_entries ({', '.join(row)}) VALUES ({values})")
    return url


def test_an_older_ledger_is_brought_up_to_date_and_its_chain_stays_whole(old):
    with pytest.raises(
        dpm.DpmarkovError, match=r"version [12], and this .* writes 3; .*ledger init"
    ):
        dpm.Ledger(old)
    ledger = dpm.Ledger.create(old)
    assert ledger.verify().startswith("2:")
    trips = ledger.dataset("trips")
    assert 0.09 < trips.spent() <= 0.1
    ledger.dataset("trips", part="2026-02").charge(PURE)
    assert [charge.part for charge in trips.charges()] == [None, "2026-02"]
    head = ledger.verify()
    dpm.Ledger.create(old)  # once more: nothing to do
    assert ledger.verify() == head


def made_by_many_at_once(url):
    with ThreadPoolExecutor(8) as pool:
        return set(pool.map(lambda _: dpm.Ledger.create(url).verify()[:2], range(8)))


def test_a_ledger_may_be_migrated_by_many_at_once(old):
    assert made_by_many_at_once(old) == {"2:"}


def test_a_ledger_may_be_made_by_many_at_once(url):
    assert made_by_many_at_once(url) == {"0:"}
    run_sql(url, "INSERT INTO dpmarkov_ledger_versions VALUES (9, '', '')")
    with pytest.raises(dpm.DpmarkovError, match="version 9"):
        dpm.Ledger(url)


def test_a_newer_ledger_asks_for_a_newer_version(ledger, url):
    trips = ledger.add_dataset("trips", unit="transition", epsilon=1, delta=0)
    run_sql(url, "INSERT INTO dpmarkov_ledger_versions VALUES (4, '', '')")
    for use in (
        lambda: dpm.Ledger(url),
        lambda: dpm.Ledger.create(url),
        lambda: trips.charge(PURE),
    ):
        with pytest.raises(dpm.DpmarkovError, match=r"version 4, and this .* knows 3; install"):
            use()


def test_a_database_without_a_ledger_is_told(url):
    if url.startswith("postgresql"):
        with pytest.raises(dpm.DpmarkovError, match="holds no ledger; make one"):
            dpm.Ledger(url)
        return
    with pytest.raises(dpm.DpmarkovError, match=r"there is no ledger .*ledger init"):
        dpm.Ledger(url)
    assert not Path(url).exists()
    sqlite3.connect(url).close()
    Path(url).touch()
    with pytest.raises(dpm.DpmarkovError, match="holds no ledger; make one"):
        dpm.Ledger(url)


def test_an_administrator_may_withhold_the_right_to_alter_rows(url, counts, tmp_path):
    if not url.startswith("postgresql"):
        pytest.skip("SQLite has no roles")
    dpm.Ledger.create(url).add_dataset("trips", unit="transition", epsilon=1, delta=0)
    name = url.rpartition("%3D")[2]
    run_sql(url, f"CREATE ROLE {name} LOGIN", f"GRANT USAGE ON SCHEMA {name} TO {name}",
            f"GRANT SELECT, INSERT ON dpmarkov_ledger_entries TO {name}",
            f"GRANT SELECT ON dpmarkov_ledger_versions TO {name}")  # fmt: skip
    theirs = url.replace("tester@", f"{name}@")
    trips = dpm.Ledger(theirs).dataset("trips")
    out = dpm.release(counts, epsilon=1, delta=0, unit="transition", mechanism="geometric",
                      ledger=trips)  # fmt: skip
    out.save(tmp_path / "out.json")
    assert trips.charges()[0].artefacts == ("out.json",)
    with pytest.raises(dpm.DpmarkovError, match="permission denied"):
        run_sql(theirs, "DELETE FROM dpmarkov_ledger_entries")
    without_guards(url)
    run_sql(url, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_busy_ledger_is_told_after_a_while(ledger, url, monkeypatch):
    monkeypatch.setattr(database, "_PATIENCE", 0.2)
    database._engine.cache_clear()
    with ledger.writing(), pytest.raises(dpm.DpmarkovError, match="lock"):
        dpm.Ledger(url).add_dataset("trips", unit="transition", epsilon=1, delta=0)
    database._engine.cache_clear()


def test_a_ledger_is_named_without_its_password(new_url):
    url = new_url()
    ledger = dpm.Ledger.create(url.replace("tester@", "tester:pa55word@"))
    assert "pa55word" not in repr(ledger) + ledger.name
    assert pickle.loads(pickle.dumps(ledger)).verify() == ledger.verify()


SECRET = [
    "postgresql://me:pa55word@127.0.0.1:1/db",
    "postgres://me@127.0.0.1:1/db?password=pa55word",
    "postgresql://me:pa55word@127.0.0.1:port/db",
    "postgresql://me:pa55word@[/db",
    "mysql://me:pa55word@host/db",
    "postgresql+nix://me:pa55word@host/db",
    "postgresql://me@127.0.0.1:1/db?password=pa55word&sslmode=pa55word",
]


@pytest.mark.parametrize("url", SECRET)
@pytest.mark.parametrize("use", [dpm.Ledger, dpm.Ledger.create])
def test_no_message_shows_a_password(url, use):
    with pytest.raises(dpm.DpmarkovError) as error:
        use(url)
    assert "pa55word" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me@127.0.0.1:1/db", r"postgresql://me@127\.0\.0\.1:1/db cannot be used: .*"),
        ("sqlite://", "outlives the process"),
        ("sqlite:///:memory:", "outlives the process"),
        ("mysql://host/db", "mysql:// is no place"),
    ],
)
def test_places_that_cannot_be_are_told(url, message):
    with pytest.raises(dpm.DpmarkovError, match=message):
        dpm.Ledger.create(url)


def test_a_file_that_is_no_ledger_is_told(tmp_path):
    (tmp_path / "notes.db").write_text("just some notes, longer than the header of a database" * 9)
    for use in (dpm.Ledger, dpm.Ledger.create):
        with pytest.raises(dpm.DpmarkovError, match="file is not a database"):
            use(tmp_path / "notes.db")
        with pytest.raises(dpm.DpmarkovError, match=r"cannot be used|no ledger"):
            use(tmp_path / "absent" / "ledger.db")
    assert dpm.Ledger.create(tmp_path / "a%b #?.db").verify().startswith("0:")
    assert (tmp_path / "a%b #?.db").is_file()


def test_a_missing_driver_is_told(monkeypatch):
    database._engine.cache_clear()
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(dpm.DpmarkovError, match=r"pip install 'dpmarkov\[postgres\]'"):
        dpm.Ledger("postgresql://me@127.0.0.1:1/db")


def test_exports_are_whole_and_say_everything(ledger, tmp_path):
    trips = ledger.add_dataset("trips", unit="transition", epsilon=1, delta=1e-7)
    trips.confirm(trips.charge(PURE), "out.json")
    assert ledger.export(tmp_path / "rows.json") == 3
    whole = json.loads((tmp_path / "rows.json").read_text())
    assert whole["head"] == ledger.verify()
    assert [Entry(**row) for row in whole["entries"]] == ledger.entries()
    ledger.export(tmp_path / "rows.csv")
    import pandas as pd

    rows = pd.read_csv(tmp_path / "rows.csv")
    assert rows["kind"].tolist() == ["dataset", "charge", "confirmation"]
    assert rows["delta"][0] == 1e-7
    with pytest.raises(dpm.DpmarkovError, match="exists"):
        ledger.export(tmp_path / "rows.csv")
    with pytest.raises(dpm.DpmarkovError, match=r"\.csv or \.json"):
        ledger.export(tmp_path / "rows.xlsx")


def test_the_library_does_not_load_the_database_s_before_a_ledger_is_used(tmp_path):
    import subprocess

    code = (
        "import sys, dpmarkov as dpm; import dpmarkov.files, dpmarkov.privatize, dpmarkov.cli;"
        "print('sqlalchemy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert importlib.import_module("dpmarkov.ledger")


def test_a_ledger_stays_the_same_file_wherever_one_works(tmp_path, monkeypatch):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        ledger = dpm.Ledger.create("ledger.db")
        ledger.add_dataset(name, unit="transition", epsilon=1, delta=0)
        monkeypatch.chdir(tmp_path)
        assert [dataset.name for dataset in ledger.datasets()] == [name]
        assert ledger.name == "ledger.db"
