"""Every study from the command line, as a newcomer runs it."""

from __future__ import annotations

import csv
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run, strict

from studies import NAMES


def test_all_studies_write_tables_charts_and_one_page_that_needs_no_other_file(all_studies):
    done, out = all_studies
    for word in ("paper", "replicated", "exact", "Not reproduced"):
        assert word in done.stdout
    assert done.stderr == ""
    page = (out / "index.html").read_text()
    assert page.count("<section>") == len(NAMES)
    assert "href=" not in page.replace('xlink:href="#', "")
    assert "src=" not in page
    for name in NAMES:
        told = strict((out / f"{name}.json").read_text())
        assert told["fast"] is True
        assert told["notes"]
        assert told["tables"][0]["title"] in done.stdout
        for chart in told["charts"]:
            assert (out / f"{chart}.png").read_bytes().startswith(b"\x89PNG")
            assert (out / f"{chart}.svg").read_text().startswith("<svg")
    assert not [path for path in out.iterdir() if path.name.startswith(".")]  # no drafts


def test_the_list_names_every_study():
    lines = run("studies", "--list").stdout.splitlines()
    assert [line.split()[2] for line in lines] == [f"studies.{name}" for name in NAMES]


def test_a_study_repeats_to_the_last_digit(all_studies, tmp_path):
    _, first = all_studies
    run("studies.grades", "--fast", "--out", tmp_path)
    told = [strict((out / "grades.json").read_text()) for out in (first, tmp_path)]
    assert told[0]["figures"] == told[1]["figures"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    message = run("studies.grades", "--fast", "--out", taken, code=1).stderr
    assert message.startswith(f"error: cannot write to {taken}")
    assert "--out" in message


ZONES = (4, 12, 13, 24, 41, 42, 43, 45)


@pytest.fixture
def commission(tmp_path):
    """Write files as the commission publishes them, with a little of what they hold."""
    rng = np.random.default_rng(5)
    table = rng.poisson(60, (8, 8)) + 2
    table[0, 1] = 0
    pairs = np.argwhere(np.ones_like(table))
    ends = np.repeat(np.array(ZONES)[pairs], table.ravel(), axis=0)
    trips = tmp_path / "yellow_tripdata_2025-01.parquet"
    when = np.full(len(ends), np.datetime64("2025-01-01", "us"))
    columns = {"tpep_pickup_datetime": when, "PULocationID": ends[:, 0], "DOLocationID": ends[:, 1]}
    pq.write_table(pa.table(columns), trips)
    lookup, beside = tmp_path / "taxi_zone_lookup.csv", tmp_path / "taxi_zone_adjacency.csv"
    with lookup.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("LocationID", "Borough", "Zone")] + [(z, "Manhattan", f"Zone {z}") for z in ZONES]
        )
    with beside.open("w", newline="") as file:
        csv.writer(file).writerows([("zone_a", "zone_b"), *pairwise(ZONES)])
    return trips, lookup, beside, tmp_path


def test_the_commission_s_files_take_the_place_of_the_simulated_city(commission):
    trips, lookup, beside, folder = commission
    out = folder / "out"
    files = ("--trips", trips, "--zones", lookup, "--adjacency", beside)
    done = run("studies.taxis", "--fast", "--out", out, "--data", folder / "none", *files)
    assert "yellow_tripdata_2025-01.parquet" in done.stdout
    figures = strict((out / "taxis.json").read_text())["figures"]
    assert [x["zones"] for x in figures["sweeps"]] == [8, 7]
    assert [x["zones"] for x in figures["merging"][0]["steps"]] == [8]
    absent = folder / "absent.geojson"
    message = run("studies.taxis", "--fast", "--out", out, *files, "--map", absent, code=1).stderr
    assert message.startswith(f"error: cannot read the map {absent}")


def test_a_missing_file_is_named_without_a_traceback(tmp_path):
    done = run("studies.taxis", "--fast", "--trips", tmp_path / "no.parquet", code=1)
    assert done.stderr.startswith("error: ")
    assert "no.parquet" in done.stderr or "lookup" in done.stderr
    assert "Traceback" not in done.stderr
