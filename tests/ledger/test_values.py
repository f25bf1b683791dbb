"""What is hashed is what the database gives back, whatever type a value had."""

from __future__ import annotations

import os

import numpy as np
import pytest

import dpmarkov as dpm
from dpmarkov.guarantee import Guarantee
from dpmarkov.ledger.budget import Budget
from dpmarkov.noise import Geometric

TARGET = {"epsilon": 1.0, "delta": 1e-6, "unit": "transition"}
RING = [("home", "work"), ("work", "shop"), ("shop", "home")]


@pytest.fixture
def trips(ledger):
    return ledger.add_dataset("trips", unit="transition", epsilon=3, delta=1e-5)


@pytest.mark.parametrize("number", [0.1, 2 / 3, 0.1 + 0.2, 123456789.123456789, 1e-300, 5e-324])
def test_numbers_come_back_to_the_last_bit(ledger, number):
    budget = {"unit": "transition", "epsilon": 1e9 + number, "delta": number % 1}
    dataset = ledger.add_dataset("x", **budget)
    promise = Guarantee("transition", 20 + number, number % 1, Geometric(1 + number), ("a", "ü"))
    dataset.charge(promise)
    assert dataset.charges()[0].guarantee == promise
    assert ledger.dataset("x").budget == Budget(**budget)
    ledger.verify()


@pytest.mark.parametrize(
    "charge",
    [
        lambda trips: trips.charge(Guarantee("transition", 1, 0, Geometric(1), conditions=())),
        lambda trips: trips.charge(Guarantee("transition", 1.0, -0.0, Geometric(1.0), ())),
        lambda trips: trips.charge(Guarantee("transition", np.float32(1), 0, Geometric(1.5), ())),
        lambda trips: trips.charge_share("transition", 1, "merging"),
    ],
)
def test_numbers_of_any_type_leave_the_chain_whole(trips, charge):
    charge(trips)
    assert trips.ledger.verify().startswith("2:")
    assert 0.6 < trips.spent() <= 1


def test_merging_for_a_whole_number_of_epsilon_leaves_the_chain_whole(trips, counts):
    merged = dpm.merge_states(counts, RING, to=2, unit="transition", epsilon=1, ledger=trips)
    dpm.release(merged, **TARGET | {"epsilon": 2}, ledger=trips)
    assert trips.ledger.verify().startswith("3:")


def test_what_no_database_keeps_is_written_so_that_it_does_or_refused(trips, counts, tmp_path):
    out = dpm.release(counts, **TARGET, ledger=trips)
    out.save(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json"))
    assert trips.charges()[0].artefacts == ("\\udcff.json",)
    for part in (1, "", " 01", "a\0b", "\udcff"):
        with pytest.raises(dpm.DpmarkovError, match="a part needs a name of printable"):
            trips.ledger.dataset("trips", part=part)
    odd = Guarantee("transition", 1.0, 0.0, Geometric(1.0), ())
    for purpose in (3, "a\0b", "\udcff"):
        with pytest.raises(dpm.DpmarkovError, match=r"purpose (must be text|has characters)"):
            trips.charge(odd, purpose=purpose)
    assert trips.ledger.verify().startswith("3:")
