"""What several commands take: dataclasses whose fields become options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dpmarkov.errors import DpmarkovError

__all__ = [
    "Charging",
    "Data",
    "Declared",
    "Drawing",
    "Events",
    "Force",
    "General",
    "Merging",
    "Noise",
    "Part",
    "Public",
    "Target",
    "Users",
    "whole_number",
]

_EVENTS = "Events"
_STATES = "States (public, declared)"
_TARGET = "Privacy"
_NOISE = "Noise"
_PUBLIC = "Public numbers"
_LEDGER = "Ledger"
_REPORT = "Report"


def _option(*names: str, help: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="Files of events: CSV, Parquet or JSON; a path or glob."),
]
Force = Annotated[bool, _option("--force", help="Replace a file of that name.")]
Part = Annotated[
    str | None,
    _option("--part", help="The part of the data set (a month, say) that is released; you declare "
            "that the unit never has data in two.", panel=_LEDGER),
]  # fmt: skip


@dataclass(frozen=True)
class General:
    """What every command takes."""

    json: Annotated[bool, _option("--json", help="Print JSON only, errors too.")] = False
    debug: Annotated[bool, _option("--debug", help="Show the traceback of an error.")] = False


@dataclass(frozen=True)
class Target:
    """The promise; all of it is asked for, none is silent."""

    epsilon: Annotated[float, _option("--epsilon", help="Epsilon, at least 0.", panel=_TARGET)]
    delta: Annotated[
        float,
        _option("--delta", help="Delta, above 0 and below 1; or 0, for geometric noise alone.",
                panel=_TARGET),
    ]  # fmt: skip
    unit: Annotated[
        Literal["destination", "transition", "user"],
        _option("--unit", help="What is hidden: where one transition went, that it took place, or "
                "a whole person.", panel=_TARGET),
    ]  # fmt: skip

    @property
    def keywords(self) -> dict[str, Any]:
        """The target as the API takes it."""
        return {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit}


@dataclass(frozen=True)
class Noise:
    """Which noise, with which settings."""

    mechanism: Annotated[
        Literal["dirichlet", "geometric", "gaussian"],
        _option("--mechanism", help="The noise.", panel=_NOISE),
    ] = "dirichlet"
    prior: Annotated[
        str, _option("--prior", help="Pseudo-counts (dirichlet), or 'auto'.", panel=_NOISE)
    ] = "auto"
    no_debias: Annotated[
        bool, _option("--no-debias", help="Leave the prior in the rows.", panel=_NOISE)
    ] = False
    assume_floor: Annotated[
        float | None,
        _option("--assume-floor", help="The paper's setting: assert this least share of a row.",
                panel=_NOISE),
    ] = None  # fmt: skip
    expected_total: Annotated[
        float | None,
        _option("--expected-total", help="A public guess of how many transitions there are.",
                panel=_PUBLIC),
    ] = None  # fmt: skip

    @property
    def keywords(self) -> dict[str, Any]:
        """The settings as the API takes them."""
        return {
            "mechanism": self.mechanism,
            "prior": _number_or_auto(self.prior),
            "debias": not self.no_debias,
            "assume_floor": self.assume_floor,
            "expected_total": self.expected_total,
        }


def _number_or_auto(prior: str) -> float | str:
    if prior == "auto":
        return prior
    try:
        return float(prior)
    except ValueError:
        raise DpmarkovError(
            f"--prior must be a number of pseudo-counts or auto, not {prior!r}"
        ) from None


@dataclass(frozen=True)
class Declared:
    """The states, and which transitions are feasible."""

    states: Annotated[
        str | None,
        _option("--states", help="A file of states, a list A,B,C or a range 1..63; or from-data, "
                "which is not private.", panel=_STATES),
    ] = None  # fmt: skip
    categories: Annotated[
        str | None,
        _option("--categories", help="The same for the categories of a single distribution.",
                panel=_STATES),
    ] = None  # fmt: skip
    support: Annotated[
        str | None,
        _option("--support", help="A file of feasible transitions (two columns); all without it.",
                panel=_STATES),
    ] = None  # fmt: skip
    state_column: Annotated[
        str | None, _option("--state-column", help="Which column of the CSV file.", panel=_STATES)
    ] = None
    state_where: Annotated[
        list[str] | None,
        _option("--state-where", help="Only lines with this value, such as Borough=Manhattan.",
                metavar="COLUMN=VALUE", panel=_STATES),
    ] = None  # fmt: skip
    state_except: Annotated[
        str | None, _option("--state-except", help="Without these: A,B,C.", panel=_STATES)
    ] = None


@dataclass(frozen=True)
class Events:
    """Which columns make a transition, and what becomes of rows that have none."""

    origin: Annotated[
        str | None, _option("--origin", help="Column of the origin.", panel=_EVENTS)
    ] = None
    destination: Annotated[
        str | None, _option("--destination", help="Column of the destination.", panel=_EVENTS)
    ] = None
    count: Annotated[
        str | None,
        _option("--count", help="Column of how many transitions a row stands for.", panel=_EVENTS),
    ] = None
    entity: Annotated[
        str | None, _option("--entity", help="Paths: column of who moves.", panel=_EVENTS)
    ] = None
    time: Annotated[str | None, _option("--time", help="Paths: column of when.", panel=_EVENTS)] = (
        None
    )
    state: Annotated[
        str | None, _option("--state", help="Paths: column of where.", panel=_EVENTS)
    ] = None
    tie_break: Annotated[
        list[str] | None,
        _option("--tie-break", help="Paths: column that orders events of equal time.",
                metavar="COLUMN", panel=_EVENTS),
    ] = None  # fmt: skip
    max_gap: Annotated[
        str | None,
        _option("--max-gap", help="Paths: the longest time between two events of a step: 90s, "
                "30min, 2h or 1d; a bare number where times are numbers.", panel=_EVENTS),
    ] = None  # fmt: skip
    drop_self: Annotated[
        bool,
        _option("--drop-self", help="Paths: leave out steps to the same state.", panel=_EVENTS),
    ] = False
    category: Annotated[
        str | None, _option("--category", help="A single distribution: its column.", panel=_EVENTS)
    ] = None
    invalid: Annotated[
        Literal["error", "drop", "other"],
        _option("--invalid", help="What becomes of undeclared states.", panel=_EVENTS),
    ] = "error"
    other: Annotated[
        str | None,
        _option("--other", help="The catch-all state, with --invalid other.", panel=_EVENTS),
    ] = None


@dataclass(frozen=True)
class Users:
    """How much one person may contribute, for the unit user."""

    user: Annotated[str | None, _option("--user", help="Column of the person.", panel=_TARGET)] = (
        None
    )
    max_cells: Annotated[
        str | None,
        _option("--max-cells", help="How many cells (pairs of origin and destination) of one "
                "person count; or auto, from a share of epsilon.", panel=_TARGET),
    ] = None  # fmt: skip
    max_per_cell: Annotated[
        str | None,
        _option("--max-per-cell", help="How many transitions in each of these; or auto.",
                panel=_TARGET),
    ] = None  # fmt: skip
    bounds_epsilon: Annotated[
        float | None,
        _option("--bounds-epsilon", help="The share of epsilon that auto takes; a tenth without.",
                panel=_TARGET),
    ] = None  # fmt: skip

    @property
    def keywords(self) -> dict[str, Any]:
        """The bounds as planning takes them: public numbers."""
        bounds = {"--max-cells": self.max_cells, "--max-per-cell": self.max_per_cell}
        return {
            name[2:].replace("-", "_"): bound and whole_number(name, bound)
            for name, bound in bounds.items()
        }


def whole_number(option: str, given: str) -> int:
    """Read a bound, or name the option that has none."""
    if not given.isdecimal() or int(given) < 1:
        raise DpmarkovError(f"{option} must be a whole number of at least 1, not {given!r}")
    return int(given)


@dataclass(frozen=True)
class Merging:
    """Whether small states are joined first."""

    merge: Annotated[
        Path | None,
        _option("--merge", metavar="ADJACENCY", help="Join small states along this adjacency: a "
                "CSV of edges or GeoJSON.", panel=_STATES),
    ] = None  # fmt: skip
    merge_to: Annotated[
        int | None, _option("--merge-to", help="How many states shall be left.", panel=_STATES)
    ] = None
    merge_minimum: Annotated[
        float | None,
        _option("--merge-minimum", help="Or: the row total that each shall reach.", panel=_STATES),
    ] = None
    merge_epsilon: Annotated[
        float | None,
        _option("--merge-epsilon", help="Its share of epsilon under transition and user; a tenth "
                "without.", panel=_STATES),
    ] = None  # fmt: skip
    merge_name: Annotated[
        str | None,
        _option("--merge-name", help="Which GeoJSON property names a state.", panel=_STATES),
    ] = None


@dataclass(frozen=True)
class Charging:
    """Which data set of which ledger is charged."""

    ledger: Annotated[
        str | None,
        _option("--ledger", help="Charge this ledger before noise is drawn: an SQLite file, or "
                "postgresql://user@host/database.", panel=_LEDGER),
    ] = None  # fmt: skip
    dataset: Annotated[str | None, _option("--dataset", help="Its data set.", panel=_LEDGER)] = None
    part: Part = None


@dataclass(frozen=True)
class Drawing:
    """What a report shows beside the release."""

    map: Annotated[
        Path | None,
        _option("--map", metavar="GEOJSON", help="Outlines of the states, for a map.",
                panel=_REPORT),
    ] = None  # fmt: skip
    map_name: Annotated[
        str | None,
        _option("--map-name", help="Which GeoJSON property names a state; else the one that names "
                "most of them.", panel=_REPORT),
    ] = None  # fmt: skip
    title: Annotated[
        str | None, _option("--title", help="What the report is about.", panel=_REPORT)
    ] = None

    @property
    def keywords(self) -> dict[str, Any]:
        """The drawing as the API takes it."""
        return {"geojson": self.map, "name": self.map_name, "title": self.title}


@dataclass(frozen=True)
class Public:
    """Public numbers beside the states."""

    like: Annotated[
        Path | None,
        _option("--like", help="A release whose rows to expect (last year's, say); else even ones.",
                panel=_PUBLIC),
    ] = None  # fmt: skip
    row_totals: Annotated[
        Path | None,
        _option("--row-totals", help="A CSV file of states and their public or expected totals.",
                panel=_PUBLIC),
    ] = None  # fmt: skip
