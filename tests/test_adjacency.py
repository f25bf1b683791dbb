"""Adjacency: one answer from every way to declare it, and maps read as a person reads them."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from scipy.sparse import coo_array

import dpmarkov as dpm
from dpmarkov.adjacency import neighbours
from dpmarkov.merging import merge_states

LINE = dpm.StateSpace(["1", "2", "03"])
SQUARE = dpm.TransitionCounts(LINE, range(9))
PAIRS = [("1", "2"), ("2", "03")]


def _file(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def box(x, y, **properties):
    """One unit square of a map."""
    ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def boxes(*features):
    return {"type": "FeatureCollection", "features": list(features)}


def test_the_ways_to_give_an_adjacency_agree(tmp_path):
    matrix = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 0]], dtype=bool)
    # the last two boxes touch the first and third in a corner only, and are no declared states
    on_map = boxes(
        box(0, 0, id=1), box(1, 0, id=2), box(2, 0, id="03"), box(3, 1, id=4), box(-1, 1, id=5)
    )
    ways = [
        matrix,
        coo_array(matrix),
        str(_file(tmp_path, "a.csv", "zone,other\n1,2\n03,2\n2,99\n")),
        _file(tmp_path, "b.csv", "1,2\n03,2\n"),
        _file(tmp_path, "c.csv", "length,zone_b,zone_a\n1,2,1\n2,03,2\n"),
        _file(tmp_path, "d.tsv", "zone\tother\n1\t2\n03\t2\n"),
        on_map,
    ]
    expected = merge_states(SQUARE, iter(PAIRS), to=2, unit="destination")
    for way in ways:
        assert merge_states(SQUARE, way, to=2, unit="destination", name="id") == expected


def test_states_that_touch_in_a_corner_only_are_no_neighbours():
    space = dpm.StateSpace([1, 2, 3, 4])
    counts = dpm.TransitionCounts(space, range(16))
    corner = boxes(box(0, 0, id=1), box(1, 0, id=2), box(2, 1, id=3), box(3, 1, id=4))
    merged = merge_states(counts, corner, to=2, unit="destination", name="id")
    assert merged.space.groups == {2: (2, 1), 4: (4, 3)}
    two_parts = boxes(*corner["features"], box(1, 1, id=4))  # a state of two areas
    around = neighbours(two_parts, space, name="id")
    assert around == [{1}, {0, 3}, {3}, {1, 2}]


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        ([("1", "2"), ("2", "3")], r"\('2', '3'\) \(1 such in all\) ends outside"),
        ([("1", "2", "03")], "is not one"),
        ([("1", "1")], "joins no two of the 3 declared states"),
        (np.eye(3), "must be boolean"),
        (np.eye(2) > 0, r"shape \(2, 2\)"),
        ("absent.csv", "cannot read the adjacency from absent.csv"),
        ({"features": []}, "FeatureCollection of at least one polygon"),
        (boxes(box(0, 0, zone=1, id=2)), "name=None must be the property .* one of 'id', 'zone'"),
    ],
)
def test_an_adjacency_that_cannot_be_used_says_why(adjacency, message):
    with pytest.raises(dpm.DpmarkovError, match=message):
        merge_states(SQUARE, adjacency, to=2, unit="destination")


def test_files_and_maps_that_cannot_be_used_say_why(tmp_path):
    def merge(counts, adjacency, **options):
        return merge_states(counts, adjacency, to=2, unit="destination", **options)

    with pytest.raises(dpm.DpmarkovError, match="row 2 has one column"):
        merge(SQUARE, _file(tmp_path, "a.csv", "a,b\n1\n"))
    with pytest.raises(dpm.DpmarkovError, match="there is no row"):
        merge(SQUARE, _file(tmp_path, "b.csv", ""))
    with pytest.raises(dpm.DpmarkovError, match="cannot read the adjacency"):
        merge(SQUARE, _file(tmp_path, "c.geojson", "{"), name="id")
    point = box(0, 0, id=1)
    point["geometry"] = {"type": "Point", "coordinates": [0, 0]}
    with pytest.raises(dpm.DpmarkovError, match="'1' is a Point without area"):
        merge(SQUARE, boxes(point), name="id")
    point["geometry"] = {"type": "Polygon", "coordinates": "nowhere"}
    with pytest.raises(dpm.DpmarkovError, match="the geometry of '1' cannot be read"):
        merge(SQUARE, boxes(point), name="id")
    alike = dpm.TransitionCounts(dpm.StateSpace([1, "1", 2]), range(9))
    with pytest.raises(dpm.DpmarkovError, match="written alike"):
        merge(alike, _file(tmp_path, "d.csv", "1,2\n"))


def test_borders_on_the_map_are_the_listed_ones_and_corners_are_not(real_data):
    zones = range(1, 264)
    around = neighbours(real_data / "taxi_zones.geojson", dpm.StateSpace(zones), name="locationid")
    found = {frozenset((zones[a], zones[b])) for a, near in enumerate(around) for b in near}
    with (real_data / "taxi_zone_adjacency.csv").open() as file:
        listed = {
            frozenset((int(row["zone_a"]), int(row["zone_b"]))): float(row["shared_boundary_deg"])
            for row in csv.DictReader(file)
        }
    assert found == {pair for pair, length in listed.items() if length > 1e-5}  # degrees: a metre
    assert len(listed) - len(found) == 37  # contacts in a corner
