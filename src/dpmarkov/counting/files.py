"""Files, read out of core by DuckDB: CSV, TSV, Parquet and JSON, compressed or not.

Text has no types, so they are given by the role of a column and not by what its first rows
look like: labels and ids are read as text (a zero-padded code keeps its zeros) and integers are
parsed only where the declared states are integers. Times are numbers or in ISO 8601, and one
without an offset is in UTC; any other way of writing them (is 01/02 in January?) would have to be
guessed. A value that does not parse becomes a null and falls under the policy; a line that does
not parse is counted among the rejected.

The connection is our own: its memory is limited, what does not fit goes to a temporary folder
that is removed in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from glob import escape, glob, has_magic
from os import fspath
from os.path import expanduser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dpmarkov.counting.engines import plain_errors
from dpmarkov.counting.roles import Column, check_distinct, check_present
from dpmarkov.counting.watching import is_watched
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    import duckdb

__all__ = ["embedded", "from_files", "rejected_lines"]

# Leaves room for Python, its libraries and the reader's buffers below 1 GiB.
MEMORY_LIMIT = "512MiB"
_FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
_COMPRESSED = (".gz", ".zst")
# How files begin that are no plain text.
_BEGINNINGS = {
    b"PAR1": "Parquet", b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "ZIP or Excel", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16",
}  # fmt: skip
_BEGINS_AS = {".gz": "gzip", ".zst": "zstd", ".parquet": "Parquet", ".pq": "Parquet"}
_DELIMITERS = (",", ";", "\t", "|")
_READ_AS_TEXT = ("text label", "integer label", "label", "id", "count")
_PARSED_AS_INTEGER = ("integer label", "count")
_NUMBERS = ("BIGINT", "UBIGINT", "HUGEINT", "DOUBLE")


@contextmanager
def embedded() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB of our own, which leaves nothing behind."""
    import duckdb

    with TemporaryDirectory(prefix="dpmarkov-", ignore_cleanup_errors=True) as folder:
        connection = duckdb.connect(
            config={
                "memory_limit": MEMORY_LIMIT,
                "temp_directory": folder,
                "preserve_insertion_order": False,
            }
        )
        try:
            connection.execute(f"SET enable_progress_bar = {str(is_watched()).lower()}")
            connection.execute("SET enable_progress_bar_print = false")  # `watching` does that
            connection.execute("SET TimeZone = 'UTC'")  # not that of the machine
            yield connection
        finally:
            connection.close()


def from_files(
    connection: duckdb.DuckDBPyConnection,
    data: Any,
    columns: Sequence[Column],
    *,
    lenient: bool,
) -> duckdb.DuckDBPyRelation:
    """Read files of one format as a relation with the wanted columns.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where to read them.
    data : path, glob, or list of these
        The files.
    columns : sequence of Column
        What is wanted of them.
    lenient : bool
        Whether lines that do not parse are left out (and counted) rather than an error.

    Returns
    -------
    duckdb.DuckDBPyRelation
    """
    paths = _paths(data)
    kind = _common_format(paths)
    for path in paths:
        _check_beginning(path)
    read = {"csv": _csv, "json": _json, "parquet": _parquet}[kind]
    text = "" if kind == "parquet" else " (text in UTF-8)"
    with plain_errors(f"reading {_shown(paths)} as {kind.upper()}{text}"):
        return read(connection, paths, columns, lenient)


def rejected_lines(connection: duckdb.DuckDBPyConnection) -> int:
    """Count the lines of CSV files that could not be parsed."""
    tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE temporary")
    if ("reject_errors",) not in tables.fetchall():
        return 0
    query = "SELECT count(*) FROM (SELECT DISTINCT scan_id, file_id, line FROM reject_errors)"
    (count,) = connection.execute(query).fetchall()[0]
    return int(count)


# -- which files ---------------------------------------------------------------------------


def _paths(data: Any) -> list[str]:
    patterns = [data] if isinstance(data, (str, Path)) else list(data)
    paths = [path for pattern in patterns for path in _expanded(expanduser(fspath(pattern)))]
    if not paths:
        raise DpmarkovError("the list of files is empty; give at least one path")
    for path in paths:
        if not Path(path).is_file():
            raise DpmarkovError(
                f"there is no file {path!r}; give a path, a glob like 'dir/*.csv', or SQL with "
                "database="
            )
        if Path(path).stat().st_size == 0:
            raise DpmarkovError(f"file {path!r} is empty; leave it out or write it again")
    return paths


def _expanded(pattern: str) -> list[str]:
    if not has_magic(pattern) or Path(pattern).exists():
        return [pattern]
    found = sorted(glob(pattern, recursive=True))
    if not found:
        raise DpmarkovError(
            f"no file matches {pattern!r}; check the folder and the pattern (for SQL, say with "
            "database= where it runs)"
        )
    return found


def _common_format(paths: Sequence[str]) -> str:
    kinds = {_format(path) for path in paths}
    if len(kinds) > 1:
        raise DpmarkovError(
            f"the files are of several formats ({', '.join(sorted(kinds))}); count each format "
            "by itself, or convert them to one"
        )
    return kinds.pop()


def _format(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _FORMATS:
        raise DpmarkovError(
            f"file {path!r} has no suffix that tells its format; known are "
            f"{', '.join(_FORMATS)}, the text formats also with {' or '.join(_COMPRESSED)}"
        )
    return _FORMATS[suffixes[-1]]


def _check_beginning(path: str) -> None:
    """Refuse a file that is plainly not what its suffix says; an engine would say less of it."""
    try:
        with Path(path).open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise DpmarkovError(f"file {path!r} cannot be read: {error.strerror}") from None
    found = next((what for begin, what in _BEGINNINGS.items() if start.startswith(begin)), "text")
    wanted = _BEGINS_AS.get(Path(path).suffix.lower(), "text")
    if found != wanted:
        raise DpmarkovError(
            f"file {path!r} is not what its suffix says: it begins as {found}, not as {wanted}; "
            "rename it, or convert it"
        )


def _shown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]!r}{more}"


# -- one reader for each format ------------------------------------------------------------


def _parquet(
    connection: duckdb.DuckDBPyConnection, paths: list[str], columns: Sequence[Column], _: bool
) -> duckdb.DuckDBPyRelation:
    return connection.sql(_call("read_parquet", paths, union_by_name=True))


def _csv(
    connection: duckdb.DuckDBPyConnection,
    paths: list[str],
    columns: Sequence[Column],
    lenient: bool,
) -> duckdb.DuckDBPyRelation:
    parts = [
        _csv_of_one_header(connection, same, mark, columns, lenient)
        for mark, same in _by_header(connection, paths, columns)
    ]
    return reduce(lambda one, other: one.union(other), parts)


def _csv_of_one_header(
    connection: duckdb.DuckDBPyConnection,
    paths: list[str],
    mark: str,
    columns: Sequence[Column],
    lenient: bool,
) -> duckdb.DuckDBPyRelation:
    rejects = {"store_rejects": True, "rejects_limit": 0} if lenient else {}
    options = {"header": True, "delim": mark, **rejects}
    text = {c.name: "VARCHAR" for c in columns if c.role in _READ_AS_TEXT}
    types = _types(connection.sql(_call("read_csv", paths, types=text, **options)))
    text |= {c.name: "VARCHAR" for c in columns if types[c.name] not in _NUMBERS}
    relation = connection.sql(_call("read_csv", paths, types=text, **options))
    return _parsed(relation, columns)


def _by_header(
    connection: duckdb.DuckDBPyConnection, paths: list[str], columns: Sequence[Column]
) -> list[tuple[str, list[str]]]:
    """Group files by delimiter and header, so that columns match by name and not by place."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        groups.setdefault(_header(connection, path, columns), []).append(path)
    return [(mark, same) for (mark, *_), same in groups.items()]


def _header(
    connection: duckdb.DuckDBPyConnection, path: str, columns: Sequence[Column]
) -> tuple[str, ...]:
    """Find the delimiter whose header has the columns that are wanted, and that header."""
    seen: list[list[str]] = []
    for mark in _DELIMITERS:
        # Rejects are stored so that a bad line near the top is no obstacle to the header.
        options = {"header": True, "delim": mark, "all_varchar": True, "store_rejects": True}
        header = connection.sql(_call("read_csv", [path], **options)).columns
        if {column.name for column in columns} <= set(header):
            written = connection.sql(_call("read_csv", [path], **{**options, "header": False}))
            (names,) = written.limit(1).fetchall()
            check_distinct(columns, names)  # DuckDB itself would rename the second
            return mark, *header
        seen.append(header)
    check_present(columns, max(seen, key=len))
    raise AssertionError("unreachable: some column is missing")  # pragma: no cover


def _parsed(
    relation: duckdb.DuckDBPyRelation, columns: Sequence[Column]
) -> duckdb.DuckDBPyRelation:
    """Read what is text as what it is for."""
    types = _types(relation)
    return relation.project(", ".join(_value(c, types[c.name]) for c in _distinct(columns)))


def _value(column: Column, read_as: str) -> str:
    name = _quoted(column.name)
    if read_as != "VARCHAR":
        return name
    if column.role in _PARSED_AS_INTEGER:
        # A bare TRY_CAST would round 1.5 to 2 and read 1e3 and 0x1F.
        whole = rf"regexp_full_match({name}, '\s*[+-]?[0-9]+\s*')"
        return f"CASE WHEN {whole} THEN TRY_CAST({name} AS BIGINT) END AS {name}"
    return _instant(name) if column.role == "time" else name


def _instant(name: str) -> str:
    """Parse a time; as TIMESTAMP its offset would be passed over."""
    return f"TRY_CAST({name} AS TIMESTAMPTZ) AS {name}"


def _json(
    connection: duckdb.DuckDBPyConnection,
    paths: list[str],
    columns: Sequence[Column],
    lenient: bool,
) -> duckdb.DuckDBPyRelation:
    options: dict[str, Any] = {"union_by_name": True}
    if lenient and not any(".json" in Path(path).suffixes for path in paths):
        options |= {"format": "newline_delimited", "ignore_errors": True}
    relation = connection.sql(_call("read_json", paths, **options))
    check_present(columns, relation.columns)
    types = _types(relation)
    for column in columns:
        if types[column.name] in ("JSON", '"NULL"', "NULL"):
            types[column.name] = _type_of_nulls(relation, column)
    read_as = {c.name: _json_type(types[c.name]) for c in columns}
    relation = connection.sql(_call("read_json", paths, **options, columns=read_as))
    texts = {c.name for c in columns if c.role == "time" and read_as[c.name] == "VARCHAR"}
    names = [_quoted(name) if name not in texts else _instant(_quoted(name)) for name in read_as]
    return relation.project(", ".join(names))


def _type_of_nulls(relation: duckdb.DuckDBPyRelation, column: Column) -> str:
    """Give a column that only holds nulls the type of its role; DuckDB calls it, too, JSON."""
    if relation.filter(f"{_quoted(column.name)} IS NOT NULL").limit(1).fetchall():
        raise DpmarkovError(
            f"column {column.name!r} holds values of mixed types; write it with one type"
        )
    return "BIGINT" if column.role in (*_PARSED_AS_INTEGER, "order") else "VARCHAR"


def _json_type(detected: str) -> str:
    """Undo the detection of dates and the like, which JSON has as text."""
    return detected if detected in (*_NUMBERS, "BOOLEAN") else "VARCHAR"


def _types(relation: duckdb.DuckDBPyRelation) -> dict[str, str]:
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


# -- SQL text ------------------------------------------------------------------------------


def _call(function: str, paths: list[str], **options: Any) -> str:
    given = "".join(f", {name} = {_literal(value)}" for name, value in options.items())
    # Patterns are expanded by now; DuckDB would take *, ? and [ in a name for another.
    return f"SELECT * FROM {function}({_literal(list(map(escape, paths)))}{given})"


def _literal(value: Any) -> str:
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
    return "'" + str(value).replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _distinct(columns: Sequence[Column]) -> list[Column]:
    """Keep the first of the columns that share a name (an origin that is also a user, say)."""
    return list({column.name: column for column in reversed(columns)}.values())
