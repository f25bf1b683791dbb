"""``dpmarkov ledger``: budgets of data sets, what was spent of them, and whether that is true."""

from __future__ import annotations

from dataclasses import asdict
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dpmarkov.cli.command import register
from dpmarkov.cli.options import Force, General, Part, Target
from dpmarkov.cli.output import check_target, print_json, print_tables

if TYPE_CHECKING:
    from dpmarkov.ledger import Charge, Dataset
    from dpmarkov.planning.text import Table

__all__ = ["ledger"]

ledger = typer.Typer(
    name="ledger",
    help="Keep count of what releases of the same data reveal together.",
    no_args_is_help=True,
)

Url = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER",
        help="An SQLite file, or postgresql://user@host/database (password: PGPASSWORD, .pgpass).",
    ),
]
Name = Annotated[str, typer.Argument(metavar="DATASET", help="Name of a data set.")]


def init(url: Url, general: General) -> None:
    """Make a ledger, or bring one of an older version up to date.

    A ledger that is up to date is left as it is; no entry is ever changed.

    Example:
    dpmarkov ledger init ledger.db
    """
    import dpmarkov as dpm

    book = dpm.Ledger.create(url)
    if general.json:
        print_json({"ledger": book.name, "head": book.verify()})
        return
    typer.echo(f"{book.name} is ready. Add a data set: dpmarkov ledger add {book.name} NAME ...")


def add(url: Url, name: Name, budget: Target, general: General) -> None:
    """Add a data set with its unit and its budget, which is never changed afterwards.

    Example:
    dpmarkov ledger add ledger.db trips --unit transition --epsilon 3 --delta 1e-5
    """
    import dpmarkov as dpm

    added = dpm.Ledger(url).add_dataset(name, **budget.keywords)
    if general.json:
        print_json(_summary(added))
        return
    typer.echo(
        f"Added {name!r} to {added.ledger.name}. Charge it: dpmarkov release ... "
        f"--ledger {added.ledger.name} --dataset {name}"
    )


def show(
    url: Url,
    general: General,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="List the charges of this data set.")
    ] = None,
) -> None:
    """Show the data sets of a ledger, their budgets and what was spent; or one's charges.

    Example:
    dpmarkov ledger show ledger.db --dataset trips
    """
    import dpmarkov as dpm

    book = dpm.Ledger(url)
    chosen = book.datasets() if dataset is None else (book.dataset(dataset),)
    if general.json:
        sets = [{**_summary(one), "charges": list(map(_charge, one.charges()))} for one in chosen]
        print_json({"ledger": book.name, "head": book.verify(), "datasets": sets})
        return
    typer.echo(f"Ledger {book.name}, head {book.verify()}")
    print_tables([_of_datasets(chosen), *(_of_charges(one) for one in chosen if dataset)])


def remaining(
    url: Url,
    name: Name,
    general: General,
    mechanism: Annotated[
        Literal["dirichlet", "geometric", "gaussian"],
        typer.Option("--mechanism", help="The noise of the release."),
    ] = "dirichlet",
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="The delta of the release; that of the budget without."),
    ] = None,
    prior: Annotated[
        float | None,
        typer.Option("--prior", help="Its pseudo-counts (dirichlet); ample ones without."),
    ] = None,
    max_cells: Annotated[
        int | None, typer.Option("--max-cells", help="How its users are bounded (unit user).")
    ] = None,
    max_per_cell: Annotated[
        int | None, typer.Option("--max-per-cell", help="And how much counts in each cell.")
    ] = None,
    part: Part = None,
) -> None:
    """Say which epsilon one more release may have.

    A release with this noise, at this epsilon and delta, is then accepted.

    Example:
    dpmarkov ledger remaining ledger.db trips --mechanism gaussian --delta 1e-6
    """
    import dpmarkov as dpm

    one = dpm.Ledger(url).dataset(name, part=part)
    bounds = {"max_cells": max_cells, "max_per_cell": max_per_cell}
    left = one.remaining(mechanism=mechanism, delta=delta, prior=prior, **bounds)
    at = one.budget.delta if delta is None else delta
    if general.json:
        asked = {"mechanism": mechanism, "delta": at, "part": part}
        print_json({"remaining": left, **asked, "dataset": _summary(one)})
        return
    may = f"may have epsilon = {_down(left)} at most" if left else "does not fit, at any epsilon"
    spent = f"{_up(one.spent())} of {one.budget.epsilon:g} is spent at delta = {one.budget.delta:g}"
    typer.echo(
        f"One more release of {name!r} with {mechanism} noise at delta = {at:g} {may}. Of the "
        f"budget, epsilon = {spent}."
    )


def verify(
    url: Url,
    general: General,
    head: Annotated[
        str | None,
        typer.Option("--head", help="What this printed earlier: the ledger must go on from it."),
    ] = None,
) -> None:
    """Check that no entry was altered, removed or put in between; name the first that was.

    Ends with 2 if the ledger is damaged. That its end was cut off shows only against a head that
    was noted down before.

    Example:
    dpmarkov ledger verify ledger.db
    """
    import dpmarkov as dpm

    found = dpm.Ledger(url).verify(head)
    length = int(found.partition(":")[0])
    if general.json:
        print_json({"whole": True, "entries": length, "head": found})
        return
    typer.echo(f"The ledger is whole: {length} entries. Its head, to be noted down:\n{found}")


def export(
    url: Url,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to: .csv or .json.")
    ],
    general: General,
    force: Force = False,
) -> None:
    """Write all entries to a file, for an audit. They hold no sensitive value.

    Example:
    dpmarkov ledger export ledger.db -o ledger.csv
    """
    import dpmarkov as dpm

    check_target(output, force, (".csv", ".json"))
    book = dpm.Ledger(url)
    entries = book.export(output, overwrite=force)
    if general.json:
        print_json({"file": str(output), "entries": entries})
        return
    typer.echo(f"Wrote {output}: {entries} entries of {book.name}.")


for _command in (init, add, show, remaining, verify, export):
    register(ledger, _command)


# -- what is shown ---------------------------------------------------------------------------------


def _summary(one: Dataset) -> dict[str, Any]:
    return {"name": one.name, **asdict(one.budget), "spent": one.spent()}


def _charge(charge: Charge) -> dict[str, Any]:
    promise = charge.guarantee
    return {
        "id": charge.id,
        "purpose": charge.purpose,
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "mechanism": promise.noise.mechanism,
        "noise": asdict(promise.noise),
        **promise.bounds,
        "conditions": list(promise.conditions),
        "part": charge.part,
        "follows": charge.follows,
        "made_at": charge.made_at,
        "made_by": charge.made_by,
        "made_with": charge.made_with,
        "artefacts": list(charge.artefacts),
    }


def _up(spent: float) -> str:
    """Write what was spent, and not a digit less.

    >>> _up(0.87241), _up(2.0)
    ('0.8725', '2')
    """
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(spent)):g}"


def _down(left: float) -> str:
    """Write what remains, and not a digit more.

    >>> _down(3.16129999), _down(0.5)
    ('3.16129', '0.5')
    """
    return f"{float(Context(prec=6, rounding=ROUND_FLOOR).create_decimal(left)):g}"


def _of_datasets(chosen: tuple[Dataset, ...]) -> Table:
    from dpmarkov.planning.text import Table

    headers = ("data set", "unit", "epsilon", "delta", "spent", "charges", "unconfirmed")
    rows = []
    for one in chosen:
        charges, budget = one.charges(), one.budget
        open_ = sum(not c.artefacts and c.purpose == "release" for c in charges)
        numbers = (f"{budget.epsilon:g}", f"{budget.delta:g}", _up(one.spent()))
        rows.append((one.name, budget.unit, *numbers, str(len(charges)), str(open_)))
    return Table("Data sets (spent: epsilon at the budget's delta):", headers, rows)


def _of_charges(one: Dataset) -> Table:
    from dpmarkov.planning.text import Table

    headers = ("id", "made", "by", "noise", "epsilon", "delta", "part", "file")
    rows = [
        (
            charge.id,
            charge.made_at[:16],
            charge.made_by,
            charge.guarantee.noise.mechanism,
            f"{charge.guarantee.epsilon:g}",
            f"{charge.guarantee.delta:g}",
            charge.part or "all",
            ", ".join(charge.artefacts) or _without_a_file(charge),
        )
        for charge in one.charges()
    ]
    return Table(f"Charges of {one.name!r}:", headers, rows)


def _without_a_file(charge: Charge) -> str:
    return "unconfirmed" if charge.purpose == "release" else f"for {charge.purpose}"
