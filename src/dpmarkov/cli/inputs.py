"""Events, bounds, budgets and public numbers, as they are given on the command line."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmarkov.cli.declared import FROM_DATA, check_not_the_data, declared_space, table
from dpmarkov.cli.options import (
    Charging,
    Declared,
    Events,
    Merging,
    Public,
    Target,
    Users,
    whole_number,
)
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from dpmarkov.artefact import Release
    from dpmarkov.counts import TransitionCounts
    from dpmarkov.ledger import Dataset
    from dpmarkov.states import Label, StateSpace

__all__ = ["charged", "counted", "counted_again", "merged", "public_numbers"]

_GAP = re.compile(r"(\d+(?:\.\d+)?)(s|min|h|d)?")
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_KINDS = (
    "give the columns of the events in one of three ways: --origin and --destination; --entity, "
    "--time and --state for paths; --category for a single distribution"
)


def counted(
    data: str,
    events: Events,
    declared: Declared,
    users: Users,
    target: Target,
    ledger: Dataset | None = None,
) -> TransitionCounts:
    """Count events; the result is sensitive.

    Parameters
    ----------
    data : str
        Path or glob.
    events : Events
        The columns.
    declared : Declared
        The states.
    users : Users
        How much one person may contribute.
    target : Target
        The promise, of which bounds that are chosen from the data take a share.
    ledger : Dataset, optional
        What is charged for that share.

    Returns
    -------
    TransitionCounts
    """
    from dpmarkov.planning.shape import check_connected

    asked = _asked(events)
    if (declared.categories is None) == (asked == "category"):
        raise DpmarkovError("--categories and --category go together; all others take --states")
    check_not_the_data(data, declared)
    from_data = FROM_DATA in (declared.states, declared.categories)
    states = FROM_DATA if from_data else declared_space(declared)
    other = _like(events.other, states)
    common: dict[str, Any] = {
        "invalid": events.invalid, "other": other, "ledger": ledger, **_bounds(users, target)
    }  # fmt: skip
    counts = _answered(asked, data, events, states, common)
    check_connected(counts.space)
    return counts


def counted_again(data: str, events: Events, release: Release) -> TransitionCounts:
    """Count all events over the states of a release; the result is sensitive.

    Parameters
    ----------
    data : str
        Path or glob.
    events : Events
        The columns.
    release : Release
        Of a chain, a table or a single row; its states may have been merged. Users are not bounded.

    Returns
    -------
    TransitionCounts
    """
    from dpmarkov.counts import TransitionCounts
    from dpmarkov.states import StateSpace

    asked, space = _asked(events), release.space
    if (space.kind == "row") != (asked == "category"):
        raise DpmarkovError(
            f"the release is of a {space.kind} space: --category goes with a single distribution, "
            "all other columns with transitions"
        )
    group_of = {member: label for label, group in space.groups.items() for member in group}
    states = StateSpace(group_of) if group_of else space
    common: dict[str, Any] = {"invalid": events.invalid, "other": _like(events.other, states)}
    counts = _answered(asked, data, events, states, common)
    if not group_of:
        return counts
    seen = counts.cells.nonzero()[0]
    names = [group_of[label] for label in states.labels]
    triples = [
        (names[i], names[j], count)
        for i, j, count in zip(
            states.rows[seen].tolist(), states.columns[seen].tolist(), counts.cells[seen].tolist(),
            strict=True,
        )
    ]  # fmt: skip
    folded = TransitionCounts.from_triples(triples, space)
    return replace(folded, affected_rows=counts.affected_rows)


def _answered(
    asked: str, data: str, events: Events, states: Any, common: dict[str, Any]
) -> TransitionCounts:
    """Count what is asked for."""
    from dpmarkov import counting

    if asked == "paths":
        return counting.count_paths(
            data, entity=events.entity or "", time=events.time or "", state=events.state or "",
            states=states, tie_break=events.tie_break or (), max_gap=_gap(events.max_gap),
            drop_self=events.drop_self, **common,
        )  # fmt: skip
    if asked == "category":
        return counting.count_categories(
            data, category=events.category or "", categories=states, count=events.count, **common
        )
    return counting.count_transitions(
        data, origin=events.origin or "", destination=events.destination or "", states=states,
        count=events.count, **common,
    )  # fmt: skip


def _bounds(users: Users, target: Target) -> dict[str, Any]:
    """Give the bounds as counting takes them."""
    if target.unit != "user":
        if users != Users():
            raise DpmarkovError(
                "--user, --max-cells, --max-per-cell and --bounds-epsilon go with --unit user"
            )
        return {}
    if None in (users.user, users.max_cells, users.max_per_cell):
        raise DpmarkovError(
            "--unit user needs --user COLUMN, and how much one person may contribute: --max-cells "
            "and --max-per-cell, each a number or auto"
        )
    given = {"--max-cells": str(users.max_cells), "--max-per-cell": str(users.max_per_cell)}
    bounds: dict[str, Any] = {
        name[2:].replace("-", "_"): bound if bound == "auto" else whole_number(name, bound)
        for name, bound in given.items()
    }
    share = users.bounds_epsilon
    if share is None and "auto" in given.values():
        share = target.epsilon / 10
    return {"user": users.user, **bounds, "bounds_epsilon": share}


def charged(charging: Charging, target: Target) -> Dataset | None:
    """Find the data set that is charged, before any work is done.

    Parameters
    ----------
    charging : Charging
        What was given.
    target : Target
        The promise, whose unit must be that of the budget.

    Returns
    -------
    Dataset or None
    """
    if charging.ledger is None or charging.dataset is None:
        if any((charging.ledger, charging.dataset, charging.part)):
            raise DpmarkovError(
                "--ledger and --dataset go together (and --part with them): give both, or none"
            )
        return None
    from dpmarkov.ledger import Ledger

    dataset = Ledger(charging.ledger).dataset(charging.dataset, part=charging.part)
    dataset.check_unit(target.unit)
    return dataset


def merged(
    counts: TransitionCounts, merging: Merging, target: Target, ledger: Dataset | None = None
) -> TransitionCounts:
    """Join small states, if that was asked for.

    Parameters
    ----------
    counts : TransitionCounts
        What was counted.
    merging : Merging
        Along which adjacency, and how far.
    target : Target
        The promise, of which merging takes a share under `transition` and `user`.
    ledger : Dataset, optional
        What is charged for that share.

    Returns
    -------
    TransitionCounts
    """
    if merging.merge is None:
        if (merging.merge_to, merging.merge_minimum) != (None, None):
            raise DpmarkovError(
                "--merge-to and --merge-minimum need --merge ADJACENCY: which states lie next to "
                "each other"
            )
        return counts
    from dpmarkov.merging import merge_states

    share = merging.merge_epsilon
    if share is not None and not 0 < share < target.epsilon:
        raise DpmarkovError(
            f"--merge-epsilon must be above 0 and below --epsilon, {target.epsilon:g}, of which it "
            f"is a share, not {share:g}"
        )
    if share is None and target.unit != "destination":
        share = target.epsilon / 10
    return merge_states(
        counts, merging.merge, to=merging.merge_to, minimum_total=merging.merge_minimum,
        unit=target.unit, epsilon=share, name=merging.merge_name, ledger=ledger,
    )  # fmt: skip


def public_numbers(public: Public, space: StateSpace) -> dict[str, Any]:
    """Read what is known in public beside the states.

    Parameters
    ----------
    public : Public
        A file of row totals, a release whose rows to expect.
    space : StateSpace
        The declared states.

    Returns
    -------
    dict
        ``row_totals`` and ``matrix``, as planning takes them.
    """
    from dpmarkov.files import load

    totals = None if public.row_totals is None else _row_totals(public.row_totals, space)
    return {"row_totals": totals, "matrix": public.like and _rows_of(load(public.like), space)}


def _rows_of(release: Release, space: StateSpace) -> Any:
    if (release.space.origins, release.space.destinations) != (space.origins, space.destinations):
        raise DpmarkovError("--like is a release of other states than those that are declared")
    return release.matrix


def _row_totals(path: Path, space: StateSpace) -> list[float]:
    """Read a CSV file whose first column names the state and whose second gives its total."""
    _, rows = table(path)
    try:
        given = {str(row[0]).strip(): float(row[1]) for row in rows}
    except (ValueError, IndexError):
        raise DpmarkovError(
            f"{path} must have a state and a number in each line, after a line of headers"
        ) from None
    missing = [origin for origin in space.origins if str(origin) not in given]
    if missing:
        raise DpmarkovError(
            f"{path} has no total for {missing[0]!r} ({len(missing)} such states in all); give one "
            "for each declared state"
        )
    return [given[str(origin)] for origin in space.origins]


def _asked(events: Events) -> str:
    """Tell which of the three questions is asked, from the columns that were given."""
    groups = {
        "transitions": (events.origin, events.destination),
        "paths": (events.entity, events.time, events.state),
        "category": (events.category,),
    }
    begun = [name for name, columns in groups.items() if any(columns)]
    if len(begun) != 1 or not all(groups[begun[0]]):
        raise DpmarkovError(_KINDS)
    of_paths = (events.tie_break, events.max_gap, events.drop_self)
    if any(of_paths) and begun != ["paths"]:
        raise DpmarkovError("--tie-break, --max-gap and --drop-self go with paths (--entity)")
    if events.count is not None and begun == ["paths"]:
        raise DpmarkovError("--count goes with counted transitions or categories, not with paths")
    return begun[0]


def _gap(given: str | None) -> timedelta | float | None:
    """Read a length of time with its unit, or a number where times are numbers."""
    if given is None:
        return None
    found = _GAP.fullmatch(given)
    if found is None:
        raise DpmarkovError(
            f"--max-gap must be a number with s, min, h or d, such as 30min, not {given!r}"
        )
    number, unit = float(found[1]), found[2]
    return timedelta(seconds=number * _SECONDS[unit]) if unit else number


def _like(other: str | None, states: Any) -> Label | None:
    """Read the catch-all as the states are typed."""
    labels = getattr(states, "destinations", ())
    return next((label for label in labels if str(label) == other), other)
