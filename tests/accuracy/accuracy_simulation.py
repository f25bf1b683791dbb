"""Simulated privatizations of chains, to hold closed forms against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

if TYPE_CHECKING:
    from numpy.typing import NDArray

FALSE_ALARM = 1e-6  # chance that one test of a closed form fails though the form is right
SEED = 20260301


def dirichlet_rows(
    shapes: NDArray[np.float64], draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw Dirichlet rows in the log domain: a shape of 0 is an infeasible entry."""
    feasible = shapes > 0
    a = np.where(feasible, shapes, 1.0)
    log_gamma = np.log(rng.standard_gamma(a + 1, (draws, *a.shape)))
    log_gamma += np.log(rng.random((draws, *a.shape))) / a
    log_gamma[:, ~feasible] = -np.inf
    gamma = np.exp(log_gamma - log_gamma.max(axis=-1, keepdims=True))
    return gamma / gamma.sum(axis=-1, keepdims=True)


def stationary(P: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve for the stationary distribution by LU, independently of the chain room."""
    n = P.shape[-1]
    A = np.swapaxes(np.eye(n) - P, -1, -2).copy()
    A[..., -1, :] = 1
    b = np.broadcast_to(np.eye(n)[:, -1:], (*P.shape[:-2], n, 1))
    return np.linalg.solve(A, b)[..., 0]


def tau_inf(P: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the infinity-norm ergodicity coefficient in its closed form (Definition 7)."""
    half, ordered = P.shape[-1] // 2, np.sort(P, axis=-2)
    return (ordered[..., -half:, :].sum(-2) - ordered[..., :half, :].sum(-2)).max(-1)


def assert_means(samples: NDArray[np.float64], closed_form: NDArray[np.float64]) -> None:
    """Check means over the first axis, all together at the stated false-alarm rate."""
    error = samples.mean(axis=0) - closed_form
    scale = samples.std(axis=0) / np.sqrt(len(samples))
    limit = norm.isf(FALSE_ALARM / 2 / error.size)
    assert np.all(np.abs(error) <= limit * scale + 1e-15), np.max(np.abs(error) / scale)


def even(n: int) -> NDArray[np.float64]:
    """Rows whose entries are all about 1 / n."""
    return np.random.default_rng(n).dirichlet(np.full(n, 5.0), size=n)


def uneven(n: int) -> NDArray[np.float64]:
    """Rows over four orders of magnitude."""
    rows = np.random.default_rng(n).dirichlet(np.full(n, 0.3), size=n) + 1e-4
    return rows / rows.sum(axis=1, keepdims=True)


def birth_death(n: int) -> NDArray[np.float64]:
    """Return a sparse chain: only neighbours can be reached."""
    P = np.diag(np.full(n - 1, 0.3), 1) + np.diag(np.full(n - 1, 0.4), -1)
    return P + np.diag(1 - P.sum(axis=1))


def clusters(n: int) -> NDArray[np.float64]:
    """Return two halves that are rarely left."""
    half = np.arange(n) < n // 2
    P = np.where(half[:, None] == half, 1.0, 0.05)
    return P / P.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Simulated:
    """A chain, its Dirichlet parameters and what privatizing it many times did."""

    P: NDArray[np.float64]
    k: NDArray[np.float64]
    some_rows: NDArray[np.float64]  # (draws, rows, n), a few rows of each privatization
    row_deviation: NDArray[np.float64]  # (draws, n), |E_i|_1
    stationary_error: NDArray[np.float64]  # (draws, n)
    tau_error: NDArray[np.float64]  # (draws,)

    @property
    def tv(self) -> NDArray[np.float64]:
        return np.abs(self.stationary_error).sum(axis=1) / 2


def simulate(P: NDArray[np.float64], k: NDArray[np.float64], draws: int) -> Simulated:
    rng, pi, tau = np.random.default_rng(SEED), stationary(P), tau_inf(P)
    parts = []
    for _ in range(0, draws, 100):
        X = dirichlet_rows(k[:, None] * P, 100, rng)
        deviation = np.abs(X - P).sum(axis=2)
        parts.append((X[:, :3], deviation, stationary(X) - pi, np.abs(tau_inf(X) - tau)))
    return Simulated(P, k, *(np.concatenate(part) for part in zip(*parts, strict=True)))


CHAINS = {
    "even-3": (even(3), 400.0, 4000),
    "uneven-5": (uneven(5), 2e4, 4000),
    "birth-death-10": (birth_death(10), 2000.0, 4000),
    "clusters-20": (clusters(20), 4000.0, 4000),
    "uneven-50": (uneven(50), 4e4, 4000),
    "even-120": (even(120), 6000.0, 2000),
    "uneven-120": (uneven(120), 1e5, 2000),
}
