"""Large sparse chains: each route, what it promises, and where it says that it cannot."""

from __future__ import annotations

import warnings
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from exact import birth_death_stationary, relative_error
from scipy import sparse

from dpmarkov.chain import AccuracyWarning, MarkovChain
from dpmarkov.chain import sparse as routes
from dpmarkov.chain.stationary import stationary_distribution
from dpmarkov.errors import DpmarkovError


def weighted_walk(origin, destination, weight, n):
    """Return the reversible walk along weighted edges, and its stationary distribution."""
    W = sparse.coo_array((weight, (origin, destination)), shape=(n, n)).tocsr()
    W = W + W.T
    degree = W.sum(axis=1)
    return sparse.csr_array(sparse.diags_array(1 / degree) @ W), degree / degree.sum()


def lattice(rng, height, width):
    places = np.arange(height * width).reshape(height, width)
    pairs = [(places[:, :-1], places[:, 1:]), (places[:-1], places[1:])]
    origin, destination = (np.concatenate([p[i].ravel() for p in pairs]) for i in (0, 1))
    return weighted_walk(origin, destination, rng.uniform(0.1, 1, len(origin)), places.size)


def random_graph(rng, n, degree):
    origin = np.repeat(np.arange(n), degree)
    return weighted_walk(
        np.concatenate([origin, np.arange(n)]),
        np.concatenate([rng.integers(0, n, n * degree), np.roll(np.arange(n), 1)]),
        rng.uniform(0.1, 1, n * degree + n),
        n,
    )


def shuffled(rng, P, pi):
    order = rng.permutation(len(pi))
    return sparse.csr_array(P[order][:, order]), pi[order]


def birth_death(rng, n):
    up, down = rng.uniform(0.1, 0.5, n - 1), rng.uniform(0.1, 0.5, n - 1)
    P = sparse.csr_array(sparse.diags_array([up, down], offsets=[1, -1]))
    return sparse.csr_array(P + sparse.diags_array(1 - P.sum(axis=1))), up, down


def test_a_narrow_band_is_exact_to_rounding_in_any_order():
    rng = np.random.default_rng(0)
    P, up, down = birth_death(rng, 4000)
    logs = np.cumsum(np.log(up.astype(np.longdouble) / down.astype(np.longdouble)))
    pi = np.exp(np.concatenate([[0], logs]) - max(logs.max(), 0))
    pi /= pi.sum()
    P, pi = shuffled(rng, P, pi)
    assert pi.min() < 1e-15
    seen = pi > 1e-290
    assert np.abs(routes.sparse_stationary_distribution(P)[seen] / pi[seen] - 1).max() < 1e-13


@pytest.mark.parametrize("block", [1, 2, 5, 32, 100])
def test_blocks_of_any_width_agree_with_exact_fractions(monkeypatch, block):
    monkeypatch.setattr(routes, "DENSE_STATES", 0)
    monkeypatch.setattr(routes, "_BLOCK", block)
    P, up, down = birth_death(np.random.default_rng(1), 61)
    pi = routes.sparse_stationary_distribution(P)
    assert relative_error(pi, birth_death_stationary(up, down)) < 1e-13


def test_clusters_that_hardly_meet_are_exact_to_rounding():
    rng = np.random.default_rng(2)
    size, clusters = 25, 160
    blocks = [rng.dirichlet(np.ones(size), size) for _ in range(clusters)]
    n = size * clusters
    P = sparse.block_diag(blocks, format="lil")
    for c in range(clusters):
        P[c * size, (c + 1) % clusters * size] = 1e-17
    pi = routes.sparse_stationary_distribution(sparse.csr_array(P))
    # Exactly the chain between clusters: the flow out of a cluster is pi of its door times 1e-17.
    within = stationary_distribution(np.stack(blocks))
    mass = 1 / within[:, 0]
    expected = (within * (mass / mass.sum())[:, None]).ravel()
    assert pi.shape == (n,)
    assert np.abs(pi / expected - 1).max() < 1e-13


@pytest.mark.parametrize("route", ["bands", "sparse LU", "Arnoldi"])
def test_each_route_keeps_its_promise_without_a_warning(monkeypatch, route):
    rng = np.random.default_rng(3)
    if route == "Arnoldi":
        P, pi = random_graph(rng, 4000, 4)
    else:
        P, pi = lattice(rng, 50, 80)
    if route != "bands":
        monkeypatch.setattr(routes, "_BAND_ENTRIES", 0)
    P, pi = shuffled(rng, P, pi)
    extended = np.finfo(np.longdouble).eps < 1e-18
    tolerance = {"bands": 1e-13, "sparse LU": 1e-13 if extended else 1e-8, "Arnoldi": 1e-8}[route]
    assert np.abs(routes.sparse_stationary_distribution(P) / pi - 1).max() < tolerance


def two_lattices(flow):
    P, _ = lattice(np.random.default_rng(4), 20, 20)
    two = sparse.block_diag([P, P], format="lil")
    two[0, 400] = two[400, 0] = flow
    return sparse.csr_array(two)


@pytest.mark.parametrize("narrow", [True, False])
def test_a_route_that_cannot_promise_accuracy_says_by_how_much(monkeypatch, narrow):
    monkeypatch.setattr(routes, "DENSE_STATES", 0)
    monkeypatch.setattr(routes, "_BAND_ENTRIES", 0)
    monkeypatch.setattr(routes, "_LU_WIDTH", inf if narrow else 0)
    route = "sparse LU" if narrow else "Arnoldi's method"
    with pytest.warns(AccuracyWarning, match=f"800 states was found by {route}.*no correct digit"):
        routes.sparse_stationary_distribution(two_lattices(1e-15))


@pytest.mark.parametrize("flow", [1e-15, 1e-300])  # Arnoldi's method errs, or finds no answer
def test_what_arnoldi_cannot_promise_a_wide_band_solves_exactly(monkeypatch, flow):
    monkeypatch.setattr(routes, "DENSE_STATES", 0)
    monkeypatch.setattr(routes, "_LU_WIDTH", 0)
    monkeypatch.setattr(routes, "_BAND_WORK", 0)
    monkeypatch.setattr(routes, "_RESTARTS", 300 if flow == 1e-15 else 1)
    P = two_lattices(flow)
    exact = stationary_distribution(P.toarray())
    assert np.abs(routes.sparse_stationary_distribution(P) / exact - 1).max() < 1e-13


def test_without_room_for_a_wide_band_an_answer_that_is_not_found_is_refused(monkeypatch):
    for name, value in {
        "DENSE_STATES": 0,
        "_LU_WIDTH": 0,
        "_BAND_ENTRIES": 0,
        "_RESTARTS": 1,
    }.items():
        monkeypatch.setattr(routes, name, value)
    with pytest.raises(DpmarkovError, match=r"did not converge .* 800 states within 1 restarts"):
        routes.sparse_stationary_distribution(two_lattices(1e-300))


def test_a_gap_that_is_not_found_promises_nothing(monkeypatch):
    def fails(*_, **__):
        raise DpmarkovError("did not converge")

    off = routes._without_diagonal(lattice(np.random.default_rng(4), 20, 20)[0])
    assert routes._by_arnoldi(off)[1] < 1e-8
    monkeypatch.setattr(routes, "second_eigenvalue", fails)
    assert routes._by_arnoldi(off)[1] > 1e-3


def test_a_random_chain_of_wide_band_is_not_eliminated(monkeypatch):
    monkeypatch.delattr(routes, "_by_bands")
    P, pi = random_graph(np.random.default_rng(8), 4000, 4)
    assert np.abs(routes.sparse_stationary_distribution(P) / pi - 1).max() < 1e-12


def test_the_error_that_is_told_bounds_the_error_that_is_made():
    rng = np.random.default_rng(5)
    for coupling in (1e-4, 1e-6, 1e-8, 1e-10):
        P, _ = lattice(rng, 8, 8)
        two = sparse.block_diag([P, P], format="lil")
        two[0, 64], two[64, 0] = coupling, coupling / 3
        off = routes._without_diagonal(sparse.csr_array(two))
        exact = stationary_distribution(off.toarray())
        with warnings.catch_warnings(record=True) as told, pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("always")
            patch.setattr(routes, "_PROMISE", 0.0)
            made = np.abs(routes._by_sparse_lu(off) / exact - 1).max()
        bound = float(str(told[0].message).split("relative ")[1].split(";")[0])
        assert made <= bound


def test_transient_states_of_a_sparse_chain_have_probability_zero():
    n = 4000
    P = sparse.lil_array((n, n))
    P.setdiag(0.5)
    P.setdiag(0.5, 1)
    P[n - 1, n - 2] = 0.5
    P = sparse.csr_array(P)
    for pi in (MarkovChain(P).stationary_distribution(), stationary_distribution(P)):
        assert pi[:-2].max() == 0
        assert pi[-2:] == pytest.approx([0.5, 0.5])


def test_a_sparse_chain_answers_what_a_dense_one_does():
    rng = np.random.default_rng(6)
    P, _ = random_graph(rng, 40, 2)
    thin, dense = MarkovChain(P), MarkovChain(P.toarray())
    assert thin.communicating_classes() == dense.communicating_classes()
    assert thin.period == dense.period
    for ask in (
        lambda chain: chain.stationary_distribution(),
        lambda chain: chain.ergodicity_coefficient(1),
        lambda chain: chain.ergodicity_coefficient(inf),
        lambda chain: chain.spectral_gap(),
        lambda chain: chain.mixing_time(0.01),
        lambda chain: chain.mean_first_passage_times(),
        lambda chain: chain.kemeny_constant(),
        lambda chain: chain.fundamental_matrix(),
        lambda chain: chain.entropy_rate(),
        lambda chain: chain.evolve(3, 7),
        lambda chain: chain.simulate(5, 10, rng=1),
    ):
        assert ask(thin) == pytest.approx(ask(dense), rel=1e-12)


@pytest.fixture(scope="module")
def large():
    P, pi = random_graph(np.random.default_rng(7), 20_000, 4)
    return MarkovChain(P), pi


def test_a_large_sparse_chain_answers_what_needs_no_table(large):
    chain, pi = large
    assert chain.is_irreducible
    assert chain.period == 1
    assert chain.stationary_distribution() == pytest.approx(pi, rel=1e-10)
    assert chain.ergodicity_coefficient(1) == 1
    assert chain.ergodicity_coefficient(inf) > 0
    assert 0 < chain.entropy_rate() < np.log(20_000)
    assert chain.evolve(pi, 3) == pytest.approx(pi, rel=1e-10)
    assert chain.simulate(3, 100, rng=1).shape == (100, 4)
    assert chain.lump([i % 5 for i in range(20_000)]).n_states == 5


@pytest.mark.parametrize(
    "ask",
    [
        lambda chain: chain.mean_first_passage_times(),
        lambda chain: chain.kemeny_constant(),
        lambda chain: chain.fundamental_matrix(),
        lambda chain: chain.mixing_time(0.1),
    ],
)
def test_what_needs_a_table_names_the_limit_and_the_way_out(large, ask):
    with pytest.raises(DpmarkovError, match=r"20,000 x 20,000 .* at most 3,000 .* lump\(groups\)"):
        ask(large[0])


def test_the_second_eigenvalue_of_a_large_cube():
    """Staying, or flipping one of d bits, alike: the eigenvalues are 1 - 2k / (d + 1)."""
    d = 12
    corners = np.arange(2**d)
    P = sparse.eye_array(2**d, format="csr") / (d + 1)
    for bit in range(d):
        P = P + sparse.csr_array((np.full(2**d, 1 / (d + 1)), (corners, corners ^ (1 << bit))))
    assert MarkovChain(P).second_eigenvalue_modulus() == pytest.approx((d - 1) / (d + 1), abs=1e-12)


def test_a_fraction_of_one_third_is_exact_in_the_smallest_sparse_chain():
    P = sparse.csr_array(np.array([[0.5, 0.5], [0.25, 0.75]]))
    assert relative_error(stationary_distribution(P), [Fraction(1, 3), Fraction(2, 3)]) < 1e-15
