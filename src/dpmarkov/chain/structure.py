"""Who can reach whom: communicating classes, closed classes, irreducibility and the period.

Nothing here looks at how large a probability is, only at whether it is zero. The states split
into *communicating classes*, whose members reach each other. A class that cannot be left is
*closed*; a state outside every closed class is *transient*. A chain with one class is
*irreducible*; a chain with one closed class still has exactly one stationary distribution,
which is zero on the transient states. Seneta, *Non-negative Matrices and Markov Chains*, ch. 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpmarkov.chain.validation import is_sparse
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    Labels = Sequence[Hashable]
    Indices = NDArray[np.intp]

__all__ = [
    "closed_classes",
    "communicating_classes",
    "name_states",
    "period",
    "require_irreducible",
    "the_closed_class",
]

_NAMED = 5  # states that a message lists before it counts the rest


def communicating_classes(P: Any) -> list[Indices]:
    """Split the states into classes that reach each other, ordered by their first state.

    Parameters
    ----------
    P : array_like or sparse matrix, shape (n, n)
        Transition probabilities.

    Returns
    -------
    list of ndarray
        The states of each class, ascending.

    Examples
    --------
    >>> [c.tolist() for c in communicating_classes([[1, 0, 0], [0.5, 0, 0.5], [0, 1, 0]])]
    [[0], [1, 2]]
    """
    return _grouped(_class_of_state(_graph(P)))


def closed_classes(P: Any) -> list[Indices]:
    """Return the communicating classes that cannot be left, ordered by their first state.

    Parameters
    ----------
    P : array_like or sparse matrix, shape (n, n)
        Transition probabilities.

    Returns
    -------
    list of ndarray
        The states of each closed class, ascending.

    Examples
    --------
    >>> [c.tolist() for c in closed_classes([[1, 0, 0], [0.5, 0, 0.5], [0, 1, 0]])]
    [[0]]
    """
    graph = _graph(P)
    member = _class_of_state(graph)
    origin, destination = graph.nonzero()
    is_left = np.zeros(len(member), dtype=bool)
    is_left[member[origin][member[origin] != member[destination]]] = True
    return [states for states in _grouped(member) if not is_left[member[states[0]]]]


def require_irreducible(P: Any, labels: Labels) -> None:
    """Raise unless every state can be reached from every other.

    Parameters
    ----------
    P : array_like or sparse matrix, shape (n, n)
        Transition probabilities.
    labels : sequence of hashable
        Names of the states, for the message.

    Raises
    ------
    DpmarkovError
        Naming states that cannot be reached, and the class that they cannot be reached from.
    """
    if _complete(P) or len(communicating_classes(P)) == 1:
        return
    source = closed_classes(P)[0]
    unreached = np.setdiff1d(np.arange(P.shape[0]), source)
    raise DpmarkovError(
        f"the chain is not irreducible: {name_states(unreached, labels)} cannot be reached from "
        f"the closed class {name_states(source, labels)}. Keep one of communicating_classes() "
        "with restrict(states), or give the missing transitions a positive probability"
    )


def the_closed_class(P: Any, labels: Labels) -> Indices:
    """Return the states of the only closed class.

    Parameters
    ----------
    P : array_like or sparse matrix, shape (n, n)
        Transition probabilities.
    labels : sequence of hashable
        Names of the states, for the message.

    Returns
    -------
    ndarray
        The recurrent states, ascending.

    Raises
    ------
    DpmarkovError
        If there are several: then no answer is the only one.
    """
    if _complete(P):
        return np.arange(P.shape[0])
    closed = closed_classes(P)
    if len(closed) == 1:
        return closed[0]
    raise DpmarkovError(
        f"the chain has {len(closed)} closed classes where one is needed: "
        f"{name_states(closed[1], labels)} cannot be reached from the closed class "
        f"{name_states(closed[0], labels)}. Keep one of closed_classes() with restrict(states)"
    )


def period(P: Any) -> int:
    """Return the greatest common divisor of all cycle lengths of an irreducible chain.

    Along any edge of a breadth-first tree's graph, ``level(i) + 1 - level(j)`` is a multiple of
    the period, and their greatest common divisor is the period.

    Parameters
    ----------
    P : array_like or sparse matrix, shape (n, n)
        Transition probabilities of an irreducible chain.

    Returns
    -------
    int
        The period; 1 for an aperiodic chain.

    Examples
    --------
    >>> period([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    3
    """
    from scipy.sparse.csgraph import dijkstra

    graph = _graph(P)
    if graph.diagonal().any():
        return 1  # a state that can stay has a cycle of length one
    level = dijkstra(graph, indices=[0], unweighted=True)[0].astype(np.int64)
    origin, destination = graph.nonzero()
    return int(np.gcd.reduce(level[origin] + 1 - level[destination]))


def name_states(states: Indices, labels: Labels) -> str:
    """Name a few states and count the others, for a message.

    Examples
    --------
    >>> name_states(np.array([0, 2]), ["home", "work", "park"])
    "{'home', 'park'}"
    """
    named = ", ".join(repr(labels[i]) for i in states[:_NAMED])
    others = len(states) - _NAMED
    return f"{{{named}}}" if others <= 0 else f"{{{named}, and {others:,} more}}"


def _graph(P: Any) -> Any:
    """Return the edges in compressed rows: the pattern of P, without explicit zeros."""
    return sparse.csr_array((P if is_sparse(P) else np.asarray(P)) != 0)


def _complete(P: Any) -> bool:
    """Tell whether every transition is possible, which answers most questions at once."""
    return bool(P.count_nonzero() == P.shape[0] ** 2 if is_sparse(P) else np.all(P))


def _class_of_state(graph: Any) -> NDArray[np.int32]:
    from scipy.sparse.csgraph import connected_components

    if _complete(graph):
        return np.zeros(graph.shape[0], dtype=np.int32)
    return np.asarray(connected_components(graph, directed=True, connection="strong")[1])


def _grouped(member: NDArray[np.int32]) -> list[Indices]:
    """List the states of each class, the class of the first state first."""
    order = np.argsort(member, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(member[order])) + 1)
    return sorted(groups, key=lambda states: int(states[0]))
