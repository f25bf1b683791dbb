"""Real chains go through every method without a warning (pytest turns any into an error)."""

from __future__ import annotations

import csv
from math import inf

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from dpmarkov.chain import MarkovChain


def taxi_zones(folder):
    table = pq.read_table(folder / "nyc_yellow_360k.parquet")
    origin = np.asarray(table["PULocationID"])
    destination = np.asarray(table["DOLocationID"])
    known = (origin <= 263) & (destination <= 263)
    counts = np.zeros((263, 263))
    np.add.at(counts, (origin[known] - 1, destination[known] - 1), 1)
    return list(range(1, 264)), counts


def edges(path):
    with path.open(newline="") as file:
        rows = [(r["source"], r["target"], float(r["count"])) for r in csv.DictReader(file)]
    labels = sorted({name for source, target, _ in rows for name in (source, target)})
    place = {name: i for i, name in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)))
    for source, target, count in rows:
        counts[place[source], place[target]] += count
    return labels, counts


SOURCES = {
    "263 zones": (263, taxi_zones),
    "119 tracts": (119, lambda folder: edges(folder / "citibike_tract_counts.csv")),
    "305 airports": (305, lambda folder: edges(folder / "us_flights_2008_counts.csv")),
}


@pytest.fixture(scope="module", params=SOURCES.values(), ids=SOURCES.keys())
def chain(request, real_data):
    """Return the largest class of a real chain; a state that is never left stays where it is."""
    n, read = request.param
    labels, counts = read(real_data)
    assert len(labels) == n
    totals = counts.sum(axis=1)
    counts[totals == 0, totals == 0] = 1
    whole = MarkovChain(counts / counts.sum(axis=1, keepdims=True), labels)
    return whole.restrict(max(whole.communicating_classes(), key=len))


@pytest.fixture(params=["dense", "sparse"])
def either(request, chain):
    if request.param == "dense":
        return chain
    return MarkovChain(sparse.csr_array(chain.transition_matrix), chain.labels)


def test_every_method_answers_and_the_answers_fit_together(either):
    n = either.n_states
    assert n >= 119
    assert either.is_irreducible
    assert either.closed_classes() == either.communicating_classes() == (either.labels,)
    assert either.period == 1
    pi = either.stationary_distribution()
    assert either.evolve(pi) == pytest.approx(pi, rel=1e-12)
    assert 0 < either.entropy_rate() < np.log(n)
    slem, tau = either.second_eigenvalue_modulus(), either.ergodicity_coefficient(1)
    assert slem <= tau <= 1
    assert either.ergodicity_coefficient(inf) > 0
    assert either.spectral_gap() == 1 - slem
    assert either.mixing_time(0.01) >= np.log(1 / 0.02) * slem / (1 - slem)
    times = either.mean_first_passage_times()
    without_return = times - np.diag(np.diag(times))
    assert without_return @ pi == pytest.approx(either.kemeny_constant(), rel=1e-11)
    assert either.fundamental_matrix() @ np.ones(n) == pytest.approx(1, abs=1e-8)
    assert either.simulate(10, walkers=100, rng=0).shape == (100, 11)
    lumped = either.lump([i % 7 for i in range(n)])
    assert lumped.stationary_distribution()[0] == pytest.approx(pi[::7].sum(), rel=1e-12)
    assert f"{n} states" in repr(either)
    assert "<table>" in either._repr_html_()
