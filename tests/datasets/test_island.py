"""The zones of an invented island tile it, and their borders are what is said."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmarkov.datasets.island import Island, make_island
from dpmarkov.datasets.names import zone_names

Points = npt.NDArray[np.float64]


def signed_area(ring: Points) -> float:
    x, y = (ring - ring[0]).T
    return float(x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2


def edges(ring: Points) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    return list(pairwise(map(tuple, ring.tolist())))


def coast(island: Island) -> Points:
    """Walk along the edges that have a zone on one side only."""
    directed = {edge for ring in island.rings for edge in edges(ring)}
    following = {a: b for a, b in directed if (b, a) not in directed}
    walk = [next(iter(following))]
    for _ in following:
        walk.append(following[walk[-1]])
    assert walk[-1] == walk[0]
    assert len(set(walk)) == len(following), "the coast is one closed line"
    return np.array(walk)


@settings(max_examples=12)
@given(zones=st.integers(3, 80), seed=st.integers(0, 2**32))
def test_zones_tile_the_island(zones: int, seed: int) -> None:
    island = make_island(zones, np.random.default_rng(seed))
    areas = np.array([signed_area(ring) for ring in island.rings])
    assert len(areas) == zones
    assert (areas > 0).all(), "counter-clockwise, as RFC 7946 wants it"
    assert areas.sum() == pytest.approx(signed_area(coast(island)), rel=1e-9)
    sides = Counter(edge for ring in island.rings for edge in edges(ring))
    assert set(sides.values()) == {1}, "no two zones lie on the same side of an edge"


@settings(max_examples=12)
@given(zones=st.integers(3, 80), seed=st.integers(0, 2**32))
def test_neighbours_share_exactly_the_line_that_is_said(zones: int, seed: int) -> None:
    island = make_island(zones, np.random.default_rng(seed))
    owner = {edge: zone for zone, ring in enumerate(island.rings) for edge in edges(ring)}
    km: Counter[tuple[int, int]] = Counter()
    for (a, b), zone in owner.items():
        other = owner.get((b, a))
        if other is not None and zone < other:
            north, east = (b[1] - a[1]) * 111.2, (b[0] - a[0]) * 111.2 * np.cos(np.radians(40))
            km[zone, other] += np.hypot(north, east)
    shared = {pair: length for pair, length in km.items() if length > 0.002}
    assert shared.keys() == island.borders.keys()
    assert all(island.borders[pair] == pytest.approx(length) for pair, length in shared.items())


def test_names_are_unique_in_the_largest_city() -> None:
    rng = np.random.default_rng(0)
    for coastal, parks in ((False, False), (True, False)):
        names = zone_names(np.full(2000, coastal), np.full(2000, parks), rng)
        assert len(set(names)) == 2000
        assert all("," not in name and name == name.strip() for name in names)
    assert len(set(zone_names(np.ones(120, bool), np.ones(120, bool), rng))) == 120
