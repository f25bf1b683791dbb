"""Files are read as what they are, and one that is not is refused without a traceback."""

from __future__ import annotations

import gzip
import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dpmarkov.counting import count_categories, count_paths, count_transitions
from dpmarkov.errors import DpmarkovError

ASKED: dict[str, Any] = {"origin": "o", "destination": "d", "states": ["007", "7"]}
PADDED = [[0, 1], [1, 0]]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_zero_padded_codes_keep_their_zeros_whatever_the_delimiter(
    tmp_path: Path, mark: str
) -> None:
    text = "o,d,x\n007,7,1\n7,007,2\n".replace(",", mark)
    path = write(tmp_path / ("rows.tsv" if mark == "\t" else "rows.csv"), text)
    assert count_transitions(path, **ASKED).to_dense().tolist() == PADDED
    assert count_transitions(str(path), **ASKED | {"states": [7, 8]}).to_dense()[0, 0] == 2
    bare = {"origin": "x", "destination": "x", "states": ["1", "2"]}
    assert count_transitions(path, **bare).total == 2


def test_integers_in_text_are_whole_numbers_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", "c,n\n1,5\n2,1.5\n1.5,1\n1e0,1\n0x1,1\n+2,1\n 1,1\n")
    asked: dict[str, Any] = {"category": "c", "categories": [1, 2], "invalid": "drop"}
    counts = count_categories(path, **asked)
    assert counts.cells.tolist() == [2, 2]
    assert counts.affected_rows == 3
    assert count_categories(path, count="n", **asked).cells.tolist() == [6, 1]


def test_a_glob_and_a_list_are_one_set_of_rows(tmp_path: Path) -> None:
    write(tmp_path / "a1.csv", "o,d\n007,7\n")
    write(tmp_path / "a2.csv", "d;x;o\n007;-;7\n")  # columns are matched by name
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"o,d\n7,7\n"))
    assert count_transitions(tmp_path / "a*.csv", **ASKED).to_dense().tolist() == PADDED
    paths = [tmp_path / "a1.csv", str(tmp_path / "b.csv.gz")]
    assert count_transitions(paths, **ASKED).total == 2


@pytest.mark.parametrize("name", ["a[1]b.csv", "a*b.csv", "a?b.csv"])
def test_a_name_that_looks_like_a_pattern_is_a_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("o,d\n7,7\n")
    for other in ("a1b.csv", "axb.csv"):
        (tmp_path / other).write_text("o,d\n8,8\n8,8\n")
    asked: dict[str, Any] = {"origin": "o", "destination": "d", "states": [7, 8]}
    assert count_transitions(tmp_path / name, **asked).cells.tolist() == [1, 0, 0, 0]
    assert count_transitions(tmp_path / "*.csv", **asked).cells.tolist() == [1, 0, 0, 4]


def test_lines_that_do_not_parse_follow_the_policy(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", "o,d\n007,7\n007,7,SECRET,1\n7\n7,007\n")
    with pytest.raises(DpmarkovError) as caught:
        count_transitions(path, **ASKED)
    assert "SECRET" not in str(caught.value)
    counts = count_transitions(path, invalid="drop", **ASKED)
    assert counts.to_dense().tolist() == PADDED
    assert counts.affected_rows == 2


def test_json_lines_that_do_not_parse_follow_the_policy(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", '{"o": "007", "d": "7"}\n{"o": }\n{"o":"7","d":"007"}\n')
    with pytest.raises(DpmarkovError, match="JSON"):
        count_transitions(path, **ASKED)
    counts = count_transitions(path, invalid="drop", **ASKED)
    assert counts.to_dense().tolist() == PADDED
    assert counts.affected_rows == 1


def test_json_labels_that_look_like_dates_stay_text(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.json", '[{"g": "2024-01-01"}, {"g": "2024-01-02"}]')
    days = ["2024-01-01", "2024-01-02"]
    assert count_categories(path, category="g", categories=days).cells.tolist() == [1, 1]
    mixed = write(tmp_path / "mixed.jsonl", '{"g": 1}\n{"g": "1"}\n')
    with pytest.raises(DpmarkovError, match="mixed types"):
        count_categories(mixed, category="g", categories=["1", "2"])


def test_times_in_text_are_parsed_and_what_is_none_follows_the_policy(tmp_path: Path) -> None:
    text = "e,t,s\n1,2024-01-02 10:00,b\n1,2024-01-01,a\n1,soon,a\n1,2024-01-03T00:00:00,a\n"
    path = write(tmp_path / "events.csv", text)
    asked: dict[str, Any] = {"entity": "e", "time": "t", "state": "s", "states": ["a", "b"]}
    with pytest.raises(DpmarkovError, match="column 'e' or 't'"):
        count_paths(path, **asked)
    counts = count_paths(path, invalid="drop", **asked)
    assert counts.to_dense().tolist() == [[0, 1], [1, 0]]
    assert counts.affected_rows == 1


EVENTS: dict[str, Any] = {"entity": "e", "time": "t", "state": "s", "states": ["a", "b"]}
# At 22:00, 22:30 and 23:00 in UTC, of which only the last two are written without an offset there.
INSTANTS = ["2024-01-01T00:00:00+02:00", "2023-12-31 22:30:00", "2023-12-31T23:00:00Z"]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("bad", [[], ["soon"]])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_offsets_of_times_in_text_count_and_the_machine_has_no_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str, bad: list[str], kind: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    rows = list(zip([*INSTANTS, *bad], "abaa", strict=False))
    csv = "e,t,s\n" + "".join(f"1,{t},{s}\n" for t, s in rows)
    json = "".join(f'{{"e": 1, "t": "{t}", "s": "{s}"}}\n' for t, s in rows)
    path = write(tmp_path / f"events.{kind}", csv if kind == "csv" else json)
    try:
        counts = count_paths(path, invalid="drop", max_gap=timedelta(minutes=30), **EVENTS)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert counts.to_dense().tolist() == [[0, 1], [1, 0]]
    assert counts.affected_rows == len(bad)


@pytest.mark.parametrize("written", ["01/02/2024", "2024-01-01 12:00:00 AM", "1.2.2024"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_times_whose_meaning_would_have_to_be_guessed_are_refused(
    tmp_path: Path, written: str, kind: str
) -> None:
    csv, json = f"e,t,s\n1,{written},a\n", f'{{"e": 1, "t": "{written}", "s": "a"}}\n'
    path = write(tmp_path / f"events.{kind}", csv if kind == "csv" else json)
    with pytest.raises(DpmarkovError, match=r"ISO 8601"):
        count_paths(path, **EVENTS)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("empty.csv", b"", "is empty"),
        ("text.parquet", b"these are no columns at all", "as text, not as Parquet"),
        ("text.parquet", b"PAR1 and nothing more", "reading .* as PARQUET failed"),
        ("table.csv", b"PAR1 and nothing more", "as Parquet, not as text"),
        ("packed.csv", gzip.compress(b"o,d\n7,7\n"), "as gzip, not as text"),
        ("wide.json", "[]".encode("utf-16"), "as UTF-16, not as text"),
        ("sheet.csv", b"PK\x03\x04 and so on", "as ZIP or Excel, not as text"),
        ("binary.json", bytes(range(256)), "JSON"),
        ("binary.csv", bytes(range(256)), "no column 'o'|CSV"),
        ("plain.csv.gz", b"o,d\n1,2\n", "as text, not as gzip"),
        ("rows.xlsx", b"PK", "suffix"),
        ("rows", b"o,d\n", "suffix"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(
    tmp_path: Path, name: str, content: bytes, told: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DpmarkovError, match=told) as caught:
        count_transitions(tmp_path / name, **ASKED)
    assert caught.value.__cause__ is None


def test_a_file_with_a_header_alone_counts_nothing(tmp_path: Path) -> None:
    assert count_transitions(write(tmp_path / "rows.csv", "o,d\n"), **ASKED).total == 0


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(DpmarkovError, match="no file"):
        count_transitions(tmp_path / "none.csv", **ASKED)
    with pytest.raises(DpmarkovError, match="no file matches"):
        count_transitions(tmp_path / "*.csv", **ASKED)
    with pytest.raises(DpmarkovError, match="list of files is empty"):
        count_transitions([], **ASKED)
    paths = [write(tmp_path / name, "o,d\n") for name in ("a.csv", "b.json")]
    with pytest.raises(DpmarkovError, match="several formats"):
        count_transitions(paths, **ASKED)


def test_names_with_quotes_are_names(tmp_path: Path) -> None:
    path = write(tmp_path / "o'clock.csv", 'a "b",d\'e\n1,2\n')
    counts = count_transitions(path, origin='a "b"', destination="d'e", states=[1, 2])
    assert counts.total == 1


def test_a_missing_column_of_a_file_is_named_with_its_neighbours(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", "origin;target\n1;2\n")
    with pytest.raises(DpmarkovError, match="did you mean 'target'"):
        count_transitions(path, origin="origin", destination="targets", states=[1, 2])


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "rows.csv", "o,d\n007,7\n")
    count_transitions(path, **ASKED)
    with pytest.raises(DpmarkovError):
        count_transitions(path, **ASKED | {"states": ["x", "y"]})
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.csv", "o,d\n7,7\n")

    def forbidden(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(DpmarkovError, match=r"a.csv' cannot be read: Permission denied"):
        count_transitions(path, **ASKED)
