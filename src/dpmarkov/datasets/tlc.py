"""Trip records of New York's Taxi and Limousine Commission, prepared as in the paper's appendix.

The paper keeps the trips that begin and end in the 63 zones "on the island of Manhattan". The
Commission's lookup lists 69 zones under that borough. Six of them lie elsewhere: Governor's,
Ellis and Liberty Island (three ids of one name), Randalls Island, Roosevelt Island, and Marble
Hill, which belongs to Manhattan by law but stands on the mainland, beyond the river: it touches
zones of the Bronx and none of Manhattan's. That leaves 63.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmarkov.errors import DpmarkovError
from dpmarkov.states import StateSpace

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OFF_THE_ISLAND", "TaxiTrips", "nyc_tlc"]

_BOROUGH = "Manhattan"
OFF_THE_ISLAND = frozenset({103, 104, 105, 153, 194, 202})
_ORIGIN, _DESTINATION = "PULocationID", "DOLocationID"
# Yellow cabs, green cabs, and files that were cut down to what is needed.
_PICKUP_TIMES = ("tpep_pickup_datetime", "lpep_pickup_datetime", "pickup_datetime")
_LOOKUP = ("LocationID", "Borough", "Zone")
_WAY_OUT = "give the Commission's taxi_zone_lookup.csv"


@dataclass(frozen=True)
class TaxiTrips:
    """Trips between zones of the Commission; sensitive.

    Parameters
    ----------
    trips : pyarrow.Table
        The columns ``pickup_time``, ``origin`` and ``destination``; zones are ids, as in all
        files of the Commission.
    zones : dict of int to str
        The name of each zone.
    """

    trips: pa.Table
    zones: dict[int, str]

    def __repr__(self) -> str:
        return f"TaxiTrips({len(self.zones)} zones, {self.trips.num_rows:,} trips)"

    @cached_property
    def space(self) -> StateSpace:
        """The ids of the zones as states, every trip between them feasible."""
        return StateSpace(self.zones)


def nyc_tlc(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    zones: str | os.PathLike[str],
) -> TaxiTrips:
    """Read the trips that begin and end on the island of Manhattan.

    Columns and rows are filtered while the files are read, so that whole years fit.

    Parameters
    ----------
    path : path, glob, or list of these
        Trip records of yellow or green cabs, of any months, as Parquet.
    zones : path
        The Commission's ``taxi_zone_lookup.csv``.

    Returns
    -------
    TaxiTrips

    Raises
    ------
    DpmarkovError
        If a file or a column is missing, or a file is not what it should be.

    Examples
    --------
    Count the trips of a month::

        taxi = dpm.datasets.nyc_tlc("yellow_tripdata_2025-01.parquet", "taxi_zone_lookup.csv")
        counts = dpm.count_transitions(
            taxi.trips, origin="origin", destination="destination", states=taxi.space
        )
    """
    from dpmarkov.counting.engines import plain_errors
    from dpmarkov.counting.files import embedded, from_files
    from dpmarkov.counting.watching import watched

    files, kept = _parquet_files(path), _island_zones(Path(zones).expanduser())
    with embedded() as connection:
        records = from_files(connection, files, (), lenient=False)
        columns, inside = _columns(records.columns), ", ".join(map(str, kept))
        with plain_errors("reading trip records"):
            within = f"{_ORIGIN} IN ({inside}) AND {_DESTINATION} IN ({inside})"
            trips = records.filter(within).project(columns)
            table = watched(trips.to_arrow_table, connection)
    return TaxiTrips(table, kept)


# -- trip records --------------------------------------------------------------------------------


def _parquet_files(path: Any) -> list[str]:
    listed = [path] if isinstance(path, (str, os.PathLike)) else path
    files = [str(Path(file).expanduser()) for file in listed]
    for file in files:
        if not file.lower().endswith(".parquet"):
            raise DpmarkovError(
                f"trip records {file!r} do not end in .parquet, the format of the Commission; "
                "convert them first"
            )
    return files


def _columns(present: Collection[str]) -> str:
    """Choose the columns and give them our names; yellow and green files may come together."""
    for name in (_ORIGIN, _DESTINATION):
        _check_column(name, present, "the trip records")
    times = [name for name in _PICKUP_TIMES if name in present]
    if not times:
        raise DpmarkovError(
            f"the trip records have none of the columns {', '.join(_PICKUP_TIMES)}; give files "
            "of yellow or green cabs"
        )
    return (
        f"coalesce({', '.join(times)}) AS pickup_time, "
        f"{_ORIGIN}::INTEGER AS origin, {_DESTINATION}::INTEGER AS destination"
    )


def _check_column(name: str, present: Collection[str], where: str) -> None:
    if name not in present:
        near = get_close_matches(name, present)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "is it the right file?"
        raise DpmarkovError(f"there is no column {name!r} in {where}; {hint}")


# -- zones ---------------------------------------------------------------------------------------


def _island_zones(path: Path) -> dict[int, str]:
    """Read the names of the zones on the island, in the order of their ids."""
    try:
        lines = csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines())
        rows = list(lines)
    except FileNotFoundError:
        raise DpmarkovError(f"there is no file {str(path)!r}; {_WAY_OUT}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DpmarkovError(f"{str(path)!r} cannot be read as CSV ({error}); {_WAY_OUT}") from None
    for name in _LOOKUP:
        _check_column(name, lines.fieldnames or (), f"{str(path)!r}")
    borough = [row for row in rows if row["Borough"] == _BOROUGH]
    zones = {_zone_id(row["LocationID"], path): row["Zone"] for row in borough}
    kept = {zone: zones[zone] for zone in sorted(zones) if zone not in OFF_THE_ISLAND}
    if len(kept) < 2:
        raise DpmarkovError(
            f"{str(path)!r} has {len(kept)} zones on the island of Manhattan, needed are 2 or "
            f"more; {_WAY_OUT}"
        )
    return kept


def _zone_id(text: str, path: Path) -> int:
    try:
        return int(text)
    except ValueError:
        raise DpmarkovError(
            f"{str(path)!r} has the LocationID {text!r}, which is no whole number; {_WAY_OUT}"
        ) from None
