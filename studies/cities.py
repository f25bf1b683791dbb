"""The trips of section 5.2: the commission's month, a simulated one, and the real data at hand.

The recipe of the paper is applied to any of them: every origin is a row, every destination seen a
feasible transition, ``eta_i = min C_i`` read off the data, ``k_i = 1.5 / eta_i`` times 1 to 3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import dpmarkov as dpm
from dpmarkov.chain import stationary_distribution
from dpmarkov.privacy import paper
from studies.report import Options

__all__ = ["GAMMA", "SIMULATED", "Recipe", "Trips", "all_trips", "city_trips"]

Floats = npt.NDArray[np.float64]

GAMMA = 1e-8
SIMULATED = "simulated city"
_CITY_SEED = (
    2  # of seven seeds one whose city, merged, has 11 trips on its rarest pair, as the paper's
)
_PAPER_MULTIPLE = 1.5  # Assumption 4: k >= 3 / (2 eta)


@dataclass(frozen=True, eq=False)
class Trips:
    """Counted trips between zones.

    Parameters
    ----------
    name : str
        What they are.
    counts : TransitionCounts
        Sensitive.
    adjacency : pairs or path, optional
        Which zones lie next to each other; without it none are merged.
    outlines : GeoJSON mapping, optional
        To draw a map.
    label : str
        The property of the outlines that names a zone.
    """

    name: str
    counts: dpm.TransitionCounts
    adjacency: Any = None
    outlines: dict[str, Any] | None = None
    label: str = "name"

    def merged(self, zones: int) -> dpm.TransitionCounts:
        """Join small zones with neighbours until so many are left."""
        if zones == self.counts.space.shape[0]:
            return self.counts
        return dpm.merge_states(self.counts, self.adjacency, to=zones, unit="destination")

    @cached_property
    def departed(self) -> dpm.TransitionCounts:
        """All zones; one from which nobody departed is joined with a neighbour."""
        if self.adjacency is None or self.counts.row_totals.all():
            return self.counts
        return dpm.merge_states(self.counts, self.adjacency, minimum_total=1, unit="destination")

    def most_zones(self, epsilon: float) -> int:
        """Find the most zones, merged if need be, at which the recipe promises an epsilon."""
        everything = self.counts.space.shape[0]
        if self.adjacency is None:
            if not self.counts.row_totals.all():
                raise dpm.DpmarkovError(
                    f"from some zones nobody departed in {self.name}; give --adjacency, so that "
                    "they are joined with a neighbour"
                )
            return everything
        for zones in range(everything, 2, -1):
            recipe = Recipe(self.merged(zones).to_dense())
            found = recipe.epsilon(1.0) if recipe.no_gaps else None
            if found is not None and found <= epsilon:
                return zones
        raise dpm.DpmarkovError(
            f"merging reaches epsilon = {epsilon:g} by the paper's recipe at no number of zones: "
            f"there are too few trips in {self.name}; give the trips of more days"
        )


@dataclass(frozen=True, eq=False)
class Recipe:
    """The paper's recipe on counts: ``k_i = t 1.5 / eta_i``, all of it read off the data.

    Parameters
    ----------
    table : array of int, shape (n, n)
        Counts; a pair that nobody travelled is taken for infeasible, as Assumption 6 wants.
    """

    table: npt.NDArray[np.int64]

    @property
    def no_gaps(self) -> bool:
        """Whether every pair was travelled, so that nothing had to be taken for infeasible."""
        return bool((self.table > 0).all())

    @cached_property
    def least(self) -> Floats:
        """The smallest positive count of every row; infinite in a row without trips."""
        return np.asarray(np.where(self.table > 0, self.table, np.inf).min(axis=1))

    @property
    def rows(self) -> Floats:
        """The transition matrix without privacy."""
        return np.asarray(self.table / self.table.sum(axis=1, keepdims=True))

    @cached_property
    def stationary(self) -> Floats:
        """The stationary distribution without privacy."""
        return np.asarray(stationary_distribution(self.rows))

    def rates(self, t: float) -> Floats:
        """Give ``r_i = k_i / N_i`` at t times the smallest strength."""
        return np.asarray(_PAPER_MULTIPLE * t / self.least)

    def shapes(self, t: float) -> Floats:
        """Give the Dirichlet parameters ``k_i C_ij``."""
        return np.asarray(self.rates(t)[:, None] * self.table)

    def strengths(self, t: float) -> Floats:
        """Give the ``k_i``."""
        return np.asarray(self.rates(t) * self.table.sum(axis=1))

    def _theorem_1(self, t: float) -> Iterator[dict[str, Any]]:
        for row, least in zip(self.table, self.least, strict=True):
            size = int(row.sum())
            eta = least / size
            yield {"k": _PAPER_MULTIPLE * t / eta, "eta": eta, "size": size,
                   "categories": int(np.count_nonzero(row)), "gamma": GAMMA}  # fmt: skip

    def epsilon(self, t: float) -> float | None:
        """Give Theorem 3's epsilon, the largest over rows; none where an assumption fails."""
        if not self.table.any(axis=1).all():
            return None
        try:
            return max(paper.epsilon(**row) for row in self._theorem_1(t))
        except dpm.DpmarkovError:
            return None

    def delta(self, t: float) -> float:
        """Give the paper's delta, the largest over rows."""
        return max(
            paper.delta(**{key: x for key, x in row.items() if key != "size"}, method="bound")
            for row in self._theorem_1(t)
        )

    def exact_epsilon(self, t: float, delta: float) -> float:
        """Give the exact epsilon of the same noise.

        Every row has the same kappa, ``1.5 t``, and the profile grows with the rate: the row of
        the smallest count decides.
        """
        least = float(self.least.min())
        rate = _PAPER_MULTIPLE * t / least
        return dpm.privacy.epsilon("destination", rate=rate, mass=least, delta=delta)


# -- where trips come from -----------------------------------------------------------------------


def city_trips(options: Options) -> Trips:
    """Give the commission's month if there is one, and the simulated month otherwise."""
    if options.trips is not None:
        return _commission(options)
    city = dpm.datasets.simulate_city(rng=np.random.default_rng(_CITY_SEED))
    counts = dpm.count_transitions(
        city.trips, origin="origin", destination="destination", states=city.space
    )
    return Trips(SIMULATED, counts, city.adjacency, city.geojson)


def _commission(options: Options) -> Trips:
    assert options.trips is not None
    zones = options.zones or options.data / "taxi_zone_lookup.csv"
    taxi = dpm.datasets.nyc_tlc(str(options.trips), zones)
    counts = dpm.count_transitions(
        taxi.trips, origin="origin", destination="destination", states=taxi.space
    )
    beside = options.adjacency or _if_there(options, "taxi_zone_adjacency.csv")
    return Trips(f"trips of {options.trips.name}", counts, beside, _map(options), "locationid")


def _if_there(options: Options, name: str) -> Any:
    path = options.data / name
    return path if path.exists() else None


def _map(options: Options) -> dict[str, Any] | None:
    path = options.map or _if_there(options, "taxi_zones.geojson")
    try:
        outlines: dict[str, Any] | None = None if path is None else json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise dpm.DpmarkovError(f"cannot read the map {path}: {error}; give GeoJSON") from error
    return outlines


def all_trips(options: Options) -> list[Trips]:
    """Give the city and the real trips that are at hand."""
    found = [city_trips(options)]
    taxis, bikes = (
        options.data / name for name in ("nyc_yellow_360k.parquet", "citibike_tract_counts.csv")
    )
    if taxis.exists():
        found.append(_sampled_taxis(options))
    if bikes.exists():
        counts = dpm.count_transitions(
            bikes, origin="source", destination="target", count="count", states="from-data"
        )
        found.append(Trips("9.93 million bike trips", counts))
    return found


def _sampled_taxis(options: Options) -> Trips:
    taxi = dpm.datasets.nyc_tlc(
        options.data / "nyc_yellow_360k.parquet", options.data / "taxi_zone_lookup.csv"
    )
    counts = dpm.count_transitions(
        taxi.trips, origin="origin", destination="destination", states=taxi.space
    )
    beside = options.data / "taxi_zone_adjacency.csv"
    return Trips("360,000 taxi trips", counts, beside, _map(options), "locationid")
