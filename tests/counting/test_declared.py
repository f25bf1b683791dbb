"""States and support are declared from lists, ranges and files, and labels keep their types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from dpmarkov.counting.declared import declared_space
from dpmarkov.errors import DpmarkovError


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text", "labels"),
    [
        ("zones.csv", "zone\n1\n2\n30\n", (1, 2, 30)),
        ("codes.csv", "code\n007\n7\n30\n", ("007", "7", "30")),
        ("names.csv", '\ufeffname\n"a, b"\nc\n', ("a, b", "c")),
        ("names.txt", "a\nb\n\n", ("a", "b")),
        ("names.tsv", "n\na\nb\n", ("a", "b")),
        ("names.json", '["a", "1"]', ("a", "1")),
        ("zones.json", "[2, 1]", (2, 1)),
        ("codes.json", '["2", "1"]', ("2", "1")),
    ],
)
def test_states_from_a_file_keep_their_types(
    tmp_path: Path, name: str, text: str, labels: tuple[Any, ...]
) -> None:
    assert declared_space(write(tmp_path / name, text), None).labels == labels


def test_states_from_parquet_and_ranges(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"s": ["01", "1"]}), tmp_path / "s.parquet")
    assert declared_space(tmp_path / "s.parquet", None).labels == ("01", "1")
    assert declared_space(range(3), None).labels == (0, 1, 2)
    assert declared_space(np.array([4, 2]), None).labels == (4, 2)
    assert declared_space(["A", "B"], None, row=True).kind == "row"


@pytest.mark.parametrize("labels", [[1, 2, 3], ["1", "2", "3"]])
def test_support_from_a_file_is_read_as_the_labels_are(tmp_path: Path, labels: list[Any]) -> None:
    edges = "a,b,length\n1,2,9\n1,3,9\n2,1,9\n2,2,9\n3,1,9\n3,2,9\n"
    space = declared_space(labels, write(tmp_path / "edges.csv", edges))
    assert space.n_cells == 6
    assert declared_space(labels, ~np.eye(3, dtype=bool)).n_cells == 6
    assert declared_space([1, 2, 3], np.array([[1, 2], [1, 3], [2, 1], [2, 2], [3, 1], [3, 3]])
                          ).n_cells == 6  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("two.csv", "a,b\n1,2\n", "2 columns"),
        ("ragged.csv", "a,b\n1,2\n3\n", "differ"),
        ("bad.json", "{", "suffix"),
        ("bad.json", '{"a": 1}', "list"),
        ("edges.json", '[["a", "b"], ["a"]]', "suffix"),
        ("bad.parquet", "text", "parquet"),
        ("states.xlsx", "", "declare from a file"),
    ],
)
def test_files_that_declare_nothing_are_refused(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    with pytest.raises(DpmarkovError, match=told):
        declared_space(write(tmp_path / name, text), None)


def test_what_cannot_be_declared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DpmarkovError, match="no file"):
        declared_space(tmp_path / "none.csv", None)
    with pytest.raises(DpmarkovError, match="support="):
        declared_space(range(100_000), None)
    with pytest.raises(DpmarkovError, match="no two columns"):
        declared_space([1, 2], write(tmp_path / "edges.csv", "a\n1\n"))
    with pytest.raises(DpmarkovError, match="already"):
        declared_space(declared_space([1, 2], None), [(1, 2)])
    with pytest.raises(DpmarkovError, match=r"sorted\(states\)"):
        declared_space({"a", "b"}, None)
