"""Who goes where: the transition matrix as a heat map, and flows as bars.

A heat map orders its states by size or by likeness, so that what belongs together lies together:
"by likeness" puts states side by side whose rows are near in total variation (average linkage).
Its axes are numbers behind the names, which lets one zoom into hundreds of states. Where there are
too many for that, the largest flows ``pi_i P_ij`` say more.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmarkov.charts.look import BLANK, INK, PRIVATE, WIDTH, altair, names_of, rounded, table
from dpmarkov.errors import DpmarkovError

__all__ = ["MOST_STATES", "Cells", "flows_from", "heat_map", "top_flows"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_STATES = 320  # of a heat map
MOST_FLOWS = 40
_DESTINATIONS = 15
_BAR = 17
_NAMED_CELLS = 12_000  # beyond, a frame around the cell under the pointer takes too long
_BAND = 2.0


@dataclass(frozen=True, eq=False)
class Cells:
    """A table of transition probabilities with the names of its sides.

    Parameters
    ----------
    origins, destinations : tuple
        Labels.
    rows, columns : array of int
        Of each feasible cell.
    probabilities : array of float
        Of each feasible cell.
    deviations : array of float, optional
        Their standard deviations.
    weights : array of float, optional
        How much of the long run (or of all transitions) is in each origin.
    """

    origins: tuple[Any, ...]
    destinations: tuple[Any, ...]
    rows: Ints
    columns: Ints
    probabilities: Floats
    deviations: Floats | None = None
    weights: Floats | None = None

    @cached_property
    def origin_names(self) -> list[str]:
        """The origins as text."""
        return names_of(self.origins)

    @cached_property
    def destination_names(self) -> list[str]:
        """The destinations as text."""
        return names_of(self.destinations)

    @property
    def is_square(self) -> bool:
        """Whether both sides are the same states."""
        return self.origins == self.destinations

    @cached_property
    def flows(self) -> Floats:
        """Of all steps, the share that each cell takes."""
        weights = self.weights
        if weights is None:
            weights = np.full(len(self.origins), 1 / len(self.origins))
        return np.asarray(weights[self.rows] * self.probabilities)


# -- heat map ------------------------------------------------------------------------------------


def heat_map(cells: Cells, *, order: str = "size") -> Any:
    """Draw transition probabilities as a heat map that can be reordered and zoomed.

    Parameters
    ----------
    cells : Cells
        At most 320 states to a side.
    order : {"size", "likeness", "declared"}
        How states are ordered at first.

    Returns
    -------
    altair.Chart

    Raises
    ------
    DpmarkovError
        If there are too many states; see `top_flows`.

    Examples
    --------
    >>> P, i = np.array([0.9, 0.1, 0.2, 0.8]), np.array([0, 0, 1, 1])
    >>> chart = heat_map(Cells(("sun", "rain"), ("sun", "rain"), i, np.array([0, 1, 0, 1]), P))
    >>> chart.to_dict()["mark"]["type"]
    'rect'
    """
    alt = altair()
    m, n = len(cells.origins), len(cells.destinations)
    if max(m, n) > MOST_STATES:
        raise DpmarkovError(
            f"a heat map of {max(m, n):,} states cannot be read; at most {MOST_STATES} fit: draw "
            "the largest flows, or the flows out of one state"
        )
    orders = _orders(cells)
    if order not in orders:
        raise DpmarkovError(f"order must be one of {', '.join(map(repr, orders))}, not {order!r}")
    chosen = alt.param(
        name="order",
        value=order,
        bind=alt.binding_select(options=list(orders), name="States ordered by "),
    )
    constants = [
        alt.param(name="ranks", value={k: [_ranks(o), _ranks(d)] for k, (o, d) in orders.items()}),
        alt.param(
            name="sorted", value={k: [o.tolist(), d.tolist()] for k, (o, d) in orders.items()}
        ),
        alt.param(name="from_names", value=cells.origin_names),
        alt.param(name="to_names", value=cells.destination_names),
    ]
    zoom = alt.selection_interval(
        bind="scales",
        name="zoom",
        zoom="wheel![event.ctrlKey || event.metaKey]",
    )
    chart: Any = (
        alt.Chart(_as_text(cells), mark=_mark(cells))
        .transform_calculate(
            y0="ranks[order][0][datum[0]]",
            x0="ranks[order][1][datum[1]]",
            y1="datum.y0 + 1",
            x1="datum.x0 + 1",
            origin="from_names[datum[0]]",
            destination="to_names[datum[1]]",
            p="datum[2]",
            **({} if cells.deviations is None else {"s": "datum[3]"}),
        )
        .encode(
            x=_side("x0:Q", n, "to", "to_names[sorted[order][1][datum.value - 0.5]]"),
            y=_side(
                "y0:Q", m, "from", "from_names[sorted[order][0][datum.value - 0.5]]", down=True
            ),
            x2="x1:Q",
            y2="y1:Q",
            color=_colour(float(cells.probabilities.max())),
            tooltip=_tips(cells),
        )
        .add_params(chosen, *constants, zoom)
        .properties(width=WIDTH, height=WIDTH, description="Heat map of transition probabilities.")
    )
    if len(cells.probabilities) > _NAMED_CELLS:
        return chart
    over = alt.selection_point(on="pointerover", clear="pointerout", empty=False, name="over")
    framed: Any = chart.add_params(over).encode(
        stroke=alt.condition(over, alt.value(INK), alt.value(None))
    )
    return framed


def _mark(cells: Cells) -> Any:
    # Thousands of cells would drown a screen reader; the table beside the chart is for those.
    return altair().MarkDef(type="rect", clip=True, aria=False)


def _as_text(cells: Cells) -> Any:
    """Write the cells as text of rows of numbers, a third of the size of objects with names."""
    columns = [cells.rows.tolist(), cells.columns.tolist(), _short(cells.probabilities)]
    if cells.deviations is not None:
        columns.append(_short(cells.deviations))
    rows = (",".join(map(str, cell)) for cell in zip(*columns, strict=True))
    text = f"[[{'],['.join(rows)}]]"
    return altair().InlineData(values=text, format=altair().JsonDataFormat(type="json"))


def _short(values: Floats) -> list[str]:
    return [f"{value:.3g}" for value in values.tolist()]


def _side(field: str, size: int, title: str, name: str, *, down: bool = False) -> Any:
    """Give an axis of numbers that shows names: cell k reaches from k to k + 1."""
    alt = altair()
    axis = alt.Axis(
        values=[k + 0.5 for k in range(size)],
        labelExpr=name,
        labelLimit=110,
        labelOverlap="greedy",
        labelFontSize=9 if size > 25 else 11,
        labelAngle=0 if down else -60,
        ticks=False,
        domain=False,
        grid=False,
        title=title,
        orient="left" if down else "top",
    )
    scale = alt.Scale(domain=[0, size], nice=False, zero=False, reverse=down)
    return (alt.Y if down else alt.X)(field, axis=axis, scale=scale)


def _colour(highest: float) -> Any:
    alt = altair()
    return alt.Color(
        "p:Q",
        scale=alt.Scale(type="sqrt", domain=[0, highest], range=[BLANK, PRIVATE]),
        legend=alt.Legend(title="probability", orient="bottom", tickCount=5, format=".2~g"),
    )


def _tips(cells: Cells) -> list[Any]:
    alt = altair()
    tips = [
        alt.Tooltip("origin:N", title="from"),
        alt.Tooltip("destination:N", title="to"),
        alt.Tooltip("p:Q", title="probability", format=".3g"),
    ]
    if cells.deviations is not None:
        tips.append(alt.Tooltip("s:Q", title="standard deviation", format=".2g"))
    return tips


def _ranks(order: Ints) -> list[int]:
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks.tolist()


def _orders(cells: Cells) -> dict[str, tuple[Ints, Ints]]:
    """Give the orders of both sides: positions of the states from first to last."""
    m, n = len(cells.origins), len(cells.destinations)
    arrivals = np.bincount(cells.columns, weights=cells.flows, minlength=n)
    leaving = (
        arrivals if cells.is_square else np.bincount(cells.rows, weights=cells.flows, minlength=m)
    )
    P = np.zeros((m, n))
    P[cells.rows, cells.columns] = cells.probabilities
    alike = _by_likeness(P)
    across = (
        alike if cells.is_square else _by_likeness(P.T / np.maximum(P.sum(axis=0), 1e-300)[:, None])
    )
    return {
        "size": (np.argsort(-leaving, kind="stable"), np.argsort(-arrivals, kind="stable")),
        "likeness": (alike, across),
        "declared": (np.arange(m), np.arange(n)),
    }


def _by_likeness(P: Floats) -> Ints:
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist

    if len(P) < 3:
        return np.arange(len(P))
    return np.asarray(leaves_list(linkage(pdist(P, "cityblock"), "average")), dtype=np.int64)


# -- flows ---------------------------------------------------------------------------------------


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
    busiest = np.argsort(-size, kind="stable")[:MOST_STATES].tolist()
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
            tooltip=_tips(cells)[1:],
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
