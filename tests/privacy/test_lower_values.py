"""Totals and users held against rigorous lower values, in which no moment and no contour occurs.

Privacy losses are laid on a grid by the distribution functions of their own laws, each rounded
*down* to a point of it, and added up by a discrete Fourier transform. As delta grows with the loss,
what comes out is below the truth (but for rounding errors of some 1e-15); and as a sum of n losses
moves by n steps at most, it is close.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import fft, special, stats

from dpmarkov import privacy
from dpmarkov.guarantee import Guarantee
from dpmarkov.noise import Dirichlet, Gaussian, Geometric
from dpmarkov.privacy import compose

ROUNDING = 1e-12  # of sums of floats, in delta
CLOSE = 1e-3  # how far above a lower value a total epsilon may be, relatively


def gamma_loss(rate, mass, moved, removed):
    """Give P(loss <= x) and P(loss > x) of a cell that counts `mass` and is moved."""
    kappa, h = rate * mass, rate * moved
    b = special.gammaln(kappa + h) - special.gammaln(kappa)
    if removed:
        return lambda x: tuple(
            of(kappa, np.exp((b - x) / h)) for of in (special.gammaincc, special.gammainc)
        )
    return lambda x: tuple(
        of(kappa + h, np.exp((x + b) / h)) for of in (special.gammainc, special.gammaincc)
    )


def loss_of(noise, removed):
    """Give the same of a release that hides a transition."""
    if isinstance(noise, Dirichlet):
        return gamma_loss(noise.rate, noise.mass, 1, removed)
    if isinstance(noise, Gaussian):
        normal = stats.norm(noise.scale**-2 / 2, 1 / noise.scale)
        return lambda x: (normal.cdf(x), normal.sf(x))
    t = 1 / noise.scale
    down = 1 / (1 + np.exp(t))
    return lambda x: (
        np.select([x < -t, x < t], [0.0, down], 1.0),
        np.select([x < -t, x < t], [1.0, 1 - down], 0.0),
    )


def lower_epsilon(losses, delta, guess):
    """Find an epsilon below the true one of independent losses, each (law, how often)."""
    step = 4e-4 * guess / sum(times for _, times in losses)
    half = fft.next_fast_len(int(4 * guess / step))
    ends = step * np.arange(-half, half + 1)
    spectrum = np.ones(half + 1, dtype=complex)
    for law, times in losses:
        with np.errstate(over="ignore"):
            below, above = law(ends)
        cells = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
        cells[-1] += above[-1]  # what lies beyond is moved to the end, which is down, too
        spectrum *= fft.rfft(fft.ifftshift(cells)) ** times
    found = np.maximum(fft.fftshift(fft.irfft(spectrum, 2 * half)), 0)
    ahead, x = found[half:], ends[half:-1]
    # delta at each point of the grid: what lies at or beyond the next one.
    more = np.append(np.cumsum(ahead[:0:-1])[::-1], 0)
    less = np.append(np.cumsum((ahead * np.exp(-x))[:0:-1])[::-1], 0)
    deltas = more - np.exp(x) * less - ROUNDING
    return float(x[np.flatnonzero(deltas > delta)[-1]])


def mixture(rng):
    """Draw up to nine releases at the unit `transition`."""
    epsilons, m = 10 ** rng.uniform(-1, 0.3, 3), float(10 ** rng.uniform(2, 4))
    noises = [
        Dirichlet(float(epsilons[0] ** 2 * m / 30), m),
        Gaussian(float(5 / epsilons[1])),
        Geometric(float(1 / epsilons[2])),
    ]
    times = rng.integers(0, 4, 3)
    return [(noise, int(n)) for noise, n in zip(noises, times, strict=True) if n] or mixture(rng)


@pytest.mark.parametrize("seed", range(8))
def test_totals_are_above_lower_values_and_close(seed):
    rng = np.random.default_rng(seed)
    releases, delta = mixture(rng), float(10 ** rng.uniform(-8, -4))
    promises = [
        Guarantee("transition", 1e3, 0.999, noise, ()) for noise, n in releases for _ in range(n)
    ]
    total = compose(promises).epsilon(delta)
    lower = max(
        lower_epsilon([(loss_of(noise, removed), n) for noise, n in releases], delta, total)
        for removed in (False, True)
    )
    assert lower <= total <= lower * (1 + CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_no_random_user_is_above_the_certificate_and_the_worst_one_touches_it(seed):
    rng = np.random.default_rng(seed)
    cells, per_cell = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    prior = per_cell * 10 ** rng.uniform(1.5, 3)
    rate = prior / (cells * per_cell**2) * 10 ** rng.uniform(-2, -0.5)
    delta = float(10 ** rng.uniform(-8, -4))
    bounds = {"max_cells": cells, "max_per_cell": per_cell}
    certified = privacy.epsilon("user", rate=rate, mass=prior, delta=delta, **bounds)

    def lower(moved, counts):
        return max(
            lower_epsilon(
                [(gamma_loss(rate, prior + c, k, removed), 1)
                 for k, c in zip(moved, counts, strict=True)], delta, certified,
            )
            for removed in (False, True)
        )  # fmt: skip

    worst = lower(np.full(cells, per_cell), np.zeros(cells))
    assert worst <= certified <= worst * (1 + CLOSE)
    for _ in range(2):
        size = int(rng.integers(1, cells + 1))
        moved, counts = rng.integers(1, per_cell + 1, size), rng.integers(0, 30, size)
        assert lower(moved, counts) <= certified
