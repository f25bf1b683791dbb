"""How far a simulated mean may be from a closed form: by its own standard error."""

from __future__ import annotations

from dpmarkov.planning import Estimate

# A right closed form is refused by one comparison with probability 6e-7, were the seed new; the
# tests of studies make fewer than 500 comparisons.
LIMIT = 5.0


def standard_error(estimate: Estimate) -> float:
    return (estimate.high - estimate.mean) / 1.959964


def off(estimate: Estimate, truth: float) -> float:
    """Give the distance in standard errors."""
    return abs(estimate.mean - truth) / standard_error(estimate)
