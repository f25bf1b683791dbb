"""Merging: a partition along the adjacency, that follows from the totals and keeps every count."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import dpmarkov as dpm
from dpmarkov import merging
from dpmarkov.merging import merge_states


@st.composite
def declared(draw, most=9):
    """Counts on a square space, complete or not, and an adjacency as pairs of labels."""
    n = draw(st.integers(2, most))
    bits = st.lists(st.booleans(), min_size=n * n, max_size=n * n)
    support = None
    if draw(st.booleans()):  # few destinations, so that a join may leave too few of them
        few = st.lists(st.integers(0, n - 1), min_size=2, max_size=4, unique=True)
        support = [(f"s{i}", f"s{j}") for i in range(n) for j in draw(few)]
    space = dpm.StateSpace([f"s{i}" for i in range(n)], support=support)
    cell = st.sampled_from([0, 0, 1, 2, 5, 40, 900])
    cells = draw(st.lists(cell, min_size=space.n_cells, max_size=space.n_cells))
    edges = np.argwhere(np.triu(np.array(draw(bits)).reshape(n, n), 1)).tolist()
    assume(edges)
    return dpm.TransitionCounts(space, cells), [(f"s{a}", f"s{b}") for a, b in edges]


def pieces(labels, edges):
    """Count the connected parts of some states."""
    place = {label: i for i, label in enumerate(labels)}
    kept = [(place[a], place[b]) for a, b in edges if a in place and b in place]
    rows, columns = np.array(kept, dtype=int).reshape(-1, 2).T
    shape = (len(place), len(place))
    links = coo_array((np.ones(len(kept)), (rows, columns)), shape=shape)
    return connected_components(links, directed=False)[0]


def by_the_book(counts, edges, *, to=0, minimum=math.inf):
    """Merge with lists and loops, from the definition alone: the oracle."""
    labels, matrix = list(counts.space.labels), counts.to_dense()
    feasible = counts.space.to_dense(np.ones(counts.space.n_cells)) > 0
    groups = [[i] for i in range(len(labels))]
    near = {frozenset((labels.index(a), labels.index(b))) for a, b in edges}
    aside = []

    def total(group):
        return sum(matrix[i].sum() for i in group)

    def head(group):
        return min(group, key=lambda i: (-matrix[i].sum(), i))

    def rank(group):
        return total(group), head(group)

    def rows_of(some):
        return [sum(any(feasible[i, j] for i in g for j in h) for h in some) for g in some]

    def joined(a, b):
        return [g for g in groups if g not in (a, b)] + [a + b]

    while len(groups) > to:
        left = sorted((g for g in groups if g not in aside), key=rank)
        if not left or total(left[0]) >= minimum:
            break
        a = left[0]
        partners = [
            b
            for b in groups
            if b is not a
            and any(frozenset((i, j)) in near for i in a for j in b)
            and min(rows_of(joined(a, b))) >= 2
        ]
        if partners:
            groups = joined(a, min(partners, key=rank))
        else:
            aside.append(a)
    return {labels[head(g)]: {labels[i] for i in g} for g in groups}


LINE = dpm.StateSpace(["1", "2", "03"])
SQUARE = dpm.TransitionCounts(LINE, range(9))
PAIRS = [("1", "2"), ("2", "03")]


# -- the partition ---------------------------------------------------------------------------


@given(declared(), st.integers(1, 1500))
@settings(max_examples=300)
def test_merging_to_a_least_total_does_what_the_definition_says(given_, minimum):
    counts, edges = given_
    merged = merge_states(counts, edges, minimum_total=minimum, unit="destination")
    groups = {label: set(members) for label, members in merged.space.groups.items()}
    expected = by_the_book(counts, edges, minimum=minimum)
    if len(expected) == len(counts.space.labels):
        assert merged.space == counts.space
    else:
        assert groups == expected


@given(declared(), st.integers(2, 8))
@settings(max_examples=300)
def test_merging_to_a_number_of_states_does_what_the_definition_says(given_, to):
    counts, edges = given_
    n = len(counts.space.labels)
    assume(to < n)
    expected = by_the_book(counts, edges, to=to)
    if len(expected) > to:
        with pytest.raises(dpm.DpmarkovError, match=f"to={to} cannot be reached"):
            merge_states(counts, edges, to=to, unit="destination")
    else:
        merged = merge_states(counts, edges, to=to, unit="destination")
        groups = {label: set(members) for label, members in merged.space.groups.items()}
        assert groups == expected


@given(declared(), st.integers(1, 1500))
@settings(max_examples=200)
def test_groups_partition_the_states_are_connected_and_keep_every_transition(given_, minimum):
    counts, edges = given_
    merged = merge_states(counts, edges, minimum_total=minimum, unit="destination")
    space = merged.space
    groups = space.groups or {label: (label,) for label in space.labels}
    members = [member for group in groups.values() for member in group]
    assert sorted(members) == sorted(counts.space.labels)
    assert all(pieces(group, edges) == 1 for group in groups.values())
    assert [x for x in counts.space.labels if x in groups] == list(space.labels)
    assert merged.total == counts.total
    where = {member: i for i, group in enumerate(groups.values()) for member in group}
    expected = np.zeros(space.shape, dtype=int)
    feasible = np.zeros(space.shape, dtype=bool)
    for position in range(counts.space.n_cells):
        i, j = counts.space.rows[position], counts.space.columns[position]
        a, b = where[counts.space.labels[i]], where[counts.space.labels[j]]
        expected[a, b] += counts.cells[position]
        feasible[a, b] = True
    assert np.array_equal(merged.to_dense(), expected)
    assert np.array_equal(space.to_dense(np.ones(space.n_cells, dtype=bool)), feasible)
    if counts.space.is_complete and pieces(counts.space.labels, edges) == 1:
        assert merged.row_totals.min() >= minimum or len(space.labels) == 2


@given(declared(), st.integers(1, 1500), st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_the_order_of_states_and_edges_does_not_matter_where_totals_differ(given_, minimum, random):
    counts, edges = given_
    labels, totals = list(counts.space.labels), counts.row_totals.tolist()
    sums = {
        sum(totals[i] for i in range(len(totals)) if k >> i & 1) for k in range(2 ** len(totals))
    }
    assume(len(sums) == 2 ** len(totals))  # no two groups are ever equal
    order = random.sample(range(len(labels)), len(labels))
    space = dpm.StateSpace(
        [labels[i] for i in order],
        support=counts.space.to_dense(np.ones(counts.space.n_cells)).astype(bool)[order][:, order],
    )
    shuffled = dpm.TransitionCounts.from_dense(counts.to_dense()[order][:, order], space)
    turned = [(b, a) for a, b in random.sample(edges, len(edges))]
    one = merge_states(counts, edges, minimum_total=minimum, unit="destination")
    two = merge_states(shuffled, turned + edges, minimum_total=minimum, unit="destination")
    assert one.space.merges == two.space.merges
    assert one.space.groups == two.space.groups


def test_equal_totals_go_by_position():
    space = dpm.StateSpace(["d", "c", "b", "a"])
    counts = dpm.TransitionCounts(space, [1] * 16)
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    for edges in (ring, ring[::-1]):
        merged = merge_states(counts, edges, to=2, unit="destination")
        assert merged.space.merges == (("d", "c"), ("b", "a"))


def test_the_tree_tells_who_joined_whom_and_merging_goes_on_from_it():
    space = dpm.StateSpace(["a", "b", "c", "d"])
    counts = dpm.TransitionCounts.from_dense(np.diag([100, 10, 30, 60]), space)
    line = [("a", "b"), ("b", "c"), ("c", "d")]
    once = merge_states(counts, line, to=3, unit="destination")
    assert once.space.merges == (("c", "b"),)
    assert once.space.labels == ("a", "c", "d")
    assert repr(once) == (
        "TransitionCounts(3 states merged from 4, all 9 transitions feasible; sensitive, "
        "merged for unit 'destination')"
    )
    twice = merge_states(once, [("a", "c"), ("c", "d")], to=2, unit="destination")
    assert twice.space.merges == (("c", "b"), ("d", "c"))
    assert twice.space.groups == {"a": ("a",), "d": ("d", "c", "b")}
    assert twice == merge_states(counts, line, to=2, unit="destination")
    assert once.space != dpm.StateSpace(["a", "c", "d"])


@pytest.mark.parametrize(
    "merges",
    [
        [("a", "c")],  # c is still there
        [("x", "y")],  # x is not
        [("a", "x"), ("c", "x")],  # x goes twice
        [("x", "y"), ("a", "y")],
        [("a", 1.5)],
    ],
)
def test_merges_that_do_not_lead_to_the_states_are_refused(merges):
    with pytest.raises(dpm.DpmarkovError, match="merges"):
        dpm.StateSpace(["a", "c"], merges=merges)
    with pytest.raises(dpm.DpmarkovError, match="merges"):
        dpm.StateSpace(categories=["a", "c"], merges=[("a", "b")])


def test_a_space_that_was_not_merged_has_no_groups():
    assert dpm.StateSpace(["a", "c"]).groups == {}
    assert dpm.StateSpace(origins=["a"], destinations=["b", "c"]).groups == {}


def test_what_belongs_to_the_counts_is_carried_and_users_bounds_are_widened():
    space = dpm.StateSpace(["a", "b", "c", "d"])
    counts = dpm.TransitionCounts(
        space, range(16), max_cells=3, max_per_cell=2, states_from_data=True, affected_rows=7
    )
    merged = merge_states(counts, [("a", "b"), ("c", "d")], to=2, unit="destination")
    assert (merged.states_from_data, merged.affected_rows) == (True, 7)
    # a user's 3 cells, 2 in each, may all fall into one of 4 cells that become one
    assert (merged.max_cells, merged.max_per_cell) == (3, 6)
    sparse = dpm.StateSpace(list("abcd"), support=[(a, b) for a in "abcd" for b in "ac"])
    counts = dpm.TransitionCounts(sparse, [1] * 8, max_cells=3, max_per_cell=2)
    merged = merge_states(counts, [("a", "b")], to=3, unit="destination")
    assert (merged.max_cells, merged.max_per_cell) == (3, 4)  # two cells in one at most


# -- lumping ---------------------------------------------------------------------------------


def _member(counts):
    return {state: label for label, group in counts.space.groups.items() for state in group}


def _same_chain(lumped, merged):
    order = [lumped.labels.index(label) for label in merged.space.labels]
    return np.allclose(
        lumped.transition_matrix[order][:, order], merged.proportions(), rtol=1e-12, atol=1e-13
    )


@given(declared(), st.integers(1, 1500))
@settings(max_examples=100)
def test_merging_first_is_lumping_with_the_row_totals_as_weights(given_, minimum):
    counts, edges = given_
    counts = dpm.TransitionCounts(counts.space, counts.cells + 1)
    merged = merge_states(counts, edges, minimum_total=minimum, unit="destination")
    assume(merged.space.merges)
    chain = dpm.MarkovChain(counts.proportions(), counts.space.labels)
    assert _same_chain(chain.lump(_member(merged), counts.row_totals), merged)


@given(declared(), st.integers(1, 1500))
@settings(max_examples=100)
def test_merging_first_is_lumping_where_each_state_is_left_as_often_as_entered(given_, minimum):
    counts, edges = given_
    matrix = counts.to_dense() + counts.to_dense().T + 1
    space = dpm.StateSpace(counts.space.labels)
    counts = dpm.TransitionCounts.from_dense(matrix, space)
    merged = merge_states(counts, edges, minimum_total=minimum, unit="destination")
    assume(merged.space.merges)
    chain = dpm.MarkovChain(counts.proportions(), space.labels)
    assert _same_chain(chain.lump(_member(merged)), merged)


def test_in_general_lumping_by_the_stationary_distribution_is_another_chain():
    space = dpm.StateSpace(["a", "b", "c"])
    counts = dpm.TransitionCounts.from_dense([[50, 900, 50], [10, 10, 10], [10, 20, 70]], space)
    merged = merge_states(counts, [("b", "c")], to=2, unit="destination")
    chain = dpm.MarkovChain(counts.proportions(), space.labels)
    assert not _same_chain(chain.lump(_member(merged)), merged)
    assert _same_chain(chain.lump(_member(merged), counts.row_totals), merged)


# -- real zones ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def manhattan(real_data):
    """Trips between the Manhattan zones that have a neighbour there."""
    import duckdb

    trips = real_data / "nyc_yellow_360k.parquet"
    with (real_data / "taxi_zone_lookup.csv").open() as file:
        zones = [int(z["LocationID"]) for z in csv.DictReader(file) if z["Borough"] == "Manhattan"]
    near = _real_edges(real_data)
    zones = [zone for zone in zones if any(zone in pair and pair <= set(zones) for pair in near)]
    cells = duckdb.sql(
        f"select PULocationID, DOLocationID, count(*) from '{trips}' where PULocationID in {zones} "
        f"and DOLocationID in {zones} group by all"
    ).fetchall()
    return dpm.TransitionCounts.from_triples(cells, dpm.StateSpace(zones))


def _real_edges(real_data, longer_than=1e-5):
    with (real_data / "taxi_zone_adjacency.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {
        frozenset((int(row["zone_a"]), int(row["zone_b"])))
        for row in rows
        if float(row["shared_boundary_deg"]) > longer_than
    }


def test_sixty_manhattan_zones_become_thirty(manhattan, real_data):
    n = len(manhattan.space.labels)
    assert n >= 60
    edges = real_data / "taxi_zone_adjacency.csv"
    merged = merge_states(manhattan, edges, to=30, unit="destination")
    space = merged.space
    assert len(space.labels) == 30
    assert len(space.merges) == n - 30
    assert all(isinstance(label, int) for label in space.labels)
    assert merged.total == manhattan.total
    known = set(manhattan.space.labels)
    near = [tuple(pair) for pair in _real_edges(real_data, 0) if pair <= known]
    assert all(pieces(group, near) == 1 for group in space.groups.values())
    before, after = np.sort(manhattan.row_totals), np.sort(merged.row_totals)
    assert before[0] <= 1
    assert after[0] > 1000
    expected = by_the_book(manhattan, near, to=30)
    assert {label: set(group) for label, group in space.groups.items()} == expected


def test_a_map_gives_the_same_merging_as_its_borders(manhattan, real_data):
    on_map = real_data / "taxi_zones.geojson"
    near = [tuple(p) for p in _real_edges(real_data) if p <= set(manhattan.space.labels)]
    options = {"minimum_total": 3000, "unit": "destination"}
    one = merge_states(manhattan, on_map, name="locationid", **options)
    two = merge_states(manhattan, near, **options)
    assert one == two
    assert one.row_totals.min() >= 3000


# -- what cannot be merged -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either to=.* or minimum_total="),
        ({"to": 2, "minimum_total": 5}, "not both"),
        ({"to": 1}, "to=1 must be a whole number from 2 to the 3 states"),
        ({"to": 4}, "from 2 to the 3 states"),
        ({"to": 2.5}, "to=2.5 must be a whole number"),
        ({"minimum_total": 0}, "minimum_total=0 must be above 0"),
        ({"minimum_total": math.inf}, "and finite"),
        ({"to": 2, "unit": "row"}, "unit must be one of"),
        ({"to": 2, "unit": "user", "epsilon": 1.0}, "needs max_cells="),
        ({"to": 2, "epsilon": 0.1}, "epsilon=0.1 buys nothing"),
        ({"to": 2, "unit": "transition"}, "takes a share of the budget: give it as epsilon="),
        ({"to": 2, "unit": "transition", "epsilon": 0}, "epsilon=0 must be above 0"),
        ({"to": 2, "unit": "transition", "epsilon": math.nan}, "epsilon=nan must be above 0"),
    ],
)
def test_arguments_that_do_not_fit_are_named(options, message):
    with pytest.raises(dpm.DpmarkovError, match=message):
        merge_states(SQUARE, PAIRS, **{"unit": "destination", **options})


def test_only_square_spaces_are_merged():
    table = dpm.TransitionCounts(
        dpm.StateSpace(origins=["a", "b"], destinations=["c", "d"]), range(4)
    )
    with pytest.raises(dpm.DpmarkovError, match="a rectangular space cannot be merged"):
        merge_states(table, [("a", "b")], to=2, unit="destination")


def test_pieces_that_nothing_connects_are_counted_before_any_noise_is_drawn(monkeypatch):
    monkeypatch.setattr(merging, "two_sided_geometric", lambda *_, **__: 1 / 0)
    counts = dpm.TransitionCounts(dpm.StateSpace(list("abcd")), range(16))
    with pytest.raises(dpm.DpmarkovError, match="falls into 3 pieces"):
        merge_states(counts, [("a", "b")], to=2, unit="transition", epsilon=1.0)


def test_an_isolated_state_stays_as_it_is():
    space = dpm.StateSpace(["a", "b", "c", "d"])
    counts = dpm.TransitionCounts.from_dense(np.diag([1, 20, 30, 40]), space)
    line = [("b", "c"), ("c", "d")]
    for target in ({"to": 3}, {"minimum_total": 25}):
        merged = merge_states(counts, line, unit="destination", **target)
        assert merged.space.groups == {"a": ("a",), "c": ("c", "b"), "d": ("d",)}
