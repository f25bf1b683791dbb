"""Certified gamma variates: their law, where their bits come from, and what may be asked for.

Statistical tests of the law draw from the operating system and cannot be seeded: each fails falsely
with probability `FALSE_ALARM`, all of them together with at most 2e-6. Tests that they would notice
another law have fixed bits. That variates are correctly rounded is shown in `test_rounding`.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import special, stats

from dpmarkov.errors import DpmarkovError
from dpmarkov.mechanisms import sampling
from dpmarkov.mechanisms.sampling import gamma, log_gamma

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Words = NDArray[np.int64]
    Floats = NDArray[np.float64]

FALSE_ALARM = 1e-7
SHAPES = [1e-4, 1e-2, 0.5, 1.0, 3.7, 100.0, 1e5, 1e9]
WIDE_SHAPES = np.array([1e-9, *SHAPES, 0.3, 1 - 2**-53, 4 / 3, 1.4, 30.0, 1e7, 1e12, 1e15])


def seeded_words(seed: int) -> Callable[[int], Words]:
    """Words that a test can repeat."""
    rng = np.random.default_rng(seed)
    return lambda count: rng.integers(-(2**63), 2**63, count)


def cdf_of_log(y: Floats, shape: float) -> Floats:
    """P(log G <= y); far to the left G^a / Gamma(a + 1), where e^y would underflow."""
    left = np.exp(np.minimum(shape * y - special.gammaln(shape + 1), 0))
    return np.where(y < -40, left, special.gammainc(shape, np.exp(np.maximum(y, -40))))


def p_value(sample: Floats, shape: float) -> float:
    """Kolmogorov and Smirnov's, against Gamma(shape, 1)."""
    return float(stats.kstest(cdf_of_log(sample, shape), "uniform").pvalue)


class TestLaw:
    """The variates follow Gamma(shape, 1), and the tests would notice if they did not."""

    size = 400_000

    @pytest.mark.parametrize("shape", SHAPES)
    def test_is_gamma(self, shape: float) -> None:
        assert p_value(log_gamma(np.full(self.size, shape)), shape) > FALSE_ALARM

    @pytest.mark.parametrize("shape", SHAPES)
    def test_of_a_shape_two_percent_larger_is_noticed(self, shape: float) -> None:
        drawn = sampling._log_gamma(np.full(self.size, 1.02 * shape), seeded_words(6))
        assert p_value(drawn, shape) < FALSE_ALARM

    def test_without_rejection_is_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = sampling._estimate

        def never_rejecting(trial: sampling._Trial) -> sampling._Estimate:
            estimate = original(trial)
            estimate.excess[estimate.above_zero > 0] = -1e300
            return estimate

        monkeypatch.setattr(sampling, "_estimate", never_rejecting)
        drawn = sampling._log_gamma(np.full(self.size, 1.0), seeded_words(7))
        assert p_value(drawn, 1.0) < FALSE_ALARM

    @pytest.mark.parametrize("shape", [1e-2, 3.7, 1e9])
    def test_is_independent_between_cells(self, shape: float) -> None:
        # Neighbours, and the two cells that share a pair of uniforms in the first trial.
        n = sampling.CHUNK
        u = np.concatenate([cdf_of_log(log_gamma(np.full(n, shape)), shape) for _ in range(12)])
        cells = np.minimum((u.reshape(12, n) * 16).astype(int), 15)
        for shift in (1, n // 2):
            pairs = 16 * cells[:, :-shift] + cells[:, shift:]
            counts = np.bincount(pairs.ravel(), minlength=256)
            assert stats.chisquare(counts).pvalue > FALSE_ALARM / 10

    def test_reaches_every_last_bit_alike(self) -> None:
        steps = log_gamma(np.full(self.size, 3.7)) * 2.0**32
        counts = np.bincount(steps.astype(np.int64) % 256, minlength=256)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM

    def test_of_mixed_shapes_is_that_of_each_cell(self) -> None:
        drawn = log_gamma(np.tile(SHAPES, (20_000, 1)))
        p = [p_value(drawn[:, j], shape) for j, shape in enumerate(SHAPES)]
        assert min(p) > FALSE_ALARM / len(SHAPES)


def _draw(_: int) -> bytes:
    return log_gamma(np.full(64, 3.7)).tobytes()


class TestRandomness:
    """Every bit comes from the operating system, and none comes twice."""

    def test_is_all_the_operating_systems(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def forbidden(*args: object, **kwargs: object) -> None:
            raise AssertionError("an ordinary generator was asked")

        for name in ("random", "standard_normal", "standard_gamma", "default_rng", "RandomState"):
            monkeypatch.setattr(np.random, name, forbidden)
        shapes = np.tile(WIDE_SHAPES, 50)
        stream = os.urandom(10**6)
        runs = []
        for _ in range(2):
            rest = memoryview(stream)

            def urandom(size: int) -> bytes:
                nonlocal rest
                drawn, rest = rest[:size], rest[size:]
                return bytes(drawn)

            monkeypatch.setattr(sampling.os, "urandom", urandom)
            runs.append(log_gamma(shapes))
        np.testing.assert_array_equal(*runs)

    def test_is_not_repeated(self) -> None:
        assert len({_draw(k) for k in range(20)}) == 20

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_is_not_repeated_by_forks(self) -> None:
        _draw(0)
        with multiprocessing.get_context("fork").Pool(4) as pool:
            children = pool.map(_draw, range(20), chunksize=1)
        assert len({*children, _draw(0)}) == 21

    def test_is_not_repeated_by_threads(self) -> None:
        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(_draw, range(20)))) == 20

    def test_is_not_repeated_after_pickling(self) -> None:
        copies = [pickle.loads(pickle.dumps(log_gamma)) for _ in range(2)]
        a, b = (copy(np.full(64, 3.7)) for copy in copies)
        assert (a != b).any()

    def test_cannot_be_seeded(self) -> None:
        public = [getattr(sampling, name) for name in sampling.__all__]
        functions = [f for f in public if callable(f)]
        assert len(functions) == 2
        for function in functions:
            assert list(inspect.signature(function).parameters) == ["shape"]

    def test_refinement_is_right_in_threads_that_share_arbs_precision(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sampling, "_ROUNDOFF", 1.0)
        shapes = np.tile(WIDE_SHAPES, 10)

        def draw(seed: int) -> Floats:
            return sampling._log_gamma(shapes, seeded_words(seed))

        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(draw, range(8)))
        np.testing.assert_array_equal(together, [draw(seed) for seed in range(8)])


class TestInterface:
    """Arrays of any shape go in, arrays of the same shape come out, errors say what to do."""

    @pytest.mark.parametrize("size", [(), (1,), (0,), (3, 0), (2, 3), (70_001,)])
    def test_keeps_the_array_shape(self, size: tuple[int, ...]) -> None:
        for draw in (gamma, log_gamma):
            drawn = draw(np.full(size, 2.5))
            assert isinstance(drawn, np.ndarray)
            assert drawn.shape == size
            assert drawn.dtype == np.float64
            assert np.isfinite(drawn).all()

    def test_takes_lists_integers_and_strided_arrays(self) -> None:
        assert log_gamma([1, 2, 3]).shape == (3,)
        assert gamma(np.float32(2)).shape == ()
        pattern = np.asfortranarray([[1e-4, 1e9, 1e-4], [1e9, 1e-4, 1e9]])
        assert ((log_gamma(pattern) > 20) == (pattern > 1)).all()

    def test_gamma_is_the_exponential_and_underflows_to_zero(self) -> None:
        drawn = gamma(np.full(1000, 1e-4))
        assert (drawn >= 0).all()
        assert (drawn == 0).mean() > 0.8
        assert (gamma(np.full(1000, 3.7)) > 0).all()

    def test_does_not_change_its_input(self) -> None:
        shapes = np.full(100, 0.5)
        log_gamma(shapes)
        assert (shapes == 0.5).all()

    @pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-10, 1e16])
    def test_refuses_a_shape_outside_its_limits(self, value: float) -> None:
        with pytest.raises(
            DpmarkovError,
            match=r"a shape is outside the certified range \[1e-09, 1e\+15\].*positive prior",
        ):
            log_gamma([1.0, value])

    @pytest.mark.parametrize("value", ["3", 1j, None, True])
    def test_refuses_what_is_not_a_real_number(self, value: object) -> None:
        with pytest.raises(DpmarkovError, match="not real numbers"):
            gamma([value])  # type: ignore[list-item]

    def test_import_leaves_flint_alone(self) -> None:
        code = (
            "import sys; from dpmarkov.mechanisms.sampling import log_gamma; "
            "print('flint' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert done.stdout.strip() == b"False"
