"""Whole users: what the paper leaves to future work, on real pathways and flights.

A release at the unit `user` hides everything that one person (or one aircraft) did, after each was
cut down to a number of cells and of transitions in each. Where are the data enough for it?
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import dpmarkov as dpm
from dpmarkov.chain import stationary_distribution
from dpmarkov.mechanisms.projection import project
from dpmarkov.planning.text import Table, number
from studies.charts import BLUE, GREEN, RED, Curve, curves
from studies.noise import in_parallel
from studies.report import Options, Result, interval, main

if TYPE_CHECKING:
    import altair as alt

    from dpmarkov.planning import Estimate, Setting

Floats = npt.NDArray[np.float64]

DELTA = 1e-5
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
MECHANISMS = ("dirichlet", "gaussian", "geometric")
ROUGH, TOO_FEW = 0.1, 0.25
"""From these expected row TVs on a release is rough, and not worth making."""


@dataclass(frozen=True, eq=False)
class Source:
    """Transitions of users.

    Parameters
    ----------
    name : str
        What they are.
    raw : TransitionCounts
        All of them: what a release is held against.
    count : callable
        From bounds (L0, Linf) to bounded counts.
    bounds : tuple of (int, int)
        Those that are tried.
    """

    name: str
    raw: dpm.TransitionCounts
    count: Callable[[int, int], dpm.TransitionCounts]
    bounds: tuple[tuple[int, int], ...]


def study(options: Options) -> Result:
    """Release every source at the unit `user`, and measure the error against the raw chain."""
    draws = 8 if options.fast else 50
    epsilons = (1.0, 8.0) if options.fast else EPSILONS
    found = [errors(source, epsilons, draws) for source in sources(options)]
    return Result(
        name="users",
        title="Whole users (beyond the paper)",
        asks="The paper hides single transitions and leaves users to future work. How far is a "
        "chain off that hides a whole patient, aircraft or rider, and where are the data too few?",
        tables=(*map(_table, found), _verdicts(found)),
        notes=_notes(found),
        charts={"users": _chart(found)},
        figures={"delta": DELTA, "sources": found},
    )


# -- whose transitions ---------------------------------------------------------------------------


def sources(options: Options) -> list[Source]:
    """Give a simulated city of riders, and the real data that are at hand."""
    city = dpm.datasets.simulate_city(
        zones=20, trips=200_000, riders=20_000, rng=np.random.default_rng(11)
    )
    names = {"origin": "origin", "destination": "destination", "states": city.space}
    found = [
        _source("20,000 riders (simulated)", city.trips, "rider", names, ((5, 1), (10, 2), (20, 4)))
    ]
    real = {
        "sepsis_events.parquet": ("1,049 sepsis patients", ((8, 1), (12, 1), (16, 2), (24, 4))),
        "nycflights13_by_tail.parquet": ("3,872 aircraft", ((10, 1), (20, 1), (40, 2), (100, 5))),
    }
    for file, (name, bounds) in real.items():
        path = options.data / file
        if path.exists():
            columns = {"origin": "source", "destination": "target", "states": "from-data"}
            found.append(_source(name, path, "unit", columns, bounds))
    return found


def _source(
    name: str, data: Any, user: str, columns: dict[str, Any], bounds: tuple[tuple[int, int], ...]
) -> Source:
    def count(max_cells: int, max_per_cell: int) -> dpm.TransitionCounts:
        return dpm.count_transitions(
            data, user=user, max_cells=max_cells, max_per_cell=max_per_cell, key="studies",
            **{**columns, "states": raw.space},
        )  # fmt: skip

    raw = dpm.count_transitions(data, **columns)
    return Source(name, raw, count, bounds)


# -- what is measured ----------------------------------------------------------------------------


def errors(source: Source, epsilons: tuple[float, ...], draws: int) -> dict[str, Any]:
    """Measure the row TV of releases against the raw chain, for every bound and epsilon."""
    tried = []
    for max_cells, max_per_cell in source.bounds:
        counts = source.count(max_cells, max_per_cell)
        for epsilon in epsilons:
            tv = {
                name: simulated(source, counts, calibrated(counts, name, epsilon), draws)
                for name in MECHANISMS
            }
            tried.append(
                {"epsilon": epsilon, "max_cells": max_cells, "max_per_cell": max_per_cell,
                 "kept": counts.total / source.raw.total, "tv": tv,
                 "without noise": row_tv(source.raw, _rows(counts, counts.cells))}
            )  # fmt: skip
    return {
        "source": source.name, "states": source.raw.space.shape[0],
        "transitions": source.raw.total, "tried": tried,
        "best": [_best(tried, epsilon) for epsilon in epsilons],
    }  # fmt: skip


def _least(tried: dict[str, Any]) -> float:
    """Give the row TV of the best mechanism."""
    return min(float(found["row"].mean) for found in tried["tv"].values())


def _best(tried: list[dict[str, Any]], epsilon: float) -> dict[str, Any]:
    """Pick the bounds of the least error at an epsilon, by the best mechanism."""
    able = [x for x in tried if x["epsilon"] == epsilon]
    return min(able, key=_least)


def calibrated(counts: dpm.TransitionCounts, mechanism: Any, epsilon: float) -> Setting:
    """Calibrate a mechanism to the bounds that the counts were made with."""
    shape = dpm.planning.public_shape(
        counts.space, unit="user", expected_total=float(f"{counts.total:.1g}")
    )
    return dpm.planning.calibrated(
        mechanism, shape, unit="user", epsilon=epsilon, delta=DELTA,
        max_cells=counts.max_cells, max_per_cell=counts.max_per_cell,
    )  # fmt: skip


def simulated(
    source: Source, counts: dpm.TransitionCounts, setting: Setting, draws: int
) -> dict[str, Estimate]:
    """Simulate releases of bounded counts, and hold them against the raw chain."""
    truth = long_run(source.raw.space, source.raw.cells)

    def error(draw: int) -> list[float]:
        noisy = noisy_counts(counts.cells, setting, np.random.default_rng([111, draw]))
        rows = _rows(counts, noisy)
        found = [row_tv(source.raw, rows)]
        if truth is not None:
            private = stationary_distribution(counts.space.to_dense(rows))
            found.append(float(np.abs(private - truth).sum() / 2))
        return found

    what = f"{source.name}, {setting.law.mechanism}"
    columns = np.array(in_parallel(error, range(draws), what)).T
    return dict(zip(("row", "long run"), map(dpm.planning.Estimate.of, columns), strict=False))


def long_run(space: dpm.StateSpace, cells: Any) -> Floats | None:
    """Give the stationary distribution of counts, if they have one."""
    totals = space.row_sums(cells)
    if not totals.all():
        return None
    try:
        return np.asarray(stationary_distribution(space.to_dense(cells / space.spread(totals))))
    except dpm.DpmarkovError:
        return None


def noisy_counts(cells: Any, setting: Setting, rng: np.random.Generator) -> Floats:
    """Draw the private counts of one release from an ordinary generator."""
    law, m = setting.law, setting.prior
    if law.mechanism == "dirichlet":
        return np.asarray(rng.gamma(setting.parameter * (cells + m)) / setting.parameter - m)
    if law.mechanism == "geometric":
        p = -np.expm1(-1 / setting.parameter)
        return np.asarray(cells + rng.geometric(p, cells.size) - rng.geometric(p, cells.size))
    return np.asarray(cells + rng.normal(0.0, setting.parameter, cells.size))


def _rows(counts: dpm.TransitionCounts, cells: Any) -> Floats:
    """Bring private counts to positive rows, as a release does."""
    return project(np.asarray(cells, dtype=float), counts.space.row_sums(cells), counts.space)[0]


def row_tv(raw: dpm.TransitionCounts, rows: Floats) -> float:
    """Give the total variation of a row, averaged over the raw transitions."""
    totals = raw.row_totals
    true = raw.cells / raw.space.spread(np.maximum(totals, 1))
    apart = raw.space.row_sums(np.abs(rows - true)) / 2
    return float(apart @ totals / totals.sum())


# -- how it is told ------------------------------------------------------------------------------


def _table(found: dict[str, Any]) -> Table:
    rows = [
        (f"{x['epsilon']:g}", f"{x['max_cells']} x {x['max_per_cell']}", f"{x['kept']:.0%}",
         "no answer", number(x["without noise"]),
         *(interval(x["tv"][name]["row"]) for name in MECHANISMS))
        for x in found["best"]
    ]  # fmt: skip
    headers = ("epsilon", "cells x per cell", "kept", "paper", "bounding alone", *MECHANISMS)
    title = (
        f"{found['source']}: {found['transitions']:,} transitions, {found['states']} states; "
        "row TV against the raw chain, at the best bounds tried"
    )
    return Table(title, headers, rows)


def _verdicts(found: list[dict[str, Any]]) -> Table:
    rows = []
    for each in found:
        for x in each["best"]:
            name, tv = min(x["tv"].items(), key=lambda item: float(item[1]["row"].mean))
            long_run = interval(tv["long run"]) if "long run" in tv else "none"
            rows.append(
                (each["source"], f"{x['epsilon']:g}", name, interval(tv["row"]), long_run,
                 verdict(tv))
            )  # fmt: skip
    headers = ("data", "epsilon", "best mechanism", "row TV", "TV of the long run", "verdict")
    return Table(
        f"Where the data are too few: either TV above {TOO_FEW} (rough: above {ROUGH})",
        headers,
        rows,
    )


def verdict(tv: dict[str, Estimate]) -> str:
    """Say what a release is worth by the larger of its two errors."""
    worst = max(each.mean for each in tv.values())
    return "too few data" if worst > TOO_FEW else "rough" if worst > ROUGH else "good"


def _notes(found: list[dict[str, Any]]) -> tuple[str, ...]:
    few = []
    for each in found:
        at = [f"{x['epsilon']:g}" for x in each["best"] if _least(x) > TOO_FEW]
        few += [f"{each['source']} at epsilon {', '.join(at)}"] if at else []
    return (
        f"Too few data for the rows: {'; '.join(few) or 'none of these'}. A quarter of a row or "
        "more is wrong there, and no release should be made: merge states, or collect more users.",
        "The long run may be further off than the rows: it hangs on states that are seldom left, "
        "and these have the noisiest rows.",
        "Bounding alone already bends the rows: whoever has many cells loses some. More cells "
        "keep more of the data and need more noise; the bounds shown are the best of those tried, "
        "picked here with the raw data at hand. A release takes them from public knowledge, or "
        "spends a share of its budget on choosing them.",
        "The states of the real data are read off them here, as no list is published with them. "
        "A release declares them.",
        "The paper has no answer at this unit; by group privacy its epsilon for a user of s "
        "transitions would be s times as large, and its delta explode.",
    )


def _chart(found: list[dict[str, Any]]) -> alt.TopLevelMixin:
    import altair as alt

    eps = [x["epsilon"] for x in found[0]["best"]]
    limits = ((ROUGH, "above: rough"), (TOO_FEW, "above: too few data"))
    shown = [
        Curve(name, [min(eps), max(eps)], [y, y], "#aaaaaa", dashed=True, dx=6)
        for y, name in limits
    ]
    for each, colour in zip(found, (GREEN, BLUE, RED), strict=False):
        best = [min((tv["row"] for tv in x["tv"].values()), key=_mean) for x in each["best"]]
        means = [x.mean for x in best]
        shown += [
            Curve("bounding alone" if colour == RED else "", eps,
                  [x["without noise"] for x in each["best"]], colour, dashed=True, dx=8),
            Curve("", eps, means, colour),
            Curve(each["source"], eps, means, colour, points=True, low=[x.low for x in best],
                  high=[x.high for x in best], at=0, dx=4,
                  dy=52 if colour == GREEN else -14),
        ]  # fmt: skip
    return curves(
        shown,
        title="How many users does it take to hide each of them?",
        subtitle="best mechanism and bounds at each ε; dashed: the users' bounds alone, no noise",
        x={"title": f"privacy ε of a whole user, δ = {DELTA:g}",
           "scale": alt.Scale(type="log", domain=[min(eps), 2 * max(eps)]),
           "axis": alt.Axis(values=eps, format="~g")},
        y={"title": "expected TV of a row from the raw chain",
           "axis": alt.Axis(format=".1f", tickCount=6)},
        width=640,
        height=400,
    )  # fmt: skip


def _mean(estimate: Estimate) -> float:
    return estimate.mean


if __name__ == "__main__":
    sys.exit(main(study))
