"""An invented island, tiled by zones.

The zones are Voronoi cells inside a convex outline. A Voronoi diagram has cells without bound; it
is cut off *exactly* at a convex outline by mirroring the sites at each of its sides: the side is
then the border between a site and its own image, so no clipping is needed. Bending the plane
afterwards turns the outline into a coast, and straight borders, made of many short pieces, into
crooked ones. Neighbours share the very same points, so the zones still tile the island.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

__all__ = ["CENTRE", "Island", "make_island"]

Points = npt.NDArray[np.float64]
Bend = Callable[[Points], Points]

_HALF_SIZE = np.array([10.5, 1.9])  # km along and across, before bending
_SIDES = 22
CENTRE = -3.5  # km along the island: around here zones are small, and busy
_RELAXATIONS = 3
_PIECE = 0.12  # km: borders bend at this scale
_CORNER_CONTACT = 0.002  # km: what touches along less than 2 m meets in a corner only
_HEADING = np.radians(58.0)
# Open water in the Atlantic, so that nobody takes the island for a real one.
_PLACE = np.array([-38.0, 40.0])  # longitude, latitude
_KM_PER_DEGREE = 111.2 * np.array([np.cos(np.radians(40.0)), 1.0])
_DECIMALS = 6  # of a degree: a tenth of a metre


@dataclass(frozen=True)
class Island:
    """Zones of an island, numbered from its south to its north.

    Parameters
    ----------
    sites : array of shape (zones, 2)
        The middle of each zone, in km before bending.
    rings : tuple of arrays of shape (points, 2)
        The closed outline of each zone, counter-clockwise, as longitude and latitude.
    borders : dict of (zone, zone) to km
        Which zones share a border, the smaller number first, and its length.
    coastal : array of bool
        Which zones lie at the water.
    """

    sites: Points
    rings: tuple[Points, ...]
    borders: dict[tuple[int, int], float]
    coastal: npt.NDArray[np.bool_]

    @cached_property
    def areas(self) -> Points:
        """Area of each zone in square kilometres."""
        return np.array([_area(_to_km(ring)) for ring in self.rings], dtype=np.float64)


def make_island(zones: int, rng: np.random.Generator) -> Island:
    """Make an island of a given number of zones.

    Parameters
    ----------
    zones : int
        How many.
    rng : numpy.random.Generator
        Where the chance comes from.

    Returns
    -------
    Island
    """
    outline = _outline()
    sites = _sites(zones, outline, rng)
    for _ in range(_RELAXATIONS):  # Lloyd: each site moves to the middle of its cell
        sites = np.array([_centroid(cell) for cell in _Tiling(sites, outline).cells])
    sites = sites[np.argsort(sites[:, 0])]
    tiling, bend = _Tiling(sites, outline), _bend(rng)
    lines = {edge: _to_degrees(bend(_pieces(*tiling.ends(edge)))) for edge in tiling.edges}
    return Island(
        sites=sites,
        rings=tuple(_ring(cycle, lines) for cycle in tiling.cycles),
        borders={
            pair: km
            for edge, pair in tiling.edges.items()
            if max(pair) < zones and (km := _length(_to_km(lines[edge]))) > _CORNER_CONTACT
        },
        coastal=tiling.at_the_outline,
    )


# -- the tiling, before bending ----------------------------------------------------------------


def _outline() -> Points:
    """A long convex polygon, counter-clockwise, between an ellipse and a rectangle."""
    turn = 2 * np.pi * np.arange(_SIDES) / _SIDES
    blunt = np.column_stack([np.cos(turn), np.sin(turn)])
    blunt = np.sign(blunt) * np.abs(blunt) ** np.array([0.85, 0.55])
    return np.asarray(blunt * _HALF_SIZE)


def _sites(zones: int, outline: Points, rng: np.random.Generator) -> Points:
    """Draw sites inside, closer together around the centre."""
    found = np.empty((0, 2))
    while len(found) < zones:
        points = rng.uniform(-_HALF_SIZE, _HALF_SIZE, (zones, 2))
        density = 0.25 + 0.75 * np.exp(-(((points[:, 0] - CENTRE) / 5.0) ** 2))
        kept = (rng.random(zones) < density) & _inside(points, outline)
        found = np.concatenate([found, points[kept]])
    return found[:zones]


def _inside(points: Points, outline: Points) -> npt.NDArray[np.bool_]:
    distance = np.stack([_beyond(points, *side) for side in _sides(outline)])
    return np.asarray((distance < 0).all(axis=0))


def _sides(outline: Points) -> list[tuple[Points, Points]]:
    return list(zip(outline, np.roll(outline, -1, axis=0), strict=True))


def _beyond(points: Points, start: Points, end: Points) -> Points:
    """How far points lie outside a side of the outline; negative inside."""
    return np.asarray((points - start) @ _outward(start, end))


def _outward(start: Points, end: Points) -> Points:
    along = end - start
    return np.asarray(np.array([along[1], -along[0]]) / np.hypot(*along))


class _Tiling:
    """Voronoi cells of the sites, cut off at the outline."""

    def __init__(self, sites: Points, outline: Points) -> None:
        from scipy.spatial import Voronoi

        images = [
            sites - 2 * np.outer(_beyond(sites, *side), _outward(*side)) for side in _sides(outline)
        ]
        diagram = Voronoi(np.concatenate([sites, *images]))
        self.sites = sites
        self.vertices: Points = diagram.vertices
        self._regions = [diagram.regions[r] for r in diagram.point_region[: len(sites)]]
        self._ridges = [
            ((min(edge), max(edge)), (int(min(pair)), int(max(pair))))
            for edge, pair in zip(diagram.ridge_vertices, diagram.ridge_points, strict=True)
            if min(pair) < len(sites)
        ]

    @cached_property
    def cycles(self) -> list[list[int]]:
        """The vertices of each cell, counter-clockwise: a convex cell is seen from its site."""
        return [
            [region[k] for k in np.argsort(np.arctan2(*(self.vertices[region] - site).T[::-1]))]
            for site, region in zip(self.sites, self._regions, strict=True)
        ]

    @property
    def cells(self) -> list[Points]:
        """The corners of each cell."""
        return [self.vertices[cycle] for cycle in self.cycles]

    @cached_property
    def edges(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Each edge, by its two vertices, with the two cells (or images) at its sides."""
        return dict(self._ridges)

    @property
    def at_the_outline(self) -> npt.NDArray[np.bool_]:
        """Which cells border an image, and so lie at the outline."""
        coastal = np.zeros(len(self.sites), dtype=bool)
        coastal[[low for low, high in self.edges.values() if high >= len(self.sites)]] = True
        return coastal

    def ends(self, edge: tuple[int, int]) -> tuple[Points, Points]:
        """Where an edge begins and ends."""
        return self.vertices[edge[0]], self.vertices[edge[1]]


# -- bending -------------------------------------------------------------------------------------


def _pieces(start: Points, end: Points) -> Points:
    n = 1 + int(np.hypot(*(end - start)) / _PIECE)
    return np.linspace(start, end, n + 1)


def _bend(rng: np.random.Generator) -> Bend:
    """Draw a smooth change of the plane: a bow, a narrower north, and bays.

    The slopes of the waves add up to 0.76 at most, and to 0.31 across the island: its Jacobian
    determinant then stays positive, and nothing folds over.
    """
    amplitude = 0.08 * np.array([2.2, 1.3, 0.8, 0.45, 0.25])
    wavelength = np.array([9.0, 5.0, 2.6, 1.3, 0.7])
    phase = rng.uniform(0, 2 * np.pi, (2, wavelength.size))
    tilt = rng.uniform(-0.4, 0.4, (2, wavelength.size))

    def bent(points: Points) -> Points:
        x, y = points.T
        wave = [
            np.sin(2 * np.pi * (np.add.outer(x, 0 * t) + np.outer(y, t)) / wavelength + p)
            @ amplitude
            for p, t in zip(phase, tilt, strict=True)
        ]
        narrowing = 1 - 0.35 / (1 + np.exp(-(x - 4.5) / 1.2))
        bow = 0.9 * np.cos(x / 6.5)
        return np.column_stack([x + 0.5 * wave[0], narrowing * y + bow + wave[1]])

    return bent


def _to_degrees(points: Points) -> Points:
    """Turn the island to its heading and put it on the globe."""
    cos, sin = np.cos(_HEADING), np.sin(_HEADING)
    east_north = points @ np.array([[cos, sin], [-sin, cos]])
    return np.asarray(np.round(east_north / _KM_PER_DEGREE + _PLACE, _DECIMALS))


def _to_km(degrees: Points) -> Points:
    return np.asarray((degrees - _PLACE) * _KM_PER_DEGREE)


def _ring(cycle: list[int], lines: dict[tuple[int, int], Points]) -> Points:
    """Join the lines around a cell; rounding may have made neighbouring points one."""
    parts = [lines[a, b] if a < b else lines[b, a][::-1] for a, b in pairwise([*cycle, cycle[0]])]
    joined = np.concatenate([part[:-1] for part in parts])
    joined = joined[(joined != np.roll(joined, 1, axis=0)).any(axis=1)]
    return np.concatenate([joined, joined[:1]])


# -- measures ------------------------------------------------------------------------------------


def _area(ring: Points) -> float:
    x, y = ring.T
    return float(x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2


def _centroid(corners: Points) -> Points:
    x, y = corners.T
    cross = x * np.roll(y, -1) - np.roll(x, -1) * y
    weighted = (corners + np.roll(corners, -1, axis=0)) * cross[:, None]
    return np.asarray(weighted.sum(axis=0) / (3 * cross.sum()))


def _length(line: Points) -> float:
    return float(np.hypot(*np.diff(line, axis=0).T).sum())
