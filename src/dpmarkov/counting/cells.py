"""Rows to cells: which position of the support each row counts in, and which rows have none.

A label becomes its position among the declared ones, its *code*; a negative code says why there
is none. So nothing but codes needs to travel through an engine's joins, windows and groups, and
the curator's numbers of affected rows can be read off the counted codes at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from dpmarkov.counting.engines import beside
from dpmarkov.errors import DpmarkovError
from dpmarkov.states import Label, StateSpace

__all__ = [
    "NO_PAIR",
    "UNDECLARED",
    "UNUSABLE",
    "Policy",
    "coded_unusable",
    "encoded",
    "judged",
    "located",
    "missing",
    "sent",
    "summed",
    "whole",
]

UNDECLARED = -1  # a label that is null or not among the declared ones
UNUSABLE = -2  # a row without a place: no entity, time, user or count
NO_PAIR = -3  # a first event, or a step that is not wanted; nothing is amiss

_LABEL = "declared_label"


@dataclass(frozen=True)
class Policy:
    """What becomes of rows that have no cell.

    Parameters
    ----------
    invalid : {"error", "drop", "other"}
        Refuse them, leave them out, or count them in a catch-all state.
    other : label, optional
        The catch-all state, with ``invalid="other"`` only.
    """

    invalid: str
    other: Label | None

    def __post_init__(self) -> None:
        if self.invalid not in ("error", "drop", "other"):
            raise DpmarkovError(
                f"invalid={self.invalid!r} is no policy; give 'error', 'drop' or 'other'"
            )
        if (self.invalid == "other") != (self.other is not None):
            raise DpmarkovError(
                "invalid='other' and other= go together: name the catch-all state, one of the "
                "declared states, as other="
            )

    @property
    def lenient(self) -> bool:
        """Whether counting goes on when rows have no cell."""
        return self.invalid != "error"

    def check(self, space: StateSpace) -> None:
        """Refuse a catch-all that is not declared, or that some state cannot reach."""
        if self.other is None:
            return
        sides = [space.destinations] if space.kind == "row" else [space.origins, space.destinations]
        if any(self.other not in side for side in sides):
            raise DpmarkovError(
                f"the catch-all state other={self.other!r} is not declared; add it to the states"
            )
        short = np.flatnonzero(self.fallback(space) < 0)
        if short.size:
            raise DpmarkovError(
                f"the support has no transition {space.origins[short[0]]!r} -> {self.other!r} "
                f"({short.size} such states in all), which the catch-all needs; add it"
            )

    def catch_all(self, space: StateSpace) -> tuple[int | None, int | None]:
        """Code of the catch-all state as an origin and as a destination, if there is one."""
        if self.other is None:
            return None, None
        (j,) = space.destination_positions([self.other]).tolist()
        (i,) = (0,) if space.kind == "row" else space.origin_positions([self.other]).tolist()
        return i, j

    def fallback(self, space: StateSpace) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Position of the transition from each origin to the catch-all."""
        m, _ = space.shape
        column = space.destination_positions([self.other])
        return space.cell_positions(np.arange(m), np.repeat(column, m))


def whole(value: int) -> nw.Expr:
    """Write a constant that is 64 bits wide on every engine."""
    return nw.lit(value, nw.Int64)


# -- labels to codes -----------------------------------------------------------------------


def encoded(frame: nw.LazyFrame[Any], column: str, labels: tuple[Label, ...]) -> nw.LazyFrame[Any]:
    """Replace labels by their position among the declared ones, -1 where there is none.

    The declared labels take the type of the column, never the other way round, so that no
    value of the data can fail to convert.
    """
    dtype = frame.collect_schema()[column]
    table = beside(frame, _codes(labels, dtype)).select(nw.col(_LABEL).cast(dtype), "code")
    joined = frame.join(table, how="left", left_on=column, right_on=_LABEL).drop(column)
    return joined.with_columns(nw.col("code").fill_null(UNDECLARED)).rename({"code": column})


def _codes(labels: tuple[Label, ...], dtype: nw.dtypes.DType) -> pa.Table:
    """List the labels that a column can hold, with their positions."""
    label, code = pa.array(labels), np.arange(len(labels), dtype=np.int32)
    if dtype.is_integer() and not isinstance(dtype, nw.Int128):
        limits = np.iinfo(str(dtype).lower())
        values = label.to_numpy()
        fits = (limits.min <= values) & (values <= limits.max)
        label, code = label.filter(pa.array(fits)), code[fits]
    return pa.table({_LABEL: label, "code": code})


def missing(frame: nw.LazyFrame[Any], *keys: str) -> nw.Expr:
    """Whether a row lacks one of the keys (for a number also: is NaN)."""
    schema = frame.collect_schema()
    lacks = nw.lit(False)
    for key in keys:
        lacks = lacks | nw.col(key).is_null()
        if schema[key].is_float():
            lacks = lacks | nw.col(key).is_nan().fill_null(False)
    return lacks


def coded_unusable(frame: nw.LazyFrame[Any], column: str, lacks: nw.Expr) -> nw.LazyFrame[Any]:
    """Write into a column of codes which rows have no place."""
    code = nw.when(lacks).then(nw.lit(UNUSABLE, nw.Int32)).otherwise(nw.col(column))
    return frame.with_columns(code.alias(column))


def sent(column: str, instead: int | None) -> nw.Expr:
    """Send undeclared labels to the catch-all, if there is one."""
    code = nw.col(column)
    if instead is None:
        return code
    return nw.when(code == UNDECLARED).then(nw.lit(instead, nw.Int32)).otherwise(code)


def judged(
    frame: nw.LazyFrame[Any], reported: Sequence[str], space: StateSpace, policy: Policy
) -> nw.LazyFrame[Any]:
    """Read the numbers of affected rows off the codes, and apply the policy to the codes."""
    lacks = nw.col("destination") == UNUSABLE
    unknown = nw.any_horizontal(*(nw.col(c) == UNDECLARED for c in reported), ignore_nulls=True)
    i, j = policy.catch_all(space)
    return frame.with_columns(
        unusable=nw.when(lacks).then(nw.col("rows")).otherwise(whole(0)),
        undeclared=nw.when(unknown & ~lacks).then(nw.col("rows")).otherwise(whole(0)),
    ).with_columns(origin=sent("origin", i), destination=sent("destination", j))


# -- codes to cells ------------------------------------------------------------------------


def located(frame: nw.LazyFrame[Any], space: StateSpace, policy: Policy) -> nw.LazyFrame[Any]:
    """Give each pair of codes its position in the support, -1 where it has none.

    Adds ``infeasible``, the number of rows whose transition the support does not have.
    """
    valid = (nw.col("origin") >= 0) & (nw.col("destination") >= 0)
    if space.is_complete:
        return frame.with_columns(
            position=nw.when(valid).then(_flat(space)).otherwise(whole(-1)),
            infeasible=whole(0),
        ).drop("origin", "destination")
    return _looked_up(frame, space, policy, valid)


def _flat(space: StateSpace) -> nw.Expr:
    return nw.col("origin").cast(nw.Int64) * space.shape[1] + nw.col("destination")


def _looked_up(
    frame: nw.LazyFrame[Any], space: StateSpace, policy: Policy, valid: nw.Expr
) -> nw.LazyFrame[Any]:
    flat = space.rows * space.shape[1] + space.columns
    cells = pa.table({"flat_cell": flat, "position": np.arange(flat.size)})
    frame = frame.with_columns(flat=nw.when(valid).then(_flat(space)).otherwise(whole(-1))).join(
        beside(frame, cells), how="left", left_on="flat", right_on="flat_cell"
    )
    astray = (nw.col("flat") >= 0) & nw.col("position").is_null()
    frame = frame.with_columns(infeasible=nw.when(astray).then(nw.col("rows")).otherwise(whole(0)))
    return _rerouted(frame, space, policy).drop("origin", "destination", "flat")


def _rerouted(frame: nw.LazyFrame[Any], space: StateSpace, policy: Policy) -> nw.LazyFrame[Any]:
    """Send an infeasible transition from its origin to the catch-all, or nowhere."""
    position = nw.col("position")
    if policy.other is None:
        return frame.with_columns(position=position.fill_null(-1))
    fallback = pa.table({"from": np.arange(space.shape[0]), "catch_all": policy.fallback(space)})
    frame = frame.join(beside(frame, fallback), how="left", left_on="origin", right_on="from")
    rescued = nw.when(nw.col("flat") >= 0).then(nw.col("catch_all")).otherwise(whole(-1))
    return frame.with_columns(
        position=nw.when(position.is_null()).then(rescued).otherwise(position)
    ).drop("catch_all")


def summed(frame: nw.LazyFrame[Any], *keys: str) -> nw.LazyFrame[Any]:
    """Add up what is carried along, by key."""
    carried = [name for name in _CARRIED if name in frame.collect_schema()]
    return frame.group_by(*keys).agg(nw.col(*carried).sum())


_CARRIED = ("n", "rows", "undeclared", "unusable", "infeasible")
