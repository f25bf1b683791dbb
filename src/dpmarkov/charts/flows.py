"""Flows as bars: where one state leads, and the largest flows ``pi_i P_ij`` of all."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from dpmarkov.charts.look import INK, PRIVATE, WIDTH, altair, rounded, table
from dpmarkov.charts.transitions import Cells, tips_of
from dpmarkov.errors import DpmarkovError

__all__ = ["MOST_FLOWS", "flows_from", "top_flows"]

MOST_FLOWS = 40
_ORIGINS = 320  # that can be chosen
_DESTINATIONS = 15
_BAR = 17
_BAND = 2.0  # standard deviations to either side of a bar's end


def flows_from(cells: Cells, origin: Any = None) -> Any:
    """Draw the likeliest destinations from a state, which can be chosen beside the chart.

    Parameters
    ----------
    cells : Cells
        All of them, or those of the origins that can be chosen.
    origin : label, optional
        Which is shown at first; without it the one with the most steps.

    Returns
    -------
    altair.LayerChart
    """
    alt = altair()
    size = np.bincount(cells.rows, weights=cells.flows, minlength=len(cells.origins))
    busiest = np.argsort(-size, kind="stable")[:_ORIGINS].tolist()
    first = busiest[0] if origin is None else _position(cells, origin)
    offered = busiest if first in busiest else [first, *busiest[:-1]]
    chosen = alt.param(
        name="origin",
        value=first,
        bind=alt.binding_select(
            options=offered, labels=[cells.origin_names[i] for i in offered], name="From "
        ),
    )
    names = alt.param(name="to_names", value=cells.destination_names)
    rows = _likeliest(cells, set(offered))
    most = max(Counter(row["o"] for row in rows).values())
    axis = alt.Axis(labelLimit=150, labelOverlap=False, ticks=False, domain=False)
    y = alt.Y("destination:N", sort=None, title=None, axis=axis)
    x = alt.X("p:Q", title="probability", axis=alt.Axis(format="~p", tickCount=6, orient="top"))
    over = alt.selection_point(on="pointerover", clear="pointerout", empty=False, name="over")
    bar = (
        alt.Chart()
        .mark_bar(color=PRIVATE)
        .encode(
            y,
            x,
            opacity=alt.condition(over, alt.value(1), alt.value(0.75)),
            tooltip=tips_of(cells)[1:],
        )
        .add_params(over)
    )
    layers = [bar]
    if cells.deviations is not None:
        layers.append(
            alt.Chart().mark_rule(color=INK, aria=False).encode(y, alt.X("low:Q"), alt.X2("high:Q"))
        )
    return (
        alt.layer(*layers, data=table(rows))
        .transform_filter("datum.o == origin")
        .transform_calculate(destination="to_names[datum.d]")
        .add_params(chosen, names)
        .properties(width=WIDTH, height=_BAR * most, description="The likeliest next states.")
    )


def _position(cells: Cells, origin: Any) -> int:
    if origin not in cells.origins:
        raise DpmarkovError(f"{origin!r} is not one of the {len(cells.origins):,} origins")
    return cells.origins.index(origin)


def _likeliest(cells: Cells, offered: set[int]) -> list[dict[str, Any]]:
    """Give the most probable destinations of every origin that can be chosen."""
    rows = []
    order = np.lexsort((-cells.probabilities, cells.rows))
    rank = np.arange(len(order)) - np.searchsorted(cells.rows[order], cells.rows[order])
    for position in order[rank < _DESTINATIONS].tolist():
        o, p = int(cells.rows[position]), float(cells.probabilities[position])
        if o not in offered:
            continue
        row: dict[str, Any] = {"o": o, "d": int(cells.columns[position]), "p": rounded(p)}
        if cells.deviations is not None:
            s = float(cells.deviations[position])
            low, high = max(p - _BAND * s, 0.0), min(p + _BAND * s, 1.0)
            row |= {"s": rounded(s, 3), "low": rounded(low), "high": rounded(high)}
        rows.append(row)
    return rows


def top_flows(cells: Cells, *, most: int = MOST_FLOWS) -> Any:
    """Draw the largest flows, each as the share of all steps that take it.

    Parameters
    ----------
    cells : Cells
        With weights of the origins.
    most : int
        How many.

    Returns
    -------
    altair.Chart
    """
    alt = altair()
    largest = np.argsort(-cells.flows, kind="stable")[:most].tolist()
    origins, destinations = cells.origin_names, cells.destination_names
    rows = [
        {
            "flow": f"{origins[cells.rows[i]]} → {destinations[cells.columns[i]]}",
            "share": rounded(float(cells.flows[i])),
            "p": rounded(float(cells.probabilities[i])),
        }
        for i in largest
    ]
    axis = alt.Axis(labelLimit=220, labelOverlap=False, ticks=False, domain=False)
    chart: Any = (
        alt.Chart(table(rows))
        .mark_bar(color=PRIVATE)
        .encode(
            alt.Y("flow:N", sort=None, title=None, axis=axis),
            alt.X(
                "share:Q",
                title="share of all steps",
                axis=alt.Axis(format="~p", tickCount=6, orient="top"),
            ),
            tooltip=[
                alt.Tooltip("flow:N"),
                alt.Tooltip("share:Q", title="share of all steps", format=".3g"),
                alt.Tooltip("p:Q", title="probability", format=".3g"),
            ],
        )
        .properties(width=WIDTH, height=_BAR * len(rows), description="The largest flows.")
    )
    return chart
