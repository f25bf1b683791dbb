"""Whole users: their bounds are kept with a charge, and choosing bounds is charged before."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import dpmarkov as dpm
from dpmarkov import contributions
from dpmarkov.noise import Geometric

TARGET = {"epsilon": 1.0, "delta": 1e-6, "unit": "user"}
BOUNDS = {"max_cells": 4, "max_per_cell": 2}
STATES = ["a", "b", "c"]


@pytest.fixture
def riders(ledger):
    return ledger.add_dataset("riders", unit="user", epsilon=3, delta=1e-5)


@pytest.fixture
def events():
    rows = [(STATES[i % 3], STATES[(i * i + j) % 3], i) for i in range(400) for j in range(3)]
    return pd.DataFrame(rows, columns=["from", "to", "rider"])


def pure(epsilon):
    one = {"max_cells": 1, "max_per_cell": 1}
    noise = Geometric.calibrated("user", epsilon=epsilon, delta=0, **one)
    return dpm.Guarantee("user", epsilon, 0.0, noise, conditions=(), **one)


def counted(events, **more):
    return dpm.count_transitions(events, origin="from", destination="to", states=STATES,
                                 user="rider", **more)  # fmt: skip


@pytest.mark.parametrize("mechanism", ["dirichlet", "geometric", "gaussian"])
def test_bounds_are_kept_and_what_remains_is_accepted(riders, events, tmp_path, mechanism):
    counts = counted(events, **BOUNDS)
    out = dpm.release(counts, **TARGET, mechanism=mechanism, ledger=riders)
    out.save(tmp_path / "out.json")
    (charge,) = riders.charges()
    assert charge.guarantee == out.guarantee == dpm.load(tmp_path / "out.json").guarantee
    assert charge.guarantee.bounds == BOUNDS
    assert riders.ledger.entries()[1].max_cells == 4
    kind = {"mechanism": mechanism, "delta": 1e-6}
    left = riders.remaining(**kind, **BOUNDS)
    assert left >= 2
    with pytest.raises(dpm.BudgetError) as refused:
        dpm.release(counts, epsilon=left * 1.01, unit="user", ledger=riders, **kind)
    assert refused.value.remaining == left
    dpm.release(counts, epsilon=left, unit="user", ledger=riders, **kind)
    riders.ledger.verify()


def test_what_remains_needs_the_bounds_at_this_unit_and_none_at_others(ledger, riders):
    with pytest.raises(dpm.DpmarkovError, match="needs max_cells="):
        riders.remaining()
    trips = ledger.add_dataset("trips", unit="transition", epsilon=3, delta=1e-5)
    with pytest.raises(dpm.DpmarkovError, match="goes with the unit 'user'"):
        trips.remaining(**BOUNDS)


def test_choosing_bounds_is_charged_before_its_noise_and_not_again(riders, events, monkeypatch):
    auto = {"max_cells": "auto", "max_per_cell": "auto", "bounds_epsilon": 0.25}
    counts = counted(events, **auto, ledger=riders)
    assert [(c.purpose, c.guarantee.epsilon) for c in riders.charges()] == [("bounds", 0.25)]
    ring = [("a", "b"), ("b", "c"), ("c", "a")]
    merged = dpm.merge_states(counts, ring, to=2, unit="user", epsilon=0.25, ledger=riders)
    out = dpm.release(merged, **TARGET, ledger=riders)
    assert out.guarantee.spent_epsilon == 0.5
    assert [c.purpose for c in riders.charges()] == ["bounds", "merging", "release"]
    assert [c.guarantee.epsilon for c in riders.charges()] == [0.25, 0.25, pytest.approx(0.5)]
    assert [c.follows for c in riders.charges()] == [None, None, merged.charge]
    assert 0.8 < riders.spent() <= 1
    with pytest.raises(dpm.DpmarkovError, match=r"before was charged to a ledger; give"):
        dpm.merge_states(counts, ring, to=2, unit="user", epsilon=0.25)
    with pytest.raises(dpm.DpmarkovError, match="before was charged to a ledger"):
        dpm.release(counts, **TARGET)
    with pytest.raises(dpm.DpmarkovError, match=r"noise was drawn .* no ledger was charged for"):
        dpm.release(counted(events, **auto), **TARGET, ledger=riders)
    monkeypatch.setattr(contributions, "two_sided_geometric", None)  # drawing would fail
    with pytest.raises(TypeError):
        counted(events, **auto, ledger=riders)
    assert len(riders.charges()) == 4
    poor = riders.ledger.add_dataset("poor", unit="user", epsilon=0.2, delta=0)
    with pytest.raises(dpm.BudgetError):
        counted(events, **auto, ledger=poor)


def test_noise_that_bounds_may_have_decided_on_counts_by_its_claim(riders, events):
    """Other bounds would have led to other noise: of all that, only (epsilon, delta) is known."""
    auto = {"max_cells": "auto", "max_per_cell": "auto", "bounds_epsilon": 0.1}
    counts = counted(events, **auto, ledger=riders)
    target = {"epsilon": 0.3, "delta": 1e-9, "unit": "user"}
    drawn = [dpm.release(counts, **target, ledger=riders).guarantee for _ in range(7)]
    claims = [charge.guarantee for charge in riders.charges()[1:]]
    assert all(claim.only_claimed for claim in claims)
    own = [replace(promise, epsilon=claims[0].epsilon, spent_epsilon=0.0) for promise in drawn]
    assert dpm.privacy.compose(own).epsilon(1e-5) < 0.8
    assert 1.4 < riders.spent() <= 1.5
    geometric = {"delta": 0, "unit": "user", "mechanism": "geometric", "ledger": riders}
    with pytest.raises(dpm.BudgetError) as refused:
        dpm.release(counts, epsilon=1.8, **geometric)
    dpm.release(counts, epsilon=0.1 + refused.value.remaining, **geometric)
    assert "spent before, on bounds or on merging states, stays charged" in str(refused.value)
    assert 2.8 < riders.spent() <= 3


@pytest.mark.parametrize("mechanism", ["dirichlet", "geometric", "gaussian"])
def test_whether_there_is_room_is_told_before_a_share_is_charged(riders, events, mechanism):
    auto = {"max_cells": "auto", "max_per_cell": "auto", "bounds_epsilon": 0.25}
    riders.charge(pure(1))
    asked = {"delta": 1e-6, "mechanism": mechanism}
    with pytest.raises(dpm.BudgetError, match=r"Nothing was charged, nor was the 0\.25") as refused:
        riders.check_room(epsilon=3.5, shares=[0.25], **asked)
    with pytest.raises(dpm.DpmarkovError, match="leaves nothing of epsilon"):
        riders.check_room(epsilon=0.5, shares=[0.25, 0.25], **asked)
    assert len(riders.charges()) == 1
    epsilon = 0.25 + refused.value.remaining * (1 - 1e-9)
    riders.check_room(epsilon=epsilon, shares=[0.25], **asked)
    counts = counted(events, **auto, ledger=riders)
    with pytest.raises(dpm.BudgetError):
        dpm.release(counts, epsilon=epsilon + 0.01, unit="user", ledger=riders, **asked)
    dpm.release(counts, epsilon=epsilon, unit="user", ledger=riders, **asked)


def test_normal_noise_is_the_same_whatever_bounds_were_chosen(riders, events):
    auto = {"max_cells": "auto", "max_per_cell": "auto", "bounds_epsilon": 0.1}
    counts = counted(events, **auto, ledger=riders)
    for _ in range(20):  # as claims they would add up to far more than 3
        dpm.release(counts, epsilon=0.4, delta=1e-8, unit="user", mechanism="gaussian",
                    ledger=riders)  # fmt: skip
    assert all(charge.follows for charge in riders.charges()[1:])
    assert riders.spent() <= 3


def test_a_share_and_its_release_are_charged_to_the_same_part(ledger, riders, events):
    auto = {"max_cells": "auto", "max_per_cell": "auto", "bounds_epsilon": 2.9}
    north, south = (ledger.dataset("riders", part=part) for part in ("north", "south"))
    counts = counted(events, **auto, ledger=north)
    target = {"epsilon": 5.8, "delta": 0, "unit": "user", "mechanism": "geometric"}
    for other in (south, riders):  # together they would be 5.8 of 3 for the people of the north
        with pytest.raises(dpm.DpmarkovError, match="the part 'north' of 'riders' was charged"):
            dpm.release(counts, **target, ledger=other)
        with pytest.raises(dpm.DpmarkovError, match="give the same part each time"):
            other.charge(pure(0.1), follows=counts.charge)
    with pytest.raises(dpm.BudgetError):
        dpm.release(counts, **target, ledger=north)
    assert len(riders.charges()) == 1


def test_declared_bounds_cost_nothing(riders, events):
    counted(events, **BOUNDS, ledger=riders)
    assert riders.charges() == ()
