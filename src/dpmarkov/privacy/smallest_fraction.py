"""How likely a Dirichlet row has a fraction below a threshold: the paper's delta, computed.

The row has the shapes of a vertex of the bordered simplex, ``n - 1`` times ``a = k eta`` and once
``b = k - (n-1) a``; wanted is ``delta(gamma) = P(min_j X_j < gamma)``.

* *Closed forms.* Each ``X_j`` is Beta, so ``delta <= U = (n-1) I_gamma(a, k-a) + I_gamma(b, k-b)``.
  They are negatively associated (Joag-Dev and Proschan, 1983), so ``delta >= L``, one minus the
  product of the ``1 - I_gamma``. As ``L >= U - U^2 / 2``, nothing else is needed for a delta
  below 1e-7, nor for one as close to 1.
* *One Fourier integral.* Independent gamma variates, conditioned on their sum, give
  ``delta(gamma) = h(1)`` where

      h(y) = y^(k-1) delta(gamma / y) = Gamma(k) / (2 pi i) int e^(s y) s^(-k) D(s) ds,
      D(s) = 1 - Q(a, gamma s)^(n-1) Q(b, gamma s),

  Q being the regularised upper incomplete gamma function and the path a vertical line, Re s = c.
  The *difference* from 1 is integrated, so a small delta does not drown in its complement. By
  Poisson's formula the trapezoidal rule of step ``2 pi / T`` returns the sum over the integers
  ``m`` of ``h(1 + m T) e^(-c m T)``. Its terms are never negative: discretisation errs on the
  safe side only. The nodes are evaluated in ball arithmetic (python-flint), and a bound on the
  truncated tail is added.

So every answer but the simulated one is at least the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from flint import acb, arb
    from numpy.typing import NDArray

__all__ = ["Vertex", "upward"]

# Aliasing, tail and the gap that U is accepted at: each stays below this, relative to delta.
_TOLERANCE = 1e-7
_BITS = 128
_NEGLIGIBLE = -70.0  # the log of a series term that may be dropped into the error
# Beyond these the integral takes seconds or its float bounds lose their digits.
_LARGEST_SHAPE, _LARGEST_K = 1e8, 1e15
_CELLS_PER_CHUNK = 1 << 20


def upward(ball: arb) -> float:
    """Return a float at or above everything in the ball, infinite if the ball is undefined."""
    top = float(ball.upper())
    return math.inf if math.isnan(top) else math.nextafter(top, math.inf)


@dataclass(frozen=True)
class Vertex:
    """A vertex of the bordered simplex and a threshold, exact: balls made of the given floats.

    The caller has checked that ``n >= 3``, ``n eta <= 1``, ``k eta > 1`` and ``gamma > 0``.
    """

    n: int
    k: arb
    gamma: arb
    a: arb
    b: arb

    @classmethod
    def of(cls, k: float, categories: int, eta: float, gamma: float) -> Vertex:
        """Return the vertex of floor `eta` scaled by `k`."""
        from flint import arb, ctx

        with ctx.workprec(4 * _BITS):
            K, n = arb(k), int(categories)
            a = K * arb(eta)
            return cls(n, K, arb(gamma), a, K - (n - 1) * a)

    def bound(self) -> float:
        """Return the union bound U, rounded up, and at most 1."""
        return min(1.0, upward(self.sandwich()[1]))

    def exact(self) -> float:
        """Return delta, rounded up by at most 1e-6 of it (U if a > 1e8 or k > 1e15)."""
        if self.n * float(self.gamma) >= 1:
            return 1.0
        lower, upper = float(self.sandwich()[0].lower()), self.bound()
        open_gap = upper - lower > _TOLERANCE * lower
        if not open_gap or self.a > _LARGEST_SHAPE or self.k > _LARGEST_K:
            return upper
        line = _Line.through(self)
        integral = upward(_integral(self, line)) + line.tail
        return integral if integral < upper else upper

    def simulated(self, samples: int, rng: np.random.Generator) -> float:
        """Return the fraction of simulated rows with a component below gamma."""
        shapes = np.full(self.n, float(self.a))
        shapes[-1] = float(self.b)
        chunk = max(1, _CELLS_PER_CHUNK // self.n)
        below = 0
        for start in range(0, samples, chunk):
            G = rng.standard_gamma(shapes, size=(min(chunk, samples - start), self.n))
            below += int(np.count_nonzero(G.min(axis=1) < float(self.gamma) * G.sum(axis=1)))
        return below / samples

    def components(self) -> tuple[tuple[int, arb, arb], tuple[int, arb, arb]]:
        """Return how many components there are of each kind, their shape and the others' sum."""
        return (self.n - 1, self.a, self.k - self.a), (1, self.b, (self.n - 1) * self.a)

    def sandwich(self) -> tuple[arb, arb]:
        """Return the closed forms around delta, L and U."""
        from flint import arb, ctx

        with ctx.workprec(_BITS):
            U, none_below = arb(0), arb(1)
            for count, shape, others in self.components():
                below = _beta(self.gamma, shape, others)
                U += count * below
                none_below *= (1 - below) ** count
            # Where the product would cancel, its Bonferroni bound is as good.
            return (U - U**2 / 2 if U < 1e-9 else 1 - none_below), U


def _beta(x: arb, p: arb, q: arb) -> arb:
    """Return I_x(p, q), by way of the smaller tail: flint takes seconds for some larger ones."""
    if x * (p + q) < p:
        return x.beta_lower(p, q, regularized=1)
    return 1 - (1 - x).beta_lower(q, p, regularized=1)


@dataclass(frozen=True)
class _Line:
    """Where to integrate: nodes ``c + i j step`` for ``|j| <= last``, and a bound on the rest."""

    c: float
    step: float
    last: int
    tail: float

    @classmethod
    def through(cls, vertex: Vertex) -> _Line:
        c = _mode_tilt(vertex)
        # h(y) <= h(1) y^c nearly, as log h is concave in log y with slope c at y = 1; so the
        # aliases fall like exp(-c (T - log(1 + T))), and T = x + sqrt(2 x) makes that e^(-c x).
        x = math.log(10 / _TOLERANCE) / c
        step = 2 * math.pi / (x + math.sqrt(2 * x))
        t, rest = _tails(vertex, c, step)
        cut = int(np.argmax(rest <= _TOLERANCE * float(vertex.sandwich()[0])))
        return cls(c, step, math.ceil(t[cut] / step), float(rest[cut]))


def _mode_tilt(vertex: Vertex) -> float:
    """Return the c for which ``h(y) e^(-c y)`` peaks near y = 1: then nothing cancels.

    ``c = k - 1 - gamma delta'(gamma) / delta(gamma)``, with L in the place of delta.
    """
    from flint import arb, ctx

    with ctx.workprec(_BITS):
        γ, hazard = vertex.gamma, arb(0)
        for count, p, q in vertex.components():
            density = p * γ.log() + (q - 1) * (-γ).log1p() + (p + q).lgamma()
            density = (density - p.lgamma() - q.lgamma()).exp()
            hazard += count * density / (1 - _beta(γ, p, q))
        L = vertex.sandwich()[0]
        return float(vertex.k - 1 - (1 - L) / L * hazard)


def _tails(
    vertex: Vertex, c: float, step: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return heights t along the line and bounds on all that the sum adds beyond each.

    With ``r = |s| / c``, a component below gamma has ``|P(p, gamma s)| <= r^p q_p(t)``, where
    ``q_p(t) = min(P(p, gamma c), 2 c^p sup_(x <= gamma) x^(p-1) e^(-c x) / (Gamma(p) t))``: the
    absolute value under the integral, and the second mean value theorem. Hence a node is at most
    a constant times ``prod (r^-p + q_p) - prod r^-p - prod q_p``, the last product being that
    of the term which `_difference` leaves out. It decreases in t, so its sum is below its
    integral, and that below a Riemann sum of left ends.
    """
    a, b, k, gamma = (float(x) for x in (vertex.a, vertex.b, vertex.k, vertex.gamma))
    (flat_a, fall_a), (flat_b, fall_b) = (_log_below(p, c, gamma) for p in (vertex.a, vertex.b))
    # Past this height q_a falls like 1/t and r like t, and the whole faster than t^-2.
    far = 1e6 * max(c, step, math.exp(fall_a - flat_a))
    t = np.geomspace(step, far, 4000)
    log_r = np.log1p((t / c) ** 2) / 2
    q_a, q_b = np.minimum(flat_a, fall_a - np.log(t)), np.minimum(flat_b, fall_b - np.log(t))
    some = _log_products(vertex.n, q_a + a * log_r, q_b + b * log_r) - k * log_r
    not_all = _log_products(vertex.n, -q_a - a * log_r, -q_b - b * log_r)
    not_all += (vertex.n - 1) * q_a + q_b
    size = np.exp(np.minimum(some, not_all)) * float(_prefactor(vertex, c)) / math.pi
    pieces = np.append(size[:-1] * np.diff(t), size[-1] * t[-1])
    # A thousandth more than covers the rounding of this float arithmetic.
    return t, 1.001 * np.cumsum(pieces[::-1])[::-1]


def _log_below(shape: arb, c: float, gamma: float) -> tuple[float, float]:
    """Return logs of the two bounds in ``q = min(flat, fall / t)``."""
    from flint import arb, ctx
    from scipy.special import gammainc

    with ctx.workprec(_BITS):
        peak = arb(min(gamma, (float(shape) - 1) / c))
        fall = arb(2).log() + shape * arb(c).log() + (shape - 1) * peak.log() - c * peak
        # The floor for log keeps the bound a bound when the probability underflows.
        flat = math.log(max(gammainc(float(shape), gamma * c), 1e-300))
        return flat, upward(fall - shape.lgamma())


def _log_products(
    n: int, x_a: NDArray[np.float64], x_b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``log((1 + e^x_a)^(n-1) (1 + e^x_b) - 1)`` without overflow or cancellation."""
    total = (n - 1) * np.logaddexp(0, x_a) + np.logaddexp(0, x_b)
    tiny = np.finfo(np.float64).tiny
    logs: NDArray[np.float64] = total + np.log(np.maximum(-np.expm1(-total), tiny))
    return logs


def _integral(vertex: Vertex, line: _Line) -> arb:
    """Return the trapezoidal sum over the nodes; conjugate nodes are taken together."""
    from flint import acb, arb, ctx

    with ctx.workprec(_BITS):
        c, total = arb(line.c), arb(0)
        for j in range(line.last + 1):
            w = acb(0, j * arb(line.step))
            weight = (w - vertex.k * (1 + w / c).log()).exp()
            node = (weight * _difference(vertex, c + w)).real
            total += node if j else node / 2
        return total * _prefactor(vertex, line.c) * arb(line.step) / arb.pi()


def _difference(vertex: Vertex, s: acb) -> acb:
    """Return D(s) without the term of *all* components below gamma.

    They would sum to less than ``n gamma < 1``: the term adds nothing to the integral, but it
    is the one that falls most slowly along the line. (Its aliases, at ``y < n gamma``, are no
    larger than those of the rest for odd n, and are added for even n: the sum stays safe.)
    """
    z, n = vertex.gamma * s, vertex.n
    Q_a, Q_b = _upper_gamma(vertex.a, z), _upper_gamma(vertex.b, z)
    D: acb = 1 - Q_a ** (n - 1) * Q_b + (-1) ** n * (1 - Q_a) ** (n - 1) * (1 - Q_b)
    return D


def _upper_gamma(shape: arb, z: acb) -> acb:
    """Return Q(shape, z): flint's for small shapes or large |z|, else a series of its own.

    Flint loses all digits where z is near a large shape.
    """
    from flint import acb, ctx

    if shape > 200 and z.abs_upper() < 1.2 * shape:
        return 1 - _lower_gamma(shape, z)
    for bits in (_BITS, 2 * _BITS, 4 * _BITS, 8 * _BITS):
        with ctx.workprec(bits):
            Q: acb = z.gamma_upper(acb(shape), regularized=1)
        if Q.rel_accuracy_bits() > _BITS // 2:
            break
    return Q


def _lower_gamma(shape: arb, z: acb) -> acb:
    """Return ``P(a, z) = z^a e^-z / Gamma(a+1) sum_m z^m / ((a+1) ... (a+m))``."""
    from flint import acb, arb, ctx

    a, x = float(shape), float(z.abs_upper())
    # What the terms' cancellation costs: the log of the whole with |z| in the sum's place.
    lost = a * math.log(x / a) + a - float(z.real)
    with ctx.workprec(_BITS + max(0, math.ceil(1.5 * lost))):
        term, total, log_size, m = acb(1), acb(1), 0.0, 0
        while log_size > _NEGLIGIBLE:
            m += 1
            term *= z / (shape + m)
            total += term
            log_size += math.log(x / (a + m))
        rest = arb(0, 1.01 * math.exp(log_size) * x / (a + m - x))
        scale = (shape * z.log() - z - (shape + 1).lgamma()).exp()
        P: acb = scale * (total + acb(rest, rest))
        return P


def _prefactor(vertex: Vertex, c: float) -> arb:
    """Return ``e^c c^-k Gamma(k)``."""
    from flint import arb, ctx

    with ctx.workprec(_BITS):
        return (vertex.k.lgamma() + arb(c) - vertex.k * arb(c).log()).exp()
