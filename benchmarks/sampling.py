"""Time a certified gamma variate against SciPy's inverse and numpy's unprotected sampler.

Run ``python benchmarks/sampling.py [cells]``. The three are timed in turn in each round, on one
core, and the least processor time of the rounds is reported. ``gammaincinv`` gets its uniforms
from a fast generator and certifies nothing (below shapes of about 0.03 much of what it and numpy
return is an underflowed 0); ``undecided`` is the share of cells that needed interval arithmetic.
"""

from __future__ import annotations

import sys
import tracemalloc
from time import process_time
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaincinv

from dpmarkov.mechanisms import sampling

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES = [1e-9, 1e-4, 1e-2, 0.5, 1.0, 3.7, 100.0, 1e5, 1e9, 1e15]
ROUNDS = 3


def seconds(run: Callable[[], object]) -> float:
    start = process_time()
    run()
    return process_time() - start


def undecided_share(shapes: np.ndarray) -> float:
    undecided = []
    original = sampling._refined

    def counting(trial, cells, words):  # type: ignore[no-untyped-def]
        undecided.append(cells.size)
        return original(trial, cells, words)

    sampling._refined = counting
    try:
        sampling.log_gamma(shapes)
    finally:
        sampling._refined = original
    return sum(undecided) / shapes.size


def compare(shape: float, cells: int) -> str:
    rng = np.random.default_rng()
    shapes = np.full(cells, shape)
    fewer = shapes[: max(1, cells // 10)]  # the slowest of the three
    times = np.array(
        [
            (
                seconds(lambda: sampling.log_gamma(shapes)) / cells,
                seconds(lambda: gammaincinv(fewer, rng.random(fewer.size))) / fewer.size,
                seconds(lambda: rng.standard_gamma(shapes)) / cells,
            )
            for _ in range(ROUNDS)
        ]
    )
    ours, inverse, numpys = times.min(axis=0) * 1e6
    return (
        f"{shape:8.0e} {ours:12.3f} {inverse:12.3f} {numpys:12.3f} {inverse / ours:14.2f}"
        f" {ours / numpys:12.2f} {undecided_share(shapes):12.2e}"
    )


def working_memory(cells: int) -> float:
    """Return the peak, in MB, beyond the input and the output."""
    shapes = np.full(cells, 3.7)
    tracemalloc.start()
    sampling.log_gamma(shapes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - shapes.nbytes) / 1e6


def main(cells: int) -> None:
    print(f"{cells:,} cells, microseconds of processor time a cell, best of {ROUNDS}")
    print(
        f"{'shape':>8} {'certified':>12} {'gammaincinv':>12} {'numpy':>12}"
        f" {'inverse/ours':>14} {'ours/numpy':>12} {'undecided':>12}"
    )
    sampling.log_gamma(np.full(10_000, 0.5))  # imports flint
    for shape in SHAPES:
        print(compare(shape, cells))
    few = np.full(63, 3.7)
    row = min(seconds(lambda: sampling.log_gamma(few)) for _ in range(200)) * 1e6
    print(f"a row of 63 cells: {row:.0f} microseconds")
    print(f"working memory beyond input and output: {working_memory(cells):.1f} MB")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000)
