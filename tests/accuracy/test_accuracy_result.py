"""Who may see a result, and that a labelled result is still a number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmarkov import accuracy

P = np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5], [0.2, 0.2, 0.6]])

OF_DATA = {
    "expected_kl": lambda **kw: accuracy.expected_kl(P, 100, **kw),
    "mean_absolute_deviation": lambda **kw: accuracy.mean_absolute_deviation(P, 100, **kw),
    "variance": lambda **kw: accuracy.variance(P, 100, **kw),
    "stationary_bound": lambda **kw: accuracy.stationary_bound(P, 100, **kw),
    "ergodicity_bound": lambda **kw: accuracy.ergodicity_bound(P, 100, **kw),
    "paper_stationary_bound": lambda **kw: accuracy.paper_stationary_bound(P, 100, size=50, **kw),
    "paper_ergodicity_bound": lambda **kw: accuracy.paper_ergodicity_bound(P, 100, size=50, **kw),
    "stationary_prediction": lambda **kw: accuracy.stationary_prediction(P, 100, **kw),
    "prediction_from_variances": lambda **kw: accuracy.prediction_from_variances(P, P, **kw),
}

OF_PUBLIC_NUMBERS = {
    "kl_bound": lambda: accuracy.kl_bound(size=50, categories=3, k=100),
    "mean_absolute_deviation_bound": lambda: accuracy.mean_absolute_deviation_bound(100),
    "variance_bound": lambda: accuracy.variance_bound(100),
    "mean_absolute_deviation_lower_bound": lambda: accuracy.mean_absolute_deviation_lower_bound(
        size=50, k=100
    ),
    "paper_mean_absolute_deviation_lower_bound": lambda: (
        accuracy.paper_mean_absolute_deviation_lower_bound(size=50, categories=3, k=100)
    ),
}


def test_every_public_function_is_covered_here():
    functions = {name for name in accuracy.__all__ if name[0].islower()}
    assert functions == {*OF_DATA, *OF_PUBLIC_NUMBERS, "stationary_covariance"}


@pytest.mark.parametrize("name", OF_DATA)
def test_what_depends_on_rows_is_for_the_curator_unless_they_were_released(name):
    assert OF_DATA[name]().publishable is False
    assert "curator only" in str(OF_DATA[name]())
    assert OF_DATA[name](released=True).publishable is True
    assert "publishable" in str(OF_DATA[name](released=True))


@pytest.mark.parametrize("name", OF_PUBLIC_NUMBERS)
def test_what_depends_on_public_numbers_alone_is_publishable(name):
    assert OF_PUBLIC_NUMBERS[name]().publishable is True


def test_a_result_is_used_as_a_number():
    error = accuracy.Result(0.25, publishable=True)
    assert error == 0.25
    assert error < 0.3
    assert 2 * error == 0.5
    assert error == pytest.approx(0.25)
    assert math.isclose(error, 0.25)
    assert np.isclose(error, 0.25)
    assert f"{error:.0%}" == "25%"


def test_arithmetic_does_not_carry_the_label_over():
    secret = accuracy.Result(np.array([1.0, 2.0]), publishable=False)
    public = accuracy.Result(3.0, publishable=True)
    assert not hasattr(public * secret, "publishable")
    assert isinstance(public * secret, np.ndarray)


@pytest.mark.parametrize("released", [True, False])
def test_a_part_of_a_result_keeps_the_label(released):
    rows = accuracy.expected_kl(P, 100, released=released)
    assert rows[1].publishable is released
    assert rows[1] == np.asarray(rows)[1]
