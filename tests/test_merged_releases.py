"""Merging by private totals: the law of its noise, its price, and what the release says of it."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpmarkov as dpm
from dpmarkov import files, merging
from dpmarkov.guarantee import Guarantee
from dpmarkov.merging import merge_states
from dpmarkov.noise import Dirichlet, Geometric
from dpmarkov.privacy.pure_share import profile_after, remaining

SPACE = dpm.StateSpace(["a", "b", ("c", 3), 4, "e"])
LABELS = SPACE.labels
LINE = list(pairwise(LABELS))
COUNTS = dpm.TransitionCounts.from_dense(
    [
        [900, 300, 70, 20, 10],
        [10, 30, 20, 5, 5],
        [60, 500, 80, 90, 20],
        [1, 4, 9, 30, 2],
        [8, 5, 70, 60, 800],
    ],
    SPACE,
)
SHARE = 0.25
PROMISE = {"epsilon": 1.0, "delta": 1e-6}
MECHANISMS = ["dirichlet", "geometric", "gaussian"]
SUFFIXES = [".json", ".parquet"]


def merge(share=SHARE, **options):
    return merge_states(COUNTS, LINE, **{"to": 3, **options}, unit="transition", epsilon=share)


# -- the noise in the totals -----------------------------------------------------------------


def _noise(monkeypatch, counts, adjacency, **options):
    """Merge, and give the noise that was drawn with its scale."""
    drawn = []
    real = merging.two_sided_geometric

    def listening(shape, *, scale):
        drawn.append((real(shape, scale=scale), scale))
        return drawn[-1][0]

    monkeypatch.setattr(merging, "two_sided_geometric", listening)
    merged = merge_states(counts, adjacency, unit="transition", **options)
    assert len(drawn) == 1  # never again for the groups
    return merged, *drawn[0]


@pytest.mark.parametrize("share", [0.25, 0.1, 3.0, 1e-8])
def test_the_scale_is_one_over_the_share_and_never_less(share, monkeypatch):
    merged, noise, scale = _noise(monkeypatch, COUNTS, LINE, to=2, epsilon=share)
    assert noise.shape == (5,)
    assert Fraction(share) * Fraction(scale) >= 1  # exactly, as numbers that are not rounded
    assert scale == pytest.approx(1 / share, rel=1e-15)
    assert merged.spent_epsilon == share


def test_the_noise_has_the_law_of_the_share_and_moves_the_totals():
    # What is seen of the noise is who joins whom: state 1 joins the smaller of its two neighbours,
    # which have equal totals. P(X < Y) with a tie going to the first, for 4,000 independent merges;
    # false alarm 1e-7.
    space = dpm.StateSpace([0, 1, 2])
    counts = dpm.TransitionCounts.from_dense(np.diag([5000, 1, 5001]), space)
    options = {"to": 2, "unit": "transition", "epsilon": 0.5}
    line = [(0, 1), (1, 2)]
    second = sum(
        merge_states(counts, line, **options).space.merges == ((2, 1),) for _ in range(4000)
    )
    x = np.arange(-100, 101)
    law = stats.dlaplace(0.5).pmf(x)
    first_is_smaller = sum(law[i] * law[x >= x[i] - 1].sum() for i in range(x.size))
    assert stats.binomtest(second, 4000, 1 - first_is_smaller).pvalue > 1e-7
    assert stats.binomtest(second, 4000, 0).pvalue < 1e-7  # without noise it is always the first


def test_equal_noisy_totals_give_equal_merging_whatever_the_counts_are(monkeypatch):
    # post-processing: nothing but the noisy totals decides
    noisy = np.array([1300, 70, 750, 46, 943])
    other = dpm.TransitionCounts.from_dense(np.diag([1, 2, 3, 4, 5]), SPACE)
    trees = []
    for counts in (COUNTS, other):
        totals = counts.row_totals

        def fixed(shape, *, scale, totals=totals):
            return noisy - totals

        monkeypatch.setattr(merging, "two_sided_geometric", fixed)
        merged = merge_states(counts, LINE, to=2, unit="transition", epsilon=1.0)
        trees.append((merged.space.merges, merged.space.groups))
    assert trees[0] == trees[1]


def test_negative_totals_are_only_small_ones(monkeypatch):
    monkeypatch.setattr(merging, "two_sided_geometric", lambda *_, **__: np.full(5, -(10**6)))
    assert len(merge(minimum_total=5, to=None).space.labels) == 2


# -- the price -------------------------------------------------------------------------------


def _randomised_response(e):
    p = math.exp(e) / (1 + math.exp(e))
    return np.array([p, 1 - p])


def _hockey_stick(P, Q, epsilon):
    return np.maximum(0, P - math.exp(epsilon) * Q).sum()


@given(st.floats(0.01, 3), st.floats(0.01, 3), st.floats(0, 7))
def test_the_profile_after_a_share_is_that_of_the_product(spent, later, epsilon):
    P1, P2 = _randomised_response(spent), _randomised_response(later)
    exact = _hockey_stick(np.outer(P1, P2), np.outer(P1[::-1], P2[::-1]), epsilon)

    def profile(left):
        return np.maximum(0, np.exp(later) - np.exp(left)) / (1 + np.exp(later))

    after = profile_after(spent, profile, epsilon)
    assert after == pytest.approx(exact, rel=1e-9, abs=1e-12)
    assert after >= exact - 1e-14


def test_geometric_noise_of_the_share_has_no_smaller_price():
    # the pair (X, X + 1) with X two-sided geometric is randomised response in disguise
    s, x = 0.7, np.arange(-400, 401)
    P = stats.dlaplace(s).pmf(x)
    Q = stats.dlaplace(s).pmf(x - 1)
    noise = Dirichlet(rate=0.5, mass=30.0)
    for epsilon in (0.2, 1.0, 2.0):
        losses = np.log(P / Q)
        exact = 0.0
        for p, loss in zip(P, losses, strict=True):
            left = epsilon - loss
            ahead = noise.profile("transition", abs(left))
            exact += p * (ahead if left >= 0 else 1 - math.exp(left) + math.exp(left) * ahead)
        after = profile_after(s, lambda left: noise.profile("transition", left), epsilon)
        assert after == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_noise_is_calibrated_to_what_is_left(mechanism):
    out = dpm.release(merge(), **PROMISE, unit="transition", mechanism=mechanism)
    promise = out.guarantee
    assert (promise.epsilon, promise.spent_epsilon) == (1.0, SHARE)
    plain = dpm.TransitionCounts.from_dense(
        np.full((3, 3), 100), dpm.StateSpace("xyz"[i] for i in range(3))
    )
    alone = dpm.release(plain, epsilon=0.75, delta=1e-6, unit="transition", mechanism=mechanism)
    for name, value in vars(promise.noise).items():
        assert value == pytest.approx(getattr(alone.guarantee.noise, name), rel=1e-4)
    left = promise.noise.profile("transition", remaining(1.0, SHARE))
    assert promise.profile(1.0) <= left <= 1e-6
    assert promise.profile(1.0) > left / 2
    ladder = promise.profile(np.linspace(0, 5, 101))
    assert np.all(np.diff(ladder) <= 0)
    assert ladder[0] <= 1
    # merging alone already tells two data sets apart, below its share
    alone = (math.exp(SHARE) - 1) / (math.exp(SHARE) + 1)
    assert ladder[0] >= alone


def test_a_promise_without_exception_stays_one():
    out = dpm.release(merge(), epsilon=1.0, delta=0.0, unit="transition", mechanism="geometric")
    assert out.guarantee.profile(1.0) == 0.0
    assert out.guarantee.profile(0.99) > 0


def test_two_mergings_spend_twice():
    once = merge(to=4)
    labels = once.space.labels
    line = list(pairwise(labels))
    twice = merge_states(once, line, to=3, unit="transition", epsilon=0.5)
    assert twice.spent_epsilon == 0.75
    assert len(twice.space.merges) == 2
    out = dpm.release(twice, **PROMISE, unit="transition")
    assert out.guarantee.spent_epsilon == 0.75


def test_merging_for_destination_is_free():
    merged = merge_states(COUNTS, LINE, to=3, unit="destination")
    assert merged.spent_epsilon == 0
    out = dpm.release(merged, **PROMISE, unit="destination")
    assert out.guarantee.spent_epsilon == 0
    assert "was spent" not in str(out.guarantee)
    assert "5 declared states were merged into 3 by their public row totals" in _line(out)


def _line(out):
    return " ".join(str(out.guarantee).split())


def test_the_guarantee_shows_the_share_in_words():
    words = _line(dpm.release(merge(), **PROMISE, unit="transition"))
    assert (
        "Of epsilon = 1, 0.25 was spent on the noise in the row totals by which states were "
        "merged, and the other 0.75 on the noise in the counts."
    ) in words
    assert "5 declared states were merged into 3 by their row totals with noise" in words
    assert "A group bears the label of its largest state" in words
    assert "(1, 1e-06)-differentially private" in words


def test_merged_counts_are_released_at_the_unit_they_were_merged_for():
    free = merge_states(COUNTS, LINE, to=3, unit="destination")
    with pytest.raises(
        dpm.DpmarkovError,
        match=r"for the unit 'destination' .* 'transition'.* unit='transition', epsilon=share",
    ):
        dpm.release(free, **PROMISE, unit="transition")
    with pytest.raises(dpm.DpmarkovError, match=r"'transition' .* again with unit='destination'$"):
        dpm.release(merge(), **PROMISE, unit="destination")
    with pytest.raises(dpm.DpmarkovError, match="merged for the unit 'destination' and cannot be"):
        merge_states(free, [("a", 4)], to=2, unit="transition", epsilon=0.1)
    laundered = dpm.TransitionCounts(merge().space, merge().cells)  # forgets what was spent
    with pytest.raises(dpm.DpmarkovError, match="cannot be released at 'transition'"):
        dpm.release(laundered, **PROMISE, unit="transition")


@pytest.mark.parametrize("share", [1.0, 1.5])
def test_a_share_that_leaves_nothing_names_both_numbers(share):
    merged = merge(share)
    with pytest.raises(
        dpm.DpmarkovError, match=rf"spent epsilon = {share:g}, which leaves nothing of epsilon = 1;"
    ):
        dpm.release(merged, **PROMISE, unit="transition")


def test_counts_do_not_forget_nor_invent_a_share():
    for merged_for, spent in (("transition", 0.0), ("destination", 0.1), (None, 0.1)):
        with pytest.raises(dpm.DpmarkovError, match="does not go with merged_for"):
            dpm.TransitionCounts(SPACE, COUNTS.cells, merged_for=merged_for, spent_epsilon=spent)
    assert repr(merge()).endswith("merged for unit 'transition', epsilon=0.25 spent)")
    forgot = dpm.TransitionCounts(merge().space, merge().cells)
    assert merge() != forgot


# -- on disk ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("unit", ["destination", "transition"])
def test_the_round_trip_keeps_groups_tree_and_share(suffix, unit, tmp_path):
    share = {"epsilon": SHARE} if unit == "transition" else {}
    merged = merge_states(COUNTS, LINE, to=2, unit=unit, **share)
    out = dpm.release(merged, **PROMISE, unit=unit)
    path = tmp_path / f"out{suffix}"
    out.save(path)
    again = dpm.load(path)
    assert again == out
    assert again.space == merged.space
    assert again.space.merges == merged.space.merges
    assert again.space.groups == merged.space.groups
    assert {type(x) for group in again.space.groups.values() for x in group} == {str, int, tuple}
    assert again.guarantee == out.guarantee
    assert again.guarantee.spent_epsilon == (SHARE if share else 0)


def _altered(path, change):
    """Change a file as someone would who knows how its checksum is made."""
    header = json.loads(path.read_text())
    change(header)
    cells = header.pop("cells")
    columns = {name: np.array(values) for name, values in cells.items()}
    header["checksum"] = files._checksum(header, columns)
    path.write_text(json.dumps({**header, "cells": cells}))


ALTERATIONS = {
    "no share": (lambda h: h["guarantee"].update(spent_epsilon=0), "the guarantee counts none"),
    "a larger share": (
        lambda h: h["guarantee"].update(spent_epsilon=0.5),
        r"after epsilon = 0.5 was spent on merging states, gives delta = .* more than",
    ),
    "the whole": (
        lambda h: h["guarantee"].update(spent_epsilon=1.0),
        "spent epsilon = 1, which leaves nothing of epsilon = 1",
    ),
    "a negative share": (lambda h: h["guarantee"].update(spent_epsilon=-0.5), "-0.5"),
    "no number": (lambda h: h["guarantee"].update(spent_epsilon=math.nan), "nan"),
    "another unit": (lambda h: h["guarantee"].update(unit="destination"), "takes no share"),
    "other groups": (lambda h: h["states"]["groups"][0].append("z"), "not those that the merges"),
    "other merges": (lambda h: h["states"]["merges"].pop(), "not those that the merges"),
    "merges of nothing": (
        lambda h: h["states"]["merges"].append(["y", "z"]),
        "do not lead to the states",
    ),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_altered_share_or_tree_is_refused(name, tmp_path):
    change, message = ALTERATIONS[name]
    dpm.release(merge(), **PROMISE, unit="transition").save(tmp_path / "out.json")
    _altered(tmp_path / "out.json", change)
    with pytest.raises(dpm.DpmarkovError, match=message):
        dpm.load(tmp_path / "out.json")


def test_a_guarantee_by_hand_is_held_to_its_share():
    noise = Geometric(scale=2.0)  # 0.5 for one transition
    assert Guarantee("transition", 0.75, 0.0, noise, (), 0.2499).profile(0.75) == 0
    with pytest.raises(dpm.DpmarkovError, match=r"after epsilon = 0\.26 was spent"):
        Guarantee("transition", 0.75, 0.0, noise, (), 0.26)
