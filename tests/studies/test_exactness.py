"""What exactness buys, by simulation and in closed form."""

from __future__ import annotations

import pytest
from simulation_error import LIMIT, standard_error

import dpmarkov as dpm
from studies.exactness import DELTA, EPSILON, FLOOR, FLOORS, LEAST, THEIRS


@pytest.fixture(scope="module")
def figures(figures_of):
    return figures_of("exactness")


def between(low, before, after, high):
    """Tell whether a ratio of simulated errors lies between two limits with its whole interval."""
    ratio = before.mean / after.mean
    relative = sum(standard_error(x) / x.mean for x in (before, after))
    return low < ratio * (1 - LIMIT * relative) and ratio * (1 + LIMIT * relative) < high


def test_exact_calibration_alone_is_worth_a_factor_of_5(figures):
    found = figures["at the paper's guarantee"]
    assert found["smallest count"] == 11
    assert found["paper epsilon"] <= EPSILON
    assert found["paper delta"] <= DELTA
    assert found["least k ratio"] == pytest.approx(27, abs=0.5)
    for before, after, low, high in ((LEAST, FLOOR, 4, 6), (THEIRS, FLOORS, 25, 45)):
        assert between(low, found["tv"][before], found["tv"][after], high)


def test_prior_and_debiasing_are_worth_5_to_10_again(figures):
    tv = figures["at the paper's guarantee"]["tv"]
    assert between(5, tv[FLOOR], tv["prior, debiased"], 10)


def test_the_exact_rates_keep_the_promise(figures):
    found = figures["at the paper's guarantee"]
    for mass in (found["smallest count"], 24):
        rate = dpm.privacy.calibrate("destination", epsilon=EPSILON, delta=DELTA, mass=mass)
        assert dpm.privacy.profile("destination", rate=rate, mass=mass, epsilon=EPSILON) <= DELTA


def test_simulated_errors_agree_with_the_closed_forms(figures):
    for found in (figures["at the paper's guarantee"], *figures["all zones"]):
        for name, tv in found["tv"].items():
            exact = found["exact"][name]
            assert abs(tv.mean - exact) < LIMIT * standard_error(tv) + 0.1 * exact


def test_at_small_epsilon_all_zones_are_released_with_less_error_than_the_paper_s(figures):
    theirs = figures["at the paper's guarantee"]["tv"][THEIRS].mean
    assert [x["epsilon"] for x in figures["all zones"]] == [1.0, 0.5]
    for found in figures["all zones"]:
        assert found["zones"] == 63
        assert max(tv.mean for tv in found["tv"].values()) < theirs / 5
        assert min(found["tv"], key=lambda name: found["tv"][name].mean) == "geometric noise"
