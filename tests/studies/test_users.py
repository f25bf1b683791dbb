"""Whole users: the noise keeps the promise, and errors are held against the raw chain."""

from __future__ import annotations

import numpy as np
import pytest
from simulation_error import LIMIT, standard_error

import dpmarkov as dpm
from studies.report import Options
from studies.users import DELTA, MECHANISMS, calibrated, row_tv, simulated, sources, verdict


@pytest.fixture(scope="module")
def figures(figures_of):
    return figures_of("users")


def test_errors_fall_with_epsilon_towards_what_the_bounds_alone_cost(figures):
    (found,) = figures["sources"]
    strict, loose = found["best"]
    assert (strict["epsilon"], loose["epsilon"]) == (1.0, 8.0)
    for name in MECHANISMS:
        before, after = strict["tv"][name]["row"], loose["tv"][name]["row"]
        assert before.mean > after.mean + LIMIT * standard_error(after)
    assert after.mean == pytest.approx(loose["without noise"], rel=0.2)
    assert 0 < loose["kept"] <= 1


def test_a_verdict_goes_by_the_larger_error():
    def of(mean):
        return dpm.planning.Estimate(mean, mean, mean)

    assert verdict({"row": of(0.05), "long run": of(0.3)}) == "too few data"
    assert verdict({"row": of(0.11), "long run": of(0.01)}) == "rough"
    assert verdict({"row": of(0.05)}) == "good"


@pytest.fixture(scope="module")
def real_users(real_data):
    return sources(Options(data=real_data))[1:]


def test_every_mechanism_hides_a_patient_and_an_aircraft(real_users):
    sepsis, aircraft = real_users
    for source, bounds in ((sepsis, (12, 1)), (aircraft, (40, 2))):
        counts = source.count(*bounds)
        assert counts.total <= source.raw.total
        for name in MECHANISMS:
            setting = calibrated(counts, name, 1.0)
            promised = setting.law.profile(
                "user", 1.0, max_cells=counts.max_cells, max_per_cell=counts.max_per_cell
            )
            assert promised <= DELTA


def test_a_certified_release_of_patients_errs_as_the_simulated_ones(real_users):
    sepsis, aircraft = real_users
    assert (sepsis.raw.total, aircraft.raw.total) == (14_141, 330_221)
    counts = sepsis.count(12, 1)
    release = dpm.release(counts, unit="user", epsilon=1.0, delta=DELTA, mechanism="gaussian")
    assert release.guarantee.unit == "user"
    found = simulated(sepsis, counts, calibrated(counts, "gaussian", 1.0), draws=50)["row"]
    # one release is as far from the mean as 50 standard errors of the mean are about 7 of its own
    spread = standard_error(found) * np.sqrt(50)
    assert abs(row_tv(sepsis.raw, release.probabilities) - found.mean) < 7 * spread
