"""Trips to try things on: a simulated city, and New York's real ones.

Real trips are sensitive, and too big to ship. `simulate_city` makes a city that resembles the
paper's section 5.2 in what matters (63 zones on an island, 2,933,898 trips in a month, pairs of
zones that are hardly ever travelled), with zones to draw on a map. `nyc_tlc` reads the files of
New York's Taxi and Limousine Commission as the paper's appendix prepared them. Both give trips
with the columns ``pickup_time``, ``origin`` and ``destination``, so that code written for the one
runs on the other.
"""

from dpmarkov.datasets.city import Border, City, simulate_city
from dpmarkov.datasets.tlc import OFF_THE_ISLAND, TaxiTrips, nyc_tlc

__all__ = ["OFF_THE_ISLAND", "Border", "City", "TaxiTrips", "nyc_tlc", "simulate_city"]
