"""Exact answers by rational arithmetic, and chains whose answers are known in closed form."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def exact_stationary(P: Floats) -> list[Fraction]:
    """Eliminate states in rational arithmetic; the diagonal is what the row leaves over."""
    A = [[Fraction(float(p)) for p in row] for row in P]
    n = len(A)
    for k in range(n - 1, 0, -1):
        flow = sum(A[k][:k], Fraction(0))
        for i in range(k):
            A[i][k] /= flow
            for j in range(k):
                A[i][j] += A[i][k] * A[k][j]
    pi = [Fraction(1)]
    for k in range(1, n):
        pi.append(sum((pi[i] * A[i][k] for i in range(k)), Fraction(0)))
    total = sum(pi, Fraction(0))
    return [p / total for p in pi]


def exact_hitting_times(P: Floats) -> list[list[Fraction]]:
    """Solve ``h = 1 + P h`` for each destination by Gauss-Jordan in rational arithmetic."""
    n = len(P)
    H = [[Fraction(0)] * n for _ in range(n)]
    for j in range(n):
        others = [i for i in range(n) if i != j]
        rows = [_hitting_equation(P, i, others) for i in others]
        for i, h in zip(others, _solve(rows), strict=True):
            H[i][j] = h
    return H


def _hitting_equation(P: Floats, i: int, others: list[int]) -> list[Fraction]:
    leaving = sum((Fraction(float(P[i, k])) for k in range(len(P)) if k != i), Fraction(0))
    return [leaving if k == i else -Fraction(float(P[i, k])) for k in others] + [Fraction(1)]


def _solve(rows: list[list[Fraction]]) -> list[Fraction]:
    n = len(rows)
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [entry / rows[k][k] for entry in rows[k]]
        for i in range(n):
            if i != k and rows[i][k]:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def relative_error(found: Floats, exact: list[Fraction]) -> float:
    """Return the largest entrywise relative error, the quotient taken exactly."""
    return max(
        float(abs(Fraction(float(x)) / e - 1)) if e else float(x != 0)
        for x, e in zip(np.ravel(found), exact, strict=True)
    )


def random_chain(rng: np.random.Generator, n: int, zeros: float = 0.0) -> Floats:
    """Draw a chain; some transitions are impossible, never those along the circle."""
    P = rng.exponential(size=(n, n)) * (rng.random((n, n)) >= zeros)
    P += np.roll(np.eye(n), 1, axis=1) * rng.exponential(size=n)[:, None]
    return P / P.sum(axis=1, keepdims=True)


def nearly_decomposable(rng: np.random.Generator, sizes: list[int], coupling: float) -> Floats:
    """Draw blocks that hardly ever exchange anything."""
    n = sum(sizes)
    P = coupling * rng.random((n, n))
    start = 0
    for size in sizes:
        P[start : start + size, start : start + size] = random_chain(rng, size)
        start += size
    return P / P.sum(axis=1, keepdims=True)


def birth_death(up: Floats, down: Floats) -> Floats:
    """Return the chain that goes one up or one down, or stays."""
    P = np.diag(up, 1) + np.diag(down, -1)
    P[np.diag_indices_from(P)] = 1 - P.sum(axis=1)
    return P


def birth_death_stationary(up: Floats, down: Floats) -> list[Fraction]:
    """Return ``pi_k / pi_0 = prod up_i / down_i``, exactly."""
    pi = [Fraction(1)]
    for u, d in zip(up, down, strict=True):
        pi.append(pi[-1] * Fraction(float(u)) / Fraction(float(d)))
    total = sum(pi, Fraction(0))
    return [p / total for p in pi]
