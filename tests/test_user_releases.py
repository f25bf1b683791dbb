"""Whole users, end to end: counted with bounds, merged, planned, released, saved and read again."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dpmarkov as dpm
from dpmarkov import contributions, files, merging
from dpmarkov.contributions import Contributions, choose_bounds
from dpmarkov.guarantee import Guarantee
from dpmarkov.noise import Dirichlet

STATES = ["a", "b", "c", "d"]
TARGET = {"epsilon": 1.0, "delta": 1e-6, "unit": "user"}
MECHANISMS = ["dirichlet", "geometric", "gaussian"]
BOUNDS = {"max_cells": 6, "max_per_cell": 2}


@pytest.fixture(scope="module")
def events():
    """2,000 people with 3 cells each mostly, and a few with many."""
    rng = np.random.default_rng(4)
    people = np.repeat(np.arange(2000), np.where(np.arange(2000) % 50, 4, 60))
    moves = rng.integers(0, 4, (people.size, 2))
    names = np.array(STATES)
    return pa.table({"who": people, "from": names[moves[:, 0]], "to": names[moves[:, 1]]})


def count(events, **bounds):
    return dpm.count_transitions(
        events, origin="from", destination="to", states=STATES, user="who", **(bounds or BOUNDS)
    )


def listen(module, monkeypatch):
    """Keep the scales of the noise that a module draws."""
    scales = []
    real = module.two_sided_geometric

    def listening(shape, *, scale):
        scales.append(scale)
        return real(shape, scale=scale)

    monkeypatch.setattr(module, "two_sided_geometric", listening)
    return scales


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_a_release_keeps_its_bounds_in_words_and_on_disk(events, mechanism, suffix, tmp_path):
    out = dpm.release(count(events), mechanism=mechanism, **TARGET)
    promise = out.guarantee
    assert (promise.max_cells, promise.max_per_cell) == (6, 2)
    assert promise.profile(1.0) <= 1e-6
    assert promise.profile(0.98) > 1e-6  # and no more noise than that takes
    assert out.row_totals is None
    assert out.private_counts is not None
    text = " ".join(str(promise).split())
    for part in (
        "whether any single person is in the data at all",
        "up to 2 transitions in each of up to 6 cells",
        "cut down to it before counting: no more than 6 of their cells, drawn by lot",
        "bounds of users were declared without looking at the data",
        "one name in the user column",
    ):
        assert part in text
    assert "each transition by itself" not in text
    out.save(tmp_path / f"out{suffix}")
    assert dpm.load(tmp_path / f"out{suffix}") == out


def test_the_dirichlet_noise_on_disk_is_calibrated_to_the_user(events):
    counts = count(events)
    out = dpm.release(counts, **TARGET)
    noise = out.guarantee.noise
    assert isinstance(noise, Dirichlet)
    best = dpm.privacy.calibrate(**TARGET, mass=noise.mass, **BOUNDS)
    assert best * (1 - 2**-14) <= noise.rate <= best
    # The noise really drawn: (G - r (c + m)) / sqrt(r (c + m)) has mean 0 and variance 1.
    z = (out.private_counts - counts.cells) / np.sqrt((counts.cells + out.prior) / noise.rate)
    assert stats.chi2(16).sf((z**2).sum()) > 1e-7
    assert stats.chi2(16).cdf((z**2).sum()) > 1e-7


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (lambda g: g.update(max_cells=5), "needs|that is claimed|checksum|altered"),
        (lambda g: g.update(max_cells=7), "more than the 1e-06 that is claimed"),
        (lambda g: g.update(max_per_cell=3), "more than the 1e-06 that is claimed"),
        (lambda g: g.pop("max_cells"), "needs max_cells="),
        (lambda g: g.update(max_per_cell=2.0), "max_per_cell is not of the type"),
        (lambda g: g.update(unit="transition"), "goes with the unit 'user'"),
    ],
)
def test_bounds_are_checked_on_loading(events, alter, message, tmp_path):
    path = tmp_path / "out.json"
    dpm.release(count(events), **TARGET).save(path)
    header, columns, _ = files._read_json(path)
    alter(header["guarantee"])
    header["checksum"] = files._checksum(header, columns)
    cells = {name: values.tolist() for name, values in columns.items()}
    path.write_text(json.dumps(header | {"cells": cells}))
    if message.startswith("needs|"):  # fewer cells than were counted: a lie that is not seen here
        assert dpm.load(path).guarantee.profile(1.0) <= 1e-6
        return
    with pytest.raises(dpm.DpmarkovError, match=message):
        dpm.load(path)


def test_what_does_not_go_together_is_named(events):
    free = dpm.count_transitions(events, origin="from", destination="to", states=STATES)
    with pytest.raises(dpm.DpmarkovError, match=r"needs max_cells=.*count.*user="):
        dpm.release(free, **TARGET)
    for unit in ("transition", "destination"):
        with pytest.raises(dpm.DpmarkovError, match=r"bounded by user.*at unit='user'"):
            dpm.release(count(events), **{**TARGET, "unit": unit})
    with pytest.raises(dpm.InfeasibleError, match=r"'user'.*prior above"):
        dpm.release(count(events), prior=5, **TARGET)


def test_one_transition_less_can_let_another_cell_in():
    """Why bounded counts are refused at the unit `transition`: two cells move, not one."""
    rows = {"who": [1, 1], "from": ["a", "b"], "to": ["b", "a"]}
    bounds = {"max_cells": 1, "max_per_cell": 1, "key": "k"}
    both = count(pa.table(rows), **bounds).cells
    moved = [
        np.abs(both - count(pa.table({k: [v[i]] for k, v in rows.items()}), **bounds).cells).sum()
        for i in (0, 1)
    ]
    assert sorted(moved) == [0, 2]


# -- merging -------------------------------------------------------------------------------------


def test_merging_draws_noise_for_all_that_a_user_did(events, monkeypatch):
    scales = listen(merging, monkeypatch)
    counts = count(events)
    ring = [("a", "b"), ("b", "c"), ("c", "d")]
    merged = dpm.merge_states(counts, ring, to=2, unit="user", epsilon=0.25)
    assert scales == [np.nextafter(6 * 2 / 0.25, np.inf)]
    assert (merged.spent_epsilon, merged.max_cells) == (0.25, 6)
    assert merged.max_per_cell == 2 * min(6, int(max(map(len, merged.space.groups.values()))) ** 2)
    out = dpm.release(merged, **TARGET)
    assert out.guarantee.max_per_cell == merged.max_per_cell
    assert out.guarantee.spent_epsilon == 0.25
    assert "0.25 was spent on the noise in the numbers" in " ".join(str(out.guarantee).split())
    again = dpm.merge_states(merged, [tuple(merged.space.labels)], to=2, unit="user", epsilon=0.1)
    assert scales[1] == np.nextafter(merged.max_cells * merged.max_per_cell / 0.1, np.inf)
    assert again.spent_epsilon == pytest.approx(0.35)
    with pytest.raises(dpm.DpmarkovError, match=r"merged for the unit 'user'|bounded by user"):
        dpm.release(merged, **{**TARGET, "unit": "transition"})


# -- choosing bounds -----------------------------------------------------------------------------


def test_bounds_are_chosen_from_a_share_that_the_release_counts(events, tmp_path):
    counts = count(events, max_cells="auto", max_per_cell="auto", bounds_epsilon=0.5)
    assert (
        counts.max_cells == 4
    )  # two thirds of the people have 4 cells, and nearly all others fewer
    assert counts.max_per_cell in (1, 2)
    assert counts.spent_epsilon == counts.bounds_epsilon == 0.5
    assert "users bounded to 4 cells" in repr(counts)
    out = dpm.release(counts, **TARGET)
    assert out.guarantee.spent_epsilon == 0.5
    assert "chosen from noisy numbers of users" in " ".join(out.guarantee.conditions)
    weaker = dpm.release(count(events, max_cells=4, max_per_cell=counts.max_per_cell), **TARGET)
    assert out.guarantee.noise.rate < weaker.guarantee.noise.rate
    out.save(tmp_path / "out.json")
    assert dpm.load(tmp_path / "out.json") == out
    both = dpm.merge_states(counts, [("a", "b"), ("c", "d")], to=2, unit="user", epsilon=0.1)
    assert both.spent_epsilon == pytest.approx(0.6)
    assert both.bounds_epsilon == 0.5
    dpm.release(both, **TARGET)


def test_declared_bounds_take_nothing_and_half_declared_ones_the_whole_share(events, monkeypatch):
    scales = listen(contributions, monkeypatch)
    assert count(events).spent_epsilon == 0
    assert not scales
    count(events, max_cells="auto", max_per_cell=3, bounds_epsilon=0.25)
    assert scales == [np.nextafter(1 / 0.25, np.inf)]
    count(events, max_cells="auto", max_per_cell="auto", bounds_epsilon=0.25)
    assert scales[1:] == 2 * [np.nextafter(2 / 0.25, np.inf)]


def test_one_person_more_changes_one_number_by_one_in_each_histogram(events, monkeypatch):
    seen = []

    def silent(shape, *, scale):
        seen.append(shape)
        return np.zeros(shape, dtype=np.int64)

    monkeypatch.setattr(contributions, "two_sided_geometric", silent)
    real = np.cumsum
    histograms = []
    monkeypatch.setattr(np, "cumsum", lambda x: histograms.append(x) or real(x))
    rng = np.random.default_rng(1)
    for _ in range(5):
        who = rng.integers(0, 2000)
        rest = events.filter(pa.compute.not_equal(events["who"], int(who)))
        histograms.clear()
        for data in (events, rest):
            count(data, max_cells="auto", max_per_cell="auto", bounds_epsilon=1.0)
        cells, per_cell, fewer_cells, fewer_per_cell = histograms
        assert np.abs(cells - fewer_cells).sum() == 1
        assert np.abs(per_cell - fewer_per_cell).sum() == 1


def test_the_choice_is_as_noisy_as_the_share_says():
    # 100 users; 94 within 4 cells, the rest within 8: without noise the bound is 8, and with it 4
    # or less as often as the noise says. 3,000 draws; false alarm 1e-7.
    people = Contributions(np.array([4, 8]), np.array([1, 1]), np.array([94, 6]), 100)
    share, n = 0.5, 3000
    grid = contributions._grid(100)
    assert grid.tolist() == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 100]
    small = sum(
        choose_bounds(people, epsilon=share, quantile=0.95, max_per_cell=1)[0] < 8 for _ in range(n)
    )
    numbers = np.bincount(np.searchsorted(grid, [4, 8]), [94, 6], minlength=grid.size + 1)
    rng = np.random.default_rng(0)
    p = -np.expm1(-share)
    noise = [rng.geometric(p, (200_000, numbers.size)) for _ in range(2)]
    noisy = np.cumsum(numbers + noise[0] - noise[1], axis=1)
    enough = (noisy[:, :5] >= 0.95 * noisy[:, -1:]).any(axis=1).mean()
    assert 0.05 < enough < 0.95
    assert stats.binomtest(small, n, enough).pvalue > 1e-7
    assert choose_bounds(people, epsilon=1e6, quantile=0.95) == (8, 1)
    assert choose_bounds(people, epsilon=1e6) == (4, 1)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"max_cells": "auto", "max_per_cell": 2}, "bounds_epsilon= go together.*tenth"),
        ({"max_cells": 3, "max_per_cell": 2, "bounds_epsilon": 0.1}, "go together"),
        ({"max_cells": "auto", "max_per_cell": 2, "bounds_epsilon": 0.0}, "above 0"),
        ({"max_cells": "auto", "bounds_epsilon": 0.1}, "go together"),
        ({"max_cells": "many", "max_per_cell": 2}, "max_cells='many' must be a whole number"),
    ],
)
def test_choices_that_do_not_fit_are_named(events, bounds, message):
    with pytest.raises(dpm.DpmarkovError, match=message):
        count(events, **bounds)
    with pytest.raises(dpm.DpmarkovError, match=r"bounds_epsilon=.*go with bounds"):
        dpm.TransitionCounts(
            dpm.StateSpace(["a", "b"]), np.zeros(4), bounds_epsilon=0.1, spent_epsilon=0.1
        )


def test_choices_are_made_for_paths_and_categories_too(events):
    share = {"max_cells": "auto", "max_per_cell": "auto", "bounds_epsilon": 1.0}
    steps = pa.table({"who": [1, 1, 1, 2, 2], "t": [1, 2, 3, 1, 2], "at": list("abcab")})
    paths = dpm.count_paths(
        steps, entity="who", user="who", time="t", state="at", states=STATES, **share
    )
    assert 1 <= paths.max_cells <= 16
    row = dpm.count_categories(events, category="to", categories=STATES, user="who", **share)
    assert 1 <= row.max_cells <= 4


# -- planning ------------------------------------------------------------------------------------


def test_a_plan_explains_what_bounds_cost():
    space = dpm.StateSpace(range(30))
    made = dpm.plan(space, expected_total=500_000, max_cells=16, max_per_cell=2, **TARGET)
    assert made.feasible
    noise = {(x.max_cells, x.max_per_cell): x.noise for x in made.by_bounds}
    assert set(noise) == {(16, 2), (32, 2), (8, 2), (16, 4), (16, 1)}
    assert noise[32, 2] / noise[16, 2] == pytest.approx(np.sqrt(2), rel=0.05)
    assert noise[16, 4] / noise[16, 2] == pytest.approx(2, rel=0.1)
    text = str(made)
    assert "Bounds: noise grows" in text
    assert "What other bounds of a user would cost in noise" in text
    assert made.by_states == ()
    needed = dpm.privacy.minimum_mass(**TARGET, max_cells=16, max_per_cell=2)
    assert made.minimum_mass == needed
    short = dpm.plan(space, prior=needed / 2, max_cells=16, max_per_cell=2, **TARGET)
    assert not short.feasible
    with pytest.raises(dpm.DpmarkovError, match="needs max_cells="):
        dpm.plan(space, **TARGET)


def test_counts_bring_their_bounds_to_plans_and_comparisons(events):
    counts = count(events)
    assert dpm.plan(counts, expected_total=8000, **TARGET) == dpm.plan(
        counts.space, expected_total=8000, **BOUNDS, **TARGET
    )
    found = dpm.planning.compare(counts, draws=5, rng=1, **TARGET)
    assert found.curator_only
    assert len([x for x in found.contenders if x.errors]) == 4


@pytest.mark.parametrize(("cells", "best"), [(1, "geometric"), (4, "geometric"), (40, "gaussian")])
def test_gaussian_noise_wins_for_users_of_many_cells(cells, best):
    space = dpm.StateSpace(range(20))
    shape = {"expected_total": 1_000_000, "max_cells": cells, "max_per_cell": 1}
    found = dpm.planning.compare(space, draws=8, rng=1, **shape, **TARGET)
    assert found.best("row_tv").name == best
    advice = dpm.plan(space, mechanism="geometric", **shape, **TARGET).advice
    assert (advice is None) == (best == "geometric")
    if advice:
        assert "mechanism='gaussian' is predicted to be" in advice


def test_a_claim_without_its_bounds_is_refused():
    noise = Dirichlet(1.0, 1e4)
    with pytest.raises(dpm.DpmarkovError, match="needs max_cells="):
        Guarantee("user", 5.0, 1e-6, noise, ())
    with pytest.raises(dpm.DpmarkovError, match="goes with the unit 'user'"):
        Guarantee("transition", 5.0, 1e-6, noise, (), max_cells=3, max_per_cell=1)
    with pytest.raises(dpm.DpmarkovError, match="that is claimed"):
        Guarantee("user", 0.5, 1e-6, noise, (), max_cells=3000, max_per_cell=1)
