"""Charging: before noise, never beyond the budget, and nothing sensitive in any row."""

from __future__ import annotations

import os
import pickle
import re
from dataclasses import replace

import pytest

import dpmarkov as dpm
from dpmarkov.guarantee import Guarantee
from dpmarkov.ledger import Charge
from dpmarkov.ledger.budget import Budget
from dpmarkov.noise import Gaussian, Geometric

from .conftest import run_sql, without_guards

TARGET = {"epsilon": 1.0, "delta": 1e-6, "unit": "transition"}
MECHANISMS = ["dirichlet", "geometric", "gaussian"]
RING = [("home", "work"), ("work", "shop"), ("shop", "home")]


def pure(epsilon):
    """Promise epsilon without a delta."""
    noise = Geometric.calibrated("transition", epsilon=epsilon, delta=0)
    return Guarantee("transition", epsilon, 0.0, noise, conditions=())


@pytest.fixture
def trips(ledger):
    return ledger.add_dataset("trips", unit="transition", epsilon=3, delta=1e-5)


# -- what is kept --------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_release_is_charged_and_confirmed_and_both_say_the_same(
    trips, counts, tmp_path, mechanism
):
    out = dpm.release(counts, **TARGET, mechanism=mechanism, ledger=trips)
    (charge,) = trips.charges()
    assert charge.id == out.charge
    assert re.fullmatch(r"[0-9a-f]{32}", charge.id)
    assert charge.guarantee == out.guarantee
    assert charge.artefacts == ()
    for name in ("out.json", "out.parquet"):
        out.save(tmp_path / name)
        loaded = dpm.load(tmp_path / name)
        assert loaded == out
        assert loaded.charge == charge.id
    (charge,) = trips.charges()
    assert charge.artefacts == ("out.json", "out.parquet")
    assert isinstance(charge, Charge)
    loaded.save(tmp_path / "copy.json")  # a reader has no ledger
    assert trips.charges() == (charge,)
    assert trips.ledger.verify().startswith("4:")


def test_the_guarantee_says_that_a_ledger_adds_up(trips, counts):
    said = " ".join(str(dpm.release(counts, **TARGET, ledger=trips).guarantee).split())
    assert "within epsilon = 3 and delta = 1e-05 together" in said
    assert "the only release" not in said
    assert "of the part" not in said
    may = trips.ledger.dataset("trips", part="May")
    said = " ".join(str(dpm.release(counts, **TARGET, ledger=may).guarantee).split())
    assert "of the part 'May' alone, and nothing that the unit hides has data in two" in said


def test_no_row_holds_a_value_of_the_data(ledger, tmp_path):
    space = dpm.StateSpace(["Falcon Ferry", "Alder Hill", "Union Harbour"])
    cells = [917001, 17003, 27005, 37007, 947009, 57011, 67013, 77017, 987019]
    counts = dpm.TransitionCounts(space, cells, affected_rows=424242)
    ring = list(zip(space.labels, space.labels[1:] + space.labels[:1], strict=True))
    trips = ledger.add_dataset("trips", unit="transition", epsilon=9, delta=1e-3)
    merged = dpm.merge_states(counts, ring, to=2, unit="transition", epsilon=0.1, ledger=trips)
    for of in (counts, merged):
        out = dpm.release(of, **TARGET, ledger=trips, mechanism="gaussian")
        out.save(tmp_path / f"{out.charge}.json")
    ledger.export(tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_text()
    values = [*cells, *counts.row_totals.tolist(), counts.total, 424242, *space.labels]
    values += [*merged.cells.tolist(), *merged.row_totals.tolist()]
    for value in values:
        assert not re.search(rf"(?<!\d){value}(?!\d)", text), value
    assert "gaussian" in text


def test_files_from_before_the_ledger_are_read(counts, tmp_path):
    import json

    from dpmarkov import files

    out = dpm.release(counts, **TARGET)
    out.save(tmp_path / "old.json")
    header = json.loads((tmp_path / "old.json").read_text())
    assert header.pop("charge") is None
    cells = {name: files.np.array(values) for name, values in header.pop("cells").items()}
    header["checksum"] = files._checksum(header, cells)
    header["cells"] = {name: values.tolist() for name, values in cells.items()}
    (tmp_path / "old.json").write_text(json.dumps(header))
    assert dpm.load(tmp_path / "old.json") == out


def test_a_charged_release_can_be_handed_to_another_process(trips, counts, tmp_path):
    out = pickle.loads(pickle.dumps(dpm.release(counts, **TARGET, ledger=trips)))
    out.save(tmp_path / "out.json")
    assert trips.charges()[0].artefacts == ("out.json",)


# -- before noise ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_crash_when_noise_is_drawn_leaves_the_charge(trips, counts, monkeypatch, mechanism):
    from dpmarkov.mechanisms import dirichlet

    seen = []

    def crash(*_, **__):
        seen.extend(charge.id for charge in dpm.Ledger.dataset(trips.ledger, "trips").charges())
        raise KeyboardInterrupt

    monkeypatch.setattr(dirichlet, "draw", crash)
    monkeypatch.setattr(Geometric, "draw", crash)
    monkeypatch.setattr(Gaussian, "draw", crash)
    with pytest.raises(KeyboardInterrupt):
        dpm.release(counts, **TARGET, mechanism=mechanism, ledger=trips)
    (charge,) = trips.charges()
    assert seen == [charge.id]  # another connection sees it: it was committed
    assert 0.8 < trips.spent() <= 1


def test_merging_is_charged_before_its_noise_and_not_again(trips, counts, monkeypatch, tmp_path):
    from dpmarkov import merging

    share = {"to": 2, "unit": "transition", "epsilon": 0.25, "ledger": trips}
    merged = dpm.merge_states(counts, RING, **share)
    assert [(c.purpose, c.guarantee.epsilon) for c in trips.charges()] == [("merging", 0.25)]
    out = dpm.release(merged, **TARGET, ledger=trips)
    out.save(tmp_path / "out.json")
    assert out.guarantee.epsilon == 1
    assert out.guarantee.spent_epsilon == 0.25
    assert [c.guarantee.epsilon for c in trips.charges()] == [0.25, pytest.approx(0.75)]
    assert 0.8 < trips.spent() <= 1
    monkeypatch.setattr(merging, "two_sided_geometric", None)  # drawing would fail
    with pytest.raises(TypeError):
        dpm.merge_states(counts, RING, **share)
    assert len(trips.charges()) == 3
    poor = trips.ledger.add_dataset("poor", unit="transition", epsilon=0.2, delta=0)
    with pytest.raises(dpm.BudgetError):
        dpm.merge_states(counts, RING, **share | {"ledger": poor})


def test_merging_and_release_are_charged_to_the_same_data_set_or_to_none(ledger, trips, counts):
    share = {"to": 2, "unit": "transition", "epsilon": 0.25}
    uncharged = dpm.merge_states(counts, RING, **share)
    with pytest.raises(dpm.DpmarkovError, match=r"noise was drawn .* that no ledger was charged"):
        dpm.release(uncharged, **TARGET, ledger=trips)
    charged = dpm.merge_states(counts, RING, **share, ledger=trips)
    with pytest.raises(dpm.DpmarkovError, match="before was charged to a ledger"):
        dpm.release(charged, **TARGET)
    other = ledger.add_dataset("other", unit="transition", epsilon=3, delta=1e-5)
    with pytest.raises(dpm.DpmarkovError, match=r"'other' in .* has no charge"):
        dpm.release(charged, **TARGET, ledger=other)
    for again, book in ((uncharged, trips), (charged, None)):
        with pytest.raises(dpm.DpmarkovError, match=r"before was charged to (a ledger|none); give"):
            dpm.merge_states(again, [("home", "work"), ("home", "shop")], **share, ledger=book)
    assert len(trips.charges()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": 5}, "mass above"),
        ({"prior": 5e9}, "2\\^31"),
        ({"mechanism": "laplace"}, "mechanism must be"),
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"unit": "destination"}, "does not add up"),
        ({"mechanism": "gaussian", "prior": 5}, "prior goes with"),
    ],
)
def test_what_is_refused_is_not_charged(trips, counts, options, message):
    with pytest.raises(dpm.DpmarkovError, match=message):
        dpm.release(counts, **{**TARGET, **options}, ledger=trips)
    assert trips.charges() == ()


def test_counts_too_large_for_exact_noise_are_not_charged(trips):
    counts = dpm.TransitionCounts(dpm.StateSpace(["a", "b"]), [2**31, 1, 1, 1])
    with pytest.raises(dpm.DpmarkovError, match="count in coarser units"):
        dpm.release(counts, **TARGET, ledger=trips)
    assert trips.charges() == ()


# -- after noise -----------------------------------------------------------------------------------


def test_a_full_disk_leaves_the_charge_and_no_file(trips, counts, tmp_path, monkeypatch):
    out = dpm.release(counts, **TARGET, ledger=trips)
    true = os.fsync
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(full))
    with pytest.raises(dpm.DpmarkovError, match=r"No space left .* counts all the same"):
        out.save(tmp_path / "out.json")
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".json"]
    (charge,) = trips.charges()
    assert charge.artefacts == ()
    assert 0.8 < trips.spent() <= 1
    monkeypatch.setattr(os, "fsync", true)
    out.save(tmp_path / "out.json")
    assert trips.charges()[0].artefacts == ("out.json",)


def test_a_file_and_its_folder_are_synced_before_they_are_confirmed(
    trips, counts, tmp_path, monkeypatch
):
    happened = []
    true, replace = os.fsync, os.replace

    def move(*names):
        happened.append("move")
        replace(*names)

    def fsync(handle):
        happened.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        true(handle)

    monkeypatch.setattr(type(trips), "confirm", lambda *_: happened.append("confirm"))
    out = dpm.release(counts, **TARGET, ledger=trips)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", move)
    out.save(tmp_path / "out.json")
    assert happened == ["file", "move", "folder", "confirm"]


def test_a_ledger_that_is_gone_when_the_file_is_written_is_told(trips, counts, tmp_path, url):
    out = dpm.release(counts, **TARGET, ledger=trips)
    without_guards(url)
    run_sql(url, "DELETE FROM dpmarkov_ledger_entries WHERE kind = 'charge'")
    with pytest.raises(dpm.DpmarkovError, match=r"out\.json is written.*no charge"):
        out.save(tmp_path / "out.json")
    assert dpm.load(tmp_path / "out.json") == out


# -- the budget ------------------------------------------------------------------------------------


def test_beyond_the_budget_nothing_is_charged_or_drawn(trips, counts, monkeypatch):
    dpm.release(counts, **TARGET | {"epsilon": 2.5}, mechanism="geometric", ledger=trips)
    monkeypatch.setattr(Geometric, "draw", None)  # drawing would fail
    with pytest.raises(dpm.BudgetError) as refused:
        dpm.release(counts, **TARGET | {"epsilon": 0.9}, mechanism="geometric", ledger=trips)
    assert refused.value.asked == 0.9
    assert 0.5 <= refused.value.remaining < 0.9
    for word in ("epsilon=0.9", "'trips'", f"epsilon = {refused.value.remaining:g}", "epsilon = 3"):
        assert word in str(refused.value)
    assert len(trips.charges()) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("spent", [[], [1.0], [0.3, 0.7, 0.4]])
def test_what_remains_is_accepted_and_little_more_is_not(ledger, counts, mechanism, spent):
    trips = ledger.add_dataset("trips", unit="transition", epsilon=2.2, delta=1e-5)
    for epsilon in spent:
        trips.charge(pure(epsilon))
    target = {"delta": 1e-6, "mechanism": mechanism}
    left = trips.remaining(**target)
    assert left >= 2.2 - sum(spent) - 1e-9
    with pytest.raises(dpm.BudgetError) as refused:
        dpm.release(counts, epsilon=left * 1.01, unit="transition", ledger=trips, **target)
    assert refused.value.remaining == left
    dpm.release(counts, epsilon=left, unit="transition", ledger=trips, **target)
    assert trips.spent() <= 2.2


def test_the_budget_that_counts_is_that_of_the_ledger(trips, counts, new_url):
    made_up = replace(trips, budget=Budget("transition", 1e6, 0.5))
    elsewhere = replace(trips, ledger=dpm.Ledger.create(new_url()))  # as if it were made anew
    for dataset in (made_up, elsewhere):
        with pytest.raises(dpm.DpmarkovError, match=r"no data set 'trips' with this budget; find"):
            dpm.release(counts, **TARGET, ledger=dataset)
    assert trips.charges() == ()


def test_decimals_add_up_as_people_write_them(ledger):
    dataset = ledger.add_dataset("x", unit="transition", epsilon=1, delta=0)
    for i in range(10):
        assert dataset.remaining(mechanism="geometric") == round(1 - i * 0.1, 9)
        dataset.charge(pure(0.1))
    assert dataset.spent() == 1
    assert dataset.remaining(mechanism="geometric") == 0
    with pytest.raises(dpm.DpmarkovError, match="gaussian noise has no epsilon at delta = 0"):
        dataset.remaining(mechanism="gaussian")
    with pytest.raises(dpm.BudgetError, match="has nothing left"):
        dataset.charge(pure(1e-9))


def test_parts_are_charged_side_by_side_and_a_release_without_one_touches_all(ledger):
    ledger.add_dataset("trips", unit="transition", epsilon=1, delta=0)
    january, february = (ledger.dataset("trips", part=month) for month in ("01", "02"))
    whole = ledger.dataset("trips")
    january.charge(pure(0.5))
    february.charge(pure(0.75))
    assert whole.spent() == 0.75
    geometric = {"mechanism": "geometric"}
    assert january.remaining(**geometric) == 0.5
    assert february.remaining(**geometric) == whole.remaining(**geometric) == 0.25
    assert ledger.dataset("trips", part="03").remaining(**geometric) == 1
    whole.charge(pure(0.25))
    assert january.remaining(**geometric) == 0.25
    with pytest.raises(dpm.BudgetError):
        february.charge(pure(0.01))
    january.charge(pure(0.25))
    assert [charge.part for charge in whole.charges()] == ["01", "02", None, "01"]


# -- data sets -------------------------------------------------------------------------------------


def test_an_unknown_data_set_is_told_with_the_closest_names(ledger, trips):
    with pytest.raises(dpm.DpmarkovError, match="did you mean 'trips'"):
        ledger.dataset("trps")
    assert ledger.datasets() == (trips,)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "trips"}, "already"),
        ({"name": ""}, "needs a name"),
        ({"name": " x"}, "needs a name"),
        ({"name": "a\nb"}, "needs a name"),
        ({"unit": "trip"}, "unit must be"),
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": float("inf")}, "finite"),
        ({"epsilon": float("nan")}, "above 0"),
        ({"delta": 1}, "below 1"),
        ({"delta": -1e-9}, "at least 0"),
    ],
)
def test_a_data_set_that_cannot_be_is_refused(ledger, trips, changed, message):
    with pytest.raises(dpm.DpmarkovError, match=message):
        ledger.add_dataset(
            **{"name": "new", "unit": "transition", "epsilon": 1, "delta": 0, **changed}
        )
    assert len(ledger.entries()) == 1


def test_a_ledger_in_place_of_its_data_set_is_told(ledger, counts):
    with pytest.raises(dpm.DpmarkovError, match=r"ledger\.dataset\('trips'\)"):
        dpm.release(counts, **TARGET, ledger=ledger)


def test_a_promise_with_a_share_is_not_charged_as_a_whole(trips):
    noise = Geometric.calibrated("transition", epsilon=0.5, delta=0)
    promise = Guarantee("transition", 0.76, 0.0, noise, conditions=(), spent_epsilon=0.25)
    with pytest.raises(dpm.DpmarkovError, match="charged when it is spent"):
        trips.charge(promise)


def test_a_charge_of_another_data_set_is_not_confirmed(ledger, trips):
    other = ledger.add_dataset("other", unit="transition", epsilon=1, delta=0)
    with pytest.raises(dpm.DpmarkovError, match="has no charge"):
        other.confirm(trips.charge(pure(0.5)), "out.json")
