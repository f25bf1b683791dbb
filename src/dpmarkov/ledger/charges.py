"""A charge: what one release may reveal, as a row of the ledger and as a guarantee again.

From the law of the noise, its parameters and the unit that an entry holds, the exact privacy
profile of the release follows; nothing else is needed to add releases up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal, cast

from dpmarkov.guarantee import Guarantee
from dpmarkov.ledger.budget import Spending
from dpmarkov.ledger.entries import Entry
from dpmarkov.noise import Noise, noise_of

__all__ = ["Charge", "Purpose", "charges_of", "said_by", "spending_of"]

Purpose = Literal["release", "merging", "bounds"]


@dataclass(frozen=True)
class Charge:
    """What was charged to a data set.

    Parameters
    ----------
    id : str
        Its random name, which the artefact bears too.
    guarantee : Guarantee
        What it may reveal.
    purpose : {"release", "merging", "bounds"}
        A release; or what goes before one: merging by noisy totals, or choosing users' bounds.
    part : str or None
        The part of the data that it touches; all of them if None.
    made_at, made_by, made_with : str
        When, by whom and with which dpmarkov.
    artefacts : tuple of str
        Names of the files that were safely on disk. Without any the charge is unconfirmed, and
        counts all the same.
    follows : str or None
        The charge of an earlier step that may have decided on the noise.
    """

    id: str
    guarantee: Guarantee
    purpose: Purpose
    part: str | None
    made_at: str
    made_by: str
    made_with: str
    artefacts: tuple[str, ...]
    follows: str | None = None


def said_by(guarantee: Guarantee) -> dict[str, Any]:
    """Give what an entry says about a guarantee.

    Parameters
    ----------
    guarantee : Guarantee
        What a release promises.

    Returns
    -------
    dict
        Fields of `dpmarkov.ledger.entries.Entry`.

    Examples
    --------
    >>> from dpmarkov.noise import Geometric
    >>> said = said_by(Guarantee("transition", 0.5, 0.0, Geometric(2.0), conditions=()))
    >>> said["mechanism"], said["noise"]
    ('geometric', '{"scale": 2.0}')
    """
    return {
        "unit": guarantee.unit,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "mechanism": guarantee.noise.mechanism,
        "noise": json.dumps(_numbers(guarantee.noise), sort_keys=True),
        **guarantee.bounds,
        "conditions": json.dumps(guarantee.conditions),
    }


def charges_of(entries: Iterable[Entry], dataset: str) -> tuple[Charge, ...]:
    """Read the charges of a data set.

    Parameters
    ----------
    entries : iterable of Entry
        The ledger.
    dataset : str
        Name of the data set.

    Returns
    -------
    tuple of Charge
        In the order in which they were made.
    """
    of_this = [entry for entry in entries if entry.dataset == dataset]
    files: dict[str | None, dict[str, None]] = {}
    for entry in of_this:
        if entry.kind == "confirmation":
            files.setdefault(entry.charge, {})[str(entry.artefact)] = None
    return tuple(
        Charge(
            id=str(entry.charge),
            guarantee=_guarantee(*_law(entry), entry.follows is not None, entry.conditions or "[]"),
            purpose=cast(Purpose, entry.purpose),
            part=entry.part,
            made_at=entry.made_at,
            made_by=entry.made_by,
            made_with=entry.made_with,
            artefacts=tuple(files.get(entry.charge, ())),
            follows=entry.follows,
        )
        for entry in of_this
        if entry.kind == "charge"
    )


def spending_of(entries: Iterable[Entry], dataset: str) -> list[Spending]:
    """Read what the charges of a data set take from its budget.

    Parameters
    ----------
    entries : iterable of Entry
        The ledger.
    dataset : str
        Name of the data set.

    Returns
    -------
    list of Spending
        Conditions are left out: they change nothing in the sums.
    """
    return [
        Spending(_guarantee(*_law(entry), entry.follows is not None), entry.part)
        for entry in entries
        if entry.kind == "charge" and entry.dataset == dataset
    ]


def _numbers(noise: Noise) -> dict[str, float]:
    return {name: float(value) for name, value in asdict(noise).items()}


_LAW = ("unit", "epsilon", "delta", "mechanism", "noise", "max_cells", "max_per_cell")


def _law(entry: Entry) -> tuple[Any, ...]:
    return tuple(getattr(entry, name) for name in _LAW)


@lru_cache(maxsize=4096)
def _guarantee(
    unit: Any,
    epsilon: float,
    delta: float,
    mechanism: str,
    noise: str,
    max_cells: int | None,
    max_per_cell: int | None,
    after_share: bool,
    conditions: str = "[]",
) -> Guarantee:
    """Make a guarantee again; it checks that the noise gives what is claimed."""
    law = noise_of(mechanism, json.loads(noise))
    stated = tuple(json.loads(conditions))
    return Guarantee(unit, epsilon, delta, law, stated, 0.0, max_cells, max_per_cell, after_share)
