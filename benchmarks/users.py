"""Hiding whole users: the exact profile beside group privacy and dp-accounting.

    python benchmarks/users.py

For each pair of bounds the Dirichlet mechanism is calibrated to (1, 1e-6) at the unit `user`, with
a prior of 1000 times the minimum mass. The same noise is then accounted for in three ways: exactly;
by group privacy from the exact profile of one transition, (g eps, delta (e^(g eps) - 1) /
(e^eps - 1)) for a group of g = L0 Linf, at the best eps; and by dp-accounting's pessimistic
distributions. Times are of one call each, in this run, and of calibration when the minimum mass is
known; the machine's ratio is what counts.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import brentq

from dpmarkov import privacy

EPSILON, DELTA = 1.0, 1e-6
BOUNDS = [(1, 5), (5, 1), (10, 3), (50, 1), (50, 5), (500, 2), (10_000, 1), (10_000, 10)]


def by_groups(rate, mass, size):
    """Total epsilon of a group from the profile of one transition, or where floats end below it."""

    def delta(epsilon):
        return privacy.profile("transition", rate=rate, mass=mass, epsilon=epsilon)

    def excess(epsilon):
        # log of (e^(g eps) - 1) / (e^eps - 1)
        growth = (size - 1) * epsilon
        growth += np.log(np.expm1(-size * epsilon) / np.expm1(-epsilon))
        return np.log(delta(epsilon)) + growth - np.log(DELTA)

    low = high = np.sqrt(rate / mass) / 100
    while excess(high) > 0:
        low, high = high, 1.02 * high
        if delta(high) < 1e-300:
            return size * low, ">"
    return size * (brentq(excess, low, high, rtol=1e-10) if high > low else high), ""


def timed(function):
    start = time.perf_counter()
    value = function()
    return value, 1e3 * (time.perf_counter() - start)


def main() -> None:
    privacy.calibrate("user", epsilon=1, delta=1e-6, mass=1e4, max_cells=3, max_per_cell=2)
    privacy.distribution("user", rate=1.0, mass=1e4, max_cells=2, max_per_cell=2)
    print("| L0 | Linf | exact | group privacy | times smaller | dp-accounting above exact by | "
          "calibrate | profile | dp-accounting takes |")  # fmt: skip
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for cells, per_cell in BOUNDS:
        users = {"max_cells": cells, "max_per_cell": per_cell}
        needed = privacy.minimum_mass("user", epsilon=EPSILON, delta=DELTA, **users)
        target = {"epsilon": EPSILON, "delta": DELTA, "mass": 1000 * needed, **users}
        rate, calibrating = timed(lambda t=target: privacy.calibrate("user", **t))
        at = {"rate": rate, "mass": 1000 * needed, **users}
        exact = privacy.epsilon("user", delta=DELTA, **at)
        _, profiling = timed(lambda a=at: privacy.profile("user", epsilon=EPSILON, **a))
        naive, over = by_groups(rate, 1000 * needed, cells * per_cell)
        found, accounting = timed(
            lambda a=at: privacy.distribution("user", **a).get_epsilon_for_delta(DELTA)
        )
        print(
            f"| {cells:,} | {per_cell} | {exact:.4f} | {over}{naive:.2f} | "
            f"{over}{naive / exact:.1f} | {found / exact - 1:.1e} | {calibrating:.0f} ms | "
            f"{profiling:.1f} ms | {accounting:.0f} ms |"
        )


if __name__ == "__main__":
    main()
