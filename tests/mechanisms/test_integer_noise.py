"""Noise for counts: whole parts that are right on injected bits, the law, and where bits come from.

The oracle computes the same ideal numbers from the same words in interval arithmetic at 500 bits.
Statistical tests of the law draw from the operating system and cannot be seeded: each fails
falsely with probability `FALSE_ALARM`, all of them together with at most 2e-6. Tests that they
would notice another law have fixed bits.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os

import flint
import numpy as np
import pytest
from scipy import stats

from dpmarkov.errors import DpmarkovError
from dpmarkov.mechanisms import gaussian, geometric, sampling, whole_numbers
from dpmarkov.mechanisms.gaussian import rounded_normal
from dpmarkov.mechanisms.geometric import two_sided_geometric

FALSE_ALARM = 1e-7
SCALES = [2.0**-30, 0.05, 1 / 3, 2.0, 17.3, 1e4, 2.0**30]
EDGE_WORDS = np.array(
    [sign * (2**k + j) for sign in (1, -1) for k in (0, 9, 20, 40, 52, 61, 62) for j in (-1, 0, 1)]
    + [2**63 - 1, -(2**63), -1, -2, -3],
    dtype=np.int64,
)
DRAWS = [two_sided_geometric, rounded_normal]


@pytest.fixture(autouse=True)
def _precise_balls():
    with flint.ctx.workprec(500):
        yield


def seeded_words(seed, edges=0.0):
    """Words that a test can repeat; a share of them at the edges of what a word can be."""
    rng = np.random.default_rng(seed)

    def words(count):
        drawn = rng.integers(-(2**63), 2**63, count)
        return np.where(rng.random(count) < edges, rng.choice(EDGE_WORDS, count), drawn)

    return words


def ball_of(word):
    """All uniforms that begin with a word."""
    return flint.arb(2 * (int(word) % 2**64) + 1, 1) * flint.arb(2) ** -65


def point_of(word, fraction):
    """The uniform at a fraction of the word's interval."""
    return (flint.arb(int(word) % 2**64) + flint.arb(fraction)) * flint.arb(2) ** -64


def normal_of(u1, u2, *, sine):
    angle = 2 * flint.arb.pi() * u2
    return (-2 * u1.log()).sqrt() * (angle.sin() if sine else angle.cos())


def floor_of(ball):
    """The whole part that all numbers of a ball share, or None."""
    whole = ball.floor().unique_fmpz() if ball.is_finite() else None
    return None if whole is None else int(whole)


class Tape:
    """Injected words: the same ones for ever."""

    def __init__(self, *words):
        self._words, self.given = words, 0

    def __call__(self, count):
        drawn = [self._words[(self.given + k) % len(self._words)] for k in range(count)]
        self.given += count
        return np.array([(w + 2**63) % 2**64 - 2**63 for w in drawn], dtype=np.int64)


class TestWholeParts:
    """What is returned is the whole part of the ideal number."""

    @pytest.mark.parametrize("scale", SCALES)
    @pytest.mark.parametrize("roundoff", [2.0**-48, 1e-6, 1.0])
    def test_of_exponentials_equal_the_oracle(self, scale, roundoff, monkeypatch):
        # With a margin of everything every decision is the refinement's.
        monkeypatch.setattr(sampling, "_ROUNDOFF", roundoff)
        drawn = seeded_words(1, edges=0.3)(400)
        got = geometric._geometric(drawn, scale, seeded_words(2))
        ideal = [floor_of(-flint.arb(scale) * ball_of(w).log()) for w in drawn]
        decided = [(g, i) for g, i in zip(got.tolist(), ideal, strict=True) if i is not None]
        assert len(decided) > 300
        assert all(g == i for g, i in decided)

    @pytest.mark.parametrize("scale", SCALES)
    @pytest.mark.parametrize("roundoff", [2.0**-48, 1e-6, 1.0])
    def test_of_normals_equal_the_oracle(self, scale, roundoff, monkeypatch):
        monkeypatch.setattr(sampling, "_ROUNDOFF", roundoff)
        words = seeded_words(3, edges=0.3)
        radius, angle = words(150), words(150)
        got = gaussian._nearest(radius, angle, 299, scale, seeded_words(4))
        ideal = [
            floor_of(
                flint.arb(scale) * 1024 * normal_of(ball_of(radius[p]), ball_of(angle[p]), sine=s)
                + flint.arb(0.5)
            )
            for s in (False, True)
            for p in range(150)
        ][:299]
        decided = [(g, i) for g, i in zip(got.tolist(), ideal, strict=True) if i is not None]
        assert len(decided) > (200 if scale < 1e6 else 100)
        assert all(g == i for g, i in decided)

    @pytest.mark.parametrize("draw", DRAWS)
    @pytest.mark.parametrize("scale", SCALES)
    def test_do_not_depend_on_who_decides(self, draw, scale, monkeypatch):
        fill = geometric._fill if draw is two_sided_geometric else gaussian._fill

        def drawn():
            noise = np.empty(500, dtype=np.int64)
            fill(noise, scale, seeded_words(5))
            return noise

        quick = drawn()
        monkeypatch.setattr(sampling, "_ROUNDOFF", 1.0)
        np.testing.assert_array_equal(drawn(), quick)

    @pytest.mark.parametrize(
        ("y", "margin", "asked"),
        [
            (2.5, 0.1, False),
            (2.05, 0.1, True),
            (2.95, 0.1, True),
            (-0.05, 0.1, True),
            (-0.5, 0.1, False),
            (2.5, np.inf, True),
            (2.5, np.nan, True),
        ],
    )
    def test_are_asked_for_where_the_margin_does_not_decide(self, y, margin, asked):
        (got,) = whole_numbers.whole_parts(np.array([y]), np.array([margin]), lambda i: 70 + i)
        assert got == (70 if asked else np.floor(y))


class TestMargin:
    """The float64 path is far closer to the ideal number than its margin says."""

    @pytest.mark.parametrize("scale", SCALES)
    def test_is_four_times_the_observed_error(self, scale, monkeypatch):
        seen = []

        def spy(y, margin, exact):
            seen.append((y, margin))
            return np.zeros(y.size, dtype=np.int64)

        monkeypatch.setattr(geometric, "whole_parts", spy)
        monkeypatch.setattr(gaussian, "whole_parts", spy)
        first, second = seeded_words(6, edges=0.3)(300), seeded_words(7, edges=0.3)(300)
        geometric._geometric(first, scale, Tape(0))
        gaussian._nearest(first, second, 600, scale, Tape(0))
        rng = np.random.default_rng(8)
        for i in range(300):
            u1, u2 = (
                point_of(w[i], rng.choice([2**-20, 0.5, 1 - 2**-20])) for w in (first, second)
            )
            y = -flint.arb(scale) * u1.log()
            self.check(y, seen[0][0][i], seen[0][1][i])
            for k, sine in ((i, False), (i + 300, True)):
                y = flint.arb(scale) * 1024 * normal_of(u1, u2, sine=sine) + flint.arb(0.5)
                self.check(y, seen[1][0][k], seen[1][1][k] + 2.0**-51)

    @staticmethod
    def check(ideal, computed, margin):
        if np.isfinite(margin):
            assert abs(ideal - flint.arb(float(computed))) < flint.arb(float(margin)) / 4


class TestFurtherBits:
    """Bits beyond the first word decide what the first word cannot."""

    @pytest.mark.parametrize(("k", "scale"), [(1, 2.0), (7, 1 / 3), (40, 17.3), (10**9, 2.0**30)])
    def test_decide_the_whole_part_of_an_exponential(self, k, scale):
        # the word whose interval holds e^(-k / scale), where the whole part jumps
        word = int(((-flint.arb(k) / flint.arb(scale)).exp() * 2**64).floor().unique_fmpz())
        drawn = Tape(word)(1)
        values = [int(geometric._geometric(drawn, scale, Tape(w))[0]) for w in (0, 2**64 - 1)]
        assert values == [k, k - 1]

    def test_decide_a_uniform_next_to_zero_and_to_one(self):
        tape = Tape(2**63)
        low, high = geometric._geometric(np.array([0, -1]), 1.0, tape)
        assert low == floor_of(-(flint.arb(2**63) * flint.arb(2) ** -128).log())
        assert high == 0
        assert tape.given == 2

    def test_are_asked_for_again_while_they_do_not_suffice(self):
        tape = Tape(0, 0, 0, 5)
        (value,) = geometric._geometric(np.array([0]), 1.0, tape)
        assert value == floor_of(-(flint.arb(11) * flint.arb(2) ** -321).log())
        assert tape.given >= 4

    def test_are_shared_by_the_two_cells_of_a_pair(self):
        # Radius word 0 leaves both cells open: the second must use the first one's further bits.
        angle, further = 0x1F83D9ABFB41BD6B, (0x0123456789ABCDEF, 0x3141592653589793)
        tape = Tape(*further)
        got = gaussian._nearest(np.array([0]), np.array([angle]), 2, 50.0, tape)
        u1 = flint.arb(2 * further[0] + 1) * flint.arb(2) ** -129
        u2 = flint.arb((angle << 64) + further[1]) * flint.arb(2) ** -128
        ideal = [
            floor_of(50 * 1024 * normal_of(u1, u2, sine=sine) + flint.arb(0.5))
            for sine in (False, True)
        ]
        assert got.tolist() == ideal
        assert tape.given == 2


def geometric_p_value(noise, scale):
    """Chi-square over whole numbers, or bins of them, of at least 50 expected draws each."""
    q, n = np.exp(-1 / scale), noise.size
    reach = max(1.0, scale * np.log(n / 100))
    edges = np.unique(np.round(np.linspace(-reach, reach, 60)))  # bins (a, b]
    below = np.where(edges < 0, q**-edges / (1 + q), 1 - q ** (edges + 1) / (1 + q))
    expected = np.diff(np.concatenate(([0], below, [1])))
    bins = np.searchsorted(edges, noise, side="left")
    counts = np.bincount(bins, minlength=expected.size)
    keep = expected * n >= 50
    assert counts[~keep].sum() <= 500
    observed = np.append(counts[keep], counts[~keep].sum())
    wanted = np.append(expected[keep], expected[~keep].sum()) * n
    return stats.chisquare(observed[wanted > 0], wanted[wanted > 0]).pvalue


def normal_p_value(noise, scale):
    """Chi-square over the grid where it is coarse, Kolmogorov and Smirnov's where it is fine."""
    if scale * 1024 > 2000:
        return stats.kstest(noise, stats.norm(scale=scale).cdf).pvalue
    k = np.arange(-3 * int(scale * 1024), 3 * int(scale * 1024) + 1)
    below = stats.norm.cdf((k + 0.5) / 1024 / scale)
    expected = np.diff(np.concatenate(([0], below, [1]))) * noise.size
    bins = np.searchsorted(k, noise * 1024, side="left")
    return stats.chisquare(np.bincount(bins, minlength=expected.size), expected).pvalue


class TestLaw:
    """The noise follows its law, and the tests would notice if it did not."""

    size = 400_000

    @pytest.mark.parametrize("scale", [0.2, 1 / 3, 1.0, 2.0, 17.3, 1e4])
    def test_is_two_sided_geometric(self, scale):
        drawn = two_sided_geometric(self.size, scale=scale)
        assert geometric_p_value(drawn, scale) > FALSE_ALARM

    @pytest.mark.parametrize("scale", [1 / 3, 2.0, 1e4])
    def test_of_a_geometric_scale_two_percent_larger_is_noticed(self, scale):
        drawn = np.empty(self.size, dtype=np.int64)
        geometric._fill(drawn, 1.02 * scale, seeded_words(9))
        assert geometric_p_value(drawn, scale) < FALSE_ALARM
        geometric._fill(drawn, scale, seeded_words(9))
        assert geometric_p_value(drawn, scale) > FALSE_ALARM

    @pytest.mark.parametrize("scale", [0.02, 5.0, 1e6])
    def test_is_normal(self, scale):
        assert normal_p_value(rounded_normal(self.size, scale=scale), scale) > FALSE_ALARM

    @pytest.mark.parametrize("scale", [0.02, 5.0])
    def test_of_a_deviation_two_percent_larger_is_noticed(self, scale):
        drawn = np.empty(self.size, dtype=np.int64)
        gaussian._fill(drawn, 1.02 * scale, seeded_words(10))
        assert normal_p_value(drawn / 1024, scale) < FALSE_ALARM
        gaussian._fill(drawn, scale, seeded_words(10))
        assert normal_p_value(drawn / 1024, scale) > FALSE_ALARM

    @pytest.mark.parametrize("scale", [0.5, 2.0, 1e3])
    def test_has_the_stated_variance(self, scale):
        k = np.arange(-60 * scale - 2, 60 * scale + 3)
        p = np.exp(-np.abs(np.round(k)) / scale)
        assert geometric.variance(scale) == pytest.approx(
            np.sum(np.round(k) ** 2 * p) / p.sum(), rel=1e-6
        )

    @pytest.mark.parametrize("draw", DRAWS)
    def test_is_independent_between_cells(self, draw):
        # Neighbours, and the two cells that share a pair of uniforms.
        n = sampling.CHUNK
        noise = draw((12, n), scale=50.0)
        ranks = stats.rankdata(noise, method="ordinal").reshape(noise.shape) - 1
        bins = ranks * 16 // noise.size
        for shift in (1, n // 2):
            counts = np.bincount((16 * bins[:, :-shift] + bins[:, shift:]).ravel(), minlength=256)
            assert stats.chisquare(counts).pvalue > FALSE_ALARM / 10


def _draw(k):
    return DRAWS[k % 2](64, scale=1e5).tobytes()


class TestRandomness:
    """Every bit comes from the operating system, and none comes twice."""

    @pytest.mark.parametrize("draw", DRAWS)
    def test_is_all_the_operating_systems(self, draw, monkeypatch):
        stream, runs = os.urandom(10**5), []
        for _ in range(2):
            rest = memoryview(stream)

            def urandom(size):
                nonlocal rest
                drawn, rest = rest[:size], rest[size:]
                return bytes(drawn)

            monkeypatch.setattr(sampling.os, "urandom", urandom)
            runs.append(draw(1000, scale=7.0))
        np.testing.assert_array_equal(*runs)

    def test_is_not_repeated(self):
        assert len({_draw(k) for k in range(20)}) == 20

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_is_not_repeated_by_forks(self):
        with multiprocessing.get_context("fork").Pool(4) as pool:
            children = pool.map(_draw, range(20), chunksize=1)
        assert len({*children, _draw(0), _draw(1)}) == 22

    @pytest.mark.parametrize("draw", DRAWS)
    def test_cannot_be_seeded(self, draw):
        assert list(inspect.signature(draw).parameters) == ["size", "scale"]


class TestInterface:
    """Any size, certified scales only."""

    @pytest.mark.parametrize("draw", DRAWS)
    @pytest.mark.parametrize("size", [(), 0, 1, 7, (3, 0), (2, 3), (70_001,)])
    def test_gives_the_size_that_was_asked_for(self, draw, size):
        drawn = draw(size, scale=3.0)
        assert isinstance(drawn, np.ndarray)
        assert drawn.shape == np.empty(size).shape
        assert drawn.dtype == (np.int64 if draw is two_sided_geometric else np.float64)

    @pytest.mark.parametrize("draw", DRAWS)
    @pytest.mark.parametrize("scale", [0.0, -1.0, 2.0**-31, 2.0**31, np.nan, np.inf])
    def test_refuses_a_scale_outside_its_limits(self, draw, scale):
        with pytest.raises(DpmarkovError, match="outside the certified range"):
            draw(3, scale=scale)

    def test_normals_are_on_their_grid(self):
        steps = rounded_normal(10_000, scale=1e4) * 1024
        assert np.all(steps == np.round(steps))
        # the last ten bits are all in use
        assert np.unique(steps % 1024).size > 1000
