"""Invented names of zones, as they might stand on a map."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product

import numpy as np
import numpy.typing as npt

__all__ = ["zone_names"]

_STEMS = (
    "Abbot", "Alder", "Amber", "Anvil", "Barley", "Beacon", "Bell", "Birch", "Bishop", "Cedar",
    "Chandler", "Chapel", "Copper", "Crane", "Dover", "Falcon", "Fenwick", "Foundry", "Gaslight",
    "Granite", "Hazel", "Heron", "Juniper", "Kestrel", "Lantern", "Linden", "Maple", "Mason",
    "Merchant", "Mill", "Orchard", "Osprey", "Pilgrim", "Quarry", "Raven", "Rowan", "Saddler",
    "Sexton", "Slate", "Sparrow", "Thistle", "Tinker", "Union", "Weaver", "Willow", "Yarrow",
)  # fmt: skip
_INLAND = (
    "Hill", "Square", "Heights", "Market", "Circle", "Row", "Gardens", "Village", "Cross",
    "Green", "Exchange", "Yards",
)  # fmt: skip
_AT_THE_WATER = (
    "Point", "Wharf", "Landing", "Quay", "Docks", "Basin", "Ferry", "Strand", "Pier", "Cove",
    "Harbour", "Slip",
)  # fmt: skip
_PARTS = ("", " North", " South", " East", " West")


def zone_names(
    coastal: npt.NDArray[np.bool_], parks: npt.NDArray[np.bool_], rng: np.random.Generator
) -> tuple[str, ...]:
    """Name zones, each differently.

    Parameters
    ----------
    coastal, parks : array of bool
        What each zone is.
    rng : numpy.random.Generator
        Where the chance comes from.

    Returns
    -------
    tuple of str
    """
    park_names = _drawn(("Park", "Common", "Woods"), rng)
    water_names, inland_names = _drawn(_AT_THE_WATER, rng), _drawn(_INLAND, rng)
    return tuple(
        next(park_names if park else water_names if water else inland_names)
        for water, park in zip(coastal, parks, strict=True)
    )


def _drawn(kinds: tuple[str, ...], rng: np.random.Generator) -> Iterator[str]:
    """Give names in random order: first the plain ones, then those of parts of a zone."""
    plain = [f"{stem} {kind}" for stem, kind in product(_STEMS, kinds)]
    orders = (rng.permutation(len(plain)) for _ in _PARTS)
    return chain.from_iterable(
        (plain[i] + part for i in order) for part, order in zip(_PARTS, list(orders), strict=True)
    )
