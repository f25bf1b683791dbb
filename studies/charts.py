"""Charts of one look: curves that bear their names, saved as SVG and PNG.

Built on altair, which the extra `report` installs; it is imported when a chart is drawn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import altair as alt

__all__ = ["BLUE", "GREEN", "GREY", "PURPLE", "RED", "Curve", "curves", "drawn", "values"]

Numbers = Sequence[float] | npt.NDArray[np.floating | np.integer]

RED, BLUE, GREEN, PURPLE, GREY = "#c44e52", "#1f6fb4", "#2f8f5b", "#8a5fb0", "#777777"


@dataclass(frozen=True)
class Curve:
    """A line, or points, and the name that is written beside it.

    Parameters
    ----------
    name : str
        As it is written; a line break starts a second line.
    x, y : sequence of float
        Where it runs; points without a finite value are left out.
    colour : str
        Of line and name.
    points : bool
        Circles instead of a line.
    dashed : bool
        For what is claimed rather than measured.
    low, high : sequence of float, optional
        A 95% interval for every point.
    at : int
        Beside which point the name stands.
    dx, dy : float
        How far from there, in pixels.
    align : {"left", "right", "center"}
        Of the name.
    """

    name: str
    x: Numbers
    y: Numbers
    colour: str
    points: bool = False
    dashed: bool = False
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    at: int = -1
    dx: float = 8
    dy: float = 0
    align: Literal["left", "right", "center"] = "left"


def values(rows: Sequence[dict[str, Any]]) -> alt.Data:
    """Hand rows to a chart as they are."""
    import altair as alt

    data: alt.Data = alt.Data(values=rows)  # type: ignore[no-untyped-call]
    return data


def curves(
    shown: Sequence[Curve],
    *,
    title: str,
    subtitle: str = "",
    x: dict[str, Any],
    y: dict[str, Any],
    width: int = 600,
    height: int = 360,
) -> alt.TopLevelMixin:
    """Draw curves with their names beside them.

    Parameters
    ----------
    shown : sequence of Curve
        From the back to the front.
    title, subtitle : str
        What is to be seen.
    x, y : dict
        The axes, as altair's channels take them: `title`, `scale`, `axis`.
    width, height : int
        Of the plot, in pixels.

    Returns
    -------
    altair chart
    """
    import altair as alt

    across, up = alt.X("x:Q", **x), alt.Y("y:Q", **y)
    layers: list[alt.Chart] = []
    for curve in shown:
        layers += _layers(curve, across, up)
    heading = alt.Title(title, subtitle=subtitle) if subtitle else alt.Title(title)
    return alt.layer(*layers).properties(title=heading, width=width, height=height)


def _layers(curve: Curve, across: alt.X, up: alt.Y) -> list[alt.Chart]:
    import altair as alt

    rows = [{"x": float(a), "y": float(b)} for a, b in zip(curve.x, curve.y, strict=True)]
    chart = alt.Chart(values(rows))
    if curve.points:
        mark = chart.mark_point(size=55, color=curve.colour, opacity=1, strokeWidth=2)
    else:
        dash = [6, 4] if curve.dashed else [1, 0]
        mark = chart.mark_line(strokeWidth=2.5, color=curve.colour, strokeDash=dash)
    layers = [mark.encode(across, up)]
    if curve.low is not None and curve.high is not None:
        ends = zip(curve.x, curve.low, curve.high, strict=True)
        bars = values([{"x": float(a), "y": float(b), "y2": float(c)} for a, b, c in ends])
        layers.append(
            alt.Chart(bars).mark_rule(color=curve.colour).encode(across, up, alt.Y2("y2:Q"))
        )
    if curve.name and rows:
        label = alt.Chart(values([rows[curve.at]])).mark_text(
            text=curve.name.split("\n"), align=curve.align, dx=curve.dx, dy=curve.dy,
            color=curve.colour, baseline="middle", lineHeight=16,
        )  # fmt: skip
        layers.append(label.encode(across, up))
    return layers


def drawn(chart: alt.TopLevelMixin) -> dict[str, bytes]:
    """Render a chart, without a browser.

    Parameters
    ----------
    chart : altair chart
        Any.

    Returns
    -------
    dict of str to bytes
        By suffix: ``.svg`` and ``.png``.
    """
    import vl_convert as vlc

    spec = json.dumps(chart.to_dict() | {"config": _LOOK})
    svg = re.sub(r' d="[^"]*"', _to_a_hundredth, vlc.vegalite_to_svg(spec))
    return {
        ".svg": svg.encode(),
        ".png": vlc.vegalite_to_png(spec, scale=2),
    }


def _to_a_hundredth(path: re.Match[str]) -> str:
    """Leave out digits of a path that are finer than a hundredth of a pixel."""
    return re.sub(r"(\.\d\d)\d+", r"\1", path[0])


_LOOK: dict[str, Any] = {
    "font": "Helvetica, Arial, sans-serif",
    "background": "white",
    "padding": 14,
    "title": {
        "fontSize": 17,
        "anchor": "start",
        "subtitleFontSize": 13,
        "subtitleColor": "#555",
        "offset": 12,
    },
    "axis": {
        "labelFontSize": 13,
        "titleFontSize": 14,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "gridColor": "#ececec",
        "domainColor": "#888",
        "tickColor": "#888",
    },
    "header": {"labelFontSize": 14, "titleFontSize": 14, "labelFontWeight": "bold"},
    "legend": {"labelFontSize": 13, "titleFontSize": 13, "labelLimit": 400},
    "text": {"fontSize": 13},
    "view": {"stroke": None},
}
