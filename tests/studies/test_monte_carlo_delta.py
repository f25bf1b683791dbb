"""The appendix figure: the error of a Monte Carlo delta is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from simulation_error import LIMIT, standard_error

from studies.monte_carlo_delta import PAPER, SAMPLES, expected_error, implied_delta, settings


@pytest.fixture(scope="module")
def figures(figures_of):
    return figures_of("monte_carlo_delta")


@pytest.mark.parametrize(("delta", "samples"), [(0.05, 100), (0.3, 7), (0.002, 1000), (1e-5, 50)])
def test_the_closed_form_is_the_mean_of_the_binomial_law(delta, samples):
    hits = np.arange(samples + 1)
    mean = binom.pmf(hits, samples, delta) @ abs(hits / samples / delta - 1)
    assert expected_error(delta, np.array([samples]))[0] == pytest.approx(mean, rel=1e-9)


def test_the_paper_s_curve_is_that_of_the_delta_it_implies():
    assert implied_delta() == pytest.approx(0.048, abs=0.001)
    ratios = PAPER / expected_error(implied_delta(), SAMPLES)
    assert 0.6 < ratios.min() < ratios.max() < 1.3
    assert np.exp(np.log(ratios).mean()) == pytest.approx(1, abs=0.01)
    # at the deltas that the paper prints, a million samples are not within 1%
    assert expected_error(0.0026, SAMPLES)[-1] > 0.015
    assert expected_error(3e-6, SAMPLES)[-1] > 0.4


def test_repeated_estimates_err_as_the_closed_form_says(figures):
    compared = 0
    for each in figures["settings"]:
        exacts = expected_error(each["delta"], np.array(each["samples"]))
        for M, simulated, exact in zip(each["samples"], each["simulated"], exacts, strict=True):
            if M * each["delta"] >= 2:  # of 20 repeats some must hit, for an interval
                assert abs(simulated.mean - exact) < LIMIT * standard_error(simulated)
                compared += 1
    assert compared > 15


def test_integral_and_bound_are_on_the_safe_side_and_close(figures):
    for setting, times in zip(settings(), figures["times"], strict=True):
        assert times["bound"] >= times["exact"] == pytest.approx(setting.exact, rel=1e-12)
        # the union bound is off by at most about half of delta
        assert times["excess of the bound"] < 0.6 * setting.exact + 2e-6
