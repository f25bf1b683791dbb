"""Maps of shares: the outlines of the states, filled the more the larger the share.

Outlines come as GeoJSON. They are flattened (degrees of longitude shrink towards the poles) and put
on a grid finer than a screen, so that a report stays small.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmarkov.charts.look import BLANK, FAINT, PRIVATE, WIDTH, altair, names_of, rounded, table
from dpmarkov.errors import DpmarkovError

__all__ = ["Map", "read_map", "share_map"]

Floats = npt.NDArray[np.float64]

_DETAIL = 2500  # steps across the map; more are not seen


class Map:
    """The outlines of the states, ready to be drawn.

    Parameters
    ----------
    features : sequence of dict
        GeoJSON features, those of the states only.
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
    given = {
        key: [str(_property(feature, key)) for feature in features]
        for key in sorted({key for feature in features for key in feature.get("properties") or {}})
    }
    known = {key: len(wanted & set(names)) for key, names in given.items()}
    best = name if name is not None else max(known, key=lambda key: known[key], default="")
    if not known.get(best):
        raise DpmarkovError(
            f"no property {'of the map' if name is None else repr(name)} names one of the "
            f"{len(wanted)} states (such as {labels[0]!r}); its properties are "
            f"{', '.join(map(repr, known)) or '(none)'}"
        )
    others = [key for key in known if known[key] == known[best] and given[key] != given[best]]
    if name is None and others:
        raise DpmarkovError(
            f"the properties {best!r} and {others[0]!r} of the map name as many states each, and "
            "not in the same way; say which to take (name=)"
        )
    chosen = [feature for feature in features if str(_property(feature, best)) in wanted]
    return Map(chosen, best)


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
    drawn = _shapes(outlines, labels, shares, deviations, groups or {})
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
    return alt.layer(zones).properties(
        projection={"type": "identity", "reflectY": True},
        width=WIDTH,
        height=WIDTH,
        description="Map of the shares.",
    )


def _shapes(
    outlines: Map,
    labels: Sequence[Any],
    shares: Floats,
    deviations: Floats | None,
    groups: Mapping[Any, Sequence[Any]],
) -> list[dict[str, Any]]:
    """Give the outlines of the states with their shares."""
    drawn: list[dict[str, Any]] = []
    for i, (label, name) in enumerate(zip(labels, names_of(labels), strict=True)):
        members = groups.get(label, (label,))
        told = name if len(members) == 1 else f"{name} and {len(members) - 1} more, merged"
        values = {"state": told, "share": rounded(float(shares[i]), 6)}
        if deviations is not None:
            values["sd"] = rounded(float(deviations[i]), 3)
        for member in members:
            drawn += [{**outline, "properties": values} for outline in outlines.of(member)]
    return drawn


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
