"""Clip or project? Which of the two leaves debiased rows closer to the truth.

    python benchmarks/projection.py

On the counts in ../shared/data where present: airports (sparse rows) and bikes (full rows). Errors
are means over 10 releases: total variation of the stationary distribution, and row total
variation and KL divergence weighted by the rows' sizes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv

import dpmarkov as dpm
from dpmarkov.chain import stationary_distribution
from dpmarkov.mechanisms.projection import project

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REPEATS = 10


def load(name: str) -> dpm.TransitionCounts:
    table = pyarrow.csv.read_csv(DATA / name)
    columns = [table[c].to_pylist() for c in ("source", "target", "count")]
    states = sorted(set(columns[0]) & set(columns[1]))
    known = set(states)
    triples = [t for t in zip(*columns, strict=True) if t[0] in known and t[1] in known]
    return dpm.TransitionCounts.from_triples(triples, dpm.StateSpace(states))


def clip(estimates, totals, space):
    counts = np.maximum(estimates, 0.5)
    return counts / space.spread(space.row_sums(counts)), 0


def errors(counts, rows):
    N, n = counts.row_totals, counts.space.shape[0]
    P, Q = counts.to_dense() / N[:, None], rows.reshape(n, n)
    pi, tilted = (stationary_distribution(x) for x in ((P + 1e-9) / (1 + n * 1e-9), Q))
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.nansum(P * np.log(P / Q), axis=1)
    weights = N / N.sum()
    return 0.5 * abs(tilted - pi).sum(), weights @ (0.5 * abs(Q - P).sum(axis=1)), weights @ kl


def main() -> None:
    print(f"{'data':28}{'epsilon':>8}{'method':>12}{'pi TV':>10}{'row TV':>10}{'row KL':>10}")
    for name in ("us_flights_2008_counts.csv", "citibike_tract_counts.csv"):
        if not (DATA / name).exists():
            print(f"{name} is absent")
            continue
        counts = load(name)
        for epsilon in (1.0, 0.1):
            target = {"epsilon": epsilon, "delta": 1e-6, "unit": "transition"}
            draws = [dpm.release(counts, **target).private_counts for _ in range(REPEATS)]
            for method in (clip, project):
                rows = [method(x, counts.space.row_sums(x), counts.space)[0] for x in draws]
                means = np.mean([errors(counts, x) for x in rows], axis=0)
                print(
                    f"{name:28}{epsilon:8}{method.__name__:>12}"
                    + "".join(f"{e:10.4f}" for e in means)
                )


if __name__ == "__main__":
    main()
