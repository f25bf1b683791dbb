"""A plan: what a budget buys, before any of it is spent.

From public numbers only (`dpmarkov.planning.shape`): whether the target can be met, with which
noise, and how far off the release will be; the same over a range of epsilon; and what merging
states would buy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from dpmarkov import privacy
from dpmarkov.errors import InfeasibleError
from dpmarkov.guarantee import check_share
from dpmarkov.planning.noise import Setting, advice, calibrated
from dpmarkov.planning.prediction import Prediction, predict
from dpmarkov.planning.shape import (
    Shape,
    check_connected,
    public_bounds,
    public_shape,
    spent_before,
)
from dpmarkov.planning.text import Table, number
from dpmarkov.privacy.pure_share import remaining

if TYPE_CHECKING:
    import numpy.typing as npt

    from dpmarkov.noise import Mechanism
    from dpmarkov.privacy.units import Unit, UserBounds

__all__ = ["Plan", "plan"]

_EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
_FEWEST_STATES = 4
_TRADE = (
    "Bounds: noise grows with the square root of the cells that a user may have, and in proportion "
    "to the transitions in each; what users did beyond is dropped, whatever the budget. So widen a "
    "bound while dropping would cost more than the noise. Which users are cut is not known here: "
    "count with max_cells='auto' to choose from a share of the budget."
)
_BOUNDS = ("cells per user", "per cell")
_CASES = ("epsilon", "states", *_BOUNDS)  # columns that say nothing where they stay the same
_MOST_CELLS = 2_000_000  # of a line of the table, which is not worth waiting for


@dataclass(frozen=True)
class Plan:
    """What a budget buys.

    Parameters
    ----------
    unit, epsilon, delta
        The target.
    mechanism : str
        The noise.
    states : str
        What was declared, in words.
    assumptions : tuple of str
        Where the numbers come from.
    feasible : bool
        Whether the target can be met.
    why : str
        Why not, and the ways out; or what the target needs.
    minimum_mass : float or None
        The mass that the Dirichlet mechanism must have in every feasible transition.
    prediction : Prediction or None
        What to expect.
    by_epsilon : tuple of Prediction
        The same for other budgets, where they are feasible.
    by_states : tuple of Prediction
        The same after merging states evenly (square spaces).
    by_bounds : tuple of Prediction
        The same for other bounds of a user (unit `user`).
    advice : str or None
        Which other mechanism is predicted to be clearly better.
    """

    unit: Unit
    epsilon: float
    delta: float
    mechanism: Mechanism
    states: str
    assumptions: tuple[str, ...]
    feasible: bool
    why: str
    minimum_mass: float | None
    prediction: Prediction | None
    by_epsilon: tuple[Prediction, ...]
    by_states: tuple[Prediction, ...]
    by_bounds: tuple[Prediction, ...]
    advice: str | None

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        return asdict(self)

    def summary(self) -> str:
        """Say what the plan is, without its tables."""
        promise = f"({self.epsilon:g}, {self.delta:g}) at the unit {self.unit!r}"
        lines = [
            f"Plan for {self.states}: {promise}, mechanism {self.mechanism!r}.",
            f"Feasible: {'yes' if self.feasible else 'NO'}. {self.why}",
        ]
        if self.prediction is not None:
            lines += [_in_words(self.prediction, self.mechanism)]
        if self.by_bounds:
            lines += [_TRADE]
        if self.advice:
            lines += [f"Advice: {self.advice}."]
        lines += [f"Assumed: {'; '.join(self.assumptions)}. No sensitive number was used."]
        return "\n".join(fill(line, 88, subsequent_indent="  ") for line in lines)

    def tables(self) -> list[Table]:
        """Give the predictions over epsilon and over the number of states."""
        chosen = [
            (lines, title)
            for lines, title in (
                (self.by_epsilon, "What other budgets would buy:"),
                (self.by_states, "What merging states evenly would buy:"),
                (self.by_bounds, "What other bounds of a user would cost in noise:"),
            )
            if len(lines) > 1
        ]
        return [_table(title, lines, self.mechanism) for lines, title in chosen]

    def __str__(self) -> str:
        return "\n\n".join([self.summary(), *map(str, self.tables())])


def plan(
    counts_or_row_totals: Any,
    *,
    epsilon: float,
    delta: float,
    unit: Unit,
    mechanism: Mechanism = "dirichlet",
    prior: float | Literal["auto"] = "auto",
    debias: bool = True,
    assume_floor: float | None = None,
    expected_total: float | None = None,
    row_totals: npt.ArrayLike | None = None,
    matrix: Any = None,
    epsilons: Sequence[float] = _EPSILONS,
    max_cells: int | None = None,
    max_per_cell: int | None = None,
) -> Plan:
    """Plan a release from public numbers only.

    Parameters
    ----------
    counts_or_row_totals : TransitionCounts, StateSpace or array
        Of counts only the declared space is read, and under `destination` the row totals, which
        that unit leaves public. An array holds public row totals of a complete chain.
    epsilon, delta : float
        The target. What counts have spent of epsilon before is taken off first.
    unit : {"destination", "transition", "user"}
        What the release shall hide.
    mechanism, prior, debias, assume_floor
        As for `dpmarkov.release`.
    expected_total, row_totals : optional
        A public guess of the number of transitions, in all or of each origin, where the true ones
        are private. Without one the plan tells feasibility and noise, but no errors.
    matrix : array, sparse matrix or MarkovChain, optional
        A public guess of the transition probabilities; without it rows are taken to be even.
    epsilons : sequence of float
        Other budgets for the table.
    max_cells, max_per_cell : int, optional
        For the unit `user`: what every user is cut down to before counting. Those of counts are
        taken from them.

    Returns
    -------
    Plan
        Also where the target is infeasible: it says why, and what would do.

    Raises
    ------
    DpmarkovError
        If an argument is out of range, or the support is not strongly connected.

    Examples
    --------
    >>> from dpmarkov.states import StateSpace
    >>> space = StateSpace(range(63))
    >>> p = plan(space, epsilon=1.0, delta=1e-6, unit="transition", expected_total=3_000_000)
    >>> p.feasible, round(p.prediction.row_tv, 4), round(p.prediction.stationary_tv, 5)
    (True, 0.0023, 0.00029)
    """
    shape = public_shape(
        counts_or_row_totals, unit=unit, expected_total=expected_total, row_totals=row_totals,
        matrix=matrix,
    )  # fmt: skip
    check_connected(shape.space)
    bounds = public_bounds(counts_or_row_totals, unit, max_cells, max_per_cell)
    spent = spent_before(counts_or_row_totals)
    check_share(unit, epsilon, spent)
    options = _Options(unit, delta, mechanism, prior, debias, assume_floor, bounds, spent)
    target = {"epsilon": remaining(epsilon, spent), "delta": delta}
    setting, why = options.tried(shape, epsilon)
    needed = None
    if mechanism == "dirichlet":
        needed = privacy.minimum_mass(unit, **target, **bounds)
    return Plan(
        unit=unit,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        states=repr(shape.space)[len("StateSpace(") : -1],
        assumptions=shape.assumptions,
        feasible=setting is not None,
        why=why or _need(needed),
        minimum_mass=needed,
        prediction=next(iter(options.predicted([(shape, epsilon)])), None),
        by_epsilon=options.over_epsilon(shape, sorted({*epsilons, epsilon})),
        by_states=options.over_states(shape, epsilon),
        by_bounds=options.over_bounds(shape, epsilon),
        advice=None if setting is None else advice(setting, mean_cell=shape.mean_cell, **target),
    )


@dataclass(frozen=True)
class _Options:
    """What stays the same over the lines of a table."""

    unit: Unit
    delta: float
    mechanism: Mechanism
    prior: float | Literal["auto"]
    debias: bool
    assume_floor: float | None
    bounds: UserBounds
    spent: float

    def tried(self, shape: Shape, epsilon: float) -> tuple[Setting | None, str]:
        """Give the calibrated mechanism, or why there is none."""
        try:
            return calibrated(
                self.mechanism, shape, unit=self.unit, epsilon=remaining(epsilon, self.spent),
                delta=self.delta, prior=self.prior, debias=self.debias,
                assume_floor=self.assume_floor, **self.bounds,
            ), ""  # fmt: skip
        except InfeasibleError as error:
            return None, f"{str(error)[0].upper()}{str(error)[1:]}."

    def predicted(self, cases: Iterable[tuple[Shape, float]]) -> tuple[Prediction, ...]:
        """Predict for several shapes and budgets, and leave out the infeasible ones."""
        tried = ((shape, epsilon, self.tried(shape, epsilon)[0]) for shape, epsilon in cases)
        return tuple(
            predict(setting, shape, epsilon=epsilon, delta=self.delta)
            for shape, epsilon, setting in tried
            if setting is not None
        )

    def over_epsilon(self, shape: Shape, epsilons: Iterable[float]) -> tuple[Prediction, ...]:
        enough = (x for x in epsilons if x > self.spent or not self.spent)
        return self.predicted((shape, epsilon) for epsilon in enough)

    def over_states(self, shape: Shape, epsilon: float) -> tuple[Prediction, ...]:
        """Halve the number of states again and again, all rows even.

        Not for users: merging counts widens their bounds, by how much depends on the groups.
        """
        n = shape.space.shape[0]
        if shape.space.kind != "square" or shape.total is None or self.bounds:
            return ()
        sizes = [n]
        while sizes[-1] // 2 >= _FEWEST_STATES:
            sizes.append(sizes[-1] // 2)
        width = int(shape.space.row_sizes.max())
        quick = (size for size in sizes if size * min(size, width) <= _MOST_CELLS)
        return self.predicted((shape.merged(size), epsilon) for size in quick)

    def over_bounds(self, shape: Shape, epsilon: float) -> tuple[Prediction, ...]:
        """Double and halve what a user may contribute, in cells and in each of them."""
        cells, per_cell = self.bounds.get("max_cells"), self.bounds.get("max_per_cell")
        if cells is None or per_cell is None:
            return ()
        others = [(cells, per_cell), (2 * cells, per_cell), (cells, 2 * per_cell)]
        others += [(max(cells // 2, 1), per_cell), (cells, max(per_cell // 2, 1))]
        changed = (
            replace(self, bounds={"max_cells": a, "max_per_cell": b})
            for a, b in sorted({*others})
            if a <= shape.space.n_cells
        )
        return tuple(line for options in changed for line in options.predicted([(shape, epsilon)]))


def _need(needed: float | None) -> str:
    if needed is None:
        return "Noise on counts meets any target."
    return (
        f"Every feasible transition needs a mass above {needed:.4g}, which the prior or the "
        "asserted floor provides."
    )


def _in_words(expected: Prediction, mechanism: Mechanism) -> str:
    noise = (
        f"rate {expected.parameter:.4g}"
        if mechanism == "dirichlet"
        else (f"scale {expected.parameter:.4g}")
    )
    prior = f", prior {expected.prior:g} pseudo-counts" if expected.prior else ""
    start = f"Noise: {noise}{prior}; standard deviation {number(expected.noise)} on a count"
    if expected.mean_cell is None:
        return f"{start}. Give an expected total for predicted errors."
    errors = [
        f"row total variation {number(expected.row_tv)}",
        f"row KL divergence {number(expected.row_kl)}",
        f"stationary distribution, total variation {number(expected.stationary_tv)}",
        f"ergodicity coefficient at most {number(expected.ergodicity)}",
    ]
    rough = "" if expected.reliable else " (rough: noise is not small beside the counts)"
    told = "; ".join(error for error in errors if not error.endswith(" -"))
    cell = number(expected.mean_cell)
    return f"{start}, of which a cell has {cell}. Expected errors: {told}{rough}."


def _table(title: str, lines: Sequence[Prediction], mechanism: Mechanism) -> Table:
    parameter = "rate" if mechanism == "dirichlet" else "scale"
    columns: dict[str, Callable[[Prediction], str]] = {
        "epsilon": lambda x: f"{x.epsilon:g}",
        "states": lambda x: str(x.states),
        _BOUNDS[0]: lambda x: number(x.max_cells),
        _BOUNDS[1]: lambda x: number(x.max_per_cell),
        "prior": lambda x: number(x.prior or None),
        parameter: lambda x: number(x.parameter),
        "noise sd": lambda x: number(x.noise),
        "cell": lambda x: number(x.mean_cell),
        "row TV": lambda x: number(x.row_tv),
        "row KL": lambda x: number(x.row_kl),
        "stationary TV": lambda x: number(x.stationary_tv),
        "ergodicity <=": lambda x: number(x.ergodicity),
        "": lambda x: "" if x.reliable or x.row_tv is None else "rough",
    }
    told = {name: [show(x) for x in lines] for name, show in columns.items()}
    kept = {
        name: cells
        for name, cells in told.items()
        if set(cells) - {"-", ""} and (name not in _CASES or len(set(cells)) > 1)
    }
    return Table(title, tuple(kept), list(zip(*kept.values(), strict=True)))
