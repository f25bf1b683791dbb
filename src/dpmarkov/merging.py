"""Fewer and fuller states: joining the smallest with a neighbour, as in the paper's appendix.

A state that is seldom left makes the weakest row. The paper (appendix "Additional Simulation
Details") therefore combines taxi zones of few trips with adjacent ones, "to achieve a more
equitable distribution of participants", and does not say with which. Here the state with the
smallest row total joins the *smallest* of its neighbours, which keeps the totals most equal; of
equal ones the earlier in the order of the labels is taken. So the result follows from the row
totals and the adjacency alone. Which neighbour it is matters for accuracy, not for privacy.

Whether it is free depends on the unit (theory section 5):

``destination``
    row totals are public, and so is whatever follows from them;
``transition``
    they are not. One transition more changes one total by one, so two-sided geometric noise of
    scale 1/epsilon makes the vector of totals epsilon-differentially private, and merging by the
    noisy totals is post-processing. It is drawn once, for the states as they were, and the totals
    of groups are sums of it. The release adds that share to its own epsilon;
``user``
    nor are they here. One user more changes the totals by at most ``max_cells * max_per_cell`` in
    all, and the scale is that many times as large. As the cells of a group add up, so do the
    user's transitions in them: merging widens `max_per_cell` for what follows.

A group bears the label of its largest state (the noisy totals decide, where there is noise), so
that labels keep their type and order and stay distinct; `StateSpace.groups` says what each
stands for.
"""

from __future__ import annotations

import math
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmarkov.adjacency import neighbours
from dpmarkov.counts import TransitionCounts
from dpmarkov.errors import DpmarkovError
from dpmarkov.mechanisms.geometric import two_sided_geometric
from dpmarkov.privacy.units import Sensitivity, Unit, bounds_for, sensitivity
from dpmarkov.states import StateSpace

if TYPE_CHECKING:
    from dpmarkov.ledger import Dataset

__all__ = ["merge_states"]

_Neighbours = list[set[int]]
_Join = tuple[int, int]


def merge_states(
    counts: TransitionCounts,
    adjacency: Any,
    *,
    to: int | None = None,
    minimum_total: float | None = None,
    unit: Unit,
    epsilon: float | None = None,
    name: str | None = None,
    ledger: Dataset | None = None,
) -> TransitionCounts:
    """Join the smallest state with its smallest neighbour, again and again.

    Merge before the release, and say so there: the merged counts know under which unit and at
    which price they were made.

    Parameters
    ----------
    counts : TransitionCounts
        Counts over a square space.
    adjacency : pairs, matrix, path or mapping
        Which states lie next to each other, declared without looking at the data: pairs of labels,
        a boolean matrix, a CSV file of edges, or GeoJSON polygons (extra `geo`).
    to : int, optional
        How many states shall be left.
    minimum_total : float, optional
        Instead of `to`: the row total that every state shall reach. A group that has no neighbour
        left stays below it, and two states are left at least.
    unit : {"destination", "transition", "user"}
        What the release will hide.
    epsilon : float, optional
        Under `transition` and `user` the share of the budget that noise in the row totals takes.
        It is spent when this function returns, and once more at each further call.
    name : str, optional
        Which property of the GeoJSON features names the state.
    ledger : Dataset, optional
        The data set of a `dpmarkov.Ledger` that the release will be charged to. The share is
        charged here, before its noise is drawn, and the release then charges the rest.

    Returns
    -------
    TransitionCounts
        Over the merged space, in which a transition is feasible if it was for any of the members.

    Raises
    ------
    DpmarkovError
        If an argument is out of range or does not go with another, or the number of states cannot
        be reached along the adjacency.

    Examples
    --------
    >>> space = StateSpace(["north", "east", "south", "west"])
    >>> counts = TransitionCounts.from_dense(
    ...     [[90, 5, 5, 0], [1, 2, 3, 0], [40, 0, 8, 2], [2, 2, 0, 6]], space)
    >>> ring = [("north", "east"), ("east", "south"), ("south", "west"), ("west", "north")]
    >>> merged = merge_states(counts, ring, to=2, unit="destination")
    >>> merged.space.groups
    {'north': ('north',), 'south': ('south', 'east', 'west')}
    >>> merged.to_dense()
    array([[90, 10],
           [43, 23]])
    """
    _check_target(counts.space, to, minimum_total)
    _check_share(counts, unit, epsilon)
    _check_ledger(counts, unit, ledger)
    around = neighbours(adjacency, counts.space, name=name)
    if to is not None:
        _check_reachable(around, to)
    totals, charge = counts.row_totals, counts.charge
    if epsilon is not None:
        if ledger is not None:
            charge = ledger.charge_share(unit, epsilon, "merging")
        moved = _change(counts, unit).l1
        # The next float above the ratio: rounding must not make the scale too small.
        scale = math.nextafter(moved / epsilon, math.inf)
        totals = totals + two_sided_geometric(totals.shape, scale=scale)
    joins = _joins(totals.tolist(), around, counts.space, to, minimum_total)
    merged = _joined(counts, joins, unit, epsilon or 0.0)
    return replace(merged, charge=charge)


# -- what may be asked ---------------------------------------------------------------------------


def _check_target(space: StateSpace, to: int | None, minimum_total: float | None) -> None:
    if space.kind != "square":
        raise DpmarkovError(
            f"a {space.kind} space cannot be merged: its origins and destinations are not the same "
            "states. Merge the labels in the events and count again"
        )
    if (to is None) == (minimum_total is None):
        raise DpmarkovError("give either to=, a number of states, or minimum_total=, not both")
    n = len(space.labels)
    if to is not None and not (2 <= to <= n and to == int(to)):
        raise DpmarkovError(f"to={to!r} must be a whole number from 2 to the {n} states there are")
    if minimum_total is not None and not 0 < minimum_total < math.inf:
        raise DpmarkovError(f"minimum_total={minimum_total!r} must be above 0 and finite")


def _change(counts: TransitionCounts, unit: Unit) -> Sensitivity:
    """Tell how far a change moves the counts, or that users were not bounded."""
    return sensitivity(unit, **bounds_for(unit, counts.max_cells, counts.max_per_cell))


def _check_share(counts: TransitionCounts, unit: Unit, epsilon: float | None) -> None:
    _change(counts, unit)
    if counts.merged_for not in (None, unit):
        raise DpmarkovError(
            f"the counts were merged for the unit {counts.merged_for!r} and cannot be merged again "
            f"for {unit!r}; start from the counts as they were before"
        )
    if unit == "destination" and epsilon is not None:
        raise DpmarkovError(
            f"epsilon={epsilon!r} buys nothing: under the unit 'destination' the row totals are "
            "public and merging by them is free; leave it out"
        )
    if unit != "destination" and epsilon is None:
        raise DpmarkovError(
            f"under the unit {unit!r} the row totals are private, so that merging by them takes a "
            "share of the budget: give it as epsilon= (a tenth of the release's, say)"
        )
    if epsilon is not None and not 0 < epsilon < math.inf:
        raise DpmarkovError(f"epsilon={epsilon!r} must be above 0 and finite")


def _check_ledger(counts: TransitionCounts, unit: Unit, ledger: Dataset | None) -> None:
    charged = counts.charge is not None
    if counts.spent_epsilon and charged != (ledger is not None):
        raise DpmarkovError(
            "what was spent on these counts before was "
            + ("charged to a ledger" if charged else "charged to none")
            + "; give the same ledger= each time, or start from the events"
        )
    if ledger is not None:
        ledger.check_unit(unit)
        if counts.charge is not None:
            ledger.check_charged(counts.charge)


def _check_reachable(around: _Neighbours, to: int) -> None:
    """Refuse before any noise is drawn: joins never connect what the adjacency leaves apart."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(around)
    edges = np.array([(a, b) for a, near in enumerate(around) for b in near])
    links = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    pieces, _ = connected_components(links, directed=False)
    if pieces > to:
        raise DpmarkovError(
            f"to={to} cannot be reached: the adjacency falls into {pieces} pieces, between which "
            "no states are joined; ask for as many states at least, or connect the pieces"
        )


# -- which states join ---------------------------------------------------------------------------


def _joins(
    totals: list[int],
    around: _Neighbours,
    space: StateSpace,
    to: int | None,
    minimum_total: float | None,
) -> list[_Join]:
    """Find the joins (kept, gone), where a group is known by the position of its largest state."""
    groups = _Groups(totals, around, space)
    joins: list[_Join] = []
    while len(groups.total) != to and (smallest := groups.pop_smallest()) is not None:
        if minimum_total is not None and groups.total[smallest] >= minimum_total:
            break
        partner = groups.partner(smallest)
        if partner is not None:
            joins.append(groups.join(smallest, partner))
    if to is not None and len(groups.total) > to:
        raise DpmarkovError(
            f"to={to} cannot be reached: with {len(groups.total)} states left, any further join "
            "would leave some origin with a single feasible destination; ask for more states, or "
            "declare more transitions feasible"
        )
    return joins


class _Groups:
    """The groups while they are being joined: their totals, neighbours and feasible moves."""

    def __init__(self, totals: list[int], around: _Neighbours, space: StateSpace) -> None:
        self._size = totals
        self._around = around
        self.total = dict(enumerate(totals))
        self._queue = [(total, group) for group, total in self.total.items()]
        heapify(self._queue)
        self._support = None if space.is_complete else _Support(space)

    def pop_smallest(self) -> int | None:
        """Take the smallest group off the queue; it comes back when it has grown."""
        while self._queue:
            total, group = heappop(self._queue)
            if self.total.get(group) == total:
                return group
        return None

    def partner(self, group: int) -> int | None:
        """Find the smallest neighbour that the group may join."""
        by_size = sorted(self._around[group], key=lambda other: (self.total[other], other))
        return next((other for other in by_size if self._may_join(group, other)), None)

    def _may_join(self, a: int, b: int) -> bool:
        """Tell whether every row keeps two feasible destinations at least."""
        return len(self.total) > 2 and (self._support is None or self._support.may_join(a, b))

    def join(self, a: int, b: int) -> _Join:
        kept, gone = sorted((a, b), key=lambda group: (-self._size[group], group))
        self.total[kept] += self.total.pop(gone)
        heappush(self._queue, (self.total[kept], kept))
        _rename(self._around, self._around, kept, gone)
        self._around[kept] -= {kept, gone}
        if self._support is not None:
            self._support.join(kept, gone)
        return kept, gone


class _Support:
    """Which group may go to which, both ways round, where not every transition is feasible."""

    def __init__(self, space: StateSpace) -> None:
        n = len(space.labels)
        self._to: _Neighbours = [set() for _ in range(n)]
        self._from: _Neighbours = [set() for _ in range(n)]
        for i, j in zip(space.rows.tolist(), space.columns.tolist(), strict=True):
            self._to[i].add(j)
            self._from[j].add(i)

    def may_join(self, a: int, b: int) -> bool:
        merged = self._to[a] | self._to[b]
        both = self._from[a] & self._from[b]
        return len(merged) - ({a, b} <= merged) >= 2 and all(
            len(self._to[origin]) > 2 for origin in both - {a, b}
        )

    def join(self, kept: int, gone: int) -> None:
        _rename(self._to, self._from, kept, gone)
        _rename(self._from, self._to, kept, gone)


def _rename(ahead: _Neighbours, back: _Neighbours, kept: int, gone: int) -> None:
    """Lead the arrows that end in `gone` to `kept`, and let its own start there."""
    for origin in back[gone]:
        ahead[origin].discard(gone)
        ahead[origin].add(kept)
    ahead[kept] |= {kept if end == gone else end for end in ahead[gone]}


# -- the counts of the groups --------------------------------------------------------------------


def _joined(
    counts: TransitionCounts, joins: list[_Join], unit: Unit, spent: float
) -> TransitionCounts:
    """Add up the counts of each group, and widen what follows from its cells."""
    old = counts.space
    member = _members(len(old.labels), joins)
    support, folded = _feasible(old, member)
    gone = {position for _, position in joins}
    space = StateSpace(
        [label for position, label in enumerate(old.labels) if position not in gone],
        support=support,
        merges=(*old.merges, *((old.labels[a], old.labels[b]) for a, b in joins)),
    )
    lay_out, take = (
        (old.to_dense, TransitionCounts.from_dense)
        if old.is_complete
        else (old.to_sparse, TransitionCounts.from_sparse)
    )
    return replace(
        counts,
        space=space,
        cells=take(_sums(lay_out(counts.cells), member), space).cells,
        max_per_cell=_widened(counts, folded),
        merged_for=unit,
        spent_epsilon=counts.spent_epsilon + spent,
    )


def _members(n: int, joins: list[_Join]) -> npt.NDArray[np.int64]:
    """Give the place of each state's group among the groups that are left."""
    head = np.arange(n)
    for kept, gone in reversed(joins):  # when a group goes, where it goes to is settled
        head[gone] = head[kept]
    return np.unique(head, return_inverse=True)[1]


def _feasible(space: StateSpace, member: npt.NDArray[np.int64]) -> tuple[Any, int]:
    """Give the support of the groups, and the most feasible cells that fold into one."""
    if space.is_complete:
        return None, int(np.bincount(member).max()) ** 2
    folded = _sums(space.to_sparse(np.ones(space.n_cells, dtype=np.int64)), member)
    return folded, int(folded.max())


def _sums(cells: Any, member: npt.NDArray[np.int64]) -> Any:
    """Add up the rows and the columns of each group."""
    from scipy.sparse import csr_array

    gather = csr_array((np.ones_like(member), (np.arange(member.size), member)))
    return gather.T @ cells @ gather


def _widened(counts: TransitionCounts, folded: int) -> int | None:
    """Bound what a user has in one cell of the groups, whose parts may all be theirs."""
    if counts.max_cells is None or counts.max_per_cell is None:
        return None
    return counts.max_per_cell * min(counts.max_cells, folded)
