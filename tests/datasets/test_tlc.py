"""Real trip records give the paper's 63 zones, from files of any month and colour."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmarkov.counting import count_transitions
from dpmarkov.datasets import OFF_THE_ISLAND, nyc_tlc
from dpmarkov.errors import DpmarkovError


def test_the_sample_gives_the_63_zones_and_the_counts_of_plain_sql(real_data: Path) -> None:
    trips, lookup = real_data / "nyc_yellow_360k.parquet", real_data / "taxi_zone_lookup.csv"
    taxi = nyc_tlc(trips, lookup)
    assert len(taxi.zones) == len(taxi.space.labels) == 63
    assert taxi.zones[237] == "Upper East Side South"
    assert len(set(taxi.zones.values())) == 63, "no name stands for two zones"
    island = f"""SELECT LocationID FROM '{lookup}' WHERE Borough = 'Manhattan'
        AND Zone NOT LIKE '%Island%' AND Zone <> 'Marble Hill'"""
    expected = duckdb.sql(
        f"""SELECT PULocationID, DOLocationID, count(*) FROM '{trips}'
        WHERE PULocationID IN ({island}) AND DOLocationID IN ({island}) GROUP BY ALL"""
    ).fetchall()
    dense = count_transitions(
        taxi.trips, origin="origin", destination="destination", states=taxi.space
    ).to_dense()
    place = {zone: i for i, zone in enumerate(taxi.zones)}
    assert {(place[o], place[d]): n for o, d, n in expected} == {
        (int(i), int(j)): int(dense[i, j]) for i, j in zip(*dense.nonzero(), strict=True)
    }
    assert dense.sum() == 301_210


def test_what_is_left_out_touches_no_zone_of_the_island_by_land(real_data: Path) -> None:
    """Randalls Island meets East Harlem along 20 m, where a bridge is; all others touch nothing."""
    taxi = nyc_tlc(real_data / "nyc_yellow_360k.parquet", real_data / "taxi_zone_lookup.csv")
    touching = duckdb.sql(
        f"""SELECT zone_a, zone_b FROM '{real_data / "taxi_zone_adjacency.csv"}'
        WHERE shared_boundary_deg > 0.001"""
    ).fetchall()
    left_out = {pair for pair in touching if OFF_THE_ISLAND & set(pair)}
    assert not [pair for pair in left_out if taxi.zones.keys() & set(pair)]


LOOKUP = (
    '"LocationID","Borough","Zone","service_zone"\r\n'
    '4,"Manhattan","Alphabet City","Yellow Zone"\r\n'
    '12,"Manhattan","Battery Park","Yellow Zone"\r\n'
    '103,"Manhattan","Governor\'s Island/Ellis Island/Liberty Island","Yellow Zone"\r\n'
    '153,"Manhattan","Marble Hill","Boro Zone"\r\n'
    '7,"Queens","Astoria","Boro Zone"\r\n'
)


@pytest.fixture
def lookup(tmp_path: Path) -> Path:
    path = tmp_path / "taxi_zone_lookup.csv"
    path.write_bytes(LOOKUP.encode())
    return path


def records(path: Path, time: str, pairs: list[tuple[int | None, int | None]]) -> Path:
    origins, destinations = zip(*pairs, strict=True)
    table = pa.table(
        {
            "VendorID": pa.array([1] * len(pairs)),
            time: pa.array(np.arange(len(pairs)).astype("datetime64[us]")),
            "PULocationID": pa.array(origins, pa.int32()),
            "DOLocationID": pa.array(destinations, pa.int64()),
        }
    )
    pq.write_table(table, path)
    return path


PAIRS: list[tuple[int | None, int | None]] = [
    (4, 12), (4, 4), (103, 4), (4, 153), (7, 4), (12, 7), (None, 4), (4, None)
]  # fmt: skip


@pytest.mark.parametrize(
    "time", ["tpep_pickup_datetime", "lpep_pickup_datetime", "pickup_datetime"]
)
def test_yellow_and_green_files_keep_trips_within_the_island(
    time: str, lookup: Path, tmp_path: Path
) -> None:
    taxi = nyc_tlc(records(tmp_path / "trips.parquet", time, PAIRS), lookup)
    assert taxi.zones == {4: "Alphabet City", 12: "Battery Park"}
    assert taxi.space.labels == (4, 12)
    assert taxi.trips.column_names == ["pickup_time", "origin", "destination"]
    kept = zip(taxi.trips["origin"].to_pylist(), taxi.trips["destination"].to_pylist(), strict=True)
    assert sorted(kept) == [(4, 4), (4, 12)]
    assert repr(taxi) == "TaxiTrips(2 zones, 2 trips)"


def test_several_months_and_colours_are_read_together(lookup: Path, tmp_path: Path) -> None:
    yellow = records(tmp_path / "yellow.parquet", "tpep_pickup_datetime", PAIRS)
    green = records(tmp_path / "green.parquet", "lpep_pickup_datetime", PAIRS)
    for files in ([yellow, green], str(tmp_path / "*.parquet")):
        trips = nyc_tlc(files, lookup).trips
        assert trips.num_rows == 4
        assert trips["pickup_time"].null_count == 0


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("PULocationID", "no column 'PULocationID' in the trip records; did you mean 'DOLocation"),
        ("DOLocationID", "no column 'DOLocationID'"),
        ("tpep_pickup_datetime", "none of the columns tpep_pickup_datetime"),
    ],
)
def test_a_missing_column_of_the_records_is_named(
    column: str, message: str, lookup: Path, tmp_path: Path
) -> None:
    path = records(tmp_path / "trips.parquet", "tpep_pickup_datetime", PAIRS)
    pq.write_table(pq.read_table(path).drop_columns([column]), path)
    with pytest.raises(DpmarkovError, match=message):
        nyc_tlc(path, lookup)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LOOKUP.replace("Borough", "Burough"), "no column 'Borough' in .*did you mean 'Burough'"),
        (LOOKUP.replace("12,", "twelve,"), "LocationID 'twelve', which is no whole number"),
        (LOOKUP.replace("Manhattan", "Bronx"), "has 0 zones on the island of Manhattan"),
        ("", "no column 'LocationID'"),
        ("LocationID,Borough,Zone\n4\n", "has 0 zones"),
    ],
)
def test_a_lookup_that_is_none_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "lookup.csv"
    path.write_text(text)
    trips = records(tmp_path / "trips.parquet", "pickup_datetime", PAIRS)
    with pytest.raises(DpmarkovError, match=message):
        nyc_tlc(trips, path)


def test_missing_and_wrong_files_are_said(lookup: Path, tmp_path: Path) -> None:
    trips = records(tmp_path / "trips.parquet", "pickup_datetime", PAIRS)
    with pytest.raises(DpmarkovError, match=r"there is no file .*nowhere.csv"):
        nyc_tlc(trips, tmp_path / "nowhere.csv")
    with pytest.raises(DpmarkovError, match=r"cannot be read as CSV"):
        nyc_tlc(trips, tmp_path)
    with pytest.raises(DpmarkovError, match=r"there is no file .*nowhere.parquet"):
        nyc_tlc(tmp_path / "nowhere.parquet", lookup)
    with pytest.raises(DpmarkovError, match=r"do not end in .parquet"):
        nyc_tlc(lookup, lookup)
    (tmp_path / "text.parquet").write_text("this is no Parquet")
    with pytest.raises(DpmarkovError, match=r"text.parquet' is not what its suffix says"):
        nyc_tlc(tmp_path / "text.parquet", lookup)
