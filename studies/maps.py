"""Maps of a stationary distribution, without privacy and with more and more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import dpmarkov as dpm
from dpmarkov.chain import stationary_distribution
from dpmarkov.charts.maps import read_map
from dpmarkov.mechanisms.projection import project
from studies.charts import values
from studies.cities import Recipe, Trips
from studies.noise import dirichlet_rows

if TYPE_CHECKING:
    import altair as alt

__all__ = ["private_stationary", "stationary_maps"]

Floats = npt.NDArray[np.float64]
Shares = dict[str, float]

DELTA = 3e-6
EXACT = (1.0, 0.1)
_SIZE: dict[str, Any] = {"width": 235, "height": 300}


def stationary_maps(trips: Trips, zones: int) -> alt.VConcatChart:
    """Draw the long run at several epsilon, and its difference from the truth.

    Parameters
    ----------
    trips : Trips
        With outlines.
    zones : int
        To how many zones the paper's recipe merges.

    Returns
    -------
    altair.VConcatChart
    """
    import altair as alt

    rng = np.random.default_rng(72)
    merged = trips.merged(zones)
    recipe = Recipe(merged.to_dense())
    counts = trips.departed
    truth = Recipe(counts.to_dense()).stationary
    panels = [("no privacy", _by_zone(counts, truth), _by_zone(counts, truth))]
    theirs = stationary_distribution(dirichlet_rows(recipe.shapes(1.0), 1, rng)[0])
    epsilon = recipe.epsilon(1.0)
    panels.append((f"the paper, ε = {epsilon:.2f}, {zones} zones",
                   _by_zone(merged, theirs), _by_zone(merged, recipe.stationary)))  # fmt: skip
    for wanted in EXACT:
        ours = private_stationary(counts, wanted, rng)
        name = f"exact, ε = {wanted:g}, {len(truth)} zones"
        panels.append((name, _by_zone(counts, ours), _by_zone(counts, truth)))
    top = max(100 * max(shown.values()) for _, shown, _ in panels)
    shares = [_panel(trips, name, shown, top) for name, shown, _ in panels]
    apart = [_difference(trips, shown, true) for _, shown, true in panels[1:]]
    title = alt.Title(
        "Where the taxis are in the long run",
        subtitle="above: one privatization each, zones that were merged sharing evenly; below: "
        "what privacy changed",
    )
    rows = (alt.hconcat(*shares), alt.hconcat(_blank(), *apart))
    maps: alt.VConcatChart = alt.vconcat(*rows, title=title).resolve_scale(color="independent")
    return maps


def private_stationary(
    counts: dpm.TransitionCounts, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Simulate one debiased release at the unit `destination`, and solve its chain."""
    shape = dpm.planning.public_shape(counts, unit="destination")
    setting = dpm.planning.calibrated(
        "dirichlet", shape, unit="destination", epsilon=epsilon, delta=DELTA
    )
    N, m = counts.row_totals.astype(np.float64), setting.prior
    X = dirichlet_rows(setting.parameter * (counts.to_dense() + m), 1, rng)[0]
    estimates = X * (N + m * len(N))[:, None] - m
    rows, _ = project(estimates.ravel(), N, counts.space)
    return np.asarray(stationary_distribution(rows.reshape(X.shape)))


def _by_zone(counts: dpm.TransitionCounts, pi: Floats) -> Shares:
    """Give every original zone its share; those of a merged group share evenly."""
    groups = {label: counts.space.groups.get(label, (label,)) for label in counts.space.labels}
    shares = zip(groups.values(), pi, strict=True)
    return {str(zone): p / len(group) for group, p in shares for zone in group}


# -- drawing -------------------------------------------------------------------------------------


def _panel(trips: Trips, name: str, shown: Shares, top: float) -> alt.Chart:
    import altair as alt

    shares = {zone: 100 * share for zone, share in shown.items()}
    scale = alt.Scale(scheme="blues", domain=[0, top])
    return _map(trips, shares, scale, "share (%)").properties(
        title=alt.Title(name, fontSize=14, anchor="middle")
    )


def _difference(trips: Trips, shown: Shares, true: Shares) -> alt.Chart:
    import altair as alt

    shares = {zone: 100 * (share - true[zone]) for zone, share in shown.items()}
    tv = sum(abs(x) for x in shares.values()) / 200
    scale = alt.Scale(scheme="redblue", domain=[-0.3, 0.3], domainMid=0, clamp=True)
    return _map(trips, shares, scale, "change (points)").properties(
        title=alt.Title(f"change: TV {tv:.2g}", fontSize=13, fontWeight="normal", anchor="middle")
    )


def _blank() -> alt.Chart:
    import altair as alt

    blank: alt.Chart = alt.Chart(values([{}])).mark_text(text="").properties(**_SIZE)
    return blank


def _map(trips: Trips, shown: Shares, scale: alt.Scale, title: str) -> alt.Chart:
    import altair as alt

    assert trips.outlines is not None
    outlines = read_map(trips.outlines, list(shown), trips.label)
    features = [
        {**outline, "share": share}
        for zone, share in shown.items()
        for outline in outlines.of(zone)
    ]
    legend = alt.Legend(title=title, orient="bottom", gradientLength=150, tickCount=3)
    drawn: alt.Chart = (
        alt.Chart(values(features))
        .mark_geoshape(stroke="#999", strokeWidth=0.4)
        .encode(alt.Color("share:Q", scale=scale, legend=legend))
        .project(type="identity", reflectY=True)
        .properties(**_SIZE)
    )
    return drawn
