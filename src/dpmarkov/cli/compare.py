"""``dpmarkov compare``: the mechanisms side by side."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpmarkov.cli.declared import declared_space
from dpmarkov.cli.inputs import counted, public_numbers
from dpmarkov.cli.options import Declared, Events, General, Public, Target, Users
from dpmarkov.cli.output import in_options, print_json, print_tables

__all__ = ["compare"]

_PUBLIC = "Public numbers"


def compare(
    declared: Declared,
    target: Target,
    public: Public,
    events: Events,
    users: Users,
    general: General,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]", help="Sensitive events: the result is for the curator only."
        ),
    ] = None,
    expected_total: Annotated[
        float | None,
        typer.Option(help="Without DATA: how many transitions to expect.", rich_help_panel=_PUBLIC),
    ] = None,
    assume_floor: Annotated[
        float | None,
        typer.Option(help="The share that the paper's setting asserts.", rich_help_panel="Noise"),
    ] = None,
    draws: Annotated[int, typer.Option(help="Simulated releases of each mechanism.")] = 100,
    seed: Annotated[int | None, typer.Option(help="Seed of the simulation.", min=0)] = None,
) -> None:
    r"""Compare the mechanisms at one target, by simulation, whoever wins.

    Without DATA on public numbers; with DATA on the counts themselves, for the curator only.

    Example:
    dpmarkov compare --states zones.txt --expected-total 3000000 \
    --epsilon 1 --delta 1e-6 --unit destination
    """
    from dpmarkov.planning import compare as compared

    source: Any
    known: dict[str, Any] = {"assume_floor": assume_floor, "draws": draws, "rng": seed}
    if data is None:
        source = declared_space(declared)
        known |= {"expected_total": expected_total, **public_numbers(public, source)}
        known |= users.keywords
    else:
        source = counted(data, events, declared, users, target)
    found = compared(source, **target.keywords, **known)
    if general.json:
        print_json(found.to_dict())
    else:
        typer.echo(in_options(found.summary()))
        print_tables(found.tables())
