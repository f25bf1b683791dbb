"""Paths to transitions: each event of an entity with the one before it.

Equal times leave the order of two events open, and engines fill that gap in their own ways.
Here events are ordered by time, then by the declared tie-break columns (nulls first, text by
code points), then by the position of their state among the declared states, undeclared ones
first. Events that agree in all three are interchangeable, so the pairs are the same on every
engine.

An event whose state is not declared keeps its place in the path under the policy ``drop``: the
pairs with it are left out, and its neighbours are *not* joined across it, since nobody went
from one to the other directly. An event without an entity or a time has no place in any path.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import narwhals as nw

from dpmarkov.counting.cells import NO_PAIR, coded_unusable, missing, sent
from dpmarkov.counting.engines import on_one_clock
from dpmarkov.errors import DpmarkovError

__all__ = ["Gap", "paired"]

Gap = timedelta | int | float
_EXACT = 2.0**53  # differences up to here are exact in float64


def paired(
    events: nw.LazyFrame[Any],
    *,
    within: Sequence[str],
    ties: Sequence[str],
    max_gap: Gap | None,
    drop_self: bool,
    catch_all: int | None,
) -> nw.LazyFrame[Any]:
    """Pair each event with the previous one of its path.

    Parameters
    ----------
    events : LazyFrame
        With ``time`` and a ``state`` that is a code.
    within : sequence of str
        The columns that tell paths apart.
    ties : sequence of str
        Columns that order events of equal time, before their state does.
    max_gap : timedelta or number, optional
        The longest time between two events that still make a pair.
    drop_self : bool
        Whether pairs of equal states are left out.
    catch_all : int, optional
        The code that undeclared states will be sent to, which may make two states equal.

    Returns
    -------
    LazyFrame
        With ``origin`` and ``destination`` in place of the state, one row per event.
    """
    # An event without a place shares a path with nothing, or stands at its very beginning or end.
    events = coded_unusable(events, "state", missing(events, *within, "time"))
    if max_gap is not None:
        events = on_one_clock(events, "time")
    order = ["time", *ties, "state"]
    before = {"origin": nw.col("state").shift(1).over(*within, order_by=order)}
    if max_gap is not None:
        before["earlier"] = nw.col("time").shift(1).over(*within, order_by=order)
    pairs = events.with_columns(**before).rename({"state": "destination"})
    counted = ~nw.col("origin").is_null()
    if drop_self:
        counted = counted & (sent("origin", catch_all) != sent("destination", catch_all))
    if max_gap is not None:
        counted = counted & (_elapsed(pairs.collect_schema()["time"], max_gap) <= max_gap)
    nothing = nw.lit(NO_PAIR, nw.Int32)
    return pairs.with_columns(origin=nw.when(counted).then(nw.col("origin")).otherwise(nothing))


def _elapsed(dtype: nw.dtypes.DType, max_gap: Gap) -> nw.Expr:
    if dtype.is_numeric() == isinstance(max_gap, timedelta):
        needed = "a number, as the time is" if dtype.is_numeric() else "a datetime.timedelta"
        raise DpmarkovError(f"max_gap={max_gap!r} must be {needed}")
    seconds = max_gap.total_seconds() if isinstance(max_gap, timedelta) else max_gap
    if not seconds >= 0:  # also true of NaN
        raise DpmarkovError(f"max_gap={max_gap!r} must be 0 or more")
    time, earlier = nw.col("time"), nw.col("earlier")
    if dtype == nw.Date:
        time, earlier = time.cast(nw.Datetime), earlier.cast(nw.Datetime)
    if not dtype.is_integer():
        return time - earlier
    # A difference of whole numbers may not fit their type; as float64 it does, and is rounded.
    wide = time.cast(nw.Float64) - earlier.cast(nw.Float64)
    if dtype.is_signed_integer():
        time, earlier = time.cast(nw.Int64), earlier.cast(nw.Int64)
    return nw.when(wide < _EXACT).then((time - earlier).cast(nw.Float64)).otherwise(wide)
