"""What each column is for, and which types may serve: the same answer on every engine.

Engines differ in what they silently convert: a float label, a text time, a column of mixed
types. What would count differently somewhere is refused everywhere, by type and before
anything is read; a message names columns and types and never a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import narwhals as nw

from dpmarkov.counting.engines import engine_of
from dpmarkov.errors import DpmarkovError

__all__ = ["Column", "Role", "check_distinct", "check_present", "prepared"]

Role = Literal["text label", "integer label", "label", "id", "time", "order", "count"]

_INTEGERS = (
    nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.Int128,
    nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64,
)  # fmt: skip
_TEXT = (nw.String, nw.Categorical, nw.Enum)
_MOMENTS = (nw.Date, nw.Datetime)
_ACCEPTED: dict[Role, tuple[tuple[type[nw.dtypes.DType], ...], str]] = {
    "text label": (_TEXT, "text, because the declared states are strings"),
    "integer label": (_INTEGERS, "integers, because the declared states are integers"),
    "label": (_TEXT + _INTEGERS, "text or integers"),
    "id": (_TEXT + _INTEGERS, "text or integers"),
    "time": (_INTEGERS + _MOMENTS + (nw.Float32, nw.Float64), "dates, times or numbers"),
    "order": (_INTEGERS + _MOMENTS + (nw.String,), "integers, text, dates or times"),
    "count": (_INTEGERS, "whole numbers"),
}


@dataclass(frozen=True)
class Column:
    """A column of the user's: its name there, our name for it, and what it is for."""

    name: str
    alias: str
    role: Role

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DpmarkovError(
                f"column {self.name!r} is named by a {type(self.name).__name__}; names of columns "
                "are text: rename it in the data (frame.columns = ...)"
            )


def check_present(wanted: Iterable[Column], present: Sequence[str]) -> None:
    """Refuse a missing column, with the nearest names there are, and one that stands twice."""
    check_distinct(wanted, present)
    for column in wanted:
        if column.name not in present:
            near = get_close_matches(column.name, [str(name) for name in present])
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "no name is near"
            raise DpmarkovError(
                f"there is no column {column.name!r} among the {len(present)} columns of the "
                f"data; {hint}"
            )


def check_distinct(wanted: Iterable[Column], present: Sequence[str]) -> None:
    """Refuse a column whose name others bear too: engines differ in which of them they take."""
    for column in wanted:
        if present.count(column.name) > 1:
            raise DpmarkovError(
                f"column {column.name!r} stands {present.count(column.name)} times in the data; "
                "rename or leave out the others"
            )


def prepared(frame: nw.LazyFrame[Any], columns: Iterable[Column]) -> nw.LazyFrame[Any]:
    """Keep the columns that are needed, under our names and with types that are accepted."""
    columns = tuple(columns)
    check_present(columns, _names(frame))
    schema = frame.collect_schema()
    return frame.select(_typed(frame, column, schema[column.name]) for column in columns)


def _names(frame: nw.LazyFrame[Any]) -> list[str]:
    """List the columns, also those that share a name, which a schema has once."""
    if engine_of(frame) == "polars":
        return frame.collect_schema().names()
    return list(frame.to_native().columns)


def _typed(frame: nw.LazyFrame[Any], column: Column, dtype: nw.dtypes.DType) -> nw.Expr:
    accepted, names = _ACCEPTED[column.role]
    expression = nw.col(column.name)
    if _holds_nothing(frame, column.name, dtype):
        expression = expression.cast(_type_of_nulls(column.role))
    elif not isinstance(dtype, accepted):
        raise DpmarkovError(
            f"column {column.name!r} holds {_called(frame, column.name, dtype)}, needed are "
            f"{names}; {_way_out(dtype, column.role)}"
        )
    elif isinstance(dtype, (nw.Categorical, nw.Enum)):
        expression = expression.cast(nw.String)
    return expression.alias(column.alias)


def _holds_nothing(frame: nw.LazyFrame[Any], name: str, dtype: nw.dtypes.DType) -> bool:
    """Whether a column has the type of a column of nulls, which serves any role."""
    if not isinstance(dtype, nw.Unknown):
        return False
    return _native_type(frame, name) in ("NULL", '"NULL"', "Null", "NullType()")


def _native_type(frame: nw.LazyFrame[Any], name: str) -> str:
    native = frame.to_native()
    kind = {
        "duckdb": lambda: dict(zip(native.columns, native.types, strict=True))[name],
        "polars": lambda: native.collect_schema()[name],
        "spark": lambda: native.schema[name].dataType,
    }[engine_of(frame)]()
    return str(kind)


def _type_of_nulls(role: Role) -> type[nw.String] | type[nw.Int64] | nw.Datetime:
    if role == "time":
        return nw.Datetime("us")
    return nw.Int64 if role in ("integer label", "order", "count") else nw.String


def _called(frame: nw.LazyFrame[Any], name: str, dtype: nw.dtypes.DType) -> str:
    return _native_type(frame, name) if isinstance(dtype, nw.Unknown) else f"{dtype}"


def _way_out(dtype: nw.dtypes.DType, role: Role) -> str:
    if isinstance(dtype, (nw.Float32, nw.Float64)):
        return (
            "cast it (pandas turns integers with gaps into floats: .astype('Int64') "
            "brings them back)"
        )
    if "label" not in role:
        return "cast the column"
    return (
        "cast the column, or declare the states in its type (a file of JSON or Parquet keeps types)"
    )
