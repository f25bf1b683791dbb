"""Stationary distributions side by side: speed and accuracy, in one run with one BLAS thread.

Every method gets the same matrix in the same process, its turns interleaved with those of the
others; the fastest of its turns counts, and times are shown as ratios. Accuracy is the largest
entrywise relative error against an answer that is exact: closed forms, or GTH in longdouble.
Rivals are optional; the first lines say which are absent.

    pip install threadpoolctl quantecon deeptime pydtmc
    pip install --upgrade matplotlib contourpy numpy  # PyDTMC asks for old ones, and NumPy 1
    python benchmarks/chain.py            # all, some minutes
    python benchmarks/chain.py dense      # or: batch, accuracy, sparse, methods
"""

from __future__ import annotations

import signal
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import scipy.linalg  # loads scipy's own BLAS, so that the limit below holds for it too
from scipy import sparse
from threadpoolctl import threadpool_limits

from dpmarkov.chain import AccuracyWarning, MarkovChain, stationary_distribution

Solver = Callable[[Any], Any]
LIMIT = 60  # seconds that a rival may take for one sparse chain
UNSUITED = 12.0  # seconds after which it is not asked about the next larger size


def numpy_solve(P: Any) -> Any:
    A = (np.eye(len(P)) - P).T.copy()
    A[-1] = 1
    return np.linalg.solve(A, np.eye(1, len(P), len(P) - 1)[0])


def quantecon(P: Any) -> Any:
    solve = import_module("quantecon.markov").gth_solve
    return solve(P) if not sparse.issparse(P) else quantecon_chain(P)


def quantecon_chain(P: Any) -> Any:
    return import_module("quantecon").MarkovChain(P).stationary_distributions[0]


def deeptime(P: Any) -> Any:
    analysis = import_module("deeptime.markov.tools.analysis")
    return analysis.stationary_distribution(P, check_inputs=False)


def pydtmc(P: Any) -> Any:
    return import_module("pydtmc").MarkovChain(P).stationary_distributions[0]


def arpack(P: Any) -> Any:
    from scipy.sparse.linalg import eigs

    x = eigs(sparse.csr_array(P.T), k=1, which="LM", v0=np.ones(P.shape[0]))[1][:, 0].real
    return x / x.sum()


def power_iteration(P: Any) -> Any:
    x, T = np.full(P.shape[0], 1 / P.shape[0]), sparse.csr_array(P.T)
    for _ in range(2000):
        before, x = x, T @ x
        if np.abs(x - before).sum() < 1e-12:
            break
    return x


RIVALS: dict[str, tuple[str, Solver]] = {
    "QuantEcon": ("quantecon", quantecon),
    "deeptime": ("deeptime", deeptime),
    "PyDTMC": ("pydtmc", pydtmc),
}


def present() -> dict[str, Solver]:
    found = {}
    for name, (module, solver) in RIVALS.items():
        try:
            import_module(module)
            found[name] = solver
        except ImportError:
            print(f"{name} is absent")
    return found


def within_limit(solve: Solver) -> Solver:
    """Return the solver, stopped when it takes too long."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"stopped after {LIMIT} s")

    def limited(P: Any) -> Any:
        signal.signal(signal.SIGALRM, stop)
        signal.alarm(LIMIT)
        try:
            return solve(P)
        finally:
            signal.alarm(0)

    return limited


def random_chain(rng: np.random.Generator, n: int) -> Any:
    P = rng.random((n, n))
    return P / P.sum(axis=1, keepdims=True)


def measure(solvers: dict[str, Solver], P: Any, turns: int) -> dict[str, tuple[float, Any]]:
    """Return the fastest time and the answer of each, None where it failed."""
    best: dict[str, tuple[float, Any]] = dict.fromkeys(solvers, (np.inf, None))
    for turn in range(turns + 1):  # the first turn compiles and warms up, if there are several
        for name, solve in solvers.items():
            start = time.perf_counter()
            try:
                answer = solve(P)
            except Exception as error:
                answer = f"{type(error).__name__}: {str(error)[:60]}"
            took = time.perf_counter() - start
            if turn or turns == 0:
                best[name] = (min(best[name][0], took), answer)
    return best


def worst(pi: Any, exact: Any) -> str:
    if pi is None or isinstance(pi, str):
        return f"failed ({pi})"
    seen = exact > 1e-290
    with np.errstate(all="ignore"):
        error = np.abs(np.ravel(np.asarray(pi))[seen] / exact[seen] - 1).max()
    return f"{float(error):.1e}"


def dense() -> None:
    print("\nDense random chains: time as a ratio to numpy.linalg.solve")
    solvers = {"numpy": numpy_solve, "dpmarkov": stationary_distribution, **present()}
    for n in (500, 700, 1000, 1500, 2000, 3000):
        names = [k for k in solvers if n <= 1000 or k not in ("PyDTMC", "deeptime")]
        P = random_chain(np.random.default_rng(n), n)
        result = measure({k: solvers[k] for k in names}, P, 9 if n <= 1000 else 3)
        unit = result["numpy"][0]
        cells = "  ".join(f"{k} {t / unit:8.2f}" for k, (t, _) in result.items())
        print(f"n = {n:5d}  ({unit * 1e3:7.1f} ms)  {cells}")


def batch() -> None:
    print("\n1000 chains of 63 states: time per chain")
    chains = np.stack([random_chain(np.random.default_rng(i), 63) for i in range(1000)])
    solvers = {"dpmarkov (stack)": stationary_distribution}
    each = {"numpy.solve": numpy_solve, **present()}
    solvers |= {k: (lambda S, f=f: np.stack([f(P) for P in S[:100]])) for k, f in each.items()}
    result = measure(solvers, chains, 2)
    per_chain = {k: t / (1000 if "stack" in k else 100) for k, (t, _) in result.items()}
    for name, t in per_chain.items():
        print(f"{name:18s} {t * 1e3:8.3f} ms   {t / per_chain['dpmarkov (stack)']:8.2f} x")


def longdouble_gth(P: Any) -> Any:
    A, n = P.astype(np.longdouble), len(P)
    for k in range(n - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        A[:k, :k] += np.outer(A[:k, k], A[k, :k])
    pi = np.ones(n, dtype=np.longdouble)
    for k in range(1, n):
        pi[k] = pi[:k] @ A[:k, k]
    return pi / pi.sum()


def clusters(rng: np.random.Generator, n: int, coupling: float) -> Any:
    P = rng.random((n, n)) * coupling
    for part in np.array_split(np.arange(n), 4):
        P[np.ix_(part, part)] = rng.random((len(part), len(part)))
    return P / P.sum(axis=1, keepdims=True)


def birth_death(down: Any, ratio: float) -> tuple[Any, Any]:
    up = down / ratio
    P = np.diag(up, 1) + np.diag(down, -1)
    P[np.diag_indices_from(P)] = 1 - P.sum(axis=1)
    logs = np.cumsum(np.log(up.astype(np.longdouble) / down))
    pi = np.exp(np.concatenate([[np.longdouble(0)], logs]))
    return P, pi / pi.sum()


def accuracy() -> None:
    print("\nLargest entrywise relative error")
    rng = np.random.default_rng(1)
    cases = {}
    for coupling in (1e-8, 1e-13, 1e-17):
        P = clusters(rng, 200, coupling)
        cases[f"4 clusters, flow {coupling:g}"] = (P, longdouble_gth(P))
    cases["birth-death, pi to 1e-70"] = birth_death(rng.uniform(0.3, 0.5, 70), 10.0)
    P = clusters(rng, 1500, 1e-17)
    cases["1500 states, flow 1e-17"] = (P, longdouble_gth(P))
    solvers = {"numpy": numpy_solve, "dpmarkov": stationary_distribution, "ARPACK": arpack}
    solvers |= present()
    for name, (P, exact) in cases.items():
        result = measure(solvers, P, 0)
        print(f"{name:28s}" + "  ".join(f"{k} {worst(x, exact)}" for k, (_, x) in result.items()))


def reversible(origin: Any, destination: Any, weight: Any, n: int) -> tuple[Any, Any]:
    W = sparse.coo_array((weight, (origin, destination)), shape=(n, n)).tocsr()
    W = sparse.csr_array(W + W.T)
    degree = W.sum(axis=1)
    return sparse.csr_array(sparse.diags_array(1 / degree) @ W), degree / degree.sum()


def lattice(rng: np.random.Generator, side: int) -> tuple[Any, Any]:
    at = np.arange(side * side).reshape(side, side)
    origin = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    destination = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    return reversible(origin, destination, rng.uniform(0.1, 1, len(origin)), side * side)


def random_sparse(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    origin = np.concatenate([np.repeat(np.arange(n), 4), np.arange(n)])
    destination = np.concatenate([rng.integers(0, n, 4 * n), np.roll(np.arange(n), 1)])
    return reversible(origin, destination, rng.uniform(0.1, 1, 5 * n), n)


def sparse_clusters(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Return clusters of 40 on a ring; neighbours meet with weight 1e-12."""
    size = 40
    doors = np.arange(0, n, size)
    origin = np.concatenate([np.repeat(np.arange(n), 4), doors])
    inside = np.repeat(np.arange(n) // size * size, 4) + rng.integers(0, size, 4 * n)
    chain = np.minimum(np.arange(n) + 1, np.arange(n) // size * size + size - 1)
    weight = np.concatenate([rng.uniform(0.1, 1, 4 * n), np.full(len(doors), 1e-12)])
    origin, destination = (
        np.concatenate([origin, np.arange(n)]),
        np.concatenate([inside, np.roll(doors, 1), chain]),
    )
    return reversible(origin, destination, np.concatenate([weight, np.full(n, 0.5)]), n)


def sparse_birth_death(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    weight = np.exp(np.cumsum(rng.choice([-0.1, 0.1], n - 1)) / 10)
    return reversible(np.arange(n - 1), np.arange(1, n), weight, n)


def sparse_chains() -> None:
    print("\nSparse chains: time as a ratio to dpmarkov, and largest entrywise relative error")
    slow: set[str] = set()
    kinds = [sparse_birth_death, lattice, sparse_clusters, random_sparse]
    for kind in kinds:
        for n in (10_000, 100_000, 1_000_000):
            P, exact = kind(np.random.default_rng(n), n if kind is not lattice else round(n**0.5))
            rivals = {"power method": power_iteration, "ARPACK": arpack} | present_sparse()
            solvers = {"dpmarkov": stationary_distribution}
            solvers |= {
                k: within_limit(v) for k, v in rivals.items() if f"{kind.__name__} {k}" not in slow
            }
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                result = measure(solvers, P, 0)
            unit = result["dpmarkov"][0]
            slow |= {f"{kind.__name__} {k}" for k, (t, _) in result.items() if t > UNSUITED}
            slow -= {f"{kind.__name__} dpmarkov"}
            print(f"{kind.__name__:18s} {n:9,d} ({unit:6.2f} s)  ", end="")
            print(
                "  ".join(f"{k} {t / unit:.2f} x {worst(x, exact)}" for k, (t, x) in result.items())
            )
            for warning in told:
                if warning.category is AccuracyWarning:
                    print("    ", warning.message)
            sys.stdout.flush()


def present_sparse() -> dict[str, Solver]:
    """Return the rivals that take sparse matrices and do not make them dense."""
    return {k: v for k, v in present().items() if k == "deeptime"}


def methods() -> None:
    print("\nOther questions at n = 300: time as a ratio to dpmarkov")
    P = random_chain(np.random.default_rng(0), 300)
    ours: dict[str, Callable[[MarkovChain], Any]] = {
        "mean first passage times": lambda c: c.mean_first_passage_times(),
        "Kemeny's constant": lambda c: c.kemeny_constant(),
        "entropy rate": lambda c: c.entropy_rate(),
        "100,000 steps of one walker": lambda c: c.simulate(100_000, start=0, rng=1),
        "100 steps of 1,000 walkers": lambda c: c.simulate(100, 1000, start=0, rng=1),
    }
    theirs: dict[tuple[str, str], Callable[[Any], Any]] = {
        ("pydtmc", "mean first passage times"): lambda c: c.mean_first_passage_times_to(),
        ("pydtmc", "Kemeny's constant"): lambda c: c.kemeny_constant,
        ("pydtmc", "entropy rate"): lambda c: c.entropy_rate,
        ("quantecon", "100,000 steps of one walker"): lambda c: c.simulate(100_001, init=0),
        ("quantecon", "100 steps of 1,000 walkers"): lambda c: c.simulate(
            101, init=0, num_reps=1000
        ),
    }
    present()
    for question, ask in ours.items():
        tasks: dict[str, Solver] = {"dpmarkov": lambda P, ask=ask: ask(MarkovChain(P))}
        for (module, asked), rival in theirs.items():
            if asked == question:
                tasks[module] = lambda P, m=module, r=rival: r(import_module(m).MarkovChain(P))
        result = measure(tasks, P, 2)
        unit = result["dpmarkov"][0]
        cells = "  ".join(
            f"{k} {t / unit:.2f} x" if not isinstance(x, str) else f"{k} {x}"
            for k, (t, x) in result.items()
        )
        print(f"{question:30s} ({unit * 1e3:8.2f} ms)  {cells}")


SECTIONS = {
    "dense": dense,
    "batch": batch,
    "accuracy": accuracy,
    "sparse": sparse_chains,
    "methods": methods,
}

if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        print(f"scipy {scipy.__version__}, numpy {np.__version__}, one BLAS thread")
        for section in sys.argv[1:] or SECTIONS:
            SECTIONS[section]()
