"""What a release costs: time and peak memory, beside the same shapes drawn with plain NumPy.

    python benchmarks/release.py            # all; or: import, chain, sparse, large

Each case runs in a process of its own, so that its peak memory is its own, and an import finds
nothing imported before it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np

CASES = {
    "import": "import dpmarkov beside import numpy",
    "chain": "63 states, complete (3,969 cells)",
    "sparse": "100,000 states, 1,000,000 edges",
    "large": "1,000,000 states, 10,000,000 edges (counts and release)",
}


def counts_of(case: str):
    import dpmarkov as dpm

    rng = np.random.default_rng(1)
    if case == "chain":
        space = dpm.StateSpace(range(63))
    else:
        from scipy.sparse import coo_array

        n, degree = (100_000, 10) if case == "sparse" else (1_000_000, 10)
        # distinct destinations in every row: a random start, then steps of a random size
        start, step = rng.integers(0, n, n), rng.integers(1, n // degree, n)
        columns = (start[:, None] + np.arange(degree) * step[:, None]) % n
        rows = np.repeat(np.arange(n), degree)
        edges = coo_array((np.ones(rows.size, bool), (rows, columns.ravel())), shape=(n, n))
        space = dpm.StateSpace(range(n), support=edges)
    return dpm.TransitionCounts(space, rng.geometric(0.02, space.n_cells))


def timed(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def imports() -> None:
    """Compare whole interpreters, the fastest of several starts each."""
    codes = {"dpmarkov": "import dpmarkov", "numpy": "import numpy", "nothing": "pass"}
    starts = dict.fromkeys(codes, float("inf"))
    for _ in range(10):
        for name, code in codes.items():
            command = [sys.executable, "-c", code]
            starts[name] = min(starts[name], timed(lambda c=command: subprocess.run(c))[0])
    extra = {name: 1e3 * (start - starts["nothing"]) for name, start in starts.items()}
    print(f"{CASES['import']}: {extra['dpmarkov']:.1f} ms and {extra['numpy']:.1f} ms")


def run(case: str) -> None:
    if case == "import":
        imports()
        return
    import dpmarkov as dpm

    counts = counts_of(case)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    target = {"epsilon": 1.0, "delta": 1e-6}
    print(CASES[case])
    for unit in ("destination", "transition"):
        first, out = timed(lambda unit=unit: dpm.release(counts, **target, unit=unit))
        again, _ = timed(lambda unit=unit: dpm.release(counts, **target, unit=unit))
        shapes = out.guarantee.noise.rate * (counts.cells + out.prior)
        plain, _ = timed(lambda s=shapes: np.random.default_rng().standard_gamma(s))
        print(
            f"  {unit:12} first {first:6.2f} s, again {again:6.2f} s; "
            f"{again / plain:5.1f} times NumPy's gamma draws alone ({plain:.3f} s)"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak memory {peak:.0f} MiB, of which {before:.0f} before the release")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1])
    else:
        for case in CASES:
            subprocess.run([sys.executable, __file__, case], check=True)
