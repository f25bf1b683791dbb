"""The privacy profile of a release: which delta it keeps at any epsilon, and what is claimed.

A guarantee (epsilon, delta) is one point of a curve, ``delta(eps)``: the exact privacy profile of
the noise. The curve passes through the claimed point or below it, and whoever prefers another
epsilon reads its delta off the curve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmarkov.charts.look import (
    FAINT,
    HEIGHT,
    PRIVATE,
    TRUE,
    WIDTH,
    altair,
    rounded,
    rounded_up,
    table,
)

if TYPE_CHECKING:
    from dpmarkov.guarantee import Guarantee

__all__ = ["profile", "profile_points"]

_POINTS = 81
_SMALLEST = 1e-18  # nobody tells a smaller delta from none


def profile_points(guarantee: Guarantee) -> tuple[npt.NDArray[np.float64], Any]:
    """Give points of the profile, never below the truth.

    Parameters
    ----------
    guarantee : Guarantee
        What is promised.

    Returns
    -------
    epsilons, deltas : array of float
        From epsilon 0 to twice what is claimed.
    """
    epsilons = np.linspace(0.0, 2 * guarantee.epsilon or 1.0, _POINTS)
    if not guarantee.only_claimed:
        return epsilons, guarantee.profile(epsilons)
    # Nothing but (epsilon, delta) is proven: its own profile, that of randomised response.
    e, d = guarantee.epsilon, guarantee.delta
    below = np.maximum(np.exp(e) - np.exp(epsilons), 0.0) / (1 + np.exp(e))
    return epsilons, d + (1 - d) * below


def profile(guarantee: Guarantee) -> Any:
    """Draw the privacy profile with the claimed point.

    Parameters
    ----------
    guarantee : Guarantee
        What is promised.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from dpmarkov.guarantee import Guarantee
    >>> from dpmarkov.noise import Geometric
    >>> promise = Guarantee("transition", 1.0, 1e-6, Geometric(scale=1.0), conditions=())
    >>> profile(promise).to_dict()["layer"][0]["mark"]["type"]
    'line'
    """
    alt = altair()
    epsilons, deltas = profile_points(guarantee)
    rows = [
        {"epsilon": rounded(e), "delta": rounded_up(d)}
        for e, d in zip(epsilons.tolist(), np.asarray(deltas).tolist(), strict=True)
        if d >= _SMALLEST
    ]
    claimed = {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
    x = alt.X("epsilon:Q", title="epsilon", scale=alt.Scale(domain=[0, float(epsilons[-1])]))
    y = alt.Y("delta:Q", title="delta", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e"))
    tips = [alt.Tooltip("epsilon:Q", format=".3g"), alt.Tooltip("delta:Q", format=".3g")]
    line = alt.Chart(table(rows)).mark_line(color=PRIVATE, strokeWidth=2.5).encode(x, y)
    aim = alt.Chart(table(rows)).mark_point(opacity=0, size=150).encode(x, y, tooltip=tips)
    point = alt.Chart(table([claimed]))
    rule = point.mark_rule(color=FAINT, strokeDash=[4, 4]).encode(x)
    layers = [line, aim, rule]
    if guarantee.delta >= _SMALLEST:
        layers.append(
            point.mark_point(color=TRUE, filled=True, size=110, opacity=1)
            .encode(x, y, tooltip=[t.copy() for t in tips])
            .properties(name="claimed")
        )
    chart: Any = alt.layer(*layers).properties(
        width=WIDTH, height=HEIGHT, description="Privacy profile: delta at every epsilon."
    )
    return chart
