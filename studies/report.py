"""How a study tells its result: tables on the screen, JSON and charts in a folder, one page of all.

A study is a function of `Options` that returns a `Result`. `main` runs it from the command line:
it prints the tables, and writes ``NAME.json``, one SVG and one PNG a chart, and ``index.html``,
which shows every study whose JSON lies in the folder and needs no other file.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

import dpmarkov as dpm
from dpmarkov.planning.text import Table, number
from studies import NAMES
from studies.charts import drawn

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Options", "Result", "interval", "main", "progress"]

T = TypeVar("T")

_HERE = Path(__file__).resolve().parent
_SHARED = _HERE.parents[1] / "shared" / "data"


@dataclass(frozen=True)
class Options:
    """What the command line of every study takes.

    Parameters
    ----------
    fast : bool
        Fewer simulated privatizations, for a look or a test.
    out : Path
        The folder of the results.
    data : Path
        The folder of the real data sets; what is not there is left out.
    trips, zones : Path, optional
        Trip records of the Taxi and Limousine Commission, and its table of zones.
    adjacency, map : Path, optional
        Which of its zones lie next to each other (CSV), and their outlines (GeoJSON).
    """

    fast: bool = False
    out: Path = _HERE / "results"
    data: Path = _SHARED
    trips: Path | None = None
    zones: Path | None = None
    adjacency: Path | None = None
    map: Path | None = None

    @classmethod
    def parsed(cls, name: str, about: str, arguments: Sequence[str] | None = None) -> Self:
        """Read the options from the command line, or from a list of arguments."""
        parser = argparse.ArgumentParser(prog=f"python -m {name}", description=about)
        help_of = {
            "fast": "fewer privatizations",
            "out": "folder of the results (default: studies/results)",
            "data": "folder of real data sets (default: ../shared/data)",
            "trips": "trip records of New York's taxi commission (.parquet)",
            "zones": "the commission's taxi_zone_lookup.csv",
            "adjacency": "pairs of neighbouring zones (.csv or .geojson)",
            "map": "outlines of the zones (.geojson)",
        }
        parser.add_argument("--fast", action="store_true", help=help_of["fast"])
        for key, words in list(help_of.items())[1:]:
            default = getattr(cls, key)
            parser.add_argument(f"--{key}", type=Path, default=default, metavar="PATH", help=words)
        return cls(**vars(parser.parse_args(arguments)))


@dataclass(frozen=True)
class Result:
    """What a study found.

    Parameters
    ----------
    name : str
        The module, which names the files.
    title, asks : str
        What the study is called and what it asks.
    tables : sequence of Table
        Paper, replicated and exact side by side.
    notes : sequence of str
        In plain words: what holds, and what cannot be reproduced and why.
    charts : dict of str to altair chart
        By the name of their file.
    figures : dict
        The numbers themselves, for programs.
    """

    name: str
    title: str
    asks: str
    tables: Sequence[Table]
    notes: Sequence[str]
    charts: Mapping[str, alt.TopLevelMixin] = field(repr=False)
    figures: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        notes = "\n".join(f"* {note}" for note in self.notes)
        return "\n\n".join([self.title, self.asks, *map(str, self.tables), notes])


def main(study: Callable[[Options], Result], options: Options | None = None) -> int:
    """Run a study from the command line.

    Parameters
    ----------
    study : callable
        From options to a result.
    options : Options, optional
        Instead of those of the command line.

    Returns
    -------
    int
        The status of the process.
    """
    module = sys.modules[study.__module__]
    name = f"studies.{Path(str(module.__file__)).stem}"
    options = options or Options.parsed(name, module.__doc__ or "")
    started = time.perf_counter()
    try:
        result = study(options)
        _write(result, options, time.perf_counter() - started)
    except dpm.DpmarkovError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"error: {error}; charts need the extra: pip install '.[report]'", file=sys.stderr)
        return 1
    print(f"\n{result}\n\nWritten to {options.out}; open {options.out / 'index.html'}")
    return 0


# -- numbers, and patience -----------------------------------------------------------------------


def interval(estimate: dpm.planning.Estimate, digits: int = 3) -> str:
    """Write a simulated mean with the half-width of its 95% interval."""
    return f"{number(estimate.mean, digits)} ±{number(estimate.high - estimate.mean, 1)}"


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Pass on items, with a bar on a terminal and nothing elsewhere."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return iter(
        track(
            items,
            what,
            total=total,
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
    )


# -- files ---------------------------------------------------------------------------------------


def _write(result: Result, options: Options, seconds: float) -> None:
    out = options.out
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, chart in result.charts.items():
            for suffix, content in drawn(chart).items():
                _replace(out / f"{name}{suffix}", content)
        told = {
            "study": result.name,
            "title": result.title,
            "asks": result.asks,
            "fast": options.fast,
            "seconds": round(seconds, 1),
            "dpmarkov": dpm.__version__,
            "tables": [table._asdict() for table in result.tables],
            "notes": list(result.notes),
            "charts": list(result.charts),
            "figures": result.figures,
        }
        text = json.dumps(told, indent=1, default=_plain, allow_nan=False)
        _replace(out / f"{result.name}.json", text.encode())
        _replace(out / "index.html", _page(out).encode())
    except OSError as error:
        raise dpm.DpmarkovError(
            f"cannot write to {out}: {error.strerror or error}; choose another folder with --out"
        ) from error


def _plain(value: Any) -> Any:
    """Give numpy's numbers and arrays, and results with a label, as JSON knows them."""
    if isinstance(value, dpm.planning.Estimate):
        return asdict(value)
    return np.asarray(value).tolist()


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


# -- the page ------------------------------------------------------------------------------------


def _page(out: Path) -> str:
    """Show all results of a folder on one page that needs no other file."""
    files = [out / f"{name}.json" for name in NAMES]
    results = [json.loads(path.read_text()) for path in files if path.exists()]
    body = "\n".join(_section(result, out) for result in results)
    return (
        "<!doctype html>\n<html lang='en'><meta charset='utf-8'>"
        f"<title>dpmarkov: studies</title><style>{_STYLE}</style>\n"
        f"<h1>The paper's experiments, replicated and surpassed</h1>\n{body}</html>\n"
    )


def _section(result: dict[str, Any], out: Path) -> str:
    charts = [(out / f"{name}.svg").read_text() for name in result["charts"]]
    shown = "\n".join(f"<figure>{svg}</figure>" for svg in charts)
    tables = "\n".join(_table(Table(**table)) for table in result["tables"])
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in result["notes"])
    variant = "the fast variant" if result["fast"] else "the full variant"
    return (
        f"<section><h2>{html.escape(result['title'])}</h2><p>{html.escape(result['asks'])}</p>\n"
        f"{tables}\n{shown}\n<ul>{notes}</ul>\n<p class='small'>python -m studies."
        f"{result['study']}, {variant}, {result['seconds']} s</p></section>"
    )


def _table(table: Table) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    rows = "\n".join(line(row, "td") for row in table.rows)
    return (
        f"<table><caption>{html.escape(table.title)}</caption>"
        f"{line(table.headers, 'th')}\n{rows}</table>"
    )


_STYLE = """
body { font: 16px/1.5 Helvetica, Arial, sans-serif; max-width: 1100px; margin: 2em auto;
  padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1.2em 0; font-size: 14px; display: block;
  overflow-x: auto; white-space: nowrap }
caption { display: table-caption; text-align: left; font-weight: bold; padding-bottom: .3em }
th { white-space: normal }
th, td { text-align: left; padding: .25em 1em .25em 0; border-bottom: 1px solid #ddd;
  vertical-align: top }
figure { margin: 1.5em 0; overflow-x: auto }
figure svg { max-width: 100%; height: auto }
.small { color: #666; font-size: 13px }
"""
