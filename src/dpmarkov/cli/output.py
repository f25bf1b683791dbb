"""What a user sees: results on standard output, messages on standard error.

On a terminal tables are drawn with rich and long work shows its progress; into a file or a pipe
goes plain text, and with ``--json`` nothing but one JSON object, which for an error is
``{"error": message}``.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from dpmarkov.planning.text import Table

__all__ = [
    "check_target",
    "fail",
    "in_options",
    "print_json",
    "print_tables",
    "stages",
    "tell",
    "warn",
]

# What the API calls by its keywords, the command line calls by its options.
_IN_OPTIONS = (
    (r"overwrite=True", "--force"),
    (r"^prior, debias\b", "--prior, --no-debias"),
    (r"\(name=\)", "(--map-name)"),
    (r"Ledger\.create \(ledger init\)", "dpmarkov ledger init"),
    (r"\b(invalid|unit|mechanism)='(\w+)'", r"--\1 \2"),
    (r"\bto=", "merge_to="),
    (r"\bminimum_total=", "merge_minimum="),
    (r"\b(merge|assume|expected|row)_(to|minimum|floor|total|totals)\b", r"--\1-\2"),
    (r"\bmax_cells\b", "--max-cells"),
    (r"\bmax_per_cell\b", "--max-per-cell"),
    (r"\bbounds_epsilon\b", "--bounds-epsilon"),
    (
        r"(?<![\w-])(user|prior|support|states|invalid|other|epsilon|delta|count|ledger)(?==)",
        r"--\1",
    ),
    (r"(--[a-z-]+)=(?=[\w'.-])", r"\1 "),
    (r"(--[a-z-]+)=", r"\1"),
)


def print_json(values: dict[str, Any]) -> None:
    """Print a result for machines."""
    typer.echo(json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False))


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables: drawn on a terminal, plain elsewhere."""
    for table in tables:
        typer.echo()
        if sys.stdout.isatty():
            _draw(table)
        else:
            typer.echo(str(table))


def _draw(table: Table) -> None:
    """Draw a table; on a narrow terminal cells break between words, and no number is cut."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawn

    typer.secho(table.title, bold=True)
    console = Console()
    widths = [_widest_word(column) for column in zip(table.headers, *table.rows, strict=True)]
    room = console.width >= sum(widths) + 2 * len(widths)
    drawn = Drawn(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, int(room), 0, 0))
    for header, width in zip(table.headers, widths, strict=True):
        drawn.add_column(header, justify="right", min_width=width)
    for row in table.rows:
        drawn.add_row(*row)
    console.print(drawn, markup=False, crop=False)


def _widest_word(cells: Iterable[str]) -> int:
    return max((len(word) for cell in cells for word in cell.split()), default=0)


def warn(message: str) -> None:
    """Print a message that changes nothing."""
    typer.secho(f"warning: {message}", fg="yellow", err=True)


def tell(message: str, *, as_json: bool = False) -> None:
    """Print an error; to machines that asked for JSON also on standard output, as JSON."""
    if as_json:
        with suppress(OSError):  # it may be standard output that cannot be written
            print_json({"error": message})
    typer.secho(f"error: {message}", fg="red", err=True)


def fail(message: str, code: int, *, as_json: bool = False) -> NoReturn:
    """Print an error and end."""
    tell(message, as_json=as_json)
    _drop_what_cannot_be_written()
    raise typer.Exit(code)


def _drop_what_cannot_be_written() -> None:
    """Let Python end with our code: it would try once more to write, and end with its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_target(path: Path, force: bool, suffixes: tuple[str, ...]) -> None:
    """Refuse a file that could not be written, before any work is done or budget spent.

    Parameters
    ----------
    path : Path
        Where a result shall go.
    force : bool
        Whether it may replace a file.
    suffixes : tuple of str
        The formats that it may have.
    """
    if path.suffix.lower() not in suffixes:
        raise DpmarkovError(f"{path} must end in {' or '.join(suffixes)}, not {path.suffix!r}")
    if path.is_dir():
        raise DpmarkovError(f"{path} is a folder; give the name of a file")
    if path.exists() and not force:
        raise DpmarkovError(f"{path} exists; choose another name, or pass --force")
    if not path.parent.is_dir():
        raise DpmarkovError(f"there is no folder {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK):
        raise DpmarkovError(f"the folder {path.parent} cannot be written to; choose another")


@contextmanager
def stages(total: int) -> Iterator[Callable[[str], None]]:
    """Show the progress of long work on a terminal, and nothing elsewhere.

    Parameters
    ----------
    total : int
        How many stages there are.

    Yields
    ------
    callable
        To be told the name of each stage when it begins.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        begun = 0

        def begin(name: str) -> None:
            nonlocal begun
            progress.update(task, description=name, completed=begun)
            begun += 1

        yield begin


def in_options(message: str) -> str:
    """Write a message of the API in the words of the command line.

    Examples
    --------
    >>> in_options("a.json exists; choose another name, or pass overwrite=True")
    'a.json exists; choose another name, or pass --force'
    >>> in_options("leave such rows out with invalid='drop', or give a prior (prior=)")
    'leave such rows out with --invalid drop, or give a prior (--prior)'
    >>> in_options("to=99 must be a whole number; assume_floor goes with unit='destination'")
    '--merge-to 99 must be a whole number; --assume-floor goes with --unit destination'
    """
    for keyword, option in _IN_OPTIONS:
        message = re.sub(keyword, option, message)
    return message
