"""Where the paper is wrong: Theorem 5, a floor read off the data, and the condition of Theorem 1.

Three constructions. Identical rows, for which Theorem 5's bound is too small; neighbouring
databases that the recipe k = 1.5 / min C tells apart; and counts below the floor, for which Theorem
1 promises what does not hold.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

import dpmarkov as dpm
from dpmarkov.planning.text import Table, number
from dpmarkov.privacy import paper
from studies.charts import BLUE, GREEN, PURPLE, RED, Curve, curves
from studies.noise import dirichlet_rows, in_parallel
from studies.report import Options, Result, interval, main

if TYPE_CHECKING:
    import altair as alt

Floats = npt.NDArray[np.float64]

SIZE = 100_000  # transitions in each row of the counter-example
STATES = (10, 20, 50, 100)


def study(options: Options) -> Result:
    """Show the three by construction."""
    draws = 100 if options.fast else 1000
    fifth = [counter_example(n, draws) for n in STATES]
    recipe = [told_apart(*pair) for pair in PAIRS]
    hidden = only_rows(300 if options.fast else 2000)
    floor = [below_the_floor(s, 20_000 if options.fast else 500_000) for s in SETTINGS]
    return Result(
        name="errata",
        title="Where the paper is wrong",
        asks="Is Theorem 5 true? Is the floor of the simulations private? When does Theorem 1 "
        "hold?",
        tables=(_fifth_table(fifth), _recipe_table(recipe, hidden), *map(_floor_table, floor)),
        notes=_notes(hidden, floor),
        charts={"errata_theorem_5": _fifth_chart(fifth), "errata_floor": _floor_chart(floor)},
        figures={"theorem 5": fifth, "recipe": recipe, "only rows": hidden, "floor": floor},
    )


# -- Theorem 5 -----------------------------------------------------------------------------------


def counter_example(n: int, draws: int) -> dict[str, Any]:
    """Privatize n identical rows, half of whose mass is spread evenly over n - 1 states."""
    row = np.array([0.5] + [0.5 / (n - 1)] * (n - 1))
    P, k = np.tile(row, (n, 1)), 1.5 / row.min()

    def error(draw: int) -> float:
        private = dirichlet_rows(k * P, 1, np.random.default_rng([81, n, draw]))[0]
        chain = dpm.MarkovChain(private)
        return abs(chain.ergodicity_coefficient(np.inf) - true)

    true = dpm.MarkovChain(P).ergodicity_coefficient(np.inf)
    found = in_parallel(error, range(draws), f"counter-example, {n} states")
    return {
        "states": n,
        "simulated": dpm.planning.Estimate.of(np.array(found)),
        "printed": float(dpm.accuracy.paper_ergodicity_bound(P, k, size=SIZE)),
        "sound": float(dpm.accuracy.ergodicity_bound(P, k)),
    }


# -- a floor read off the data -------------------------------------------------------------------

PAIRS = (((1, 50, 47), (0, 51, 47)), ((1, 50, 47), (2, 49, 47)))


def told_apart(ours: tuple[int, ...], theirs: tuple[int, ...]) -> dict[str, Any]:
    """Apply the recipe to two neighbouring databases: what is published differs for certain."""
    published = [recipe(np.array(counts)) for counts in (ours, theirs)]
    return {
        "counts": (ours, theirs),
        "published": published,
        "probability": float(published[0] != published[1]),
    }


def recipe(counts: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Say which categories and which k the recipe publishes; it has none for a count of 0."""
    seen = counts[counts > 0]
    N, least = int(counts.sum()), int(counts.min())
    return {"categories": int(seen.size), "k": 1.5 * N / least if least else None}


def only_rows(draws: int) -> dict[str, Any]:
    """Hide k and publish rows alone: with many categories a row tells its own k.

    The neighbours have 11 and 12 in their rarest category; of the others one has 200 and 199.
    """
    categories, gamma = 5000, 1e-10
    ours, theirs = (np.array([11 + i, 200 - i, *[200] * (categories - 2)]) for i in (0, 1))
    shapes = [1.5 / counts.min() * counts for counts in (ours, theirs)]
    claims = [
        {"k": 1.5 * counts.sum() / counts.min(), "categories": categories,
         "eta": counts.min() / counts.sum(), "gamma": gamma} for counts in (ours, theirs)
    ]  # fmt: skip
    epsilon = max(paper.epsilon(size=int(ours.sum()), **claim) for claim in claims)
    rng = np.random.default_rng(82)
    losses = [_loss(dirichlet_rows(shapes[0], 50, rng), *shapes) for _ in range(draws // 50)]
    return {
        "categories": categories, "epsilon": epsilon,
        "promised": max(paper.delta(**claim) for claim in claims),
        "delta": _hockey_stick(np.concatenate(losses), epsilon),
    }  # fmt: skip


def _loss(X: Floats, a: Floats, b: Floats) -> Floats:
    """Give the privacy loss of rows X, the log-likelihood ratio of Dirichlet(a) to Dirichlet(b)."""
    from scipy.special import gammaln

    constant = gammaln(a.sum()) - gammaln(b.sum()) - (gammaln(a) - gammaln(b)).sum()
    return np.asarray(constant + np.log(X) @ (a - b))


def _hockey_stick(losses: Floats, epsilon: float) -> dpm.planning.Estimate:
    """Average ``(1 - e^(eps - L))+``: the delta that neighbours with losses L have at epsilon."""
    return dpm.planning.Estimate.of(np.maximum(-np.expm1(epsilon - losses), 0.0))


# -- the condition of Theorem 1 ------------------------------------------------------------------


class Promise(NamedTuple):
    """A strength and what Theorem 1 promises for it, among rows with a floor."""

    name: str
    rate: float
    size: int
    categories: int
    floor: float
    epsilon: float
    delta: float


def promise(name: str, *, k: float, size: int, n: int, eta: float, gamma: float) -> Promise:
    """Collect what the paper's accountant says."""
    epsilon = paper.epsilon(k=k, size=size, categories=n, eta=eta, gamma=gamma)
    delta = paper.delta(k=k, categories=n, eta=eta, gamma=gamma)
    return Promise(name, k / size, size, n, eta * size, epsilon, delta)


SETTINGS = (
    promise("grades", k=20.6, size=98, n=5, eta=0.073, gamma=0.0004),
    promise("a city's row", k=1.5 * 16_000 / 11, size=16_000, n=40, eta=11 / 16_000, gamma=1e-8),
)
SMALLEST = (0, 1, 2, 3, 4, 5, 8, 11)


def below_the_floor(setting: Promise, draws: int) -> dict[str, Any]:
    """Find the true delta at the promised epsilon of neighbours with a small count."""
    rows = []
    for least in SMALLEST:
        exact = 1.0 if least == 0 else dpm.privacy.profile(
            "destination", rate=setting.rate, mass=least, epsilon=setting.epsilon
        )  # fmt: skip
        rows.append(
            {"smallest": least, "exact": exact, "simulated": simulated_delta(setting, least, draws)}
        )
    return {**setting._asdict(), "rows": rows}


def simulated_delta(setting: Promise, least: int, draws: int) -> dpm.planning.Estimate:
    """Simulate the delta of neighbours (least + 1, least, ...) and (least, least + 1, ...).

    A cell without counts is 0 for certain and positive in the neighbour: there L is infinite.
    """
    others = setting.categories - 2
    rest = setting.size - 2 * least - 1
    ours = setting.rate * np.array([least + 1, least, *np.full(others, rest / others)])
    theirs = ours[[1, 0, *range(2, setting.categories)]]
    if least == 0:
        return dpm.planning.Estimate(1.0, 1.0, 1.0)
    rng = np.random.default_rng([83, least])
    X = dirichlet_rows(ours[[0, 1]], draws, rng)  # the others cancel in the ratio
    return _hockey_stick(np.log(X) @ (ours - theirs)[:2], setting.epsilon)


# -- how it is told ------------------------------------------------------------------------------


def _fifth_table(found: list[dict[str, Any]]) -> Table:
    rows = [
        (str(x["states"]), number(x["printed"]), interval(x["simulated"]), number(x["sound"]))
        for x in found
    ]
    headers = ("states", "paper: bound sqrt(2L)", "replicated: E|tau - tau~|", "sound bound")
    return Table("Theorem 5 on identical rows, N = 100,000, k = 1.5 / eta", headers, rows)


def _recipe_table(found: list[dict[str, Any]], hidden: dict[str, Any]) -> Table:
    rows = []
    for each in found:
        said = [
            f"{x['categories']} categories, k = {number(x['k'])}" if x["k"] else
            f"no k (min C = 0), or {x['categories']} categories" for x in each["published"]
        ]  # fmt: skip
        rows.append((*map(str, each["counts"]), *said, "certain, by construction"))
    size = f"{hidden['categories']:,} categories"
    rows.append(
        (f"(11, 200, 200, ...), {size}", f"(12, 199, 200, ...), {size}", "the row alone",
         "the row alone", f"delta = {interval(hidden['delta'])} at epsilon "
         f"{number(hidden['epsilon'])}, promised {number(hidden['promised'], 1)}")
    )  # fmt: skip
    headers = ("database", "neighbour", "published of the one", "of the other", "told apart")
    return Table("The recipe k = 1.5 / min C on neighbouring databases", headers, rows)


def _floor_table(found: dict[str, Any]) -> Table:
    rows = [
        (str(x["smallest"]), number(found["delta"], 2), _seen(x["simulated"]),
         number(x["exact"]), "broken" if x["exact"] > found["delta"] else "kept")
        for x in found["rows"]
    ]  # fmt: skip
    headers = ("smallest count", "paper: delta", "replicated", "exact", "promise")
    title = (
        f"Theorem 1 below its floor, {found['name']}: delta at epsilon = "
        f"{number(found['epsilon'])}, floor {number(found['floor'])} transitions"
    )
    return Table(title, headers, rows)


def _seen(estimate: dpm.planning.Estimate) -> str:
    if estimate.low == estimate.high:
        return "certain, by construction" if estimate.mean else "not seen"
    return interval(estimate) if estimate.low > 0 else "too seldom seen"


def _notes(hidden: dict[str, Any], floor: list[dict[str, Any]]) -> tuple[str, ...]:
    return (
        "Theorem 5 is false as printed: its proof takes Pinsker's bound on the pi-weighted rows "
        "for a bound on the largest column sum. The error grows with the number of states, the "
        "printed bound does not. The sound bound, max_j S_j + sqrt(sum (Var - M^2)), holds.",
        "eta = min C is a function of the data. One transition that goes elsewhere "
        "changes the published k, or whether there is one: whoever reads it tells the two "
        "databases apart with certainty, so that delta = 1 at every epsilon. Hiding k does not "
        f"help where there are many categories: {hidden['categories']:,} of them give it away.",
        "Theorem 1 holds among databases whose every count is at or above the floor, that is in "
        "the bordered simplex, before and after the change. Below it the promise breaks: where a "
        "cell is empty, with certainty. A count slightly below the floor is saved by the slack of "
        "Theorem 1 itself, of which exact accounting leaves none: at the exact epsilon any count "
        "below the floor breaks the promise.",
        "dpmarkov therefore asks for a floor as an assertion of the curator (assume_floor), prints "
        "it as a condition, and by default uses a prior, which needs no condition.",
    )


# -- how it is drawn -----------------------------------------------------------------------------


def _fifth_chart(found: list[dict[str, Any]]) -> alt.TopLevelMixin:
    import altair as alt

    states = [x["states"] for x in found]
    simulated = [x["simulated"] for x in found]
    return curves(
        [
            Curve("sound bound", states, [x["sound"] for x in found], BLUE, at=-1, dx=-10, dy=-12,
                  align="right"),
            Curve("", states, [x.mean for x in simulated], "black"),
            Curve("simulated error", states, [x.mean for x in simulated], "black", points=True,
                  low=[x.low for x in simulated], high=[x.high for x in simulated], at=2, dy=14),
            Curve("Theorem 5's bound", states, [x["printed"] for x in found], RED, dashed=True,
                  at=2, dx=10, dy=-12),
        ],
        title="Theorem 5 is false: the error passes its bound",
        subtitle="n identical rows (1/2, the rest equal), N = 100,000, k = 1.5 / η",
        x={"title": "states n", "axis": alt.Axis(values=list(STATES))},
        y={"title": "error of the ergodicity coefficient τ∞"},
    )  # fmt: skip


def _floor_chart(found: list[dict[str, Any]]) -> alt.TopLevelMixin:
    import altair as alt

    shown = []
    for each, colour, place in zip(found, (PURPLE, GREEN), (3, 4), strict=True):
        rows = [row for row in each["rows"] if row["exact"] > 1e-12]
        x, exact = ([row[key] for row in rows] for key in ("smallest", "exact"))
        left = colour == GREEN
        shown += [
            Curve(f"true δ, {each['name']}", x, exact, colour, at=place,
                  dx=-12 if left else 10, dy=10 if left else -6, align="right" if left else "left"),
            Curve(f"promised to {each['name']}: ({number(each['epsilon'])}, "
                  f"{number(each['delta'], 2)})", [0, 11], [each["delta"]] * 2, colour,
                  dashed=True, at=1, dx=-4, dy=-10, align="right"),
        ]  # fmt: skip
    return curves(
        shown,
        title="Below the floor Theorem 1's promise breaks",
        subtitle="true δ at the promised ε, of neighbours whose smallest counts are c and c + 1",
        x={"title": "smallest count c", "axis": alt.Axis(format="d", tickCount=11)},
        y={"title": "δ (logarithmic)", "scale": alt.Scale(type="log", domain=[1e-12, 1]),
           "axis": alt.Axis(format=".0e", values=[1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12])},
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(study))
