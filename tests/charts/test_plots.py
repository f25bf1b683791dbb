"""The charts of a notebook: each can be drawn, and saved as SVG, PNG and PDF without a browser."""

from __future__ import annotations

import numpy as np
import pytest
from hostile import TARGET

import dpmarkov as dpm

SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
WORLD = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "properties": {"name": name},
         "geometry": {"type": "Polygon", "coordinates": [[[x + i, y] for x, y in SQUARE]]}}
        for i, name in enumerate(("home", "work", "shop"))
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def release():
    counts = dpm.TransitionCounts.from_dense(
        [[50, 800, 20], [700, 10, 90], [300, 30, 5]], dpm.StateSpace(["home", "work", "shop"])
    )
    return dpm.release(counts, **TARGET)


PLOTS = {
    "plot_profile": (),
    "plot_stationary": (),
    "plot_map": (WORLD,),
    "plot_matrix": (),
    "plot_flows": (),
    "plot_flows_from": ("work",),
    "plot_mixing": (),
}
STARTS = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.mark.parametrize("name", PLOTS)
def test_every_chart_of_a_release_is_saved_without_a_browser(release, name, tmp_path):
    chart = getattr(release, name)(*PLOTS[name])
    for suffix, start in STARTS.items():
        chart.save(str(tmp_path / f"chart{suffix}"))
        assert (tmp_path / f"chart{suffix}").read_bytes().startswith(start)
    drawn = (tmp_path / "chart.svg").read_text()
    assert drawn.count("<path") > 5
    assert "NaN" not in drawn


@pytest.mark.parametrize("name", sorted(set(PLOTS) - {"plot_profile"}))
def test_a_chain_draws_the_same_without_error_bars(release, name):
    chain = dpm.MarkovChain(release.matrix, release.space.labels)
    text = getattr(chain, name)(*PLOTS[name]).to_json()
    assert "standard deviation" not in text
    assert "standard deviation" in release.plot_stationary().to_json()


def test_a_single_row_is_drawn_with_error_bars():
    space = dpm.StateSpace(categories=list("ABC"))
    out = dpm.release(dpm.TransitionCounts(space, [20, 16, 31]), **TARGET)
    rows = out.plot_distribution().to_dict()["data"]["values"]
    assert [row["share"] for row in rows] == pytest.approx(
        sorted(out.probabilities)[::-1], rel=1e-5
    )
    assert all(row["low"] < row["share"] < row["high"] for row in rows)
    with pytest.raises(dpm.DpmarkovError, match=r"use plot_distribution\(\)"):
        out.plot_matrix()


def test_states_that_are_alike_lie_side_by_side():
    """Two groups, mixed up as declared, each leading into itself."""
    P = np.full((6, 6), 0.02)
    for group in ((0, 2, 4), (1, 3, 5)):
        P[np.ix_(group, group)] = 0.94 / 3
    chain = dpm.MarkovChain(P, list("abcdef"))
    params = {
        p["name"]: p.get("value") for p in chain.plot_matrix(order="likeness").to_dict()["params"]
    }
    order = [chain.labels[i] for i in params["sorted"]["likeness"][0]]
    assert {frozenset(order[:3]), frozenset(order[3:])} == {frozenset("ace"), frozenset("bdf")}
    assert params["order"] == "likeness"
    for ranks, places in zip(params["ranks"]["size"], params["sorted"]["size"], strict=True):
        assert [ranks[i] for i in places] == list(range(6))
    with pytest.raises(dpm.DpmarkovError, match="order must be one of 'size', 'likeness'"):
        chain.plot_matrix(order="alphabet")


def test_an_unknown_origin_is_an_error(release):
    with pytest.raises(dpm.DpmarkovError, match="'gym' is not one of the 3 origins"):
        release.plot_flows_from("gym")
    first = release.plot_flows_from("shop").to_dict()["params"]
    assert next(p["value"] for p in first if p["name"] == "origin") == 2


def test_the_distance_to_the_long_run_is_that_of_powers_of_the_chain(release):
    from dpmarkov.charts.mixing import distances

    chain = release.chain
    steps, far = distances(chain)
    assert steps[-1] > chain.mixing_time(0.01)
    for t, distance in zip(steps.tolist(), far.tolist(), strict=True):
        reached = np.linalg.matrix_power(chain.transition_matrix, t)
        direct = np.abs(reached - chain.stationary_distribution()).sum(axis=1).max() / 2
        assert distance == pytest.approx(direct, abs=1e-12)
