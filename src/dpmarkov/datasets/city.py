"""A simulated city: its map, and a month of trips."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmarkov.datasets.island import Island, make_island
from dpmarkov.datasets.names import zone_names
from dpmarkov.datasets.traffic import Journeys, attraction, journeys, riders_of
from dpmarkov.errors import DpmarkovError
from dpmarkov.states import StateSpace

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Border", "City", "simulate_city"]

_FIRST_DAY = np.datetime64("2025-01-01", "us")  # a Wednesday; the month of the paper's trips
_MOST_ZONES = 2000
_MOST_TRIPS = 2**31 - 1


class Border(NamedTuple):
    """Two zones that touch along a line, and its length."""

    zone_a: str
    zone_b: str
    shared_boundary_km: float


@dataclass(frozen=True)
class City:
    """An invented city: where its zones lie, and who travelled between them.

    The zones are public, and labelled by their names; the trips stand in for sensitive data.

    Parameters
    ----------
    names : tuple of str
        The zones from the south of the island to its north; zone ids count from 1.
    geojson : dict
        A FeatureCollection with one polygon for each zone and the properties ``id`` and ``name``.
    borders : tuple of Border
        The pairs of zones that touch along a line, each once, with its length.
    trips : pyarrow.Table
        The columns ``pickup_time``, ``origin``, ``destination`` and, if wanted, ``rider``, in the
        order of time.

    Examples
    --------
    >>> city = simulate_city(zones=8, trips=1000, rng=np.random.default_rng(1))
    >>> city
    City(8 zones, 1,000 trips)
    >>> city.space
    StateSpace(8 states, all 64 transitions feasible)
    """

    names: tuple[str, ...]
    geojson: dict[str, Any]
    borders: tuple[Border, ...]
    trips: pa.Table

    def __repr__(self) -> str:
        return f"City({len(self.names)} zones, {self.trips.num_rows:,} trips)"

    @cached_property
    def space(self) -> StateSpace:
        """The zones as states, every trip between them feasible."""
        return StateSpace(self.names)

    @property
    def adjacency(self) -> tuple[tuple[str, str], ...]:
        """The pairs of neighbouring zones, each once."""
        return tuple((border.zone_a, border.zone_b) for border in self.borders)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> dict[str, Path]:
        """Write the city to files that the rest of the package reads, each whole or not at all.

        Parameters
        ----------
        folder : path
            Where to; it is made if need be.
        overwrite : bool
            Whether files of the same names may be replaced.

        Returns
        -------
        dict of str to Path
            ``trips`` (Parquet), ``states`` (text, one zone a line), ``map`` (GeoJSON) and
            ``adjacency`` (CSV).

        Raises
        ------
        DpmarkovError
            If a file is there already, or cannot be written.
        """
        from dpmarkov.files import atomically

        place = Path(folder).expanduser()
        writers: dict[str, tuple[str, Callable[[Path], None]]] = {
            "trips": ("trips.parquet", self._write_trips),
            "states": ("zones.txt", self._write_states),
            "map": ("zones.geojson", self._write_map),
            "adjacency": ("adjacency.csv", self._write_adjacency),
        }
        paths = {what: place / name for what, (name, _) in writers.items()}
        taken = [path for path in paths.values() if path.exists()]
        if taken and not overwrite:
            raise DpmarkovError(f"{taken[0]} exists; choose another folder, or pass overwrite=True")
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DpmarkovError(
                f"cannot write the city to {place}: {error.strerror or error}; give a folder "
                "that can be written, on a disk with room"
            ) from error
        for what, (_, write) in writers.items():
            atomically(paths[what], write)
        return paths

    def _write_trips(self, path: Path) -> None:
        import pyarrow.parquet as pq

        pq.write_table(self.trips, path)

    def _write_states(self, path: Path) -> None:
        path.write_text("".join(f"{name}\n" for name in self.names), encoding="utf-8")

    def _write_map(self, path: Path) -> None:
        path.write_text(json.dumps(self.geojson), encoding="utf-8")

    def _write_adjacency(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(Border._fields)
            writer.writerows((a, b, f"{km:.4f}") for a, b, km in self.borders)


def simulate_city(
    zones: int = 63,
    trips: int = 2_933_898,
    *,
    rng: np.random.Generator,
    riders: int | None = None,
) -> City:
    """Invent a city on an island and a month of trips in it.

    Parameters
    ----------
    zones : int
        How many zones; as many as the paper's Manhattan without it.
    trips : int
        How many trips; as many as the paper's without it.
    rng : numpy.random.Generator
        Where the chance comes from: the same state gives the same city.
    riders : int, optional
        How many people there are. With it each trip has a ``rider``: a few travel very often,
        and everybody mostly from and to the zone they live in.

    Returns
    -------
    City

    Raises
    ------
    DpmarkovError
        If a number is out of range, or `rng` is not a generator.

    Examples
    --------
    >>> city = simulate_city(zones=20, trips=100_000, rng=np.random.default_rng(7))
    >>> city.names[:3]
    ('Beacon Woods', 'Osprey Point', 'Slate Ferry')
    >>> len(city.adjacency), len(city.geojson["features"])
    (39, 20)
    >>> city.trips.column_names
    ['pickup_time', 'origin', 'destination']
    """
    _check_number("zones", zones, 3, _MOST_ZONES)
    _check_number("trips", trips, 1, _MOST_TRIPS)
    if riders is not None:
        _check_number("riders", riders, 1, _MOST_TRIPS)
    if not isinstance(rng, np.random.Generator):
        raise DpmarkovError(
            f"rng is of type {type(rng).__name__}, needed is a numpy.random.Generator; give "
            "numpy.random.default_rng(seed)"
        )
    island = make_island(zones, rng)
    model = attraction(island.sites, rng)
    names = zone_names(island.coastal, model.parks, rng)
    made = journeys(model, trips, rng)
    who = None if riders is None else riders_of(made, model, riders, rng)
    return City(names, _geojson(names, island), _borders(names, island), _table(names, made, who))


def _check_number(name: str, value: Any, least: int, most: int) -> None:
    if not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise DpmarkovError(f"{name} is {value!r}; give a whole number from {least} to {most}")


# -- the parts of a city -------------------------------------------------------------------------


def _geojson(names: tuple[str, ...], island: Island) -> dict[str, Any]:
    features = [
        {
            "type": "Feature",
            "id": number,
            "properties": {"id": number, "name": name},
            "geometry": {"type": "Polygon", "coordinates": [ring.tolist()]},
        }
        for number, (name, ring) in enumerate(zip(names, island.rings, strict=True), start=1)
    ]
    return {"type": "FeatureCollection", "features": features}


def _borders(names: tuple[str, ...], island: Island) -> tuple[Border, ...]:
    return tuple(Border(names[i], names[j], km) for (i, j), km in sorted(island.borders.items()))


def _table(names: tuple[str, ...], made: Journeys, who: npt.NDArray[np.int32] | None) -> pa.Table:
    import pyarrow as pa

    columns = {
        "pickup_time": _FIRST_DAY + made.seconds.astype("timedelta64[s]"),
        "origin": pa.DictionaryArray.from_arrays(made.origin, pa.array(names)),
        "destination": pa.DictionaryArray.from_arrays(made.destination, pa.array(names)),
    }
    return pa.table(columns if who is None else {**columns, "rider": who})
