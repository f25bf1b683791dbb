"""A Markov chain with named states, and the questions one asks of it.

A chain is a matrix P whose row i is the distribution of the next state, given that the present one
is i. `MarkovChain` checks this once and never changes afterwards. Its methods give the states names
and hand the mathematics to the modules beside it: who reaches whom (`structure`), where the chain
is in the long run (`stationary`, `sparse`), how long it takes to get there (`mixing`) or from one
state to another (`passage`), and what it may do by the way (`walks`).

**When the chain is not irreducible.** Some answers need less. With *one* closed class and some
transient states, the stationary distribution is unique (zero on the transient states), and so are
the entropy rate, the fundamental matrix, Kemeny's constant, the period (of the closed class) and
the mixing time. Passage times need every state to reach every other, else they are infinite.
With several closed classes there is no single answer, and these methods raise an error that names
states which cannot be reached.

**Large sparse chains.** Up to 3,000 states a sparse matrix is simply made dense where that is
needed. Beyond, these work to a million states: the classes, the period, the stationary
distribution, the entropy rate, ``ergodicity_coefficient(inf)``, `evolve`, `simulate`, `lump`,
`restrict`, and the second eigenvalue unless the chain mixes slowly. All others say if they cannot.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmarkov.chain import display, grouping, mixing, passage, structure, walks
from dpmarkov.chain.stationary import stationary_distribution
from dpmarkov.chain.validation import (
    as_dense,
    checked_count,
    checked_distribution,
    checked_labels,
    checked_matrix,
    checked_weights,
    is_sparse,
)
from dpmarkov.charts.views import ChainPlots
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = ["MarkovChain"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MarkovChain(ChainPlots):
    """A Markov chain on finitely many named states.

    Parameters
    ----------
    P : array_like or sparse matrix, shape (n, n)
        Row i is the distribution of the next state when the present one is i. Copied and made
        read-only. Rows must sum to one within 1e-8; a row off by more than rounding is divided by
        its sum, any other is kept bit for bit.
    labels : sequence of hashable, optional
        Names of the states, all different. By default 0, 1, ..., n - 1.

    Attributes
    ----------
    transition_matrix : ndarray or scipy.sparse.csr_array
        P, read-only.
    labels : tuple
        Names of the states, in the order of the rows.

    Raises
    ------
    DpmarkovError
        If P is not a square table of probabilities, or labels do not name its rows.

    Examples
    --------
    >>> weather = MarkovChain([[0.9, 0.1], [0.3, 0.7]], ["sun", "rain"])
    >>> weather
    MarkovChain(2 states: 'sun', 'rain'; 4 of 4 transitions possible)
    >>> weather.stationary_distribution()
    array([0.75, 0.25])
    >>> round(weather.kemeny_constant(), 6), weather.mixing_time(0.01)
    (2.5, 9)
    """

    transition_matrix: Any
    labels: tuple[Hashable, ...]

    def __init__(self, P: Any, labels: Sequence[Hashable] | None = None) -> None:
        names = checked_labels(labels, P)
        object.__setattr__(self, "labels", names)
        object.__setattr__(self, "transition_matrix", checked_matrix(P, names))

    def __repr__(self) -> str:
        return display.in_one_line(self.transition_matrix, self.labels)

    def _repr_html_(self) -> str:
        return display.in_html(self.transition_matrix, self.labels)

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.labels)

    # Who reaches whom

    def communicating_classes(self) -> tuple[tuple[Hashable, ...], ...]:
        """Return the classes of states that reach each other, ordered by their first state.

        >>> MarkovChain([[1, 0, 0], [0.5, 0, 0.5], [0, 1, 0]], "abc").communicating_classes()
        (('a',), ('b', 'c'))
        """
        return self._named(structure.communicating_classes(self.transition_matrix))

    def closed_classes(self) -> tuple[tuple[Hashable, ...], ...]:
        """Return the communicating classes that cannot be left, ordered by their first state.

        >>> MarkovChain([[1, 0, 0], [0.5, 0, 0.5], [0, 1, 0]], "abc").closed_classes()
        (('a',),)
        """
        return self._named(structure.closed_classes(self.transition_matrix))

    @cached_property
    def is_irreducible(self) -> bool:
        """Whether every state can be reached from every other."""
        return len(structure.communicating_classes(self.transition_matrix)) == 1

    @cached_property
    def period(self) -> int:
        """The greatest common divisor of the lengths of all cycles in the only closed class.

        >>> MarkovChain([[0, 1], [1, 0]]).period
        2
        """
        recurrent = self._recurrent
        if len(recurrent) == self.n_states:
            return structure.period(self.transition_matrix)
        return structure.period(self.transition_matrix[recurrent][:, recurrent])

    # The long run

    def stationary_distribution(self) -> Floats:
        """Return the distribution that a step leaves as it is, in the order of the labels.

        Every entry is right to a relative 1e-13 or so, even when parts of the chain are almost
        disconnected; see `dpmarkov.chain.stationary`. For more than 3,000 sparse states see
        `dpmarkov.chain.sparse`, which gives an `AccuracyWarning` where less can be promised.

        The array is read-only, and zero on transient states. Several closed classes are an error,
        which names states that cannot be reached.
        """
        return self._pi

    def entropy_rate(self) -> float:
        """Return the mean entropy of a step in the long run, in nats.

        >>> round(MarkovChain([[0.5, 0.5], [0.5, 0.5]]).entropy_rate(), 6)
        0.693147
        """
        from scipy.special import entr

        P = self.transition_matrix
        if not is_sparse(P):
            return float(self._pi @ entr(P).sum(axis=1))
        return float(np.repeat(self._pi, np.diff(P.indptr)) @ entr(P.data))

    # How fast it forgets

    def ergodicity_coefficient(self, norm: float = 1) -> float:
        """Return the most that one step can stretch a difference of two distributions.

        Norm 1 is half the largest 1-norm distance of two rows (Dobrushin's coefficient), norm inf
        the paper's tau_inf (Definition 7). Both are closed forms.

        Examples
        --------
        >>> chain = MarkovChain([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]])
        >>> chain.ergodicity_coefficient(1), chain.ergodicity_coefficient(inf)
        (0.5, 0.5)
        """
        if norm == inf:
            return mixing.ergodicity_coefficient_inf(self.transition_matrix)
        if norm != 1:
            raise DpmarkovError(f"norm is {norm!r} and must be 1 or inf")
        if is_sparse(self.transition_matrix) and mixing.has_disjoint_rows(self.transition_matrix):
            return 1.0
        return mixing.ergodicity_coefficient_1(self._dense("comparing all pairs of rows"))

    def second_eigenvalue_modulus(self) -> float:
        """Return the second largest modulus of an eigenvalue, counted with multiplicity.

        One if there are several closed classes or a period above one. Dense: right to about 1e-15.
        """
        if len(structure.closed_classes(self.transition_matrix)) > 1 or self.period > 1:
            return 1.0
        return mixing.second_eigenvalue_modulus(self.transition_matrix, self._pi)

    def spectral_gap(self) -> float:
        """Return one less `second_eigenvalue_modulus`: the rate at which differences die out.

        Its absolute error is that of the eigenvalue: a gap below 1e-14 is not told from zero.

        >>> round(MarkovChain([[0.9, 0.1], [0.3, 0.7]]).spectral_gap(), 12)
        0.4
        """
        return 1 - self.second_eigenvalue_modulus()

    def mixing_time(self, tol: float = 0.25) -> int:
        """Return after how many steps every start is within tol of the stationary distribution.

        The distance is total variation. An error tells if the chain never gets there, because it
        has several closed classes or is periodic, or if it is sparse with over 3,000 states.
        """
        if not 0 < tol < 1:
            raise DpmarkovError(f"tol is {tol} and must lie above 0 and below 1")
        pi = self._pi
        if self.period > 1:
            raise DpmarkovError(
                f"the chain has period {self.period} where 1 is needed: it returns to where it was "
                "and never mixes. Use the lazy chain (I + P) / 2, or stationary_distribution()"
            )
        return mixing.mixing_time(self._dense("taking powers of the chain"), pi, tol)

    # From one state to another

    def mean_first_passage_times(self) -> Floats:
        """Return the mean number of steps from each state (row) to the next visit of each (column).

        The diagonal holds the mean times to return. Every entry is right to rounding, also
        between parts of a chain that are almost disconnected; see `dpmarkov.chain.passage`. An
        error names the states that cannot be reached, or the size that a sparse chain may have.

        Examples
        --------
        >>> MarkovChain([[0.9, 0.1], [0.3, 0.7]]).mean_first_passage_times().round(4)
        array([[ 1.3333, 10.    ],
               [ 3.3333,  4.    ]])
        """
        structure.require_irreducible(self.transition_matrix, self.labels)
        return passage.mean_first_passage_times(self._dense("a table of passage times"), self._pi)

    def kemeny_constant(self) -> float:
        """Return the mean time from any state to one drawn from the stationary distribution.

        A start that is drawn itself counts as met at once: ``trace(Z) - 1``.
        """
        return passage.kemeny_constant(self._dense("Kemeny's constant"), self._pi)

    def fundamental_matrix(self) -> Floats:
        """Return ``Z = inv(I - P + 1 pi^T)``, found without inverting."""
        return passage.fundamental_matrix(self._dense("the fundamental matrix"), self._pi)

    # What it does

    def evolve(self, distribution: ArrayLike | Hashable, steps: int = 1) -> Floats:
        """Return the distribution after some steps.

        Parameters
        ----------
        distribution : hashable or array_like, shape (n,) or (..., n)
            A state's label, to start there; or the probabilities of the states.
        steps : int
            How many steps, zero or more.

        Examples
        --------
        >>> MarkovChain([[0.9, 0.1], [0.3, 0.7]], ["sun", "rain"]).evolve("sun", 2)
        array([0.84, 0.16])
        """
        steps = checked_count("steps", steps, 0)
        return walks.evolve(self.transition_matrix, self._distribution(distribution), steps)

    def simulate(
        self,
        steps: int,
        walkers: int = 1,
        start: ArrayLike | Hashable | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> NDArray[np.intp]:
        """Draw walks along the chain, all walkers at once.

        Parameters
        ----------
        steps : int
            How many steps each walker takes.
        walkers : int
            How many walkers there are.
        start : hashable or array_like, shape (n,), optional
            A state's label, where all begin; or the probabilities of the states to begin in. By
            default each begins in a state drawn from the stationary distribution.
        rng : numpy.random.Generator or int, optional
            The source of chance, or a seed for one. By default a fresh one.

        Returns
        -------
        ndarray of int, shape (walkers, steps + 1)
            One walk per row, as positions in `labels`.

        Examples
        --------
        >>> chain = MarkovChain([[0, 1, 0], [0, 0, 1], [1, 0, 0]], ["red", "green", "amber"])
        >>> [chain.labels[i] for i in chain.simulate(4, start="green")[0]]
        ['green', 'amber', 'red', 'green', 'amber']
        """
        steps = checked_count("steps", steps, 0)
        walkers = checked_count("walkers", walkers, 1)
        rng = np.random.default_rng(rng)
        begin = self._pi if start is None else self._distribution(start)
        first = rng.choice(self.n_states, size=walkers, p=begin / begin.sum())
        return walks.walk(self.transition_matrix, first, steps, rng)

    def lump(
        self,
        groups: Mapping[Any, Hashable] | Sequence[Hashable],
        weights: ArrayLike | None = None,
    ) -> MarkovChain:
        """Return the chain of groups of states.

        A group moves as its states do on average, weighted by how often the chain is in them, so
        that the groups' stationary probabilities are the sums of their states'.

        Parameters
        ----------
        groups : mapping or sequence
            For each label its group, or the groups in the order of the labels.
        weights : array_like, shape (n,), optional
            How much each state counts within its group; by default the stationary distribution.

        Examples
        --------
        >>> chain = MarkovChain([[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]], ["a", "b", "c"])
        >>> chain.lump({"a": "x", "b": "y", "c": "y"}).transition_matrix
        array([[0. , 1. ],
               [0.5, 0.5]])
        """
        names, member = grouping.membership(groups, self.labels)
        w = self._pi if weights is None else checked_weights(weights, self.n_states)
        return MarkovChain(grouping.lumped(self.transition_matrix, names, member, w), names)

    def restrict(self, states: Sequence[Hashable]) -> MarkovChain:
        """Return the chain on some states only, given that no step leaves them.

        One of `communicating_classes`, say. Every row is divided by its probability to stay among
        these states, in the order given.

        Examples
        --------
        >>> chain = MarkovChain([[0.5, 0.25, 0.25], [0, 1, 0], [0.5, 0, 0.5]], ["a", "b", "c"])
        >>> chain.restrict(["a", "c"]).transition_matrix.round(4)
        array([[0.6667, 0.3333],
               [0.5   , 0.5   ]])
        """
        kept = np.array([self._position(state) for state in states], dtype=np.intp)
        return MarkovChain(
            grouping.restricted(self.transition_matrix, kept, self.labels), tuple(states)
        )

    # Within the class

    @cached_property
    def _recurrent(self) -> NDArray[np.intp]:
        return structure.the_closed_class(self.transition_matrix, self.labels)

    @cached_property
    def _pi(self) -> Floats:
        recurrent, pi = self._recurrent, np.zeros(self.n_states)
        P = self.transition_matrix
        if len(recurrent) < self.n_states:
            P = P[recurrent][:, recurrent]
        pi[recurrent] = stationary_distribution(P)
        pi.flags.writeable = False
        return pi

    def _dense(self, purpose: str) -> Floats:
        return as_dense(self.transition_matrix, purpose)

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def _position(self, label: Hashable) -> int:
        if label not in self._positions:
            raise DpmarkovError(
                f"{label!r} is not one of the chain's {self.n_states:,} states: see labels"
            )
        return self._positions[label]

    def _named(self, classes: Sequence[NDArray[np.intp]]) -> tuple[tuple[Hashable, ...], ...]:
        return tuple(tuple(self.labels[i] for i in states) for states in classes)

    def _distribution(self, given: Any) -> Floats:
        """Return the distribution that is meant by a label, or given as probabilities."""
        if isinstance(given, Hashable) and (np.isscalar(given) or given in self._positions):
            point: Floats = np.eye(1, self.n_states, self._position(given))[0]
            return point
        return checked_distribution(given, self.n_states)
