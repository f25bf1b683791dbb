"""What reports say, from what they say it, and who may see it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import stat
import subprocess
import sys

import numpy as np
import pytest
from hostile import HOSTILE, TARGET

import dpmarkov as dpm
from dpmarkov.charts import curator_report, report
from dpmarkov.charts.guarantee import profile
from dpmarkov.charts.look import names_of
from dpmarkov.charts.maps import read_map
from dpmarkov.guarantee import Guarantee
from dpmarkov.noise import Dirichlet, Geometric


def specifications(path):
    """Give the charts that a page carries."""
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>',
                      path.read_text(encoding="utf-8"), re.S)  # fmt: skip
    return json.loads(found[1])


def values(spec):
    """Give the data of a chart, wherever altair put them."""
    data = spec["data"]
    return data["values"] if "values" in data else spec["datasets"][data["name"]]


def words(path):
    """Give the text of a page without its scripts."""
    text = re.sub(r"<script.*?</script>", " ", path.read_text(encoding="utf-8"), flags=re.S)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", text).split()))


# -- the public report ---------------------------------------------------------------------------


def test_a_report_of_63_states_is_smaller_than_3_mb(city):
    assert city.public.stat().st_size < 3_000_000
    assert city.curator.stat().st_size < 3_000_000


def test_it_is_made_from_the_published_file_alone(four, tmp_path):
    """A process that has the file only, and never loads what counts events, writes the same."""
    (tmp_path / "release.json").write_bytes(four.file.read_bytes())
    code = (
        "import sys; from dpmarkov.charts import report; "
        f"report('release.json', 'report.html', title={HOSTILE[1]!r}); "
        "print(*(m for m in sys.modules if m.startswith('dpmarkov.counting')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
    assert (tmp_path / "report.html").read_text() == four.public.read_text()


def test_it_says_the_guarantee_the_errors_and_how_to_cite_and_load(city):
    said, release = words(city.public), dpm.load(city.file)
    for statement in (*release.guarantee.statements, *release.guarantee.conditions):
        assert statement in said
    expected = dpm.planning.expected_error(release)
    for figure in (expected.row_tv, expected.stationary_tv, expected.row_kl):
        assert f"{figure:.3g}" in said
    assert "Of 1,000 steps" in said
    assert "import dpmarkov as dpm" in said
    assert hashlib.sha256(city.file.read_bytes()).hexdigest() in said
    assert f"{release.chain.mixing_time(0.01):,} steps" in said
    assert "not for publication" not in said.lower()


def test_its_charts_hold_the_numbers_of_the_release(city):
    release, charts = dpm.load(city.file), specifications(city.public)
    pi = release.chain.stationary_distribution()
    rows = charts["bars"]["spec"]["data"]["values"]
    assert [row["share"] for row in rows] == pytest.approx(sorted(pi, reverse=True), rel=1e-5)
    off = dpm.planning.expected_deviations(release)
    order = np.argsort(-pi, kind="stable")
    assert [row["sd"] for row in rows] == pytest.approx(off.states[order], rel=1e-2)
    cells = np.array(json.loads(values(charts["matrix"]["spec"])))
    assert cells[:, 2] == pytest.approx(release.probabilities, rel=5e-3)
    assert cells[:, 3] == pytest.approx(off.cells, rel=5e-3)
    assert charts["matrix"]["renderer"] == "svg"


def test_300_states_are_drawn_on_a_canvas(many):
    assert specifications(many.public)["matrix"]["renderer"] == "canvas"


def test_only_two_scripts_may_run_and_nothing_may_load(four):
    page = four.public.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    policy = html.unescape(policy)
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not re.search(
        r"<(?:link|img|iframe|object|embed)\b|@import|url\(", page.split("<script")[0]
    )


def test_the_profile_that_is_drawn_is_never_below_the_truth():
    pure = Guarantee("transition", 1.0, 0.0, Geometric(scale=1.0), conditions=())
    gamma = Guarantee("destination", 1.0, 1e-6, Dirichlet(0.75, 30.0), conditions=())
    claimed = Guarantee("transition", 1.0, 1e-6, Dirichlet(0.5, 60.0), (), spent_epsilon=0.1)
    assert claimed.only_claimed
    for promise in (pure, gamma, claimed):
        for row in profile(promise).to_dict()["layer"][0]["data"]["values"]:
            assert row["delta"] >= promise.profile(row["epsilon"])
    drawn = profile(claimed).to_dict()["layer"][0]["data"]["values"]
    assert {row["delta"] for row in drawn if row["epsilon"] >= 1} == {1.001e-6}


@pytest.mark.parametrize(
    ("space", "cells", "absent"),
    [
        (
            dpm.StateSpace(categories=list("ABCDF")),
            [20, 16, 16, 15, 31],
            {"matrix", "mixing-chart"},
        ),
        (
            dpm.StateSpace(origins=range(2), destinations=list("xyz")),
            [90] * 6,
            {"bars", "mixing-chart"},
        ),
    ],
    ids=["row", "rectangular"],
)
def test_rows_and_tables_have_reports_too(space, cells, absent, tmp_path):
    counts = dpm.TransitionCounts(space, cells)
    file, out = tmp_path / "release.json", tmp_path / "report.html"
    dpm.release(counts, **TARGET).save(file)
    report(file, out)
    curator_report(file, counts, tmp_path / "curator.html")
    assert "profile" in specifications(out)
    assert not absent & set(specifications(out))


def test_a_chain_without_a_mixing_time_says_why(tmp_path):
    edges = [("a", "b"), ("a", "d"), ("c", "b"), ("c", "d"), ("b", "a"), ("b", "c"), ("d", "a"),
             ("d", "c")]  # fmt: skip
    counts = dpm.TransitionCounts(dpm.StateSpace(list("abcd"), support=edges), [400] * 8)
    release = dpm.release(counts, **TARGET)
    report(release, tmp_path / "report.html")
    assert "The chain has period 2 where 1 is needed" in words(tmp_path / "report.html")
    assert "bars" in specifications(tmp_path / "report.html")


def test_thousands_of_states_show_their_largest_flows(tmp_path):
    n = 1200
    i = np.repeat(np.arange(n), 4)
    j = (i + np.tile([-1, 1, 2, 7], n)) % n
    from scipy.sparse import coo_array

    space = dpm.StateSpace(range(n), support=coo_array((np.ones(4 * n), (i, j)), shape=(n, n)))
    rng = np.random.default_rng(1)
    counts = dpm.TransitionCounts(space, rng.poisson(300, space.n_cells))
    release = dpm.release(counts, **TARGET)
    report(release, tmp_path / "report.html")
    charts = specifications(tmp_path / "report.html")
    assert "matrix" not in charts
    assert len(charts["flows"]["spec"]["data"]["values"]) == 40
    with pytest.raises(dpm.DpmarkovError, match="a heat map of 1,200 states cannot be read"):
        release.plot_matrix()


# -- the curator's report ------------------------------------------------------------------------


def test_the_curator_sees_actual_errors_beside_expected_ones_and_a_mark(city):
    said, release = words(city.curator), dpm.load(city.file)
    assert "not for publication" in said.lower()
    actual = dpm.planning.actual_errors(release, city.counts)
    C = city.counts.proportions()
    pi = dpm.MarkovChain(C).stationary_distribution()
    tv = np.abs(release.chain.stationary_distribution() - pi).sum() / 2
    assert actual["stationary_tv"] == pytest.approx(tv, rel=1e-9)
    shares = city.counts.row_totals / city.counts.total
    per_row = np.abs(release.matrix - C).sum(axis=1) / 2
    assert actual["row_tv"] == pytest.approx(shares @ per_row, rel=1e-9)
    for figure in actual.values():
        assert f"{figure:.3g}" in said
    worst = city.counts.space.labels[int(per_row.argmax())]
    assert worst in said.split("Rows that suffered most")[1][:200]
    for mechanism in ("dirichlet, prior, debiased", "geometric", "gaussian"):
        assert mechanism in said
    assert "After merging small states with neighbours" in said
    assert "The input policy dropped or mapped 0 rows" in said


def test_the_privacy_utility_curve_falls_and_marks_the_chosen_point(city):
    layers = specifications(city.curator)["utility-chart"]["spec"]["layer"]
    rows = [row for row in layers[1]["data"]["values"] if row["of"] == "rows"]
    errors = [row["error"] for row in sorted(rows, key=lambda row: row["epsilon"])]
    assert errors == sorted(errors, reverse=True)
    assert layers[0]["data"]["values"] == [{"epsilon": 1.0}]
    actual = dpm.planning.actual_errors(dpm.load(city.file), city.counts)["row_tv"]
    assert layers[3]["data"]["values"][0]["error"] == pytest.approx(actual, rel=1e-3)


def test_counts_of_other_states_are_refused(four, tmp_path):
    other = dpm.TransitionCounts.from_dense([[5, 6], [7, 8]], dpm.StateSpace(list("ab")))
    with pytest.raises(dpm.DpmarkovError, match="the counts are of"):
        curator_report(four.file, other, tmp_path / "curator.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="no modes of files on this system")
def test_nobody_but_its_owner_may_read_the_curator_s_report(four):
    assert stat.S_IMODE(four.curator.stat().st_mode) == 0o600
    assert stat.S_IMODE(four.public.stat().st_mode) & 0o400


# -- files, maps and names -----------------------------------------------------------------------


def test_a_report_replaces_nothing_unasked_and_ends_in_html(four, tmp_path):
    target = tmp_path / "report.html"
    target.write_text("mine")
    with pytest.raises(dpm.DpmarkovError, match="exists; choose another name, or pass overwrite"):
        report(four.file, target)
    assert target.read_text() == "mine"
    report(four.file, target, overwrite=True)
    assert len(target.read_text()) > 100_000
    with pytest.raises(dpm.DpmarkovError, match=r"must end in \.html, not '\.pdf'"):
        report(four.file, tmp_path / "report.pdf")


def test_without_the_extra_an_error_says_how_to_get_it(four, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    for attempt in (
        lambda: report(four.file, tmp_path / "report.html"),
        lambda: dpm.load(four.file).plot_stationary(),
    ):
        with pytest.raises(dpm.DpmarkovError, match=r"pip install 'dpmarkov\[report\]'"):
            attempt()


SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]


def feature(name, ring=SQUARE, kind="Polygon"):
    rings = [ring] if kind == "Polygon" else [[ring]]
    return {"type": "Feature", "properties": {"zone": name, "id": 1},
            "geometry": {"type": kind, "coordinates": rings}}  # fmt: skip


def test_a_map_finds_the_property_that_names_the_states():
    east = [[x + 1, y] for x, y in SQUARE]
    features = [feature("a"), feature("b", east, "MultiPolygon")]
    world = {"type": "FeatureCollection", "features": features}
    outlines = read_map(world, ["a", "b", "c"])
    assert outlines.name == "zone"
    assert [len(outlines.of(x)) for x in "abc"] == [1, 1, 0]
    with pytest.raises(dpm.DpmarkovError, match="no property 'id' names one of the 3 states"):
        read_map(world, ["a", "b", "c"], "id")
    for place, other in zip(features, "ba", strict=True):
        place["properties"]["formerly"] = other
    with pytest.raises(dpm.DpmarkovError, match="'formerly' and 'zone' of the map name as many"):
        read_map(world, ["a", "b", "c"])
    assert read_map(world, ["a", "b", "c"], "zone").name == "zone"
    with pytest.raises(dpm.DpmarkovError, match="no property of the map names one of the 1 states"):
        read_map(world, ["z"])
    with pytest.raises(dpm.DpmarkovError, match="must be a GeoJSON FeatureCollection"):
        read_map({"type": "Point"}, ["a"])


def test_merged_states_show_the_share_of_their_group(tmp_path):
    strip = [[[x + i, y] for x, y in SQUARE] for i in range(4)]
    features = [feature(name, ring) for name, ring in zip("abcd", strip, strict=True)]
    world = {"type": "FeatureCollection", "features": features}
    cells = [[90, 5, 5, 9], [10, 20, 30, 9], [40, 9, 80, 20], [2, 2, 9, 6]]
    counts = dpm.TransitionCounts.from_dense(cells, dpm.StateSpace(list("abcd")))
    ring = [("a", "b"), ("b", "c"), ("c", "d")]
    merged = dpm.merge_states(counts, ring, to=3, unit="destination")
    release = dpm.release(merged, epsilon=1.0, delta=1e-6, unit="destination")
    zones = values(release.plot_map(world).to_dict())
    told = {zone["properties"]["state"]: zone["properties"]["share"] for zone in zones}
    assert len(zones) == 4
    assert len(told) == 3
    assert sum("1 more, merged" in name for name in told) == 1
    assert sum(told.values()) == pytest.approx(1.0, abs=1e-5)
    curator_report(release, merged, tmp_path / "curator.html", geojson=world)


def test_a_map_that_cannot_be_read_is_an_error(tmp_path):
    (tmp_path / "map.geojson").write_text("{")
    with pytest.raises(dpm.DpmarkovError, match="cannot read the map"):
        read_map(tmp_path / "map.geojson", ["a"])
    broken = {"type": "FeatureCollection", "features": [feature("a", [["x", 1]])]}
    with pytest.raises(dpm.DpmarkovError, match="outlines of the map cannot be read"):
        read_map(broken, ["a"])
    empty = {"type": "FeatureCollection", "features": [feature("a", kind="Point")]}
    with pytest.raises(dpm.DpmarkovError, match="the map has no polygon"):
        read_map(empty, ["a"])
    rectangular = dpm.StateSpace(origins=list("ab"), destinations=list("xyz"))
    release = dpm.release(dpm.TransitionCounts(rectangular, [90] * 6), **TARGET)
    with pytest.raises(dpm.DpmarkovError, match="a rectangular table has no map"):
        report(release, tmp_path / "report.html", geojson=empty)


def test_names_are_told_apart():
    labels = [1, "1", ("a", 2), "", "x" * 99, "x" * 98 + "y", "two\nlines"]
    names = names_of(labels)
    assert len(set(names)) == len(labels)
    assert names[:4] == ["1", "'1'", "a / 2", "''"]
    assert names[-1] == "two lines"
