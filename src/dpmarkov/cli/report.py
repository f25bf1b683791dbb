"""``dpmarkov report``: one HTML file for a reader, or one for the curator alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmarkov.cli.inputs import counted_again
from dpmarkov.cli.options import Drawing, Events, Force, General
from dpmarkov.cli.output import check_target, print_json
from dpmarkov.errors import DpmarkovError

__all__ = ["report"]

SUFFIXES = (".html",)
_CURATOR = "Curator's report (not for publication)"

File = Annotated[Path, typer.Argument(metavar="FILE", help="What release wrote.")]


def report(
    file: File,
    drawing: Drawing,
    events: Events,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="HTML", help="Where to: .html.")
    ],
    general: General,
    curator: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Hold the release against these sensitive events: for the curator only.",
            rich_help_panel=_CURATOR,
        ),
    ] = None,
    adjacency: Annotated[
        Path | None,
        typer.Option(
            help="Which states lie next to each other (CSV or GeoJSON), to see what merging would "
            "have given; else the map.",
            rich_help_panel=_CURATOR,
        ),
    ] = None,
    force: Force = False,
) -> None:
    r"""Write a report of a release: one HTML file that needs no other and fetches nothing.

    Without --curator everything in it follows from the published file. With --curator and the
    columns of the events it shows sensitive data, and says so on every page.

    Example:
    dpmarkov report city.json --map zones.geojson -o report.html
    """
    from dpmarkov import charts
    from dpmarkov.charts.look import altair
    from dpmarkov.files import load

    check_target(output, force, SUFFIXES)
    altair()  # before any work is done
    if curator is None:
        if events != Events() or adjacency is not None:
            raise DpmarkovError(
                "columns of events and --adjacency go with --curator DATA; a public report is made "
                "from the release alone"
            )
        charts.report(file, output, **drawing.keywords, overwrite=force)
    else:
        counts = counted_again(curator, events, load(file))
        charts.curator_report(
            file, counts, output, **drawing.keywords, adjacency=adjacency, overwrite=force
        )
    audience = "public" if curator is None else "curator only"
    if general.json:
        print_json({"file": str(output), "release": str(file), "audience": audience})
    else:
        typer.echo(f"Wrote {output}: {_FOR[audience]}")


_FOR = {
    "public": "may be published with the release.",
    "curator only": "NOT FOR PUBLICATION, it shows sensitive data.",
}
