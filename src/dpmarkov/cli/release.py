"""``dpmarkov release``: events to a published file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmarkov.cli.inputs import charged, counted, merged
from dpmarkov.cli.options import (
    Charging,
    Data,
    Declared,
    Drawing,
    Events,
    Force,
    General,
    Merging,
    Noise,
    Target,
    Users,
)
from dpmarkov.cli.output import check_target, in_options, print_json
from dpmarkov.cli.telling import advised, as_dict, in_words
from dpmarkov.errors import DpmarkovError

__all__ = ["Output", "release"]

SUFFIXES, REPORTS = (".json", ".parquet"), (".html",)
Output = Annotated[
    Path, typer.Option("-o", "--output", metavar="FILE", help="Where to: .json or .parquet.")
]


def release(
    data: Data,
    events: Events,
    declared: Declared,
    target: Target,
    users: Users,
    noise: Noise,
    merging: Merging,
    charging: Charging,
    drawing: Drawing,
    output: Output,
    general: General,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="HTML", help="Write the public report, too.", rich_help_panel="Report"
        ),
    ] = None,
    force: Force = False,
) -> None:
    r"""Privatize events and write what may be published, with its guarantee.

    The states are public and declared by you. Nothing is written before all of it is done. With
    --ledger and --dataset a budget is charged before any noise is drawn.

    Example:
    dpmarkov release trips.parquet --origin origin \
    --destination destination --states zones.txt \
    --epsilon 1 --delta 1e-6 --unit transition -o city.json
    """
    import dpmarkov as dpm

    check_target(output, force, SUFFIXES)
    _check_report(report, drawing, force)
    ledger = charged(charging, target)
    counts = merged(counted(data, events, declared, users, target, ledger), merging, target, ledger)
    made = dpm.release(counts, ledger=ledger, **target.keywords, **noise.keywords)
    made.save(output, overwrite=force)
    if report is not None:
        dpm.charts.report(output, report, **drawing.keywords, overwrite=force)
    advice = advised(made)
    if general.json:
        written = {"file": str(output), "report": report and str(report)}
        print_json({**written, **as_dict(made), "advice": advice})
        return
    typer.echo(f"Wrote {output}: {made!r}\n")
    typer.echo(in_words(made))
    if advice:
        typer.echo(f"Advice: {in_options(advice)}.")
    if report is not None:
        typer.echo(f"Report: {report}")


def _check_report(report: Path | None, drawing: Drawing, force: bool) -> None:
    """Refuse a report that could not be written, before any work is done or budget spent."""
    if report is None:
        if drawing != Drawing():
            raise DpmarkovError("--map, --map-name and --title go with --report HTML")
        return
    from dpmarkov.charts.look import altair

    check_target(report, force, REPORTS)
    altair()
    if drawing.map is not None and not drawing.map.is_file():
        raise DpmarkovError(f"there is no file {drawing.map}")
