"""Fewer states: groups in place of states, or some of the states only.

A group moves as its states do on average, and the average is weighted. When all states of every
group move alike between groups (the chain is *lumpable*: Kemeny and Snell, ch. 6), any weights give
the same chain. Weighted by the stationary distribution, the groups' stationary probabilities are
always the sums of their states'.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

__all__ = ["lumped", "membership", "restricted"]


def membership(
    groups: Mapping[Any, Hashable] | Sequence[Hashable], labels: Sequence[Hashable]
) -> tuple[tuple[Hashable, ...], Indices]:
    """Return the groups' names, in order of appearance, and each state's group.

    Examples
    --------
    >>> membership({"a": "x", "b": "y", "c": "x"}, ["a", "b", "c"])
    (('x', 'y'), array([0, 1, 0]))
    """
    if isinstance(groups, Mapping):
        missing = [label for label in labels if label not in groups]
        if missing:
            raise DpmarkovError(
                f"{len(missing):,} of {len(labels):,} states have no group, "
                f"{missing[0]!r} for one: name a group for every state"
            )
        groups = [groups[label] for label in labels]
    if len(groups) != len(labels):
        raise DpmarkovError(
            f"{len(groups):,} groups are given for {len(labels):,} states: "
            "give each state's group, in the order of the labels"
        )
    places: dict[Hashable, int] = {}
    member = np.array([places.setdefault(group, len(places)) for group in groups], dtype=np.intp)
    return tuple(places), member


def lumped(P: Any, names: Sequence[Hashable], member: Indices, weights: Floats) -> Any:
    """Return the transition probabilities between groups, averaged over each group's states.

    Parameters
    ----------
    P : ndarray or sparse matrix, shape (n, n)
        Transition probabilities.
    names : sequence of hashable
        The groups' names, for the message.
    member : ndarray of int, shape (n,)
        The group of each state.
    weights : ndarray, shape (n,)
        How much each state counts within its group.

    Returns
    -------
    ndarray or sparse matrix
        As P is.

    Raises
    ------
    DpmarkovError
        If all weights of a group are zero.
    """
    states = np.arange(len(member))
    mass = np.bincount(member, weights, minlength=len(names))
    if not (mass > 0).all():
        raise DpmarkovError(
            f"group {names[int(np.argmin(mass))]!r} has weight 0, so that its average is not "
            "defined: pass weights that are positive somewhere in every group"
        )
    gather = sparse.csr_array((np.ones(len(states)), (states, member)))
    average = sparse.csr_array((weights / mass[member], (member, states)))
    return average @ P @ gather


def restricted(P: Any, kept: Indices, labels: Sequence[Hashable]) -> Any:
    """Return the transition probabilities among some states, given that no step leaves them.

    Parameters
    ----------
    P : ndarray or sparse matrix, shape (n, n)
        Transition probabilities.
    kept : ndarray of int
        Positions of the states to keep.
    labels : sequence of hashable
        Names of all states, for the message.

    Returns
    -------
    ndarray or sparse matrix
        As P is.

    Raises
    ------
    DpmarkovError
        If a kept state never goes to a kept state.
    """
    part = P[kept][:, kept]
    staying = np.asarray(part.sum(axis=1))
    if not (staying > 0).all():
        raise DpmarkovError(
            f"state {labels[kept[int(np.argmin(staying))]]!r} never goes to a kept state: "
            "keep one that it goes to as well, or leave it out"
        )
    return sparse.diags_array(1 / staying) @ part
