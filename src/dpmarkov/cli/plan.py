"""``dpmarkov plan``: what a budget buys, before any of it is spent."""

from __future__ import annotations

from typing import Annotated

import typer

from dpmarkov.cli.declared import check_not_the_data, declared_space
from dpmarkov.cli.inputs import counted, public_numbers
from dpmarkov.cli.options import Declared, Events, General, Noise, Public, Target, Users
from dpmarkov.cli.output import in_options, print_json, print_tables
from dpmarkov.errors import DpmarkovError

__all__ = ["plan"]

_INFEASIBLE = 2


def plan(
    declared: Declared,
    target: Target,
    noise: Noise,
    public: Public,
    events: Events,
    users: Users,
    general: General,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]", help="Not opened, unless --with-public-row-totals says so."
        ),
    ] = None,
    with_public_row_totals: Annotated[
        bool,
        typer.Option(
            "--with-public-row-totals",
            help="Count DATA for its row totals, which the unit destination leaves public.",
            rich_help_panel="Public numbers",
        ),
    ] = False,
) -> None:
    r"""Plan a release from public numbers: whether it is feasible, and how far off it will be.

    Takes the options of release for events, states, privacy and noise. DATA is not opened.

    Example:
    dpmarkov plan --states zones.txt --expected-total 3000000 \
    --epsilon 1 --delta 1e-6 --unit transition
    """
    from dpmarkov.planning import plan as planned

    if data is not None:
        check_not_the_data(data, declared)
    source = declared_space(declared)
    known = public_numbers(public, source)
    if with_public_row_totals:
        if data is None:
            raise DpmarkovError("--with-public-row-totals needs DATA to count")
        if target.unit != "destination":
            raise DpmarkovError(
                "--with-public-row-totals needs --unit destination: under "
                f"{target.unit!r} row totals are private, and no plan may read them"
            )
        known["row_totals"] = counted(data, events, declared, users, target).row_totals
    made = planned(source, **target.keywords, **noise.keywords, **users.keywords, **known)
    if general.json:
        print_json(made.to_dict())
    else:
        typer.echo(in_options(made.summary()))
        print_tables(made.tables())
        if data is not None and not with_public_row_totals:
            typer.echo(f"\n{data} was not opened.")
    if not made.feasible:
        raise typer.Exit(_INFEASIBLE)
