"""The curator's report: the release held against the sensitive counts. Never to be published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmarkov.charts import maps, shares
from dpmarkov.charts.look import (
    FAINT,
    HEIGHT,
    PRIVATE,
    TRUE,
    WIDTH,
    altair,
    names_of,
    rounded,
    table,
)
from dpmarkov.charts.page import Figure, Section, page
from dpmarkov.charts.public import described, title_of
from dpmarkov.charts.views import long_run_of
from dpmarkov.errors import DpmarkovError
from dpmarkov.planning import compare, expected_deviations, expected_error
from dpmarkov.planning.hindsight import actual_errors, after_merging, at_other_epsilon, truth_of
from dpmarkov.planning.text import Table, number

if TYPE_CHECKING:
    from dpmarkov.artefact import Release
    from dpmarkov.counts import TransitionCounts
    from dpmarkov.planning import Prediction
    from dpmarkov.planning.simulation import Truth

__all__ = ["curator_report"]

_WORST = 15
_DRAWS = 30
_SIMULATED_CELLS = 1_000_000  # in all draws of one mechanism
_MEASURES = {
    "row_tv": "row, total variation",
    "row_kl": "row, KL divergence",
    "stationary_tv": "long run, total variation",
    "ergodicity": "ergodicity coefficient",
}


def curator_report(
    release: Release,
    counts: TransitionCounts,
    *,
    outlines: maps.Map | None = None,
    title: str | None = None,
    adjacency: Any = None,
    adjacency_name: str | None = None,
) -> str:
    """Write the curator's report as HTML. It shows sensitive data and must not be published.

    Parameters
    ----------
    release : Release
        What was published.
    counts : TransitionCounts
        The sensitive counts of the same states.
    outlines, title
        As for the public report.
    adjacency, adjacency_name : optional
        As for `dpmarkov.merge_states`: to see what merging would have given.

    Returns
    -------
    str
        One page that needs no other file, marked on each printed sheet.
    """
    truth = truth_of(release, counts)
    parts = [
        _errors(release, counts),
        *_shares(release, truth, outlines),
        _sufferers(release, truth),
        _input(counts),
        _by_epsilon(release, counts),
        _otherwise(release, counts, adjacency, adjacency_name),
    ]
    lead = f"{described(release)} For the curator: held against the sensitive counts."
    return page(title_of(release, title), lead, parts, curator=True)


# -- how far off ---------------------------------------------------------------------------------


def _errors(release: Release, counts: TransitionCounts) -> Section:
    actual, expected = actual_errors(release, counts), expected_error(release)
    rows = [
        (word, number(getattr(expected, name)), number(actual[name]))
        for name, word in _MEASURES.items()
        if name in actual
    ]
    said = [
        "The error of this one release beside what the release itself leads one to expect. One "
        "draw of noise differs from the mean; the ergodicity coefficient has a bound, not a mean."
    ]
    headers = ("error", "expected, from the release alone", "actual")
    return Section("errors", "How far off it is", said, tables=[Table("Errors", headers, rows)])


def _shares(release: Release, truth: Truth, outlines: maps.Map | None) -> list[Section]:
    space = release.space
    if space.kind == "rectangular":
        return []
    off = expected_deviations(release)
    _, private, sd, word, groups = long_run_of(release, off)
    true = truth.rows if space.kind == "row" else truth.stationary
    drawn = shares.two_bars(space.labels, private, true, sd)
    caption = (
        f"True {word} (bars) and the private one (points); the line reaches two standard "
        "deviations to either side of the private one."
    )
    figures = [Figure("both", drawn, caption, "tall")]
    if outlines is not None:
        top = float(max(private.max(), true.max()))
        for name, what, values in (("private", "Private", private), ("true", "True", true)):
            chart = maps.share_map(
                outlines, space.labels, values, groups=groups, top=top, title=word
            )
            figures.append(Figure(f"map-{name}", chart, f"{what} {word}.", "square", beside=True))
    names = names_of(space.labels)
    order = np.argsort(-np.abs(private - true), kind="stable")[:_WORST].tolist()
    rows = [
        (names[i], f"{true[i]:.4g}", f"{private[i]:.4g}", f"{private[i] - true[i]:+.2g}")
        for i in order
    ]
    worst = Table("The largest differences", ("state", "true", "private", "difference"), rows)
    return [Section("shares", "Private against true", figures=figures, tables=[worst])]


def _sufferers(release: Release, truth: Truth) -> Section:
    space = release.space
    off, apart = expected_deviations(release), release.probabilities - truth.rows
    per_row = space.row_sums(np.abs(apart)) / 2
    rows, totals = names_of(space.origins), truth.totals
    worst_rows = [
        (rows[i], f"{totals[i]:,.0f}", f"{per_row[i]:.3g}", f"{off.rows[i]:.3g}")
        for i in _largest(per_row)
    ]
    columns, origin, destination = names_of(space.destinations), space.rows, space.columns
    worst_cells = [
        (
            f"{rows[origin[i]]} → {columns[destination[i]]}",
            f"{truth.cells[i]:,.0f}", f"{truth.rows[i]:.3g}",
            f"{release.probabilities[i]:.3g}", f"{off.cells[i]:.2g}",
        )
        for i in _largest(np.abs(apart))
    ]  # fmt: skip
    tables = [
        Table(
            "Rows that suffered most",
            ("origin", "transitions", "total variation", "expected"),
            worst_rows,
        ),
        Table(
            "Cells that suffered most",
            ("transition", "count", "true", "private", "standard deviation"),
            worst_cells,
        ),
    ]
    empty = int((totals == 0).sum())
    said = (
        [f"{empty:,} origins have no transition at all; their rows are prior or floor."]
        if empty
        else []
    )
    return Section("worst", "What suffered most", said, tables=tables)


def _largest(values: npt.NDArray[np.float64]) -> list[int]:
    order: list[int] = np.argsort(-values, kind="stable")[:_WORST].tolist()
    return order


def _input(counts: TransitionCounts) -> Section:
    affected = counts.affected_rows
    said = (
        "How many rows the input policy dropped or mapped is not known for counts made in memory."
        if affected is None
        else f"The input policy dropped or mapped {affected:,} rows (nulls, undeclared states)."
    )
    return Section(
        "input", "What was read", [said], facts=[("transitions counted", f"{counts.total:,}")]
    )


# -- what else would have given ------------------------------------------------------------------


def _by_epsilon(release: Release, counts: TransitionCounts) -> Section:
    found, actual = at_other_epsilon(release, counts), actual_errors(release, counts)
    spent = release.guarantee.spent_epsilon
    chart = _utility(found, actual, release.guarantee.epsilon, spent)
    caption = (
        "Expected error against epsilon, from the true counts: rows and long run, in total "
        "variation. The upright line is the chosen epsilon, the rings are the errors of this "
        "release."
    )
    lines = [
        (f"{x.epsilon + spent:.3g}", number(x.noise), number(x.row_tv), number(x.stationary_tv))
        for x in found
    ]
    headers = ("epsilon", "noise on a count", "row TV", "long-run TV")
    return Section(
        "utility",
        "What privacy costs",
        ["At the same unit, delta and mechanism."],
        figures=[Figure("utility-chart", chart, caption)],
        tables=[Table("Expected errors", headers, lines)],
    )


def _utility(
    found: Sequence[Prediction], actual: dict[str, float], epsilon: float, spent: float
) -> Any:
    alt = altair()
    kinds = {"row_tv": ("rows", PRIVATE), "stationary_tv": ("long run", TRUE)}
    shown = {name: kind for name, kind in kinds.items() if name in actual}
    rows = [
        {"epsilon": rounded(x.epsilon + spent), "error": rounded(value), "of": word}
        for name, (word, _) in shown.items()
        for x in found
        if (value := getattr(x, name)) is not None and value > 0
    ]
    rings = [
        {"epsilon": epsilon, "error": rounded(actual[name]), "of": word}
        for name, (word, _) in shown.items()
        if actual[name] > 0
    ]
    log = alt.Scale(type="log", nice=False)
    x = alt.X("epsilon:Q", title="epsilon", scale=log, axis=alt.Axis(format="~g", grid=False))
    y = alt.Y("error:Q", title="error", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g"))
    colour = alt.Color(
        "of:N",
        scale=alt.Scale(
            domain=[w for w, _ in shown.values()], range=[c for _, c in shown.values()]
        ),
        legend=alt.Legend(title=None, orient="top"),
    )
    tips = [
        alt.Tooltip("of:N", title="error of"),
        alt.Tooltip("epsilon:Q", format=".3g"),
        alt.Tooltip("error:Q", format=".3g"),
    ]
    base = alt.Chart(table(rows)).encode(x, y, colour)
    rule = (
        alt.Chart(table([{"epsilon": epsilon}])).mark_rule(color=FAINT, strokeDash=[4, 4]).encode(x)
    )
    ring = alt.Chart(table(rings)).mark_point(size=130, strokeWidth=2.5, opacity=1)
    layers = [
        rule,
        base.mark_line(strokeWidth=2.5),
        base.mark_point(filled=True, size=40, opacity=1).encode(tooltip=tips),
        ring.encode(x, y, colour, tooltip=tips),
    ]
    return alt.layer(*layers).properties(
        width=WIDTH, height=HEIGHT, description="Expected error against epsilon."
    )


def _otherwise(
    release: Release, counts: TransitionCounts, adjacency: Any, name: str | None
) -> Section:
    said, tables = _mechanisms(release, counts)
    if adjacency is None:
        said.append(
            "To see what merging states would have given, tell which lie next to each other."
        )
    elif release.guarantee.unit == "user":
        said.append(
            "Merging is not shown for users: it widens their bounds, by how much is unknown."
        )
    else:
        found = after_merging(release, counts, adjacency, name=name)
        lines = [
            (f"{x.states:,}", number(x.mean_cell), number(x.row_tv), number(x.stationary_tv))
            for x in found
        ]
        headers = ("states", "transitions in a cell", "row TV", "long-run TV")
        tables.append(
            Table("After merging small states with neighbours (expected)", headers, lines)
        )
    return Section("otherwise", "What else would have given", said, tables=tables)


def _mechanisms(release: Release, counts: TransitionCounts) -> tuple[list[str], list[Table]]:
    promise = release.guarantee
    draws = min(_DRAWS, _SIMULATED_CELLS // counts.space.n_cells)
    if draws < 2:
        return ["So many transitions are too many to simulate the other mechanisms."], []
    bounds: dict[str, Any] = dict(promise.bounds) if counts.max_cells is None else {}
    # What the counts have spent is taken off again by the comparison.
    epsilon = promise.epsilon - promise.spent_epsilon + counts.spent_epsilon
    try:
        found = compare(
            counts, epsilon=epsilon, delta=promise.delta, unit=promise.unit, draws=draws, **bounds,
        )  # fmt: skip
    except DpmarkovError as error:
        return [f"The mechanisms cannot be compared: {error}."], []
    said = [
        f"The mechanisms at the same target, {draws} simulated releases of each on the true counts."
    ]
    said += [f"{x.name}: not possible. {x.why_not}" for x in found.contenders if x.why_not]
    return said, found.tables()
