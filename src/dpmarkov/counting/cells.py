"""Rows to cells: which position of the support each row counts in, and which rows have none.

Besides its labels a frame here carries numbers that are summed along: ``n`` (what is counted),
``rows`` (how many rows of the user's that was), and for the curator ``undeclared`` and
``unusable`` (how many of these rows had a label outside the declared ones, or a null where
there must be a value). A code of -1 says: no such state, hence no cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from dpmarkov.counting.engines import beside
from dpmarkov.errors import DpmarkovError
from dpmarkov.states import Label, StateSpace

__all__ = ["Policy", "encoded", "judged", "located", "summed", "whole"]

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
    return joined.with_columns(nw.col("code").fill_null(-1)).rename({"code": column})


def _codes(labels: tuple[Label, ...], dtype: nw.dtypes.DType) -> pa.Table:
    """List the labels that a column can hold, with their positions."""
    label, code = pa.array(labels), np.arange(len(labels), dtype=np.int32)
    if dtype.is_integer() and not isinstance(dtype, nw.Int128):
        limits = np.iinfo(str(dtype).lower())
        fits = [limits.min <= int(str(x)) <= limits.max for x in labels]
        label, code = label.filter(pa.array(fits)), code[fits]
    return pa.table({_LABEL: label, "code": code})


def judged(
    frame: nw.LazyFrame[Any], *columns: str, space: StateSpace, policy: Policy
) -> nw.LazyFrame[Any]:
    """Note the rows with a label that is not declared, and send them where the policy says."""
    unknown = nw.any_horizontal(*(nw.col(name) < 0 for name in columns), ignore_nulls=True)
    frame = frame.with_columns(undeclared=nw.when(unknown).then(nw.col("rows")).otherwise(whole(0)))
    if policy.other is None:
        return frame
    (instead,) = space.destination_positions([policy.other]).tolist()
    (origin,) = space.origin_positions([policy.other]).tolist()
    return frame.with_columns(
        nw.when(nw.col(name) < 0)
        .then(whole(origin if name == "origin" else instead))
        .otherwise(nw.col(name))
        .alias(name)
        for name in columns
    )


# -- codes to cells ------------------------------------------------------------------------


def located(frame: nw.LazyFrame[Any], space: StateSpace, policy: Policy) -> nw.LazyFrame[Any]:
    """Give each pair of codes its position in the support, -1 where it has none.

    Adds ``infeasible``, the number of rows whose transition the support does not have.
    """
    i, j = nw.col("origin"), nw.col("destination")
    valid = (i >= 0) & (j >= 0)
    if space.is_complete:
        return frame.with_columns(
            position=nw.when(valid).then(i * space.shape[1] + j).otherwise(whole(-1)),
            infeasible=whole(0),
        ).drop("origin", "destination")
    return _looked_up(frame, space, policy, valid)


def _looked_up(
    frame: nw.LazyFrame[Any], space: StateSpace, policy: Policy, valid: nw.Expr
) -> nw.LazyFrame[Any]:
    flat = space.rows * space.shape[1] + space.columns
    cells = pa.table({"flat_cell": flat, "position": np.arange(flat.size)})
    i, j = nw.col("origin"), nw.col("destination")
    frame = frame.with_columns(
        flat=nw.when(valid).then(i * space.shape[1] + j).otherwise(whole(-1))
    ).join(beside(frame, cells), how="left", left_on="flat", right_on="flat_cell")
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
