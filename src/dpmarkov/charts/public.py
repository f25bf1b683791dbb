"""The public report: what a reader of a release should know, computed from the release alone.

Every part is post-processing of what was published: it costs no privacy and may stand anywhere the
release may.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmarkov.charts import flows, guarantee, maps, mixing, shares, transitions
from dpmarkov.charts.look import names_of
from dpmarkov.charts.page import Figure, Section, page
from dpmarkov.charts.views import cells_of_release, long_run_of
from dpmarkov.errors import DpmarkovError
from dpmarkov.guarantee import in_full
from dpmarkov.planning import expected_deviations, expected_error
from dpmarkov.planning.text import Table, number

if TYPE_CHECKING:
    from dpmarkov.artefact import Release
    from dpmarkov.planning import Deviations, Prediction

__all__ = ["described", "public_report", "title_of"]

_MOST_ROWS = 500  # of a table
_MIXED = 0.01


def public_report(
    release: Release,
    *,
    outlines: maps.Map | None = None,
    title: str | None = None,
    source: Path | None = None,
) -> str:
    """Write the public report of a release as HTML.

    Parameters
    ----------
    release : Release
        What was published.
    outlines : Map, optional
        Of its states, to draw maps.
    title : str, optional
        What it is about.
    source : Path, optional
        The published file, whose name and checksum are told.

    Returns
    -------
    str
        One page that needs no other file.
    """
    off = expected_deviations(release)
    parts = [_promise(release), _in_the_long_run(release, off, outlines)]
    if release.space.kind != "row":
        parts.append(_transitions(release, off))
    if release.space.kind == "square":
        parts.append(_mixing(release))
    parts += [_errors(release, off), _use(release, title_of(release, title), source)]
    lead = f"{described(release)} Public: everything here follows from the published release."
    return page(title_of(release, title), lead, parts)


def title_of(release: Release, title: str | None) -> str:
    """Give the title, or one that says what kind of thing was released."""
    kinds = {"square": "A private Markov chain", "row": "A private distribution"}
    return title or kinds.get(release.space.kind, "A private transition table")


def described(release: Release) -> str:
    """Say in a sentence how large it is and what noise it holds."""
    m, n = release.space.shape
    sizes = {
        "square": f"{n:,} states, {release.space.n_cells:,} feasible transitions",
        "row": f"{n:,} categories",
    }
    size = sizes.get(release.space.kind, f"{m:,} origins and {n:,} destinations")
    promise = release.guarantee
    return (
        f"{size}; ({in_full(promise.epsilon)}, {in_full(promise.delta)})-differentially private at "
        f"the unit '{promise.unit}'."
    )


# -- the guarantee -------------------------------------------------------------------------------


def _promise(release: Release) -> Section:
    promise = release.guarantee
    caption = (
        "The privacy profile. The promise is one point of a curve: for any other epsilon the curve "
        "tells the delta that this noise keeps."
    )
    if promise.only_claimed:
        caption += (
            " Of this release nothing but the promise itself is proven, and the curve is its."
        )
    facts = [
        ("unit", promise.unit),
        ("epsilon", in_full(promise.epsilon)),
        ("delta", in_full(promise.delta)),
        ("mechanism", release.mechanism),
        *_bounds(release),
    ]
    return Section(
        "guarantee",
        "What is promised",
        [*promise.statements, "It holds under these conditions:"],
        promise.conditions,
        facts,
        [Figure("profile", guarantee.profile(promise), caption)],
    )


def _bounds(release: Release) -> list[tuple[str, str]]:
    promise = release.guarantee
    if promise.unit != "user":
        return []
    return [
        ("cells of a person, at most", number(promise.max_cells)),
        ("transitions in each, at most", number(promise.max_per_cell)),
    ]


# -- where it is ---------------------------------------------------------------------------------


def _in_the_long_run(release: Release, off: Deviations, outlines: maps.Map | None) -> Section:
    space = release.space
    if space.kind == "rectangular":
        return Section("shares", "Shape", [f"{described(release)} A table has no long run."])
    title = "The distribution" if space.kind == "row" else "Where it is in the long run"

    def made() -> Section:
        _, pi, sd, word, groups = long_run_of(release, off)
        most, names = shares.MOST_BARS, names_of(space.labels)
        few = f" The {most} largest of {len(pi):,}." if len(pi) > most else ""
        caption = f"The {word} of each state, the largest first.{few}" + (
            "" if sd is None else " The fine line reaches two standard deviations to either side."
        )
        drawn = shares.bars(space.labels, pi, sd, title=word)
        figures = [Figure("bars", drawn, caption, "tall", marks=2 * min(len(pi), most))]
        if outlines is not None:
            drawn = maps.share_map(outlines, space.labels, pi, sd, groups=groups, title=word)
            told = f"The same as a map: the fuller the colour, the larger the {word}."
            figures.append(Figure("map", drawn, f"{told}{_unmapped(release, outlines)}", "square"))
        return Section("shares", title, figures=figures, tables=[_ranking(names, pi, sd, word)])

    return _tried("shares", title, made)


def _unmapped(release: Release, outlines: maps.Map) -> str:
    space = release.space
    lost = [
        str(label)
        for label in space.labels
        if not any(outlines.of(member) for member in space.groups.get(label, (label,)))
    ]
    return f" Not on the map: {', '.join(lost[:5])}{' and more' * (len(lost) > 5)}." if lost else ""


def _ranking(names: list[str], pi: Any, sd: Any, word: str) -> Table:
    order = np.argsort(-pi, kind="stable")[:_MOST_ROWS].tolist()
    headers = ("state", word) if sd is None else ("state", word, "standard deviation")
    rows = [
        (names[i], f"{pi[i]:.4g}") if sd is None else (names[i], f"{pi[i]:.4g}", f"{sd[i]:.2g}")
        for i in order
    ]
    return Table("The shares as a table", headers, rows)


# -- where it goes -------------------------------------------------------------------------------


def _transitions(release: Release, off: Deviations) -> Section:
    cells = cells_of_release(release, off)
    figures = [_whole_table(cells)]
    caption = (
        "The likeliest destinations of one origin; choose it in the list. The fine line reaches "
        "two standard deviations to either side."
    )
    figures.append(Figure("flows-from", flows.flows_from(cells), caption, "tall", marks=30))
    return Section("transitions", "Who goes where", figures=figures)


def _whole_table(cells: transitions.Cells) -> Figure:
    m, n = len(cells.origins), len(cells.destinations)
    if max(m, n) > transitions.MOST_STATES:
        caption = (
            f"The {flows.MOST_FLOWS} largest flows, of {len(cells.probabilities):,}: the "
            "share of all steps that go from one state to the other."
        )
        return Figure("flows", flows.top_flows(cells), caption, "tall", marks=40)
    caption = (
        "The transition matrix: each row is where one state leads. Point at a cell for its "
        "numbers, hold Ctrl and turn the wheel to zoom, drag to move, double-click to see all. "
        "Ordered by likeness, states that lead to the same places lie side by side."
    )
    drawn = transitions.heat_map(cells)
    return Figure("matrix", drawn, caption, "square", marks=len(cells.probabilities))


# -- how fast it forgets -------------------------------------------------------------------------


def _mixing(release: Release) -> Section:
    title = "How fast it forgets"

    def made() -> Section:
        chain = release.chain
        if chain.n_states > mixing.MOST_STATES:
            words = (
                f"With {chain.n_states:,} states the distance to the long run takes too long to "
                f"follow (at most {mixing.MOST_STATES:,}). `dpmarkov show` tells more."
            )
            return Section(
                "mixing", title, [words], facts=[("entropy rate", _fact(chain.entropy_rate()))]
            )
        second, steps = chain.second_eigenvalue_modulus(), chain.mixing_time(_MIXED)
        facts = [
            ("mixing time (to 1%)", f"{steps:,} steps"),
            ("second eigenvalue", _fact(second)),
            ("spectral gap", _fact(1 - second)),
            ("ergodicity coefficient (norm 1)", _fact(chain.ergodicity_coefficient(1))),
            ("ergodicity coefficient (norm inf)", _fact(chain.ergodicity_coefficient(np.inf))),
            ("Kemeny constant", _fact(chain.kemeny_constant())),
            ("entropy rate (nats)", _fact(chain.entropy_rate())),
        ]
        words = (
            f"Wherever it starts, after {steps:,} step{'s' * (steps != 1)} the chain is within 1% "
            f"of its long run. From then on each step leaves {100 * second:.3g}% of the distance."
        )
        caption = (
            "Distance to the long run, in total variation, from the worst start; dashed: powers of "
            "the second eigenvalue; dotted: 1%."
        )
        drawn = mixing.mixing(chain)
        return Section(
            "mixing", title, [words], facts=facts, figures=[Figure("mixing-chart", drawn, caption)]
        )

    return _tried("mixing", title, made)


def _fact(value: float) -> str:
    return f"{value:.4g}"


# -- how far off ---------------------------------------------------------------------------------


def _errors(release: Release, off: Deviations) -> Section:
    expected = expected_error(release)
    words = [_in_words(expected, release.space.kind)]
    if not expected.reliable:
        words.append(
            "These figures are rough: the noise is not small beside the counts, and they hold to "
            "first order in it."
        )
    if release.weak_rows:
        listed = ", ".join(names_of(release.weak_rows)[:12])
        more = " and more" * (len(release.weak_rows) > 12)
        words.append(f"Mostly noise or prior, and not to be relied on: the rows of {listed}{more}.")
    if release.touched:
        words.append(
            f"{release.touched:,} of {release.space.n_cells:,} probabilities came out at or below "
            "zero and stand at a small floor: what is rarer than the noise cannot be told."
        )
    facts = [
        ("noise on a count (standard deviation)", number(expected.noise)),
        ("expected row error (total variation)", number(expected.row_tv)),
        ("expected row error (KL divergence)", number(expected.row_kl)),
        ("expected long-run error (total variation)", number(expected.stationary_tv)),
        ("ergodicity coefficient off by at most", number(expected.ergodicity)),
    ]
    told = [(term, value) for term, value in facts if value != "-"]
    return Section(
        "errors", "How far off it may be", words, facts=told, tables=_by_row(release, off)
    )


def _in_words(expected: Prediction, kind: str) -> str:
    def of_a_thousand(error: float) -> str:
        return number(1000 * error, 2)

    what = "draws" if kind == "row" else "steps"
    words = ["All of this is predicted from the release itself."]
    if expected.row_tv is not None:
        words.append(
            f"Of 1,000 {what} taken with these probabilities about "
            f"{of_a_thousand(expected.row_tv)} go elsewhere than with the raw ones."
        )
    if expected.stationary_tv is not None:
        words.append(
            f"Of 1,000 visits in the long run about {of_a_thousand(expected.stationary_tv)} are "
            "credited to another state."
        )
    return " ".join(words)


def _by_row(release: Release, off: Deviations) -> list[Table]:
    space = release.space
    if space.kind == "row":
        return []
    names = names_of(space.origins)
    order = np.argsort(-off.rows, kind="stable")[:_MOST_ROWS].tolist()
    title = f"Expected error of {'each' if len(names) <= _MOST_ROWS else 'the worst'} row"
    columns = {"origin": names, "total variation of its row": [f"{x:.3g}" for x in off.rows]}
    if off.states is not None:
        columns["standard deviation of its long-run share"] = [f"{x:.2g}" for x in off.states]
    rows = [[column[i] for column in columns.values()] for i in order]
    return [Table(title, tuple(columns), rows)]


# -- use -----------------------------------------------------------------------------------------


def _use(release: Release, title: str, source: Path | None) -> Section:
    import dpmarkov

    promise = release.guarantee
    name = "release.json" if source is None else source.name
    said = (
        f"{title}. Transition probabilities with differential privacy, epsilon = "
        f"{in_full(promise.epsilon)}, delta = {in_full(promise.delta)}, unit '{promise.unit}', "
        f"{release.mechanism} mechanism; dpmarkov {dpmarkov.__version__}."
    )
    code = [("To cite it:", said), ("To load it in Python:", _loading(release, name))]
    if source is not None:
        import hashlib

        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        code.append((f"SHA-256 of {name}:", digest))
    code.append(("The method:", _PAPER))
    return Section(
        "use",
        "How to cite and load it",
        ["Whatever is computed from the release costs no more privacy: use it freely."],
        code=code,
    )


_PAPER = "Differentially Private Data-Driven Markov Chain Modeling, UAI 2026."


def _loading(release: Release, name: str) -> str:
    use = {
        "square": "release.chain.stationary_distribution()",
        "row": "release.distribution",
    }.get(release.space.kind, "release.rows")
    return (
        f"import dpmarkov as dpm\n\nrelease = dpm.load({name!r})  # checks the guarantee\n"
        f"print(release.guarantee)\n{use}"
    )


def _tried(name: str, title: str, made: Callable[[], Section]) -> Section:
    """Make a section, or let it say why this chain has none (no single long run, say)."""
    try:
        return made()
    except DpmarkovError as error:
        return Section(name, title, [f"{str(error)[0].upper()}{str(error)[1:]}."])
