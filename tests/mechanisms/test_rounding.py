"""Certified gamma variates are correctly rounded: the sampler on injected bits.

The oracle replays the ideal algorithm in interval arithmetic, in the authors' own formulas and
at several hundred bits, on the same words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmarkov.mechanisms import refinement, sampling

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Words = NDArray[np.int64]
    Floats = NDArray[np.float64]

SHAPES = [1e-4, 1e-2, 0.5, 1.0, 3.7, 100.0, 1e5, 1e9]
WIDE_SHAPES = np.array([1e-9, *SHAPES, 0.3, 1 - 2**-53, 4 / 3, 1.4, 30.0, 1e7, 1e12, 1e15])
EDGE_WORDS = np.array(
    [sign * (2**k + j) for sign in (1, -1) for k in (0, 9, 20, 40, 52, 61, 62) for j in (-1, 0, 1)]
    + [2**63 - 1, -(2**63), -1, -2, -3],
    dtype=np.int64,
)


@pytest.fixture(autouse=True)
def _precise_balls() -> object:
    with flint.ctx.workprec(500):
        yield


def seeded_words(seed: int, edges: float = 0.0) -> Callable[[int], Words]:
    """Words that a test can repeat; a share of them at the edges of what a word can be."""
    rng = np.random.default_rng(seed)

    def words(count: int) -> Words:
        drawn = rng.integers(-(2**63), 2**63, count)
        return np.where(rng.random(count) < edges, rng.choice(EDGE_WORDS, count), drawn)

    return words


def ball_of(word: int) -> flint.arb:
    """All uniforms that begin with a word."""
    return flint.arb(2 * (word % 2**64) + 1, 1) * flint.arb(2) ** -65


def point_of(word: int, fraction: float) -> flint.arb:
    """The uniform at a fraction of the word's interval."""
    return (flint.arb(word % 2**64) + flint.arb(fraction)) * flint.arb(2) ** -64


def trial_of(
    shape: float, u1: flint.arb, u2: flint.arb, *, sine: bool
) -> tuple[flint.arb, flint.arb, flint.arb]:
    """1 + z, Marsaglia and Tsang's h in their own form, and log G of shape or shape + 1."""
    d = flint.arb(shape) - flint.arb(1) / 3 + (shape < 1)
    angle = 2 * flint.arb.pi() * u2
    x = (-2 * u1.log()).sqrt() * (angle.sin() if sine else angle.cos())
    c = 1 / (9 * d).sqrt()
    v = (1 + c * x) ** 3
    log_v = v.log()
    return 1 + c * x, x * x / 2 + d - d * v + d * log_v, d.log() + log_v


def grid(y: flint.arb) -> float:
    """The nearest multiple of 2^-32 or number of 37 significant bits, at both ends alike."""
    ends = []
    for end in (y.lower(), y.upper()):
        step = max(
            2.0**-32, 2.0 ** (int(flint.arb(abs(end)).log_base(2).floor().unique_fmpz()) - 36)
        )
        ends.append(float((end / step + 0.5).floor().unique_fmpz()) * step)
    assert ends[0] == ends[1], "more bits needed"
    return ends[0]


def replay(shapes: Floats, words: Callable[[int], Words]) -> Floats:
    """The whole ideal algorithm in interval arithmetic, on the layout of words of the sampler."""
    out = np.full(shapes.size, np.nan)
    pending = list(range(shapes.size))
    while pending:
        n, pairs = len(pending), (len(pending) + 1) // 2
        small = any(shapes[i] < 1 for i in pending)
        radius, angle, accept = words(pairs), words(pairs), words(n)
        boost = words(n if small else 0)
        for k, i in enumerate(pending):
            u1, u2 = ball_of(int(radius[k % pairs])), ball_of(int(angle[k % pairs]))
            positive, h, log_g = trial_of(shapes[i], u1, u2, sine=k >= pairs)
            log_u = ball_of(int(accept[k])).log()
            if positive < 0 or log_u > h:
                continue
            assert positive > 0
            assert log_u < h, "more bits needed"
            if shapes[i] < 1:
                log_g += ball_of(int(boost[k])).log() / flint.arb(shapes[i])
            out[i] = grid(log_g)
        pending = [i for i in pending if np.isnan(out[i])]
    return out


class TestRounding:
    """What is returned is the fixed rounding of the ideal variate."""

    cells = np.concatenate(
        (np.tile(WIDE_SHAPES, 400), 10 ** np.random.default_rng(0).uniform(-4, 9, 20_001))
    )

    def test_is_that_of_interval_arithmetic_on_the_same_bits(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sampling, "CHUNK", self.cells.size)
        drawn = sampling._log_gamma(self.cells, seeded_words(1))
        np.testing.assert_array_equal(drawn, replay(self.cells, seeded_words(1)))

    def test_replay_notices_a_wrong_rounding(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shapes = self.cells[:200]
        monkeypatch.setattr(sampling, "_rounded", lambda y: np.floor(y * 2.0**32) * 2.0**-32)
        drawn = sampling._log_gamma(shapes, seeded_words(1))
        assert (drawn != replay(shapes, seeded_words(1))).mean() > 0.2

    def test_is_the_same_whichever_path_decides(self, monkeypatch: pytest.MonkeyPatch) -> None:
        mostly_float = sampling._log_gamma(self.cells, seeded_words(2))
        monkeypatch.setattr(sampling, "_ROUNDOFF", 1.0)
        all_refined = sampling._log_gamma(self.cells, seeded_words(2))
        np.testing.assert_array_equal(mostly_float, all_refined)

    def test_leaves_few_decisions_open_but_some(self, monkeypatch: pytest.MonkeyPatch) -> None:
        refined: list[int] = []
        original = sampling._refined
        monkeypatch.setattr(
            sampling,
            "_refined",
            lambda trial, cells, words: refined.append(cells.size) or original(trial, cells, words),
        )
        shapes = np.tile(WIDE_SHAPES, 2000)
        sampling._log_gamma(shapes, seeded_words(3))
        assert 1e-5 < sum(refined) / shapes.size < 2e-3

    @given(st.floats(-1e11, 1e11))
    def test_float_and_exact_rounding_agree(self, y: float) -> None:
        (rounded,) = sampling._rounded(np.array([y])).tolist()
        assert rounded == refinement.cell_of(flint.arb(y))
        assert abs(rounded - y) <= max(2.0**-33, abs(y) * 2.0**-37)
        assert sampling._rounded(np.array([rounded])) == rounded

    @given(st.floats(-1e11, 1e11), st.floats(0, 1))
    def test_is_monotone(self, y: float, step: float) -> None:
        low, high = sampling._rounded(np.array([y, y + step * max(1.0, abs(y))]))
        assert low <= high

    def test_has_one_zero(self) -> None:
        assert not np.signbit(sampling._rounded(np.array([-1e-12, -0.0, 0.0]))).any()

    def test_an_infinite_or_unknown_ball_is_open(self) -> None:
        for ball in (flint.arb.nan(), flint.arb.pos_inf(), flint.arb(0.5, 1)):
            with pytest.raises(refinement.OpenDecisionError):
                refinement.cell_of(ball)


class TestMargin:
    """The float64 path is far closer to the ideal value than its margin says."""

    @pytest.mark.parametrize("shape", WIDE_SHAPES)
    def test_is_four_times_the_observed_error(self, shape: float) -> None:
        rng = np.random.default_rng(7)
        trial = sampling._Trial.draw(np.full(400, shape), seeded_words(4, edges=0.3))
        with np.errstate(all="ignore"):
            estimate = sampling._estimate(trial)
        pairs = trial.radius.size
        for i in range(400):

            def uniform(words: Words, index: int) -> flint.arb:
                return point_of(int(words[index]), rng.choice([2**-20, 0.5, 1 - 2**-20]))

            u1, u2 = uniform(trial.radius, i % pairs), uniform(trial.angle, i % pairs)
            positive, h, log_g = trial_of(shape, u1, u2, sine=i >= pairs)
            self.check(positive, estimate.above_zero[i], estimate.z_error[i] + 2.0**-51)
            if not estimate.above_zero[i] >= 16 * estimate.z_error[i]:
                continue
            log_u = uniform(trial.accept, i).log()
            self.check(log_u - h, estimate.excess[i], estimate.excess_error[i])
            if shape < 1:
                log_g += uniform(trial.boost, i).log() / flint.arb(shape)
            self.check(log_g, estimate.log_g[i], estimate.log_g_error[i])

    @staticmethod
    def check(ideal: flint.arb, computed: float, margin: float) -> None:
        if np.isfinite(margin):
            assert abs(ideal - flint.arb(float(computed))) < flint.arb(float(margin)) / 4

    @pytest.mark.parametrize(
        ("above_zero", "excess", "log_g", "outcome"),
        [
            (1.0, -1.0, 2.0, "accepted"),
            (1.0, 1.0, 2.0, "rejected"),
            (-1e-9, -1.0, 2.0, "rejected"),
            (-1e-11, -1.0, 2.0, "open"),
            (1e-11, -1.0, 2.0, "open"),
            (1e-9, -1e-11, 2.0, "open"),
            (1e-9, 1e-11, 2.0, "open"),
            (1.0, -1.0, 2.0 + 2**-33, "open"),
            (1.0, -1.0, np.nan, "open"),
            (1.0, 1.0, 2.0 + 2**-33, "rejected"),
        ],
    )
    def test_is_kept_by_every_decision(
        self, above_zero: float, excess: float, log_g: float, outcome: str
    ) -> None:
        margin = np.array([2e-11])
        estimate = sampling._Estimate(
            np.array([above_zero]), margin, np.array([excess]), margin, np.array([log_g]), margin
        )
        (value,), (undecided,) = estimate.decide()
        decided = "rejected" if np.isnan(value) else "accepted"
        assert ("open" if undecided else decided) == outcome

    def test_never_decides_on_a_word_at_the_very_edge(self) -> None:
        edge = np.array([0, -1], dtype=np.int64)
        words = seeded_words(5)(2)
        for columns in [(edge, words, words), (words, words, edge)]:
            trial = sampling._Trial(np.full(2, 3.7), *columns, boost=words[:0])
            with np.errstate(all="ignore"):
                _, undecided = sampling._estimate(trial).decide()
            assert undecided.all()


class Tape:
    """Injected words: a written beginning, and one word for ever after."""

    def __init__(self, beginning: list[int], after: list[int]) -> None:
        self._beginning, self._after = beginning, after
        self.further = 0

    def __call__(self, count: int) -> Words:
        if self._beginning:
            drawn, self._beginning = self._beginning[:count], self._beginning[count:]
        else:
            drawn = [self._after[(self.further + k) % len(self._after)] for k in range(count)]
            self.further += count
        return np.array([(w + 2**63) % 2**64 - 2**63 for w in drawn], dtype=np.int64)


def word_below(u: flint.arb) -> int:
    """The word whose interval holds a uniform."""
    return int((u * flint.arb(2) ** 64).floor().unique_fmpz())


class TestFurtherBits:
    """Bits beyond the first word decide what the first word cannot."""

    radius, angle = 0x9E3779B97F4A7C15, 0x1F83D9ABFB41BD6B

    def draw(self, shape: float, accept: int, boost: list[int], after: int) -> tuple[float, int]:
        # The normal stays at the centre of its interval; the other uniforms go on with `after`.
        centre = 2**63
        further = [centre, centre, after, *[after for _ in boost]]
        tape = Tape([self.radius, self.angle, accept, *boost], further)
        trial = sampling._Trial.draw(np.array([shape]), tape)
        return float(sampling._outcomes(trial, tape)[0]), tape.further

    @pytest.mark.parametrize("shape", [1e-4, 0.02, 0.7])
    def test_decide_the_cell(self, shape: float) -> None:
        # The boost's word is the one whose interval contains the end of a cell.
        u1, u2 = point_of(self.radius, 0.5), point_of(self.angle, 0.5)
        _, _, log_g = trial_of(shape, u1, u2, sine=False)
        middle = sampling._rounded(np.array([float(log_g) + np.log(0.4) / shape]))[0]
        step = max(2.0**-32, 2.0 ** (np.frexp(middle)[1] - 37))
        end = flint.arb(float(middle)) + flint.arb(step) / 2
        boost = word_below(((end - log_g) * flint.arb(shape)).exp())
        below, further = self.draw(shape, 2**50, [boost], 0)
        above, _ = self.draw(shape, 2**50, [boost], 2**64 - 1)
        assert (below, above) == (middle, middle + step)
        assert further == 4

    @pytest.mark.parametrize("shape", [1.0, 3.7, 1e3])
    def test_decide_the_acceptance(self, shape: float) -> None:
        # The accepting word's interval contains e^h itself.
        u1, u2 = point_of(self.radius, 0.5), point_of(self.angle, 0.5)
        _, h, _ = trial_of(shape, u1, u2, sine=False)
        values = [self.draw(shape, word_below(h.exp()), [], after)[0] for after in (0, 2**64 - 1)]
        assert np.isnan(values).tolist() == [False, True]

    def test_decide_a_normal_where_the_variate_would_be_zero(self) -> None:
        # At shape 1 the normal -sqrt(6), of radius e^-3 and angle 1/2, gives 1 + z = 0.
        u1 = word_below(flint.arb(-3).exp())
        tape = Tape([u1, 2**63, 2**40], [2**62, 5, 7])
        trial = sampling._Trial.draw(np.array([1.0]), tape)
        assert np.isnan(sampling._outcomes(trial, tape)[0])
        assert tape.further >= 3

    def test_decide_a_uniform_next_to_zero(self) -> None:
        tape = Tape([0, 0, 2**40], [2**63, 5, 7])
        (value,) = sampling._outcomes(sampling._Trial.draw(np.array([1e6]), tape), tape)
        u1 = flint.arb(2**63) * flint.arb(2) ** -128
        _, _, log_g = trial_of(1e6, u1, flint.arb(0), sine=False)
        assert value == grid(log_g)

    def test_are_shared_by_the_two_cells_of_a_pair(self) -> None:
        # Radius word 0 leaves both cells open: the second must use the first one's further bits.
        further = [0x0123456789ABCDEF, 0x3141592653589793, 5]
        tape = Tape([0, self.angle, 2**30, 2**30], further)
        values = sampling._outcomes(sampling._Trial.draw(np.full(2, 1e6), tape), tape)
        u1 = flint.arb(2 * further[0] + 1) * flint.arb(2) ** -129
        u2 = flint.arb((self.angle << 64) + further[1]) * flint.arb(2) ** -128
        ideal = [grid(trial_of(1e6, u1, u2, sine=sine)[2]) for sine in (False, True)]
        assert values.tolist() == ideal
        assert tape.further == 3  # radius, angle and the first accepting uniform
