"""Monte Carlo delta: the paper's appendix figure, and what replaces it.

The paper estimates its delta by sampling and shows the relative error against the number of
samples. Here the same estimate is repeated, beside the exact integral and the closed bound.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

import dpmarkov as dpm
from dpmarkov.planning.text import Table, number
from dpmarkov.privacy import paper
from studies.charts import BLUE, GREEN, RED, Curve, curves
from studies.noise import in_parallel
from studies.report import Options, Result, interval, main

if TYPE_CHECKING:
    import altair as alt

Floats = npt.NDArray[np.float64]

SAMPLES = np.round(np.logspace(2, 6, 21)).astype(int)
PAPER = np.array([
    0.357260812935445, 0.283597410268585, 0.240733927848148, 0.11620095693639, 0.116048051407132,
    0.10129874953897, 0.0840040480343751, 0.0610729883673316, 0.0566462304834216,
    0.0445654400174083, 0.0341936125550702, 0.0303518539088299, 0.0246617776461312,
    0.0210017580607945, 0.0159977594755668, 0.0120936308830086, 0.00916190475266702,
    0.00748713219507049, 0.00574071877805488, 0.00480616654902993, 0.00391951970765985,
])  # fmt: skip
"""The points of the paper's figure "Average relative error" (appendix, Computing delta)."""


@dataclass(frozen=True)
class Setting:
    """One delta of the paper: a row of n categories with floor eta, released at strength k."""

    name: str
    k: float
    categories: int
    eta: float
    gamma: float

    @cached_property
    def exact(self) -> float:
        """The certified integral."""
        return self.delta(method="exact")

    def delta(self, **how: Any) -> float:
        """Compute delta in one of the three ways."""
        return paper.delta(
            k=self.k, categories=self.categories, eta=self.eta, gamma=self.gamma, **how
        )


def settings() -> tuple[Setting, ...]:
    """Give the setting that the figure implies, the paper's grades, and a row of its city."""
    city = 11 / 16_000
    return (
        Setting("as the figure implies", 20.6, 5, 0.073, _threshold(implied_delta())),
        Setting("grades (section 5.1)", 20.6, 5, 0.073, 0.0004),
        Setting("a city's row (section 5.2)", 1.5 / city, 40, city, 1e-8),
    )


def implied_delta() -> float:
    """Fit the delta behind the paper's figure: the error of M samples tells it.

    By the normal approximation E|error| is ``sqrt(2 (1 - delta) / (pi delta M))``.
    """
    ratio = np.exp(np.mean(np.log(PAPER**2 * SAMPLES * np.pi / 2)))
    return float(1 / (1 + ratio))


def _threshold(delta: float) -> float:
    """Find the gamma at which the paper's grades have a delta."""
    from scipy.optimize import brentq

    def excess(gamma: float) -> float:
        return Setting("", 20.6, 5, 0.073, gamma).exact - delta

    return float(brentq(excess, 1e-5, 0.05, xtol=1e-12))


def expected_error(delta: float, samples: npt.NDArray[np.int64]) -> Floats:
    """Give the exact expected relative error of Monte Carlo (De Moivre, 1730).

    The number of hits is Binomial(M, delta), whose mean absolute deviation is
    ``2 (1 - delta)^(M - m) delta^(m + 1) (m + 1) binom(M, m + 1)`` with ``m = floor(M delta)``.
    """
    from scipy.stats import binom

    m = np.floor(samples * delta)
    deviation = 2 * (m + 1) * (1 - delta) * binom.pmf(m + 1, samples, delta)
    return np.asarray(deviation / (samples * delta))


def simulated_error(setting: Setting, samples: int, repeats: int) -> dpm.planning.Estimate:
    """Estimate delta again and again as the paper does, and average the relative error."""

    def once(repeat: int) -> float:
        rng = np.random.default_rng([61, samples, repeat])
        found = setting.delta(method="monte-carlo", samples=samples, rng=rng)
        return abs(found / setting.exact - 1)

    what = f"{setting.name}, {samples:,} samples"
    return dpm.planning.Estimate.of(np.array(in_parallel(once, range(repeats), what)))


def timed(setting: Setting) -> dict[str, float]:
    """Time the three ways, and say how far off each is."""
    bound, exact = setting.delta(method="bound"), setting.exact
    return {
        "exact": exact,
        "bound": bound,
        "excess of the bound": bound / exact - 1,
        "seconds exact": _seconds(lambda: setting.delta(method="exact")),
        "seconds bound": _seconds(lambda: setting.delta(method="bound")),
        "seconds for 100,000 samples": _seconds(
            lambda: setting.delta(
                method="monte-carlo", samples=100_000, rng=np.random.default_rng(62)
            ),
            turns=2,
        ),
    }


def _seconds(work: Any, turns: int = 7) -> float:
    taken = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def study(options: Options) -> Result:
    """Repeat the appendix figure, beside what makes it needless."""
    chosen, each = settings(), []
    most, repeats = (20_000, 20) if options.fast else (SAMPLES[-1], 40)
    for setting in chosen:
        hit = setting.exact * SAMPLES >= 0.1  # with fewer no repeat is likely to see a hit
        samples = SAMPLES[hit & (most >= SAMPLES)]
        simulated = [simulated_error(setting, int(M), repeats) for M in samples]
        each.append(
            {"setting": setting.name, "samples": samples, "simulated": simulated,
             "exact": expected_error(setting.exact, SAMPLES), **_about(setting)}
        )  # fmt: skip
    times = [timed(setting) for setting in chosen]
    return Result(
        name="monte_carlo_delta",
        title='Monte Carlo delta (appendix "Computing delta")',
        asks="How many samples does the paper's delta need, and what do the exact integral and "
        "the closed bound cost instead?",
        tables=(_errors_table(each), _times_table(chosen, times)),
        notes=_notes(chosen, times),
        charts={"monte_carlo_delta": _chart(each)},
        figures={"all samples": SAMPLES, "paper": PAPER, "settings": each, "times": times},
    )


def _about(setting: Setting) -> dict[str, float]:
    names = ("k", "categories", "eta", "gamma", "exact")
    return {("delta" if x == "exact" else x): getattr(setting, x) for x in names}


# -- how it is told ------------------------------------------------------------------------------


def _errors_table(each: list[dict[str, Any]]) -> Table:
    rows = []
    for M in (100, 10_000, 1_000_000):
        at = int(np.argmin(abs(SAMPLES - M)))
        cells = [f"{M:,}", number(PAPER[at])]
        for found in each:
            simulated = dict(zip(found["samples"], found["simulated"], strict=True))
            cells.append(interval(simulated[M]) if M in simulated else "-")
            cells.append(number(found["exact"][at]))
        rows.append(tuple(cells))
    pairs = [
        (f"{x['setting']}: replicated", f"exact (delta = {number(x['delta'], 2)})") for x in each
    ]
    headers = ("samples", "paper", *(name for pair in pairs for name in pair))
    return Table("Expected relative error of the Monte Carlo estimate", headers, rows)


def _times_table(chosen: tuple[Setting, ...], times: list[dict[str, float]]) -> Table:
    rows = [
        (
            setting.name,
            f"{setting.categories}",
            number(x["exact"], 4),
            f"{number(x['seconds exact'] * 1e3, 2)} ms, at most 1e-6 above",
            f"{number(x['seconds bound'] * 1e3, 2)} ms, {x['excess of the bound']:.1e} above",
            f"{number(x['seconds for 100,000 samples'] * 1e3, 2)} ms, "
            f"{expected_error(x['exact'], np.array([100_000]))[0]:.1%} either side",
        )
        for setting, x in zip(chosen, times, strict=True)
    ]
    headers = (
        "setting", "categories", "delta", "exact integral", "closed bound", "100,000 samples",
    )  # fmt: skip
    return Table("Time and relative error of the three ways", headers, rows)


def _notes(chosen: tuple[Setting, ...], times: list[dict[str, float]]) -> tuple[str, ...]:
    million = np.array([1_000_000])
    grades, city = (expected_error(s.exact, million)[0] for s in chosen[1:])
    return (
        "Not stated in the paper: the setting of its figure. Its curve follows "
        "sqrt(2 (1 - delta) / (pi delta M)), as any such estimate does, with delta = "
        f"{number(chosen[0].exact, 2)}; the figure is reproduced with that delta (the grades' k "
        f"and eta with gamma = {number(chosen[0].gamma, 2)} instead of 0.0004).",
        "Not reproduced: less than 1% error with a million samples in the paper's own "
        f"experiments. Their deltas are smaller than the figure's: {grades:.1%} at the grades' "
        f"{number(chosen[1].exact, 2)}, and {city:.0%} at the city's {number(chosen[2].exact, 1)}.",
        "An estimate falls on either side of the truth, so it is no guarantee. The integral and "
        "the bound are never below it, and take milliseconds. Neither is needed for a release: the "
        "exact profile has no gamma and no such delta.",
    )


def _chart(each: list[dict[str, Any]]) -> alt.TopLevelMixin:
    import altair as alt

    shown = []
    places = ((RED, 16, -10, 18), (GREEN, 12, 10, -14), (BLUE, 8, 10, -22))
    for found, (colour, at, dx, dy) in zip(each, places, strict=True):
        name = f"{found['setting']}: δ = {number(found['delta'], 2)}"
        side: Literal["left", "right"] = "left" if dx > 0 else "right"
        shown.append(Curve(name, SAMPLES, found["exact"], colour, at=at, dx=dx, dy=dy, align=side))
        means = [x.mean for x in found["simulated"]]
        shown.append(Curve("", found["samples"], means, colour, points=True))
    shown.append(
        Curve("the paper's figure", SAMPLES, PAPER, "black", dashed=True, at=9, dx=-12, dy=18,
              align="right")
    )  # fmt: skip
    return curves(
        shown,
        title="A Monte Carlo δ is the less certain the smaller it is",
        subtitle="lines: exact expectation; circles: averages of repeated estimates "
        "(where hits are not too rare to average)",
        x={"title": "number of samples M", "scale": alt.Scale(type="log", domain=[80, 1.3e6]),
           "axis": alt.Axis(format="~s", values=[10**i for i in range(2, 7)])},
        y={"title": "expected relative error of δ", "scale": alt.Scale(type="log"),
           "axis": alt.Axis(format="~%", values=[0.001, 0.01, 0.1, 1, 10])},
        width=640,
        height=380,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(study))
