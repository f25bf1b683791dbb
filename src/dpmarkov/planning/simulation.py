"""Many releases at once from an ordinary generator: to study errors, never to publish.

The post-processing is that of a release: counts or rows are estimated, and rows are projected to
positive ones, with the same floor for every mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmarkov.mechanisms.projection import project
from dpmarkov.noise import Dirichlet, Geometric

if TYPE_CHECKING:
    from dpmarkov.planning.noise import Setting
    from dpmarkov.states import StateSpace

__all__ = ["Truth", "errors_of", "simulated_errors"]

Floats = npt.NDArray[np.float64]

# Stationary distributions of a stack of dense chains, one for each draw and mechanism.
_MOST_STATES = 1500
_CHUNK_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class Truth:
    """What releases are held against.

    Parameters
    ----------
    space : StateSpace
        The declared states.
    cells : array of float
        Counts, or expected counts.
    """

    space: StateSpace
    cells: Floats

    @cached_property
    def totals(self) -> Floats:
        """How many transitions leave each origin."""
        return self.space.row_sums(self.cells)

    @cached_property
    def rows(self) -> Floats:
        """Probabilities aligned with the support; rows that nobody leaves are zero."""
        return np.asarray(self.cells / self.space.spread(np.maximum(self.totals, 1e-300)))

    @cached_property
    def has_long_run(self) -> bool:
        """Whether the counts themselves make a chain with one stationary distribution."""
        from dpmarkov.chain.structure import closed_classes

        return bool(self.totals.all()) and len(closed_classes(self._dense(self.rows))) == 1

    @cached_property
    def chain_rows(self) -> Floats:
        """Rows for the long run: the counts' own, or at the floor where these have none."""
        return self.rows if self.has_long_run else project(self.cells, self.totals, self.space)[0]

    @cached_property
    def stationary(self) -> Floats:
        """The stationary distribution of the truth."""
        from dpmarkov.chain import stationary_distribution

        return np.asarray(stationary_distribution(self._dense(self.chain_rows)))

    @cached_property
    def ergodicity(self) -> float:
        """The ergodicity coefficient of the truth, in the infinity norm."""
        return float(_ergodicity(self._dense(self.chain_rows)[None])[0])

    def _dense(self, rows: Floats) -> Floats:
        return np.asarray(self.space.to_dense(rows))


def simulated_errors(
    setting: Setting, truth: Truth, *, draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Simulate releases and measure how far off each is.

    Parameters
    ----------
    setting : Setting
        The calibrated mechanism.
    truth : Truth
        What is released.
    draws : int
        How many releases.
    rng : numpy.random.Generator
        Where the chance comes from.

    Returns
    -------
    dict of str to array of float
        For each measure one error a draw.
    """
    chunk = max(1, _CHUNK_CELLS // truth.space.n_cells)
    sizes = [min(chunk, draws - done) for done in range(0, draws, chunk)]
    parts = [errors_of(_releases(setting, truth, size, rng), truth) for size in sizes]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _releases(setting: Setting, truth: Truth, draws: int, rng: np.random.Generator) -> Floats:
    space, N = truth.space, truth.totals
    shape = (draws, space.n_cells)
    if isinstance(setting.law, Dirichlet):
        estimates, rows = _dirichlet(setting, truth, rng.gamma, shape)
        if not setting.debias:
            return rows
    elif isinstance(setting.law, Geometric):
        p = -np.expm1(-1 / setting.law.scale)
        estimates = truth.cells + rng.geometric(p, shape) - rng.geometric(p, shape)
    else:
        estimates = truth.cells + rng.normal(0.0, setting.law.scale, shape)
    known = setting.unit == "destination"
    return np.array([project(x, N if known else space.row_sums(x), space)[0] for x in estimates])


def _dirichlet(
    setting: Setting, truth: Truth, gamma: Any, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Draw Dirichlet rows, and the counts estimated from them."""
    space, N, m, r = truth.space, truth.totals, setting.prior, setting.parameter
    G = np.maximum(gamma(r * (truth.cells + m), size=shape), np.finfo(np.float64).tiny)
    rows = G / np.array([space.spread(space.row_sums(g)) for g in G])
    if setting.unit == "destination":
        return rows * space.spread(N + m * space.row_sizes) - m, rows
    return G / r - m, rows


def errors_of(released: Floats, truth: Truth) -> dict[str, Floats]:
    """Measure how far off released rows are.

    Parameters
    ----------
    released : array of float
        One release a row, its probabilities aligned with the support.
    truth : Truth
        What was released.

    Returns
    -------
    dict of str to array of float
        For each measure one error a release.
    """
    space, C = truth.space, truth.rows
    weights = space.spread(truth.totals / truth.totals.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise = np.where(C > 0, C * np.log(C / released), 0.0)
    errors = {
        "row_tv": np.abs(released - C) @ weights / 2,
        "row_kl": surprise @ weights,
    }
    if space.kind != "square" or space.shape[0] > _MOST_STATES:
        return errors
    from dpmarkov.chain import stationary_distribution

    P = np.array([space.to_dense(rows) for rows in released])
    pi = stationary_distribution(P)
    return errors | {
        "stationary_tv": np.abs(pi - truth.stationary).sum(axis=1) / 2,
        "ergodicity": np.abs(_ergodicity(P) - truth.ergodicity),
    }


def _ergodicity(P: Floats) -> Floats:
    """tau_inf (Definition 7) of a stack of chains: halves of each sorted column apart."""
    half = P.shape[1] // 2
    ascending = np.sort(P, axis=1)
    apart = ascending[:, P.shape[1] - half :].sum(axis=1) - ascending[:, :half].sum(axis=1)
    return np.asarray(apart.max(axis=1))
