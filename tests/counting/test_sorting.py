"""Big supports of whole numbers are counted by sorting, and come to the same."""

from __future__ import annotations

import duckdb
import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest

import dpmarkov as dpm
from dpmarkov.counting import question, sorting
from dpmarkov.counting.sorting import PairKeys, Runs

LABELS = [*range(100, 1200), -7]  # with gaps between them, and not in order


@pytest.fixture
def small(monkeypatch):
    """Take any support for a big one, and chunks so small that there are many."""
    monkeypatch.setattr(sorting, "_FEW_CELLS", 0)
    monkeypatch.setattr(sorting, "_CHUNK", 700)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    values = rng.choice([*LABELS[:40], -7, 99, 5000, 2**62, None], size=(20_000, 2))
    return pa.table(
        {"o": pa.array(values[:, 0], pa.int64()), "d": pa.array(values[:, 1], pa.int64())}
    )


SUPPORT = [(a, b) for a in LABELS[:41] for b in (*LABELS[:20], -7)] + [
    (a, b) for a in LABELS[41:] for b in (100, 101)
]


@pytest.mark.parametrize("support", [None, SUPPORT], ids=["complete", "sparse"])
@pytest.mark.parametrize("policy", [{"invalid": "drop"}, {"invalid": "other", "other": 100}])
def test_the_same_as_the_engine_s_group_by(rows, support, policy, small, monkeypatch):
    asked = {"origin": "o", "destination": "d", "states": LABELS, "support": support, **policy}
    by_sorting = dpm.count_transitions(rows, **asked)
    monkeypatch.setattr(question.PairKeys, "fitting", lambda *_: None)
    by_group = dpm.count_transitions(rows, **asked)
    assert (by_sorting.cells == by_group.cells).all()
    assert by_sorting.affected_rows == by_group.affected_rows > 1000
    assert by_sorting.total > 1000


def test_many_distinct_pairs_are_handed_out_in_parts(rows, small):
    frame = nw.from_native(duckdb.from_arrow(rows).project("o AS origin, d AS destination"))
    keys = PairKeys.fitting(frame, dpm.StateSpace(LABELS))
    parts = list(sorting.counted_runs(frame.to_native(), keys, most=500))
    assert len(parts) > 1
    whole = {}
    for part in parts:
        assert (np.diff(part.keys) > 0).all()
        for key, count in zip(part.keys.tolist(), part.counts.tolist(), strict=True):
            whole[key] = whole.get(key, 0) + count
    (at_once,) = sorting.counted_runs(frame.to_native(), keys, most=10**9)
    assert whole == dict(zip(at_once.keys.tolist(), at_once.counts.tolist(), strict=True))
    assert sum(whole.values()) == rows.num_rows


def test_undeclared_labels_are_an_error_here_too(rows, small):
    with pytest.raises(dpm.DpmarkovError, match="null or not among the declared states"):
        dpm.count_transitions(rows, origin="o", destination="d", states=LABELS)


def test_no_rows_are_no_counts(rows, small):
    counts = dpm.count_transitions(rows[:0], origin="o", destination="d", states=LABELS)
    assert counts.total == 0


def test_runs_add_up():
    one, other = Runs.of(np.array([5, 1, 5, 9])), Runs.of(np.array([0, 9, 9, 12]))
    both = one.plus(other)
    assert both.keys.tolist() == [0, 1, 5, 9, 12]
    assert both.counts.tolist() == [1, 1, 2, 3, 1]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["a", "b"], pa.string()),
        ([1, 2], pa.float64()),
        ([0, 2**40], pa.int64()),
    ],
    ids=["text", "fractions", "far apart"],
)
def test_what_has_no_small_number_is_left_to_the_engine(labels, kind, small):
    column = pa.array(labels, kind)
    frame = nw.from_native(duckdb.from_arrow(pa.table({"origin": column, "destination": column})))
    assert (
        PairKeys.fitting(frame, dpm.StateSpace(labels if kind != pa.float64() else [1, 2])) is None
    )
