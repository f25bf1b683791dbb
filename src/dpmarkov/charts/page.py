"""One self-contained HTML page: words, tables and charts, with nothing to fetch from anywhere.

The page carries the charts' specifications as data and one script that draws them (Vega, Vega-Lite
and Vega-Embed, as vl-convert bundles them). Its content security policy lets it run that script and
its own, by their hashes, and nothing else; it may load nothing at all. So a state label that
somebody filled with markup or script is text here, twice over: escaped by the template, and barred
by the browser.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from dpmarkov.charts.look import altair
from dpmarkov.errors import DpmarkovError
from dpmarkov.planning.text import Table

__all__ = ["Figure", "Section", "check_target", "page", "write"]

# Larger charts are drawn on a canvas: a hundred thousand elements would stall the page.
_MOST_MARKS = 15_000
_UNFOLDED = 15  # rows of a table that is shown at once


@dataclass(frozen=True)
class Figure:
    """A chart with what is said about it.

    Parameters
    ----------
    name : str
        Of its element, unique on the page.
    chart : altair chart
        What is drawn.
    caption : str
        What is to be seen; also what a screen reader says.
    shape : {"wide", "square", "tall"}
        A fixed height, as high as wide, or as high as its bars need.
    marks : int
        About how many marks it has.
    beside : bool
        Whether it stands beside the figure that follows it or goes before, where there is room.
    """

    name: str
    chart: Any
    caption: str
    shape: str = "wide"
    marks: int = 0
    beside: bool = False

    @property
    def renderer(self) -> str:
        """How it is drawn."""
        return "canvas" if self.marks > _MOST_MARKS else "svg"

    def specification(self) -> dict[str, Any]:
        """Give the chart as it is embedded: as wide as the page lets it be."""
        spec: dict[str, Any] = self.chart.to_dict()
        spec["width"] = "container"
        fit = "fit-x" if self.shape == "tall" else "fit"
        if self.shape != "tall":
            spec["height"] = "container"
        spec["autosize"] = {"type": fit, "contains": "padding"}
        spec["usermeta"] = {"embedOptions": {}}
        return {**spec, "description": self.caption}


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    name, title : str
        Of its element, and its heading.
    paragraphs : sequence of str
        What is said first.
    points : sequence of str
        A list after that.
    facts : sequence of (str, str)
        Terms and values.
    figures : sequence of Figure
        Charts.
    tables : sequence of Table
        Tables, folded away if they are long.
    code : sequence of (str, str)
        What to copy, each under a line that says what it is.
    """

    name: str
    title: str
    paragraphs: Sequence[str] = ()
    points: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    code: Sequence[tuple[str, str]] = field(default=())


def page(title: str, lead: str, sections: Sequence[Section], *, curator: bool = False) -> str:
    """Write the page.

    Parameters
    ----------
    title, lead : str
        Its heading, and the line under it.
    sections : sequence of Section
        Its parts.
    curator : bool
        Whether it must not be published, and says so on every page that is printed.

    Returns
    -------
    str
        HTML.
    """
    figures = [figure for section in sections for figure in section.figures]
    charts = {
        figure.name: {"spec": figure.specification(), "renderer": figure.renderer}
        for figure in figures
    }
    library, own = _library(), _part("page.js")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
        f"script-src {_hash(library)} {_hash(own)}"
    )
    text: str = _template().render(
        title=title, lead=lead, sections=sections, curator=curator, charts=charts, policy=policy,
        library=library, own=own, style=_part("page.css"), most_rows=_UNFOLDED,
    )  # fmt: skip
    return text


def check_target(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Refuse a file that could not be written, before any work is done.

    Parameters
    ----------
    path : path
        Ends in ``.html``.
    overwrite : bool
        Whether a file of that name may be replaced.
    """
    target = Path(path).expanduser()
    if target.suffix.lower() != ".html":
        raise DpmarkovError(f"{target} must end in .html, not {target.suffix!r}")
    if target.exists() and not overwrite:
        raise DpmarkovError(f"{target} exists; choose another name, or pass overwrite=True")


def write(html: str, path: str | os.PathLike[str], *, secret: bool = False) -> None:
    """Write a page to a file, all of it or nothing.

    Parameters
    ----------
    html : str
        The page.
    path : path
        Where to.
    secret : bool
        Whether nobody but its owner may read the file.
    """
    from dpmarkov.files import atomically

    atomically(Path(path).expanduser(), lambda part: _written(part, html, secret))


def _written(part: Path, html: str, secret: bool) -> None:
    if secret:
        part.chmod(0o600)
    part.write_text(html, encoding="utf-8", newline="\n")


@cache
def _library() -> str:
    """Give the script that draws charts, as it may stand inside a page."""
    altair()
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("\r\n", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _part(name: str) -> str:
    return files("dpmarkov.charts").joinpath(name).read_text(encoding="utf-8")


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(_part("page.html"))


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
