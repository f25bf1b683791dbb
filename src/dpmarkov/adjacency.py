"""Which states lie next to each other: declared and public, from a list, a file or a map.

An adjacency joins two states in both directions; that a state is next to itself means nothing.
Files and maps may cover more than the declared states (a city of which one borough is studied):
what they say about others is passed over. Their names are compared with the labels as text, so
that state 7 is found where a file says ``7``, and state ``"07"`` where it says ``07``.

Two areas of a map are neighbours when they share a border of positive length; to touch in a corner
is not enough. Real maps do not draw a common border twice in the same way, so borders within a
millionth of the map's extent count as one, and a corner is told from a border by its length: two
outlines that cross stay that close to each other for a few times this tolerance only.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError
from dpmarkov.states import StateSpace

__all__ = ["neighbours"]

Pairs = list[tuple[str, str]]

_TOLERANCE = 1e-6
_CORNER = 10  # times the tolerance: 45-degree corners measure 2 to 3, very acute ones 6


def neighbours(adjacency: Any, space: StateSpace, *, name: str | None = None) -> list[set[int]]:
    """Read an adjacency as the set of neighbours of each state, by position.

    Parameters
    ----------
    adjacency : pairs, matrix, path or mapping
        Pairs of labels; a boolean matrix (NumPy, or SciPy sparse) in the order of the labels; the
        path of a ``.csv`` or ``.tsv`` file of edges (columns ``zone_a`` and ``zone_b``, else the
        first two); or polygons in GeoJSON, as a path (``.geojson``, ``.json``) or as a dictionary.
    space : StateSpace
        The declared states.
    name : str, optional
        Which property of a GeoJSON feature names its state. Features of one name are one area.

    Returns
    -------
    list of set of int

    Raises
    ------
    DpmarkovError
        If the adjacency cannot be read, or joins no two declared states.

    Examples
    --------
    >>> neighbours([("a", "b"), ("c", "b")], StateSpace(["a", "b", "c"]))
    [{1}, {0, 2}, {1}]
    """
    firsts, seconds = _edges(adjacency, space, name)
    around: list[set[int]] = [set() for _ in space.labels]
    for a, b in zip(firsts.tolist(), seconds.tolist(), strict=True):
        if a != b:
            around[a].add(b)
            around[b].add(a)
    if not any(around):
        raise DpmarkovError(
            f"the adjacency joins no two of the {len(around)} declared states (such as "
            f"{space.labels[0]!r}); check that both name the states in the same way"
        )
    return around


def _edges(adjacency: Any, space: StateSpace, name: str | None) -> Any:
    if isinstance(adjacency, Mapping):
        return _by_text(_borders(adjacency, name), space)
    if isinstance(adjacency, (str, PathLike)):
        return _by_text(_edges_of_file(Path(adjacency), name), space)
    if hasattr(adjacency, "tocoo") or isinstance(adjacency, np.ndarray):
        return _edges_of_matrix(adjacency, len(space.labels))
    return _declared_pairs(adjacency, space)


def _edges_of_matrix(matrix: Any, n: int) -> Any:
    if matrix.shape != (n, n) or matrix.dtype != bool:
        raise DpmarkovError(
            f"the adjacency matrix has shape {matrix.shape} and type {matrix.dtype}; it must be "
            f"boolean, with one row and one column for each of the {n} states"
        )
    return matrix.nonzero()


def _declared_pairs(adjacency: Iterable[Any], space: StateSpace) -> list[npt.NDArray[np.int64]]:
    pairs = [tuple(pair) for pair in adjacency]
    odd = [pair for pair in pairs if len(pair) != 2]
    if odd:
        raise DpmarkovError(f"an adjacency is a list of pairs of states, {odd[0]!r} is not one")
    ends = [space.origin_positions(pair[end] for pair in pairs) for end in (0, 1)]
    unknown = np.flatnonzero((ends[0] < 0) | (ends[1] < 0))
    if unknown.size:
        raise DpmarkovError(
            f"the adjacency {pairs[unknown[0]]!r} ({unknown.size} such in all) ends outside the "
            "declared states; leave it out, or declare the state"
        )
    return ends


def _by_text(pairs: Pairs, space: StateSpace) -> npt.NDArray[np.int64]:
    place = {str(label): position for position, label in enumerate(space.labels)}
    if len(place) < len(space.labels):
        raise DpmarkovError(
            "two states are written alike, so a file cannot tell them apart; give the adjacency "
            "as pairs of labels"
        )
    known = [(place[a], place[b]) for a, b in pairs if a in place and b in place]
    return np.array(known, dtype=np.int64).reshape(-1, 2).T


# -- files ---------------------------------------------------------------------------------------


def _edges_of_file(path: Path, name: str | None) -> Pairs:
    try:
        if path.suffix.lower() in (".geojson", ".json"):
            return _borders(json.loads(path.read_text(encoding="utf-8")), name)
        with path.open(encoding="utf-8-sig", newline="") as file:
            dialect = "excel-tab" if path.suffix.lower() == ".tsv" else "excel"
            return _pairs_of_rows([row for row in csv.reader(file, dialect) if row])
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DpmarkovError(f"cannot read the adjacency from {path}: {error}") from error


def _pairs_of_rows(rows: list[list[str]]) -> Pairs:
    """Take two columns; a header, if there is one, names no declared state and so drops out."""
    short = [number for number, row in enumerate(rows, 1) if len(row) < 2]
    if short or not rows:
        where = f"row {short[0]} has one column" if short else "there is no row"
        raise DpmarkovError(f"a file of edges needs two columns, and {where}")
    named = {"zone_a", "zone_b"} <= set(rows[0])
    a, b = (rows[0].index("zone_a"), rows[0].index("zone_b")) if named else (0, 1)
    return [(row[a].strip(), row[b].strip()) for row in rows]


# -- maps ----------------------------------------------------------------------------------------


def _borders(geojson: Mapping[str, Any], name: str | None) -> Pairs:
    """Find the pairs of areas that share a border."""
    names, areas = _areas(geojson, name)
    shapely = _shapely()
    left, bottom, right, top = shapely.total_bounds(areas)
    tolerance = _TOLERANCE * max(right - left, top - bottom)
    first, second = shapely.STRtree(areas).query(areas, predicate="dwithin", distance=tolerance)
    first, second = first[first < second], second[first < second]
    common = np.minimum(
        _length_beside(areas[first], areas[second], tolerance),
        _length_beside(areas[second], areas[first], tolerance),
    )
    bordering = common > _CORNER * tolerance
    return [(names[i], names[j]) for i, j in zip(first[bordering], second[bordering], strict=True)]


def _length_beside(areas: Any, others: Any, tolerance: float) -> Any:
    """Measure how much of each outline runs within the tolerance of the other area."""
    shapely = _shapely()
    outlines = shapely.boundary(areas)
    return shapely.length(shapely.intersection(outlines, shapely.buffer(others, tolerance)))


def _areas(geojson: Mapping[str, Any], name: str | None) -> tuple[list[str], Any]:
    features = _features(geojson)
    properties = sorted({key for feature in features for key in feature.get("properties") or {}})
    if name is None or name not in properties:
        raise DpmarkovError(
            f"name={name!r} must be the property that names the state of a GeoJSON feature, one of "
            f"{', '.join(map(repr, properties)) or '(there is none)'}"
        )
    shapely = _shapely()
    parts: dict[str, list[Any]] = {}
    for feature in features:
        label = (feature.get("properties") or {}).get(name)
        if label is not None and feature.get("geometry"):
            parts.setdefault(str(label), []).append(_polygon(feature["geometry"], str(label)))
    return list(parts), np.array([shapely.union_all(p) for p in parts.values()], dtype=object)


def _features(geojson: Any) -> Sequence[Any]:
    features = geojson.get("features") if isinstance(geojson, Mapping) else None
    if not isinstance(features, list) or not features:
        raise DpmarkovError("the GeoJSON must be a FeatureCollection of at least one polygon")
    return features


def _polygon(geometry: Mapping[str, Any], label: str) -> Any:
    from shapely.geometry import shape

    try:
        area = _shapely().make_valid(shape(geometry))
    except Exception as error:  # shapely lets many kinds through
        raise DpmarkovError(f"the geometry of {label!r} cannot be read: {error}") from error
    if not area.area > 0:
        raise DpmarkovError(
            f"the geometry of {label!r} is a {geometry.get('type')} without area; areas are "
            "polygons. Leave it out"
        )
    return area


def _shapely() -> Any:
    try:
        import shapely
    except ImportError:
        raise DpmarkovError(
            "GeoJSON needs shapely: pip install 'dpmarkov[geo]', or give the adjacency as pairs"
        ) from None
    return shapely
