"""``dpmarkov report`` and ``release --report``, as a user runs them."""

from __future__ import annotations

import json

import pytest

import dpmarkov as dpm

from .conftest import TARGET, TRIPS


@pytest.fixture
def released(here, events):
    assert here("release", *TRIPS, *TARGET, "-o", "out.json").code == 0
    return events.parent


def test_a_release_writes_its_report_and_says_where(process, events, tmp_path):
    done = process("release", *TRIPS, *TARGET, "-o", "out.json", "--report", "out.html",
                   "--title", "Trips <b>in town</b>")  # fmt: skip
    assert done.code == 0, done.err
    assert done.out.rstrip().endswith("Report: out.html")
    page = (tmp_path / "out.html").read_text()
    assert "<h1><bdi>Trips &lt;b&gt;in town&lt;/b&gt;</bdi></h1>" in page
    again = process("report", "out.json", "-o", "again.html", "--title", "Trips <b>in town</b>")
    assert again.out == "Wrote again.html: may be published with the release.\n"
    assert (tmp_path / "again.html").read_text() == page


def test_the_curator_s_report_counts_the_events_again(process, released):
    columns = ("--origin", "from", "--destination", "to")
    done = process("report", "out.json", "--curator", "trips.csv", *columns, "-o", "c.html")
    assert done.code == 0, done.err
    assert "NOT FOR PUBLICATION" in done.out
    page = (released / "c.html").read_text()
    assert "Not for publication" in page
    assert "20,000" in page
    told = process("report", "out.json", "--curator", "trips.csv", *columns, "-o", "c.html",
                   "--force", "--json")  # fmt: skip
    assert json.loads(told.out) == {
        "file": "c.html", "release": "out.json", "audience": "curator only"
    }  # fmt: skip


def test_merged_states_are_counted_into_their_groups(here, events, tmp_path):
    (tmp_path / "beside.csv").write_text("north,east\neast,south\nsouth,west\n")
    merging = ("--merge", "beside.csv", "--merge-to", 3)
    target = ("--epsilon", 1, "--delta", 1e-6, "--unit", "destination")
    assert here("release", *TRIPS, *target, *merging, "-o", "out.json").code == 0
    done = here("report", "out.json", "--curator", "trips.csv", "--origin", "from",
                "--destination", "to", "--adjacency", "beside.csv", "-o", "c.html")  # fmt: skip
    assert done.code == 0, done.err
    release = dpm.load(tmp_path / "out.json")
    page = (tmp_path / "c.html").read_text()
    for total in release.row_totals:  # public under this unit, so known from the release
        assert f"{total:,}" in page


def test_a_single_distribution_has_both_reports(here, tmp_path):
    (tmp_path / "grades.csv").write_text("grade\n" + "A\nB\nC\nD\nF\n" * 20)
    target = ("--epsilon", 1, "--delta", 1e-6, "--unit", "transition", "-o", "g.json")
    asked = ("--category", "grade", "--categories", "A,B,C,D,F")
    assert here("release", "grades.csv", *asked, *target, "--report", "g.html").code == 0
    done = here(
        "report", "g.json", "--curator", "grades.csv", "--category", "grade", "-o", "c.html"
    )
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("out.json", "-o", "out.pdf"), "out.pdf must end in .html, not '.pdf'"),
        (("out.json", "-o", "no/out.html"), "there is no folder no; make it first"),
        (("gone.json", "-o", "r.html"), "there is no file gone.json"),
        (("out.json", "-o", "r.html", "--origin", "from"), "go with --curator DATA"),
        (("out.json", "-o", "r.html", "--map", "gone.geojson"), "cannot read the map gone.geojson"),
        (("out.json", "-o", "r.html", "--map", "states.txt"), "cannot read the map states.txt"),
        (("out.json", "-o", "r.html", "--curator", "trips.csv"), "--origin and --destination"),
        (
            ("out.json", "-o", "r.html", "--curator", "trips.csv", "--category", "from"),
            "the release is of a square space: --category goes with a single distribution",
        ),
    ],
)
def test_what_cannot_be_reported_is_an_error_and_leaves_no_file(here, released, arguments, message):
    before = sorted(released.iterdir())
    done = here("report", *arguments)
    assert done.code == 2
    assert message in done.message
    assert "Traceback" not in done.err
    assert sorted(released.iterdir()) == before


def test_a_report_that_could_not_be_written_stops_a_release_before_any_noise(here, events):
    (events.parent / "out.html").write_text("mine")
    for extra, message in (
        (("--report", "out.html"), "out.html exists"),
        (("--report", "new.html", "--map", "gone.geojson"), "there is no file gone.geojson"),
        (("--title", "Trips"), "--map, --map-name and --title go with --report"),
    ):
        done = here("release", *TRIPS, *TARGET, "-o", "out.json", *extra)
        assert done.code == 2
        assert message in done.message
        assert not (events.parent / "out.json").exists()
