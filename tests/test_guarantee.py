"""The guarantee: true of its noise, or it cannot be made; and in words that never say too much."""

from __future__ import annotations

import numpy as np
import pytest

import dpmarkov as dpm
from dpmarkov.noise import Dirichlet, Gaussian, Geometric

TARGET = {"epsilon": 1.0, "delta": 1e-6}
COUNTS = dpm.TransitionCounts.from_dense(
    [[120, 3000, 400], [2500, 900, 600], [900, 100, 0]], dpm.StateSpace(["home", "work", "shop"])
)


def test_a_guarantee_in_words_never_rounds_its_factor_down():
    for epsilon in (0.01, 0.5, 1, 3.73, 12, 800):
        out = dpm.release(COUNTS, epsilon=epsilon, delta=1e-6, unit="destination")
        words = str(out.guarantee)
        assert f"({epsilon:g}, 1e-06)-differentially private" in words
        assert "'destination'" in words
        assert max(map(len, words.splitlines())) <= 88
        if epsilon < 700:
            factor = float(" ".join(words.split()).split(f"e^{epsilon:g} = ")[1].split()[0])
            assert np.exp(epsilon) <= factor <= np.exp(epsilon) * 1.01


def test_a_guarantee_in_words_has_every_digit():
    exact = dpm.Guarantee("transition", 1.00000049, 1.2345649e-6, Geometric(1.0), conditions=())
    words = " ".join(str(exact).split())
    assert "(1.00000049, 1.2345649e-06)-differentially private" in words
    assert "e^1.00000049 = 2.72" in words
    assert "a probability of 1.2345649e-06." in words


def test_the_budget_of_a_ledger_has_every_digit_in_the_conditions(tmp_path):
    ledger = dpm.Ledger.create(str(tmp_path / "ledger.db"))
    budget = {"epsilon": 2.00000049, "delta": 1.00000049e-5}
    trips = ledger.add_dataset("trips", unit="transition", **budget)
    out = dpm.release(COUNTS, **TARGET, unit="transition", ledger=trips)
    said = " ".join(str(out.guarantee).split())
    assert "within epsilon = 2.00000049 and delta = 1.00000049e-05 together" in said


def test_pure_privacy_is_said_to_be_without_exception():
    out = dpm.release(COUNTS, epsilon=1.0, delta=0, unit="transition", mechanism="geometric")
    assert out.guarantee.noise == Geometric(1.0)
    assert "(1, 0)-differentially private" in str(out.guarantee)
    assert "as on the other, without exception." in " ".join(str(out.guarantee).split())


@pytest.mark.parametrize(
    "noise", [Dirichlet(rate=2.0, mass=30.0), Geometric(1.9), Gaussian(5.9)], ids=str
)
def test_a_guarantee_that_its_noise_does_not_give_cannot_be_made(noise):
    with pytest.raises(dpm.DpmarkovError, match=r"=.*more than the 1e-06 that is claimed"):
        dpm.Guarantee("destination", 1.0, 1e-6, noise, conditions=())
    true = noise.profile("destination", 1.0)
    assert dpm.Guarantee("destination", 1.0, true, noise, conditions=()).delta == true
    with pytest.raises(dpm.DpmarkovError, match="that is claimed"):
        dpm.Guarantee("destination", 1.0, np.nextafter(true, 0), noise, conditions=())
