"""Releases on disk: exact round trips, whole files or none, and nothing altered passes."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import any_counts

import dpmarkov as dpm
from dpmarkov import files

TARGET = {"epsilon": 1.0, "delta": 1e-6}
SUFFIXES = [".json", ".parquet"]
MECHANISMS = ["dirichlet", "geometric", "gaussian"]


@pytest.fixture
def release():
    space = dpm.StateSpace(["a<b>", "ü", "007"], support=np.ones((3, 3)) - np.eye(3) > 0)
    counts = dpm.TransitionCounts(space, [10, 200, 3000, 4, 50, 600])
    return dpm.release(counts, **TARGET, unit="destination")


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(counts=any_counts())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_round_trip_is_exact(suffix, counts, tmp_path):
    for unit, mechanism in product(("destination", "transition"), MECHANISMS):
        out = dpm.release(counts, **TARGET, unit=unit, mechanism=mechanism)
        path = tmp_path / f"out{suffix}"
        out.save(path, overwrite=True)
        again = dpm.load(path)
        assert again == out
        assert again.guarantee == out.guarantee
        assert again.mechanism == mechanism
        assert again.space == out.space


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_labels_keep_their_types(suffix, tmp_path):
    for labels in ([1, 2], ["1", "2"], [("s", 1), ("s", (2, "x"))], [1, "1"], [2**70, -1]):
        space = dpm.StateSpace(origins=labels, destinations=labels)
        out = dpm.release(dpm.TransitionCounts(space, [1, 2, 3, 4]), **TARGET, unit="transition")
        out.save(tmp_path / f"out{suffix}", overwrite=True)
        assert dpm.load(tmp_path / f"out{suffix}").space.origins == tuple(labels)


def test_parquet_names_the_states_for_people(release, tmp_path):
    import pyarrow.parquet as pq

    release.save(tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    assert table["origin"][:2] == ["a<b>", "a<b>"]
    assert table["destination"][:2] == ["ü", "007"]
    assert table["probability"] == release.probabilities.tolist()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_sensitive_is_in_the_file(suffix, tmp_path):
    # counts that no noise would produce as text; under `transition` not even their totals
    space = dpm.StateSpace(["x", "y"])
    counts = dpm.TransitionCounts(
        space, [123457, 765431, 998877, 113355], affected_rows=424242, states_from_data=False
    )
    path = tmp_path / f"out{suffix}"
    dpm.release(counts, **TARGET, unit="transition").save(path)
    text = path.read_bytes()
    for number in (*counts.cells, *counts.row_totals, counts.total, 424242):
        assert not _stands_in(text, number)
        assert np.float64(number).tobytes() not in text
        assert np.int64(number).tobytes() not in text
    dpm.release(counts, **TARGET, unit="destination").save(path, overwrite=True)
    text = path.read_bytes()
    for number in (*counts.cells, 424242):
        assert not _stands_in(text, number)


def _stands_in(text, number):
    """Whether a number is written out; a noisy one may well begin with the same digits."""
    return re.search(rb"(?<![\d.])%d(?![\d.])" % number, text) is not None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_is_not_replaced_unless_told(suffix, release, tmp_path):
    path = tmp_path / f"out{suffix}"
    release.save(path)
    with pytest.raises(dpm.DpmarkovError, match="exists; choose another name"):
        release.save(path)
    release.save(path, overwrite=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_interrupted_writing_leaves_the_old_file_and_no_other(
    suffix, release, tmp_path, monkeypatch
):
    path = tmp_path / f"out{suffix}"
    release.save(path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(dpm.DpmarkovError, match=r"cannot write .*No space left"):
        release.save(path, overwrite=True)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        release.save(path, overwrite=True)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="no umask on this system")
@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644)])
def test_who_may_read_a_file_is_for_the_umask_to_say(umask, mode, release, tmp_path):
    before = os.umask(umask)
    try:
        release.save(tmp_path / "out.json")
    finally:
        os.umask(before)
    assert (tmp_path / "out.json").stat().st_mode & 0o777 == mode


def test_a_file_is_on_disk_before_it_has_its_name(release, tmp_path, monkeypatch):
    path, flushed, fsync = tmp_path / "out.json", [], os.fsync

    def watched(handle):
        flushed.append((os.fstat(handle).st_ino, path.exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    release.save(path)
    assert flushed[0] == (path.stat().st_ino, False)


def test_paths_that_cannot_be_are_named(release, tmp_path):
    with pytest.raises(
        dpm.DpmarkovError, match=r"ends in '\.csv'; releases .* \.json or \.parquet"
    ):
        release.save(tmp_path / "out.csv")
    with pytest.raises(dpm.DpmarkovError, match="cannot write to"):
        release.save(tmp_path / "absent" / "out.json")
    with pytest.raises(dpm.DpmarkovError, match="there is no file"):
        dpm.load(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("side", "names", "message"),
    [
        ("origin", ["ü", "ü", "a<b>", "ü", "007", "007"], "'origin' was altered"),
        ("destination", ["ü", "007", "a<b>", "007", "a<b>", "elsewhere"], "altered"),
        ("remark", [""] * 6, "column 'remark', which no release has"),
    ],
)
def test_names_for_people_are_checked_too(side, names, message, release, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    release.save(tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    position = table.schema.get_field_index(side) if side in table.column_names else 0
    change = table.set_column if side in table.column_names else table.add_column
    pq.write_table(change(position, side, pa.array(names)), tmp_path / "out.parquet")
    with pytest.raises(dpm.DpmarkovError, match=message):
        dpm.load(tmp_path / "out.parquet")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_of_another_kind_are_refused(suffix, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / f"other{suffix}"
    path.write_text("[1, 2]")
    with pytest.raises(dpm.DpmarkovError, match="not a release that can be read"):
        dpm.load(path)
    if suffix == ".json":
        path.write_text("{}")
    else:
        pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(dpm.DpmarkovError, match="not a"):
        dpm.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: text.index('"cells"')] + '"cells": []}', "'items'"),
        (lambda text: text.replace('"probability": [', '"probability": ["0.9", '), "list of float"),
        (lambda text: text.replace('"version": 1', '"version": 2, "version": 1'), "stands twice"),
        (lambda text: "[" * 100_000, "recursion"),
        (lambda text: '{"version": ' + "9" * 5000 + "}", "digits"),
        (lambda text: text[:-9], "delimiter"),
    ],
)
def test_a_table_of_another_make_is_refused(change, message, release, tmp_path):
    path = tmp_path / "out.json"
    release.save(path)
    path.write_text(change(path.read_text()))
    with pytest.raises(dpm.DpmarkovError, match=f"not a release that can be read.*{message}"):
        dpm.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_refused_or_reads_as_it_was(suffix, data, release, tmp_path):
    path = tmp_path / f"out{suffix}"
    release.save(path, overwrite=True)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        read = dpm.load(path)
    except dpm.DpmarkovError:
        return
    assert read == release  # what a reader does not look at may be damaged


def _altered(path, change, *, sign):
    header = json.loads(path.read_text())
    change(header)
    if sign:  # as someone would who knows how the checksum is made
        cells = header.pop("cells")
        columns = {name: np.array(values) for name, values in cells.items()}
        header["checksum"] = files._checksum(header, columns)
        header["cells"] = cells
    path.write_text(json.dumps(header))


ALTERATIONS = {
    "a stronger claim": (lambda h: h["guarantee"].update(epsilon=0.5), "that is claimed"),
    "another unit": (lambda h: h["guarantee"].update(unit="person"), "unit must be one of"),
    "an epsilon that is text": (
        lambda h: h["guarantee"].update(epsilon="1"),
        "epsilon is not of the type",
    ),
    "an epsilon that is no number": (
        lambda h: h["guarantee"].update(epsilon=float("nan")),
        "not nan",
    ),
    "conditions that are no list": (
        lambda h: h["guarantee"].update(conditions="none"),
        "conditions is not of the type",
    ),
    "a condition that is no text": (
        lambda h: h["guarantee"].update(conditions=[7]),
        "conditions is not of the type",
    ),
    "noise that is no table": (lambda h: h["mechanism"].update(noise=[1.0]), "noise is not of"),
    "a prior of other noise": (lambda h: h["mechanism"].update(prior=2.5), "prior=2.5 does not"),
    "more cells touched than there are": (
        lambda h: h["mechanism"].update(touched=7),
        "touched=7 is no number of 6 cells",
    ),
    "a total beyond 64 bits": (lambda h: h.update(row_totals=[10**30] * 3), "too large"),
    "a negative total": (lambda h: h["row_totals"].__setitem__(0, -1), "must not be negative"),
    "half a total": (lambda h: h["row_totals"].__setitem__(0, 1.5), "row_totals is not of"),
    "a weak row of another chain": (lambda h: h.update(weak_rows=["z"]), "not an origin"),
    "cells in another order": (
        lambda h: [h["cells"][name].reverse() for name in h["cells"]],
        "not in the order of the support",
    ),
    "a cell outside the chain": (
        lambda h: h["cells"]["column"].__setitem__(-1, 99),
        "exceeds matrix dimension",
    ),
    "a probability that is not a number": (
        lambda h: h["cells"]["probability"].__setitem__(0, float("nan")),
        "must be 6 finite numbers",
    ),
    "users without bounds": (lambda h: h["guarantee"].update(unit="user"), "needs max_cells="),
    "bounds without users": (lambda h: h["guarantee"].update(max_cells=3), "goes with the unit"),
    "a negative probability": (
        lambda h: h["cells"]["probability"].__setitem__(0, -0.1),
        "above 0 and at most 1",
    ),
    "a row that does not sum to one": (
        lambda h: h["cells"]["probability"].__setitem__(0, 0.9),
        "sums to 1 only within",
    ),
    "a row that sums to one but for a millionth": (
        lambda h: h["cells"]["probability"].__setitem__(0, h["cells"]["probability"][0] + 1e-6),
        "sums to 1 only within",
    ),
    "a missing cell": (lambda h: h["cells"]["probability"].pop(), "probabilities must be 6 finite"),
    "a doubled label": (
        lambda h: h["states"].update(destinations=["x", "x", "y"]),
        "'x' stands twice",
    ),
    "a missing field": (lambda h: h.pop("mechanism"), "mechanism"),
    "a mechanism that is not one": (
        lambda h: h["mechanism"].update(name="laplace"),
        "mechanism must be one of .*not 'laplace'",
    ),
    "the noise of another mechanism": (
        lambda h: h["mechanism"].update(name="gaussian"),
        "unexpected keyword argument 'rate'",
    ),
    "less noise than is claimed": (
        lambda h: h["mechanism"].update(name="geometric", noise={"scale": 1.9}),
        "that is claimed",
    ),
    "noise that is no noise": (
        lambda h: h["mechanism"].update(name="geometric", noise={"scale": -2.0}),
        "scale must be above 0",
    ),
    "totals that are not public": (
        lambda h: h["guarantee"].update(unit="transition", epsilon=5.0),
        "row totals are public",
    ),
    "counts that are not covered": (
        lambda h: h["cells"].update(private_count=[1.0] * 6),
        "private counts are covered",
    ),
}


@pytest.mark.parametrize("name", ALTERATIONS)
@pytest.mark.parametrize("sign", [False, True])
def test_an_altered_file_is_refused(name, sign, release, tmp_path):
    change, message = ALTERATIONS[name]
    release.save(tmp_path / "out.json")
    _altered(tmp_path / "out.json", change, sign=sign)
    expected = message if sign else "does not match its checksum"
    with pytest.raises(dpm.DpmarkovError, match=expected):
        dpm.load(tmp_path / "out.json")


def test_a_newer_format_asks_for_a_newer_version(release, tmp_path):
    release.save(tmp_path / "out.json")
    _altered(tmp_path / "out.json", lambda h: h.update(version=2), sign=True)
    with pytest.raises(dpm.DpmarkovError, match="version 2 and this dpmarkov reads 1"):
        dpm.load(tmp_path / "out.json")


def test_a_name_with_a_nul_is_refused(release):
    with pytest.raises(dpm.DpmarkovError, match="NUL"):
        release.save("a\0.json")


def test_releases_are_compared_by_value(release, tmp_path):
    release.save(tmp_path / "out.json")
    again = dpm.load(tmp_path / "out.json")
    assert again == release
    assert again != "a release"
    assert replace(release, row_totals=None) != release
    with pytest.raises(ValueError, match="read-only"):
        again.probabilities[0] = 0.5
