"""Where a chain is in the long run: ranked bars with error bars, and a map.

An error bar is two standard deviations to either side, by the first-order prediction that
`dpmarkov.planning.expected_deviations` reads off the release itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmarkov.charts.look import (
    BLANK,
    FAINT,
    INK,
    PRIVATE,
    TRUE,
    WIDTH,
    altair,
    names_of,
    rounded,
    table,
)
from dpmarkov.errors import DpmarkovError

__all__ = ["Map", "bars", "read_map", "share_map", "two_bars"]

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


# -- maps ----------------------------------------------------------------------------------------


class Map:
    """The outlines of the states, ready to be drawn.

    Parameters
    ----------
    features : sequence of dict
        GeoJSON features.
    name : str
        The property that names the state.
    """

    def __init__(self, features: Sequence[Any], name: str) -> None:
        self.name = name
        self.outlines = _outlines(features, name)

    def of(self, label: Any) -> list[dict[str, Any]]:
        """Give the outlines of one state: none, one, or several."""
        return self.outlines.get(str(label), [])


def read_map(
    geojson: Map | Mapping[str, Any] | str | os.PathLike[str],
    labels: Sequence[Any],
    name: str | None = None,
) -> Map:
    """Read the outlines of states from GeoJSON.

    Parameters
    ----------
    geojson : path or mapping
        A FeatureCollection of polygons.
    labels : sequence
        The states, whose names are compared as text.
    name : str, optional
        The property that names the state; without it the one that names most states.

    Returns
    -------
    Map

    Raises
    ------
    DpmarkovError
        If it cannot be read, or names none of the states.
    """
    if isinstance(geojson, Map):
        return geojson
    features = _features(geojson)
    wanted = {str(label) for label in labels}
    known = {
        key: len(wanted & {str(_property(feature, key)) for feature in features})
        for key in sorted({key for feature in features for key in feature.get("properties") or {}})
    }
    best = name if name is not None else max(known, key=lambda key: known[key], default="")
    if not known.get(best):
        raise DpmarkovError(
            f"no property {'of the map' if name is None else repr(name)} names one of the "
            f"{len(wanted)} states (such as {labels[0]!r}); its properties are "
            f"{', '.join(map(repr, known)) or '(none)'}"
        )
    return Map(features, best)


def share_map(
    outlines: Map,
    labels: Sequence[Any],
    shares: Floats,
    deviations: Floats | None = None,
    *,
    groups: Mapping[Any, Sequence[Any]] | None = None,
    top: float | None = None,
    title: str = "share",
) -> Any:
    """Draw shares as a map: the fuller the colour, the larger the share.

    Parameters
    ----------
    outlines : Map
        Of the states, or of the members of their groups.
    labels, shares, deviations
        As for `bars`.
    groups : mapping, optional
        Of which original states each state is made; each of them shows the share of the group.
    top : float, optional
        The share of the fullest colour; the largest there is.
    title : str
        Of the legend.

    Returns
    -------
    altair.LayerChart
    """
    alt = altair()
    drawn, rest = _shapes(outlines, labels, shares, deviations, groups or {})
    flat: dict[str, Any] = {"type": "identity", "reflectY": True}
    highest = float(shares.max()) if top is None else top
    tips = [
        alt.Tooltip("properties.state:N", title="state"),
        alt.Tooltip("properties.share:Q", title=title, format=".4g"),
    ]
    if deviations is not None:
        tips.append(alt.Tooltip("properties.sd:Q", title="standard deviation", format=".2g"))
    colour = alt.Color(
        "properties.share:Q",
        scale=alt.Scale(domain=[0, highest], range=[BLANK, PRIVATE], clamp=True),
        legend=alt.Legend(format="~p", orient="bottom", tickCount=4, title=title),
    )
    over = alt.selection_point(on="pointerover", clear="pointerout", empty=False, name="over")
    wide = alt.condition(over, alt.value(2.5), alt.value(0.6))
    zones = (
        alt.Chart(table(drawn))
        .mark_geoshape(stroke=FAINT)
        .encode(color=colour, strokeWidth=wide, tooltip=tips)
        .add_params(over)
    )
    ground = alt.Chart(table(rest)).mark_geoshape(
        fill=None, stroke=FAINT, strokeWidth=0.3, aria=False
    )
    return alt.layer(*([ground] if rest else []), zones).properties(
        projection=flat, width=WIDTH, height=WIDTH, description="Map of the shares."
    )


def _shapes(
    outlines: Map,
    labels: Sequence[Any],
    shares: Floats,
    deviations: Floats | None,
    groups: Mapping[Any, Sequence[Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Give the outlines of the states with their shares, and those of all others."""
    drawn: list[dict[str, Any]] = []
    used: set[str] = set()
    for i, (label, name) in enumerate(zip(labels, names_of(labels), strict=True)):
        members = groups.get(label, (label,))
        told = name if len(members) == 1 else f"{name} and {len(members) - 1} more, merged"
        values = {"state": told, "share": rounded(float(shares[i]), 6)}
        if deviations is not None:
            values["sd"] = rounded(float(deviations[i]), 3)
        for member in members:
            used.add(str(member))
            drawn += [{**outline, "properties": values} for outline in outlines.of(member)]
    others = [
        shape for name, shapes in outlines.outlines.items() if name not in used for shape in shapes
    ]
    return drawn, others


def _features(geojson: Any) -> Sequence[Any]:
    if not isinstance(geojson, Mapping):
        path = Path(geojson).expanduser()
        try:
            geojson = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DpmarkovError(f"cannot read the map {path}: {error}") from error
    features = geojson.get("features") if isinstance(geojson, Mapping) else None
    if not isinstance(features, list) or not all(isinstance(f, Mapping) for f in features):
        raise DpmarkovError("a map must be a GeoJSON FeatureCollection of polygons")
    return features


def _property(feature: Mapping[str, Any], key: str) -> Any:
    return (feature.get("properties") or {}).get(key)


_DETAIL = 2500  # steps across the map; more are not seen


def _outlines(features: Sequence[Any], name: str) -> dict[str, list[dict[str, Any]]]:
    """Flatten the map to whole steps of a fine grid, and leave out what no eye could see."""
    polygons = [
        (str(_property(feature, name)), geometry)
        for feature in features
        if (geometry := feature.get("geometry"))
        and geometry.get("type") in ("Polygon", "MultiPolygon")
    ]
    try:
        points = np.array(
            [point[:2] for _, geometry in polygons for ring in _rings(geometry) for point in ring],
            dtype=np.float64,
        ).reshape(-1, 2)
    except (TypeError, ValueError, IndexError) as error:
        raise DpmarkovError(f"the outlines of the map cannot be read: {error}") from error
    if not points.size:
        raise DpmarkovError("the map has no polygon")
    low, high = points.min(axis=0), points.max(axis=0)
    degrees = bool(np.all(np.abs(points) <= [180, 90]))
    narrow = float(np.cos(np.radians((low[1] + high[1]) / 2))) if degrees else 1.0
    step = max((high[0] - low[0]) * narrow, high[1] - low[1]) / _DETAIL or 1.0
    shapes: dict[str, list[dict[str, Any]]] = {}
    for label, geometry in polygons:
        rings = [
            _on_grid((np.array(ring, dtype=np.float64)[:, :2] - low) * [narrow, 1.0] / step)
            for ring in _rings(geometry)
        ]
        # One path of all rings: a hole runs the other way around, and stays a hole.
        shape = {"type": "Polygon", "coordinates": [ring for ring in rings if len(ring) > 3]}
        if shape["coordinates"]:
            shapes.setdefault(label, []).append({"type": "Feature", "geometry": shape})
    return shapes


def _rings(geometry: Mapping[str, Any]) -> list[Any]:
    parts = geometry["coordinates"]
    return (
        list(parts) if geometry["type"] == "Polygon" else [ring for part in parts for ring in part]
    )


def _on_grid(ring: Floats) -> list[list[int]]:
    steps = np.rint(ring).astype(np.int64)
    moved = np.ones(len(steps), dtype=bool)
    moved[1:] = np.any(steps[1:] != steps[:-1], axis=1)
    kept: list[list[int]] = steps[moved].tolist()
    return kept
