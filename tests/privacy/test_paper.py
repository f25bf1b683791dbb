"""The paper's accountant: against reference values, independent formulas and known structure."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, arb_series, ctx
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from dpmarkov.errors import DpmarkovError
from dpmarkov.privacy import paper
from dpmarkov.privacy import smallest_fraction as exactly

GRADES = {"k": 20.6, "categories": 5, "eta": 0.073, "gamma": 0.0004}


def by_power_series(k: float, categories: int, eta: float, gamma: float) -> arb:
    """Return delta by inclusion and exclusion over how many components are below gamma.

    Each term is the integral of a product of powers and of entire series in gamma, integrated
    termwise: no contour, no quadrature. Meant for gamma k up to about 50.
    """
    n = categories
    with ctx.workprec(1500):
        K, g = arb(k), arb(gamma)
        a = K * arb(eta)
        b = K - (n - 1) * a
        ctx.cap = 400

        def entire(p: arb) -> arb_series:
            terms, sign_over_factorial = [], 1 / p.gamma()
            for j in range(ctx.cap):
                terms.append(sign_over_factorial / (p + j))
                sign_over_factorial /= -(j + 1)
            return arb_series(terms)

        def integrated(series: arb_series, p: arb) -> arb:
            """Replace s^q by Gamma(k) / Gamma(k - q), what s^(q - k) inverts to at 1."""
            total, power, inverse = arb(0), arb(1), (K - p).rgamma()
            for j in range(ctx.cap):
                total += series[j] * power * inverse
                power, inverse = power * g, inverse * (K - p - j - 1)
            return total * (p * g.log() + K.lgamma()).exp()

        small, large = entire(a), entire(b)
        product, choose, delta = arb_series([1]), arb(1), arb(0)
        for m in range(n):
            sign = (-1) ** m * choose
            with_large = sign * integrated(product * large, m * a + b)
            without = -sign * integrated(product, m * a) if m else arb(0)
            delta += with_large + without
            if m and abs(with_large) + abs(without) < 1e-20 * delta:
                break
            product, choose = product * small, choose * (n - 1 - m) / (m + 1)
        return delta


def by_one_dimensional_integral(k: float, eta: float, gamma: float) -> float:
    """Return delta for n = 3: the large component is Beta, the two others divide the rest."""
    a, b = k * eta, k * (1 - 2 * eta)

    def pair_below(x: float) -> float:
        return float(stats.beta.pdf(x, b, 2 * a) * 2 * special.betainc(a, a, gamma / (1 - x)))

    middle = b / k
    edges = np.unique(np.clip(middle + np.array([-9, -3, 0, 3, 9]) / np.sqrt(k), gamma, 1))
    edges = np.union1d(np.minimum(edges, 1 - 2 * gamma), [gamma, 1 - 2 * gamma])
    pieces = (
        integrate.quad(pair_below, lo, hi, epsabs=0, epsrel=1e-11, limit=500)[0]
        for lo, hi in pairwise(edges)
    )
    outer = special.betainc(b, 2 * a, gamma) + special.betainc(2 * a, b, 2 * gamma)
    return float(outer + sum(pieces))


# --- epsilon ----------------------------------------------------------------------------------


def test_epsilon_agrees_with_the_reference_and_is_never_below(
    oracles: dict[str, list[dict[str, Any]]],
) -> None:
    for case in oracles["paper_epsilon"]:
        k, size, categories, eta, gamma = (case[x] for x in ("k", "N", "n", "eta", "gamma"))
        value = paper.epsilon(k=k, size=size, categories=categories, eta=eta, gamma=gamma)
        excess = Fraction(value) / Fraction(case["epsilon"]) - 1
        # The reference is itself rounded to 18 digits.
        assert -1e-17 <= excess <= 2.0**-50


@pytest.mark.parametrize("size", [1 << 11, 1 << 30, 1 << 45])
def test_epsilon_is_an_elementary_function_where_the_beta_functions_ratio_is_rational(
    size: int,
) -> None:
    # With k = N one transition moves a unit of shape: B(x, y) / B(x + 1, y - 1) = (y - 1) / x.
    eta, gamma = 1 / 16, 1 / 128
    value = paper.epsilon(k=size, size=size, categories=4, eta=eta, gamma=gamma)
    expected = math.log((size * (1 - 2 * eta) - 1) / (size * eta)) + math.log(128 - 3)
    assert value == pytest.approx(expected, rel=1e-14)


def test_epsilon_is_theorem_1_in_beta_functions() -> None:
    k, N, n, eta, gamma = 60.0, 98, 5, 0.073, 0.0004
    betas = special.betaln(k * eta, k * (1 - 2 * eta))
    betas -= special.betaln(k * (eta + 1 / N), k * (1 - 2 * eta - 1 / N))
    expected = betas + k / N * math.log((1 - (n - 1) * gamma) / gamma)
    value = paper.epsilon(k=k, size=N, categories=n, eta=eta, gamma=gamma)
    assert value == pytest.approx(expected, rel=1e-12)


def test_the_papers_grades_come_out_as_recomputed_not_as_printed() -> None:
    assert paper.epsilon(size=98, **GRADES) == pytest.approx(2.212, abs=5e-4)
    assert paper.delta(**GRADES) == pytest.approx(0.0020, abs=5e-5)


settings_of_rows = st.tuples(
    st.integers(3, 5000), st.floats(1e-6, 0.5), st.floats(1, 20), st.floats(1e-9, 1)
).map(
    lambda t: {
        "categories": t[0],
        "eta": (eta := t[1] * min(0.2499, 1 / t[0])),
        "k": 1.5 / eta * t[2],
        "gamma": t[3] / (t[0] - 1),
    }
)


@given(settings_of_rows, st.integers(1, 10**12), st.floats(1, 3))
def test_epsilon_grows_with_k_and_falls_with_size_and_gamma(
    row: dict[str, Any], extra: int, factor: float
) -> None:
    size = row["categories"] + extra
    base = paper.epsilon(size=size, **row)
    assert 0 < base < math.inf
    assert paper.epsilon(size=size, **row | {"k": factor * row["k"]}) >= base
    assert paper.epsilon(size=2 * size, **row) <= base
    assert paper.epsilon(size=size, **row | {"gamma": row["gamma"] / factor}) >= base


@given(settings_of_rows, st.integers(1, 10**12))
def test_minimum_epsilon_is_epsilon_at_the_least_concentration(
    row: dict[str, Any], extra: int
) -> None:
    size, k = row["categories"] + extra, row.pop("k")
    least = paper.minimum_epsilon(size=size, **row)
    assert least <= paper.epsilon(size=size, k=k, **row) * (1 + 1e-14)
    assert least == pytest.approx(paper.epsilon(size=size, k=1.5 / row["eta"], **row), rel=1e-13)


def test_epsilon_promises_nothing_negative_where_omega_1_is_empty() -> None:
    row = {"k": 100.0, "categories": 3, "eta": 0.2}
    assert paper.epsilon(size=10, gamma=0.5, **row) > 0
    assert paper.delta(gamma=0.5, **row) == paper.delta(gamma=0.34, **row) == 1


# --- delta ------------------------------------------------------------------------------------


def test_delta_and_its_bound_agree_with_the_reference(
    oracles: dict[str, list[dict[str, Any]]],
) -> None:
    for case in oracles["paper_delta"]:
        row = {"k": case["k"], "categories": case["n"], "eta": case["k_eta"] / case["k"]}
        exact = paper.delta(gamma=case["gamma"], **row)
        bound = paper.delta(gamma=case["gamma"], method="bound", **row)
        # The reference for n = 3 is itself 1.2e-10 too small.
        assert exact == pytest.approx(float(case["delta"]), rel=2e-7)
        assert bound == pytest.approx(float(case["union_bound"]), rel=1e-14)


@pytest.mark.parametrize("n", [3, 4, 10, 100, 5000])
@pytest.mark.parametrize("target", [0.3, 1e-3, 1e-5, 1e-8, 1e-15, 1e-100])
@pytest.mark.parametrize(("k_eta", "share"), [(1.5, 0.5), (6.0, 0.5), (2.0, 1.0)])
def test_delta_is_just_above_inclusion_and_exclusion_by_power_series(
    n: int, target: float, k_eta: float, share: float
) -> None:
    eta = min(0.2499, share / n)
    k = k_eta / eta
    row = {"k": k, "categories": n, "eta": eta}
    row["gamma"] = float(special.betaincinv(k_eta, k - k_eta, target / n))
    reference = by_power_series(**row)
    assert reference.rel_accuracy_bits() > 60
    truth = float(reference)
    assert truth * (1 - 1e-15) <= paper.delta(**row) <= truth * (1 + 2e-7)


@pytest.mark.parametrize(
    ("k", "eta", "gamma"),
    [
        (6.1, 0.2499, 0.3),
        (12.0, 0.17, 0.002),
        (1e3, 1.5e-3, 1e-6),
        (1e3, 0.2, 0.16),
        (1e4, 0.24, 0.23),
        (6e4, 0.2499, 0.2507),
        (1e6, 0.2, 0.1985),
        (1e6, 0.2499, 0.2499),
    ],
)
def test_delta_of_three_categories_is_a_one_dimensional_integral(
    k: float, eta: float, gamma: float
) -> None:
    reference = by_one_dimensional_integral(k, eta, gamma)
    value = paper.delta(k=k, categories=3, eta=eta, gamma=gamma)
    assert reference * (1 - 1e-9) <= value <= reference * (1 + 3e-7)


@pytest.mark.parametrize("gamma", [1e-9, 1e-7])
def test_the_integral_agrees_with_the_closed_forms_where_those_pinch_delta(gamma: float) -> None:
    vertex = exactly.Vertex.of(20.6, 5, 0.073, gamma)
    lower, upper = vertex.sandwich()
    line = exactly._Line.through(vertex)
    integral = float(exactly._integral(vertex, line).mid())
    assert float(upper - lower) < 1e-5 * float(lower)
    assert float(lower) - line.tail <= integral
    assert integral <= float(upper) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("k", "n", "eta", "gamma"),
    [(6.1, 3, 0.2499, 0.1), (6.1, 4, 0.2499, 0.2), (2e4, 3, 0.2, 0.199), (60.0, 40, 0.025, 0.001)],
)
def test_the_tail_bound_covers_every_node(k: float, n: int, eta: float, gamma: float) -> None:
    vertex = exactly.Vertex.of(k, n, eta, gamma)
    line = exactly._Line.through(vertex)
    heights, rest = exactly._tails(vertex, line.c, line.step)
    pieces = -np.diff(rest)
    seen = np.flatnonzero(pieces > 1e-12 * rest[0])[::40]
    assert len(seen) > 5
    for i in seen:
        with ctx.workprec(128):
            s = acb(line.c, heights[i])
            node = exactly._difference(vertex, s) * (-vertex.k * (s / line.c).log()).exp()
            node *= exactly._prefactor(vertex, line.c) / arb.pi()
            assert node.abs_upper() * (heights[i + 1] - heights[i]) < pieces[i]


@settings(max_examples=60)
@given(settings_of_rows)
def test_delta_lies_between_bonferroni_s_two_sums(row: dict[str, Any]) -> None:
    exact, bound = paper.delta(**row), paper.delta(**row, method="bound")
    assert 0 <= exact <= bound <= 1
    if bound < 1:
        # Negative association: two fractions are both below at most as if independent.
        assert exact >= (bound - bound**2 / 2) * (1 - 1e-13)


@settings(max_examples=40)
@given(settings_of_rows, st.floats(0.1, 1))
def test_delta_grows_with_gamma_and_falls_as_the_floor_rises(
    row: dict[str, Any], factor: float
) -> None:
    base = paper.delta(**row)
    assert paper.delta(**row | {"gamma": row["gamma"] * factor}) <= base * (1 + 1e-6)
    # A lower floor admits more rows: the minimum over them can only fall.
    lower = row["eta"] * factor
    assume(row["k"] * lower >= 1.5)
    assert paper.delta(**row | {"eta": lower}) >= base * (1 - 1e-6)


@pytest.mark.parametrize(
    ("k", "eta", "gamma"),
    [(1e12, 1e-3, 9.9e-4), (1e300, 0.24, 0.12), (2e300, 1e-300, 1e-305)],
)
def test_delta_is_safe_where_the_integral_is_out_of_reach(
    k: float, eta: float, gamma: float
) -> None:
    row = {"k": k, "categories": 3, "eta": eta, "gamma": gamma}
    assert 0 < paper.delta(**row) <= 1
    assert paper.delta(**row) == paper.delta(**row, method="bound")


def test_a_tiny_delta_is_rounded_up_and_never_zero() -> None:
    assert paper.delta(k=1000, categories=3, eta=0.2499, gamma=1e-100) == 5e-324


def test_a_certain_failure_is_one() -> None:
    assert paper.delta(k=1.5e6, categories=5000, eta=1e-6, gamma=1.9e-4) == 1


@pytest.mark.parametrize(
    "row",
    [
        GRADES,
        {"k": 60.0, "categories": 40, "eta": 0.025, "gamma": 0.001},
        {"k": 6.1, "categories": 3, "eta": 0.2499, "gamma": 0.1},
    ],
)
def test_simulation_agrees_with_the_integral(row: dict[str, Any]) -> None:
    # Fixed seed; with fresh seeds each case would fail once in a million.
    samples = 200_000
    rng = np.random.default_rng(20260101)
    estimate = paper.delta(**row, method="monte-carlo", samples=samples, rng=rng)
    hits = round(estimate * samples)
    assert stats.binomtest(hits, samples, paper.delta(**row)).pvalue > 1e-6


def test_simulation_repeats_with_its_generator_and_covers_every_chunk() -> None:
    row = {"k": 3e6, "categories": 300_000, "eta": 1e-6, "gamma": 1e-7}
    first, second = (
        paper.delta(**row, method="monte-carlo", samples=7, rng=np.random.default_rng(1))
        for _ in range(2)
    )
    assert first == second == 1
    assert paper.delta(**GRADES, method="monte-carlo", samples=10) in {i / 10 for i in range(11)}


# --- the assumptions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"categories": 2}, "categories=2 .*at least 3"),
        ({"categories": 4.5}, r"categories=4\.5 .*whole"),
        ({"eta": 0.25}, r"eta=0\.25 .*1/4"),
        ({"eta": 0.0}, r"eta=0\.0 .*0 and 1/4"),
        ({"eta": math.nan}, "eta=nan"),
        ({"eta": 0.21}, r"eta=0\.21 exceeds 1/5"),
        ({"gamma": 0.0}, r"gamma=0\.0 .*1/4"),
        ({"gamma": 0.26}, r"gamma=0\.26 .*1/4"),
        ({"gamma": math.nan}, "gamma=nan"),
        ({"k": 20.5}, r"k=20\.5 .*3/\(2 eta\) = 20\.547"),
        ({"k": math.inf}, "k=inf .*finite"),
        ({"k": math.nan}, "k=nan"),
    ],
)
def test_each_assumption_is_checked_and_its_error_names_value_and_limit(
    change: dict[str, float], named: str
) -> None:
    row: dict[str, Any] = GRADES | change
    with pytest.raises(DpmarkovError, match=named):
        paper.delta(**row)
    with pytest.raises(DpmarkovError, match=named):
        paper.epsilon(size=98, **row)
    if "k" not in change:
        del row["k"]
        with pytest.raises(DpmarkovError, match=named):
            paper.minimum_epsilon(size=98, **row)


@pytest.mark.parametrize("size", [-1, 0, 5, 98.5, math.inf, math.nan])
def test_a_row_must_be_large_enough_to_hold_two_neighbours(size: int) -> None:
    row: dict[str, Any] = GRADES | {"size": size}
    with pytest.raises(DpmarkovError, match=rf"size={size!r} .*above categories=5"):
        paper.epsilon(**row)
    del row["k"]
    with pytest.raises(DpmarkovError, match="size="):
        paper.minimum_epsilon(**row)


def test_the_limits_themselves_are_accepted() -> None:
    for n in range(4, 200):
        row = {"categories": n, "eta": min(1 / n, 0.2499), "gamma": 1 / (n - 1)}
        k = 1.5 * (1 / row["eta"])
        assert paper.epsilon(k=k, size=n + 1, **row) > 0
        assert paper.delta(k=k, **row) == 1


def test_unknown_methods_and_empty_simulations_are_refused() -> None:
    with pytest.raises(DpmarkovError, match=r"method='guess' .*exact.*bound.*monte-carlo"):
        paper.delta(**GRADES, method="guess")
    with pytest.raises(DpmarkovError, match=r"samples=0 .*at least 1"):
        paper.delta(**GRADES, method="monte-carlo", samples=0)


def test_rows_in_the_bordered_simplex_pass_even_at_the_floor() -> None:
    counts = np.array([[11, 89, 900], [500, 489, 11]])
    paper.check_bordered(counts / 1000, eta=11 / 1000)


@pytest.mark.parametrize(
    ("C", "eta", "named"),
    [
        ([0.0123, 0.4321, 0.5556], 0.0124, r"below the floor eta=0\.0124"),
        ([[0.2, 0.3, 0.5], [0.0123, 0.4321, 0.5556]], 0.1, r"below the floor eta=0\.1"),
        ([-0.0123, 0.4567, 0.5556], 0.1, "below the floor"),
        ([0.0123, 0.4321, 0.5], 0.001, "does not sum to 1"),
        ([math.nan, 0.4321, 0.5], 0.001, "does not sum to 1"),
        ([0.4321, 0.5679], 0.1, "categories=2"),
        (0.4321, 0.1, "categories=1"),
        ([0.0123, 0.4321, 0.5556], 0.3, r"eta=0\.3 .*1/4"),
        ([0.1] * 10, 0.11, "exceeds 1/10"),
    ],
)
def test_rows_outside_are_refused_without_a_word_on_their_values(
    C: Any, eta: float, named: str
) -> None:
    with pytest.raises(DpmarkovError, match=named) as refusal:
        paper.check_bordered(C, eta)
    assert not any(text in str(refusal.value) for text in ("123", "432", "567", "555"))
