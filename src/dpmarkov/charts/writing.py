"""Reports as files: what is read first, what is written, and who may see it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from dpmarkov.artefact import Release
    from dpmarkov.charts.maps import Map
    from dpmarkov.counts import TransitionCounts

    Geojson = Mapping[str, Any] | str | os.PathLike[str]

__all__ = ["curator_report", "report"]


def report(
    release: Release | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    geojson: Geojson | None = None,
    name: str | None = None,
    title: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write the public report of a release: one HTML file that needs no other.

    Everything in it follows from the release; it may be published wherever that may.

    Parameters
    ----------
    release : Release or path
        What was published. A path adds the file's name and checksum.
    path : path
        Where to; it ends in ``.html``.
    geojson : path or mapping, optional
        The outlines of the states, for a map.
    name : str, optional
        The property of the GeoJSON features that names a state; without it the one that names most.
    title : str, optional
        What it is about.
    overwrite : bool
        Whether a file of that name may be replaced.

    Raises
    ------
    DpmarkovError
        If something cannot be read or written, or the extra `report` is not installed.
    """
    from dpmarkov.charts.page import check_target, write
    from dpmarkov.charts.public import public_report

    check_target(path, overwrite)
    loaded, source = _loaded(release)
    outlines = _outlines(loaded, geojson, name)
    write(public_report(loaded, outlines=outlines, title=title, source=source), path)


def curator_report(
    release: Release | str | os.PathLike[str],
    counts: TransitionCounts,
    path: str | os.PathLike[str],
    *,
    geojson: Geojson | None = None,
    name: str | None = None,
    title: str | None = None,
    adjacency: Any = None,
    overwrite: bool = False,
) -> None:
    """Write the curator's report: the release against the sensitive counts, not for publication.

    Parameters
    ----------
    release : Release or path
        What was published.
    counts : TransitionCounts
        The sensitive counts, of the same states, feasible transitions and merges.
    path, geojson, name, title, overwrite
        As for `report`.
    adjacency : optional
        As for `dpmarkov.merge_states`, to see what merging would have given; without it the map, if
        there is one.

    Raises
    ------
    DpmarkovError
        If the counts are of other states, or something cannot be read or written.
    """
    from dpmarkov.charts import curator
    from dpmarkov.charts.page import check_target, write

    check_target(path, overwrite)
    loaded, _ = _loaded(release)
    outlines = _outlines(loaded, geojson, name)
    beside, called = adjacency, None
    if adjacency is None and outlines is not None:
        beside, called = geojson, outlines.name
    text = curator.curator_report(
        loaded, counts, outlines=outlines, title=title, adjacency=beside, adjacency_name=called
    )
    write(text, path, secret=True)


def _loaded(release: Any) -> tuple[Release, Path | None]:
    from dpmarkov.artefact import Release
    from dpmarkov.files import load

    if isinstance(release, Release):
        return release, None
    source = Path(release).expanduser()
    return load(source), source


def _outlines(release: Release, geojson: Any, name: str | None) -> Map | None:
    from dpmarkov.charts.maps import read_map

    if geojson is None:
        return None
    if release.space.kind == "rectangular":
        raise DpmarkovError("a rectangular table has no map: its origins and destinations differ")
    members = [label for group in release.space.groups.values() for label in group]
    return read_map(geojson, members or release.space.labels, name)
