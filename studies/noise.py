"""Simulated privatizations: Dirichlet rows by the million, on every core, from fixed seeds.

An ordinary generator is right here, where errors are measured and nothing is published; a release
takes `dpmarkov.release`, whose noise is certified and has no seed. The stream of a task depends on
its seed alone, not on which core ran it: the figures are the same on every machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dpmarkov.chain import stationary_distribution
from studies.report import progress

__all__ = ["dirichlet_rows", "in_parallel", "stationary_errors"]

Floats = npt.NDArray[np.float64]
Seed = Sequence[int]
R = TypeVar("R")

_CHUNK_CELLS = 400_000  # a stack of chains that stays in a core's cache


def dirichlet_rows(shapes: npt.ArrayLike, draws: int, rng: np.random.Generator) -> Floats:
    """Draw Dirichlet rows; a shape of 0 is a transition that is not there.

    Parameters
    ----------
    shapes : array of shape (..., n)
        The parameters k C of each row.
    draws : int
        How many privatizations.
    rng : numpy.random.Generator
        Where the chance comes from.

    Returns
    -------
    array of shape (draws, ..., n)
    """
    shapes = np.asarray(shapes, dtype=np.float64)
    G = rng.standard_gamma(shapes, size=(draws, *shapes.shape))
    G /= G.sum(axis=-1, keepdims=True)
    return G


def stationary_errors(
    shapes: Sequence[Floats], truth: Floats, *, draws: int, seed: int, what: str
) -> Floats:
    """Privatize a chain many times at several strengths, and solve every private chain.

    Parameters
    ----------
    shapes : sequence of arrays of shape (n, n)
        The parameters k_i C_ij, for one strength of privacy each.
    truth : array of shape (n,)
        The stationary distribution without privacy.
    draws : int
        How many privatizations at each strength.
    seed : int
        Of the simulated noise.
    what : str
        What is shown while it runs.

    Returns
    -------
    array of shape (strengths, draws)
        Total variation distances of the stationary distributions from the truth.
    """
    size = min(draws, max(1, _CHUNK_CELLS // truth.size**2))
    starts = range(0, draws, size)
    tasks = [(s, start) for s in range(len(shapes)) for start in starts]

    def errors(task: tuple[int, int]) -> Floats:
        strength, start = task
        rng = np.random.default_rng([seed, strength, start])
        chains = dirichlet_rows(shapes[strength], min(size, draws - start), rng)
        return np.asarray(np.abs(stationary_distribution(chains) - truth).sum(axis=1) / 2)

    parts = in_parallel(errors, tasks, what)
    return np.concatenate(parts).reshape(len(shapes), draws)


def in_parallel(function: Callable[..., R], tasks: Sequence[object], what: str) -> list[R]:
    """Apply a function to every task on all cores: NumPy lets go of the interpreter meanwhile."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(progress(pool.map(function, tasks), what, total=len(tasks)))
