"""Who travels from where to where, and when: a gravity model.

The number of trips between two zones is proportional to how many people leave the one, to how
attractive the other is, and falls with distance; each pair deviates from that by a factor of its
own. Zones differ by orders of magnitude: a centre that draws the crowds, quarters at the far end,
parks where nobody hails a cab. So there are pairs with thousands of trips and pairs with none,
as in a real city, where the rare pair is what needs protection. The constants were set so that
the counts of cells resemble those of New York's yellow cabs between the zones of Manhattan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmarkov.datasets.island import CENTRE

__all__ = ["Attraction", "Journeys", "attraction", "journeys", "riders_of"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_DAYS = 31
_HOUR = 3600
# Shares of the hours of a day and of the days of a week that begins on a Wednesday.
_HOURS = np.array(
    [2.6, 1.8, 1.2, 0.9, 0.8, 0.9, 2.2, 3.7, 4.6, 4.8, 4.9, 5.2,
     5.6, 5.7, 6.1, 6.0, 5.7, 6.1, 6.6, 6.0, 5.2, 4.9, 4.6, 3.7]
)  # fmt: skip
_WEEK = np.array([1.02, 1.05, 1.08, 1.10, 0.87, 0.90, 0.98])

_PARK_SHARE = 0.06
_REACH = 2.0  # km over which the attraction of a near zone falls by e
_FAR = 0.12  # what is left of it far away, against next door
_KEENEST = 40.0  # trips of the keenest rider, against those of the least keen
_TIDE = 0.35  # how much more a morning's trip leads to the centre than away from it


@dataclass(frozen=True)
class Attraction:
    """The gravity model of one city.

    Parameters
    ----------
    parks : array of bool
        Which zones are parks.
    pull : array of shape (zones, zones)
        Expected share of trips between zones, over the whole day.
    centrality : array
        Where a zone lies between the far end (0) and the centre (1).
    """

    parks: npt.NDArray[np.bool_]
    pull: Floats
    centrality: Floats

    def at(self, hour: int) -> Floats:
        """Share of each pair, flattened, at an hour: to the centre at 8, away from it at 20."""
        tide = _TIDE * np.cos(2 * np.pi * (hour - 8) / 24) * self.centrality
        weight = (self.pull * np.exp(tide[None, :] - tide[:, None])).ravel()
        return np.asarray(weight / weight.sum())


def attraction(sites: Floats, rng: np.random.Generator) -> Attraction:
    """Draw what the zones of an island send and draw.

    Parameters
    ----------
    sites : array of shape (zones, 2)
        The middle of each zone, in km along and across the island.
    rng : numpy.random.Generator
        Where the chance comes from.

    Returns
    -------
    Attraction
    """
    n = len(sites)
    centrality = np.exp(-((np.abs(sites[:, 0] - CENTRE) / 8.0) ** 3))
    parks = rng.permutation(n) < round(_PARK_SHARE * n)
    size = 3.0 * centrality + rng.normal(0, 0.45, n) - 5.0 * parks
    leaving = np.exp(size)
    arriving = np.exp(0.75 * size + rng.normal(0, 0.2, n))
    between = np.hypot(*(sites[:, None] - sites[None, :]).transpose(2, 0, 1))
    nearness = _FAR + (1 - _FAR) * np.exp(-between / _REACH)
    pull = np.outer(leaving, arriving) * nearness * np.exp(rng.normal(0, 0.4, (n, n)))
    return Attraction(parks, pull, centrality)


@dataclass(frozen=True)
class Journeys:
    """Trips in the order of time.

    Parameters
    ----------
    seconds : array of int
        When each began, since the first midnight.
    origin, destination : array of int
        Zone numbers.
    """

    seconds: Integers
    origin: npt.NDArray[np.int32]
    destination: npt.NDArray[np.int32]


def journeys(model: Attraction, trips: int, rng: np.random.Generator) -> Journeys:
    """Draw trips.

    Within an hour of a day, pairs and moments are independent: the moments can be sorted by
    themselves, which is quicker than sorting trips.

    Parameters
    ----------
    model : Attraction
        Where to where.
    trips : int
        How many.
    rng : numpy.random.Generator
        Where the chance comes from.

    Returns
    -------
    Journeys
    """
    hours = _HOURS.size
    share = np.outer(_WEEK[np.arange(_DAYS) % _WEEK.size], _HOURS).ravel()
    slots = rng.multinomial(trips, share / share.sum())
    seconds = np.repeat(_HOUR * np.arange(slots.size), slots)
    seconds += rng.integers(0, _HOUR, trips)
    seconds.sort()
    starts = np.concatenate([[0], np.cumsum(slots)])
    pairs = np.empty(trips, dtype=np.int32)
    for hour in range(hours):
        drawn = _pairs(model.at(hour), int(slots[hour::hours].sum()), rng)
        days = np.split(drawn, np.cumsum(slots[hour::hours])[:-1])
        for start, day in zip(starts[hour:-1:hours], days, strict=True):
            pairs[start : start + day.size] = day
    origin, destination = np.divmod(pairs, np.int32(len(model.parks)))
    return Journeys(seconds, origin, destination)


def _pairs(share: Floats, trips: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    counts = rng.multinomial(trips, share)
    return rng.permutation(np.repeat(np.arange(share.size, dtype=np.int32), counts))


def riders_of(
    made: Journeys, model: Attraction, riders: int, rng: np.random.Generator
) -> npt.NDArray[np.int32]:
    """Say who made each trip.

    Everybody lives somewhere, and a trip is made by somebody who lives at one of its ends. How
    often a person travels follows a Pareto law: most once or twice, a few every day.

    Parameters
    ----------
    made : Journeys
        The trips.
    model : Attraction
        Where people live: in proportion to the trips that begin or end in a zone.
    riders : int
        How many people there are; those who never travel are among them.
    rng : numpy.random.Generator
        Where the chance comes from.

    Returns
    -------
    array of int
        Rider numbers, from 1.
    """
    ends = model.pull.sum(axis=0) + model.pull.sum(axis=1)
    residents = rng.multinomial(riders, ends / ends.sum())
    eagerness = np.minimum(1 + rng.pareto(1.5, riders), _KEENEST)
    eagerness = np.concatenate([[0.0], np.cumsum(eagerness)])
    bounds = eagerness[np.concatenate([[0], np.cumsum(residents)])]
    home = np.where(rng.random(made.origin.size) < 0.5, made.origin, made.destination)
    aim = bounds[home] + rng.random(home.size) * (bounds[home + 1] - bounds[home])
    found = np.searchsorted(eagerness, aim, side="right") - 1
    number = rng.permutation(riders).astype(np.int32) + 1  # numbers tell nothing of homes
    return np.asarray(number[np.clip(found, 0, riders - 1)])
