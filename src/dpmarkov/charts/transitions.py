"""Who goes where: the transition matrix as a heat map.

A heat map orders its states by size or by likeness, so that what belongs together lies together:
"by likeness" puts states side by side whose rows are near in total variation (average linkage).
Its axes are numbers behind the names, which lets one zoom into hundreds of states. Where there are
too many for that, `dpmarkov.charts.flows` says more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmarkov.charts.look import BLANK, INK, PRIVATE, WIDTH, altair, names_of
from dpmarkov.errors import DpmarkovError

__all__ = ["MOST_STATES", "Cells", "heat_map", "tips_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_STATES = 320  # of a heat map
_NAMED_CELLS = 12_000  # beyond, a frame around the cell under the pointer takes too long


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
            y=_side("y0:Q", m, "from", "from_names[sorted[order][0][datum.value - 0.5]]"),
            x2="x1:Q",
            y2="y1:Q",
            color=_colour(float(cells.probabilities.max())),
            tooltip=tips_of(cells),
        )
        .add_params(*_orderings(cells, order), _zoom())
        .properties(width=WIDTH, height=WIDTH, description="Heat map of transition probabilities.")
    )
    return chart if len(cells.probabilities) > _NAMED_CELLS else _framing(chart)


def _orderings(cells: Cells, first: str) -> list[Any]:
    """Give the choice of an order, and where every state then stands."""
    alt = altair()
    orders = _orders(cells)
    if first not in orders:
        raise DpmarkovError(f"order must be one of {', '.join(map(repr, orders))}, not {first!r}")
    choice = alt.binding_select(options=list(orders), name="States ordered by ")
    values: dict[str, Any] = {
        "ranks": {name: [_ranks(o), _ranks(d)] for name, (o, d) in orders.items()},
        "sorted": {name: [o.tolist(), d.tolist()] for name, (o, d) in orders.items()},
        "from_names": cells.origin_names,
        "to_names": cells.destination_names,
    }
    constants = [alt.param(name=name, value=value) for name, value in values.items()]
    return [alt.param(name="order", value=first, bind=choice), *constants]


def _zoom() -> Any:
    wheel = "wheel![event.ctrlKey || event.metaKey]"  # alone it turns the page
    return altair().selection_interval(bind="scales", name="zoom", zoom=wheel)


def _framing(chart: Any) -> Any:
    """Frame the cell under the pointer, which is quick enough where there are few."""
    alt = altair()
    over = alt.selection_point(on="pointerover", clear="pointerout", empty=False, name="over")
    frame = alt.condition(over, alt.value(INK), alt.value(None))
    return chart.add_params(over).encode(stroke=frame)


def _mark(cells: Cells) -> Any:
    # Thousands of cells would drown a screen reader; the bars of one state's flows are for it.
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


def _side(field: str, size: int, title: str, name: str) -> Any:
    """Give an axis of numbers that shows names: cell k reaches from k to k + 1."""
    alt, down = altair(), title == "from"
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


def tips_of(cells: Cells) -> list[Any]:
    """Give what a transition tells when it is pointed at."""
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
