"""The application: its commands and what stands above them."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

import dpmarkov
from dpmarkov.cli.command import register
from dpmarkov.cli.compare import compare
from dpmarkov.cli.demo import demo
from dpmarkov.cli.ledger import ledger
from dpmarkov.cli.output import tell
from dpmarkov.cli.plan import plan
from dpmarkov.cli.release import release
from dpmarkov.cli.report import report
from dpmarkov.cli.show import show
from dpmarkov.cli.simulate import simulate

__all__ = ["app", "main"]

# What typer raises for every wrong option; it has no public name of its own.
_UsageError: Any = typer.BadParameter.__base__

app = typer.Typer(
    name="dpmarkov",
    help="Publish Markov chains from sensitive event data with differential privacy.",
    epilog="Start with: dpmarkov demo\n\nEvery command ends with 0 when it is done, 2 for what you "
    "can mend (a wrong option, a missing file, an infeasible target), 1 for a mistake of ours, 130 "
    'when interrupted. With --json it prints one JSON object, an error as {"error": ...}.',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dpmarkov {dpmarkov.__version__}")
        raise typer.Exit


@app.callback()
def _above(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Publish Markov chains from sensitive event data with differential privacy."""


for _command in (demo, plan, release, show, report, simulate, compare):
    register(app, _command)
app.add_typer(ledger)


def main() -> None:
    """Run the command line; where JSON was asked for, a wrong option is told in JSON too."""
    if "--json" not in sys.argv:
        app(prog_name="dpmarkov")
    try:
        sys.exit(app(prog_name="dpmarkov", standalone_mode=False))
    except _UsageError as error:
        tell(error.format_message(), as_json=True)
        sys.exit(2)
