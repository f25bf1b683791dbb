"""Where a chain is in the long run: ranked bars, with error bars.

An error bar is two standard deviations to either side, by the first-order prediction that
`dpmarkov.planning.expected_deviations` reads off the release itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmarkov.charts.look import (
    INK,
    PRIVATE,
    TRUE,
    WIDTH,
    altair,
    names_of,
    rounded,
    table,
)

__all__ = ["MOST_BARS", "bars", "two_bars"]

Floats = npt.NDArray[np.float64]

MOST_BARS = 70
_BAR = 16
_BAND = 2.0  # standard deviations to either side of a bar's end


def bars(
    labels: Sequence[Any],
    shares: Floats,
    deviations: Floats | None = None,
    *,
    most: int = MOST_BARS,
    title: str = "share of the long run",
) -> Any:
    """Draw shares as bars, the largest first.

    Parameters
    ----------
    labels : sequence
        The states.
    shares : array of float
        One share each.
    deviations : array of float, optional
        Their standard deviations.
    most : int
        How many bars at most: the largest.
    title : str
        Of the axis.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> chart = bars(["a", "b"], np.array([0.25, 0.75]))
    >>> [row["state"] for row in chart.to_dict()["data"]["values"]]
    ['b', 'a']
    """
    alt = altair()
    rows = _ranked(names_of(labels), shares, deviations, most)
    y = _states()
    x = alt.X("share:Q", title=title, axis=_percent())
    tips = [alt.Tooltip("state:N", title="state"), alt.Tooltip("share:Q", format=".4g")]
    if deviations is not None:
        tips.append(alt.Tooltip("sd:Q", title="standard deviation", format=".2g"))
    over = alt.selection_point(on="pointerover", clear="pointerout", empty=False, name="over")
    shade = alt.condition(over, alt.value(1), alt.value(0.75))
    bar = (
        alt.Chart()
        .mark_bar(color=PRIVATE)
        .encode(y, x, opacity=shade, tooltip=tips)
        .add_params(over)
    )
    layers = [bar] if deviations is None else [bar, _error_bars(y)]
    chart: Any = alt.layer(*layers, data=table(rows)).properties(
        width=WIDTH, height=_BAR * len(rows), description="Bars of the shares, the largest first."
    )
    return chart


def two_bars(
    labels: Sequence[Any], private: Floats, true: Floats, deviations: Floats | None
) -> Any:
    """Draw true shares as bars, and the private ones as points upon them. For the curator only.

    Parameters
    ----------
    labels : sequence
        The states.
    private, true : array of float
        Their shares as released, and as they are.
    deviations : array of float or None
        Standard deviations of the private ones.

    Returns
    -------
    altair.LayerChart
    """
    alt = altair()
    rows = _ranked(names_of(labels), private, deviations, MOST_BARS, true=true, by=true)
    y = _states()
    axis = _percent()
    tips = [
        alt.Tooltip("state:N", title="state"),
        alt.Tooltip("true:Q", title="true share", format=".4g"),
        alt.Tooltip("share:Q", title="private share", format=".4g"),
    ]
    bar = (
        alt.Chart()
        .mark_bar(color=TRUE, opacity=0.55)
        .encode(y, alt.X("true:Q", title="share of the long run", axis=axis), tooltip=tips)
    )
    point = (
        alt.Chart()
        .mark_point(color=PRIVATE, filled=True, size=45, opacity=1)
        .encode(y, alt.X("share:Q"), tooltip=tips)
    )
    layers = [bar, point] if deviations is None else [bar, _error_bars(y), point]
    return alt.layer(*layers, data=table(rows)).properties(
        width=WIDTH,
        height=_BAR * len(rows),
        description="True shares as bars, private ones as points.",
    )


def _error_bars(y: Any) -> Any:
    alt = altair()
    rule = alt.Chart().mark_rule(color=INK, aria=False)
    return rule.encode(y, alt.X("low:Q"), alt.X2("high:Q"))


def _percent() -> Any:
    return altair().Axis(format="~p", tickCount=6, orient="top")


def _states() -> Any:
    """Give the axis of state names, in the order of the rows."""
    alt = altair()
    axis = alt.Axis(labelLimit=150, labelOverlap=False, ticks=False, domain=False)
    return alt.Y("state:N", sort=None, title=None, axis=axis)


def _ranked(
    names: Sequence[str],
    shares: Floats,
    deviations: Floats | None,
    most: int,
    *,
    true: Floats | None = None,
    by: Floats | None = None,
) -> list[dict[str, Any]]:
    order = np.argsort(-(shares if by is None else by), kind="stable")[:most].tolist()
    rows = []
    for i in order:
        share = float(shares[i])
        row: dict[str, Any] = {"state": names[i], "share": rounded(share, 6)}
        if true is not None:
            row["true"] = rounded(float(true[i]), 6)
        if deviations is not None:
            sd = float(deviations[i])
            row |= {
                "sd": rounded(sd, 3),
                "low": rounded(max(share - _BAND * sd, 0.0), 6),
                "high": rounded(min(share + _BAND * sd, 1.0), 6),
            }
        rows.append(row)
    return rows
