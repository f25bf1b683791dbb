"""The simulated city has a map, and trips that are as uneven as those of a real one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import chisquare

from dpmarkov.counting import count_transitions
from dpmarkov.datasets import City, nyc_tlc, simulate_city
from dpmarkov.datasets.island import make_island
from dpmarkov.datasets.traffic import attraction, journeys
from dpmarkov.errors import DpmarkovError

LIKE_THE_SAMPLE = 301_210  # trips on the island of Manhattan in the shared sample


def simulated(seed: int = 0, **sizes: Any) -> City:
    return simulate_city(rng=np.random.default_rng(seed), **sizes)


def counted(city: City) -> npt.NDArray[np.int64]:
    counts = count_transitions(
        city.trips, origin="origin", destination="destination", states=city.space
    )
    return counts.to_dense()


@pytest.fixture(scope="module")
def city() -> City:
    """A city with as many trips as the sample of New York has on its island."""
    return simulated(zones=63, trips=LIKE_THE_SAMPLE, riders=60_000)


# -- the map ---------------------------------------------------------------------------------------


def test_every_zone_can_be_reached_over_land(city: City) -> None:
    number = {name: i for i, name in enumerate(city.names)}
    ends = np.array([(number[a], number[b]) for a, b in city.adjacency]).T
    graph = coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(63, 63))
    assert connected_components(graph, directed=False)[0] == 1
    assert (ends[0] < ends[1]).all(), "each pair is listed once, from south to north"
    assert len(set(city.adjacency)) == len(city.adjacency)


def test_the_map_is_geojson_with_an_id_and_a_name_for_each_zone(city: City) -> None:
    assert city.geojson["type"] == "FeatureCollection"
    features = city.geojson["features"]
    assert [f["properties"] for f in features] == [
        {"id": i, "name": name} for i, name in enumerate(city.names, start=1)
    ]
    assert [f["id"] for f in features] == list(range(1, 64))
    for feature in features:
        assert feature["type"] == "Feature"
        assert feature["geometry"]["type"] == "Polygon"
        (ring,) = feature["geometry"]["coordinates"]
        assert ring[0] == ring[-1]
        assert np.abs(np.array(ring) - [-38, 40]).max() < 0.2, "open water"
    assert json.loads(json.dumps(city.geojson)) == city.geojson


# -- trips -----------------------------------------------------------------------------------------


def test_the_same_generator_gives_the_same_city_and_another_does_not() -> None:
    first, again = (simulated(5, zones=12, trips=2000, riders=300) for _ in range(2))
    other = simulated(6, zones=12, trips=2000, riders=300)
    assert first == again
    assert first.geojson != other.geojson
    assert not first.trips.equals(other.trips)


@pytest.mark.parametrize("trips", [1, 999, 50_000])
def test_there_are_exactly_as_many_trips_as_asked_for(trips: int) -> None:
    assert simulated(zones=5, trips=trips).trips.num_rows == trips


def test_trips_are_in_order_and_within_the_month(city: City) -> None:
    times = city.trips["pickup_time"].to_numpy()
    assert (np.diff(times) >= np.timedelta64(0)).all()
    assert np.datetime64("2025-01-01") <= times[0]
    assert times[-1] < np.datetime64("2025-02-01")


def test_nights_are_quiet_and_evenings_busy(city: City) -> None:
    hour = city.trips["pickup_time"].to_numpy().astype("datetime64[h]").astype(int) % 24
    by_hour = np.bincount(hour, minlength=24)
    assert by_hour.argmin() in (3, 4, 5)
    assert by_hour.argmax() in range(16, 20)


def test_mornings_lead_to_the_centre_and_evenings_away_from_it(city: City) -> None:
    """Trips from the north against trips to it: by ten times what chance would move."""
    hour = city.trips["pickup_time"].to_numpy().astype("datetime64[h]").astype(int) % 24
    ends = (city.trips[end].combine_chunks().indices for end in ("origin", "destination"))
    far_off, to_far_off = (end.to_numpy() >= 50 for end in ends)

    def inward(hours: range) -> float:
        at = np.isin(hour, hours)
        into, out = (at & far_off & ~to_far_off).sum(), (at & ~far_off & to_far_off).sum()
        return float(into / (into + out))

    assert inward(range(7, 10)) > inward(range(19, 22)) + 0.1


def test_pairs_follow_the_shares_of_the_model() -> None:
    """Chi-square over the pairs, at a false-alarm rate of 1e-4 and a fixed seed."""
    rng = np.random.default_rng(3)
    model = attraction(make_island(9, rng).sites, rng)
    made = journeys(model, 400_000, rng)
    hour = made.seconds // 3600 % 24
    at_eight = hour == 8
    pairs = made.origin[at_eight] * 9 + made.destination[at_eight]
    found = np.bincount(pairs, minlength=81)
    expected = model.at(8) * at_eight.sum()
    common = expected > 5
    f_obs = [*found[common], found[~common].sum()]
    f_exp = [*expected[common], expected[~common].sum()]
    assert chisquare(f_obs, f_exp).pvalue > 1e-4


def test_pairs_are_as_uneven_as_on_the_real_island(city: City, real_data: Path) -> None:
    """Quantiles of the cells' counts at the same number of trips are within a factor of 2."""
    taxi = nyc_tlc(real_data / "nyc_yellow_360k.parquet", real_data / "taxi_zone_lookup.csv")
    real = count_transitions(
        taxi.trips, origin="origin", destination="destination", states=taxi.space
    ).to_dense()
    made = counted(city)
    assert real.sum() == made.sum() == LIKE_THE_SAMPLE
    level = [0.25, 0.5, 0.75, 0.9, 0.99]
    ratio = np.quantile(made, level) / np.quantile(real, level)
    assert (ratio > 0.5).all()
    assert (ratio < 2).all()
    for most in (0, 2, 10):
        assert (made <= most).mean() == pytest.approx((real <= most).mean(), rel=0.6)


def test_few_people_make_many_trips(city: City) -> None:
    trips_of = np.sort(np.bincount(city.trips["rider"].to_numpy()))[::-1]
    assert trips_of[trips_of > 0].min() == 1
    assert trips_of.max() > 10 * trips_of.mean()
    assert trips_of[: trips_of.size // 10].sum() > 0.25 * trips_of.sum()
    assert trips_of.max() < 500, "nobody lives in a cab"


def test_people_travel_from_and_to_their_home(city: City) -> None:
    """Of a frequent rider's trips, every one has an end in common."""
    riders = city.trips["rider"].to_numpy()
    for rider in np.argsort(np.bincount(riders))[-5:]:
        rows = city.trips.filter(riders == rider).to_pylist()
        assert set.intersection(*({row["origin"], row["destination"]} for row in rows))


# -- files -----------------------------------------------------------------------------------------


def test_what_is_saved_is_counted_and_drawn_as_what_is_in_memory(
    city: City, tmp_path: Path
) -> None:
    paths = city.save(tmp_path / "new" / "folder")
    counts = count_transitions(
        paths["trips"], origin="origin", destination="destination", states=paths["states"]
    )
    assert counts.space.labels == city.names
    np.testing.assert_array_equal(counts.to_dense(), counted(city))
    assert json.loads(paths["map"].read_text()) == city.geojson
    header, *lines = paths["adjacency"].read_text().splitlines()
    assert header == "zone_a,zone_b,shared_boundary_km"
    assert tuple(tuple(line.split(",")[:2]) for line in lines) == city.adjacency


def test_saving_replaces_nothing_unless_told(tmp_path: Path) -> None:
    city = simulated(zones=4, trips=10)
    city.save(tmp_path)
    with pytest.raises(DpmarkovError, match=r"trips.parquet exists"):
        simulated(1, zones=4, trips=20).save(tmp_path)
    assert pq.read_table(tmp_path / "trips.parquet").num_rows == 10
    simulated(1, zones=4, trips=20).save(tmp_path, overwrite=True)
    assert pq.read_table(tmp_path / "trips.parquet").num_rows == 20


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DpmarkovError, match=r"cannot write the city to .*file"):
        simulated(zones=4, trips=10).save(tmp_path / "file")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"zones": 2}, "zones is 2; give a whole number from 3 to 2000"),
        ({"zones": 10.5}, "zones is 10.5"),
        ({"trips": "many"}, "trips is 'many'"),
        ({"trips": 0}, "trips is 0"),
        ({"riders": -1}, "riders is -1"),
        ({"rng": 42}, r"rng is of type int, .*default_rng"),
    ],
)
def test_an_impossible_city_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DpmarkovError, match=message):
        simulate_city(**{"zones": 4, "trips": 10, "rng": np.random.default_rng(0), **arguments})


def test_importing_datasets_imports_nothing_heavy() -> None:
    heavy = "{'scipy', 'pyarrow', 'duckdb', 'narwhals', 'pandas'}"
    code = f"import sys, dpmarkov.datasets; sys.exit(bool({heavy} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", code], check=True)
