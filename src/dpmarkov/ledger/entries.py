"""The entries of a ledger and the chain of hashes that ties them together.

A ledger is a list to which entries are only ever added: *dataset* (a unit and a budget), *charge*
(what a release may reveal, entered before its noise is drawn) and *confirmation* (its file is
safely on disk). Every entry keeps the hash of the one before, and its own hash covers all that it
says. An entry that was altered, removed, moved or put in between therefore breaks the chain, and
`check_chain` names it. What a chain cannot show by itself is that its *end* was cut off, or that
all of it was written anew: for that, note down the head (``ledger.head``) and check it later.

An entry holds public values only: no count, no row total, no label.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dpmarkov.errors import DpmarkovError

__all__ = ["Entry", "check_chain", "check_head", "head_of", "linked"]

_BEFORE_THE_FIRST = "0" * 64
_KINDS: dict[str, type] = {
    "position": int, "epsilon": float, "delta": float, "max_cells": int, "max_per_cell": int
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of a ledger; what does not go with its kind is None.

    Parameters
    ----------
    position : int
        1, 2, 3 and so on, without a gap.
    kind : {"dataset", "charge", "confirmation"}
        What it says.
    dataset : str
        Which data set it is about.
    made_at, made_by, made_with : str
        When (UTC), by which user of the machine, with which dpmarkov.
    unit : str, optional
        Of a data set and of its charges.
    epsilon, delta : float, optional
        The budget of a data set, or what a charge promises.
    charge : str, optional
        Random name of a charge; of a confirmation: the charge that it confirms.
    purpose : str, optional
        What was charged: a release; or merging, or choosing bounds, by noisy numbers before one.
    mechanism, noise : str, optional
        The law of a charge's noise, and its parameters as JSON.
    max_cells, max_per_cell : int, optional
        Under `user`: how users were bounded.
    conditions : str, optional
        The conditions of a charge's promise, as JSON.
    part : str, optional
        Which of several disjoint parts of the data was charged.
    follows : str, optional
        Name of an earlier charge, of a step that may have decided on this one's noise.
    artefact : str, optional
        Name of the file that a confirmation is about.
    previous, hash : str
        Hash of the entry before, and of this one.
    """

    position: int
    kind: Literal["dataset", "charge", "confirmation"]
    dataset: str
    made_at: str
    made_by: str
    made_with: str
    unit: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    charge: str | None = None
    purpose: str | None = None
    mechanism: str | None = None
    noise: str | None = None
    max_cells: int | None = None
    max_per_cell: int | None = None
    conditions: str | None = None
    part: str | None = None
    follows: str | None = None
    artefact: str | None = None
    previous: str = _BEFORE_THE_FIRST
    hash: str = ""

    def __str__(self) -> str:
        what = f" {self.charge}" if self.charge else ""
        return f"entry {self.position} ({self.kind}{what} of {self.dataset!r})"


def _digest(entry: Entry) -> str:
    """Hash what an entry says; absent values leave no trace, so that new columns change nothing."""
    said = {k: v for k, v in vars(entry).items() if v is not None and k != "hash"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def linked(entry: Entry, before: Sequence[Entry]) -> Entry:
    """Give an entry its place at the end of a chain.

    Parameters
    ----------
    entry : Entry
        What is to be added.
    before : sequence of Entry
        The chain so far.

    Returns
    -------
    Entry
    """
    previous = before[-1].hash if before else _BEFORE_THE_FIRST
    kept = {name: _as_kept(name, value) for name, value in vars(entry).items()}
    placed = Entry(**kept | {"position": len(before) + 1, "previous": previous})
    return replace(placed, hash=_digest(placed))


def _as_kept(name: str, value: Any) -> Any:
    """Give a value as a database gives it back: a hash tells 1 from 1.0, and 0.0 from -0.0."""
    if value is None:
        return None
    if name in _KINDS:
        return _KINDS[name](value) + 0
    if not isinstance(value, str):
        raise DpmarkovError(f"{name} must be text, not {value!r}")
    if any(mark == "\0" or "\ud800" <= mark <= "\udfff" for mark in value):
        raise DpmarkovError(f"{name} has characters that no database keeps: {value!r}")
    return value


def check_chain(entries: Iterable[Entry]) -> None:
    """Refuse a chain in which an entry was altered, removed, moved or put in between.

    Parameters
    ----------
    entries : iterable of Entry
        In the order of their positions.

    Raises
    ------
    DpmarkovError
        It names the first entry at which the chain breaks.
    """
    previous = _BEFORE_THE_FIRST
    for position, entry in enumerate(entries, 1):
        if entry.position != position:
            raise _damaged(f"entry {position} is missing: the next one there is {entry}")
        if entry.hash != _digest(entry):
            raise _damaged(f"{entry} was altered: what it says does not match its hash")
        if entry.previous != previous:
            raise _damaged(f"{entry} does not follow the one before: one of them was exchanged")
        previous = entry.hash


def head_of(entries: Sequence[Entry]) -> str:
    """Give the end of a chain in a line to note down: its length and its last hash."""
    return f"{len(entries)}:{entries[-1].hash if entries else _BEFORE_THE_FIRST}"


def check_head(entries: Sequence[Entry], head: str) -> None:
    """Refuse a chain that does not go on from a head that was noted down earlier.

    Parameters
    ----------
    entries : sequence of Entry
        The chain.
    head : str
        What `head_of` gave.

    Raises
    ------
    DpmarkovError
        If entries are missing at the end, or all of it was written anew.
    """
    length, mark, digest = head.partition(":")
    if not (mark and length.isdecimal() and len(digest) == 64):
        raise DpmarkovError(
            f"a head is a number of entries, a colon and 64 hexadecimal digits, not {head!r}"
        )
    if int(length) > len(entries):
        raise _damaged(f"there were {length} entries when the head was noted, and {len(entries)} "
                       "are left: the end was cut off")  # fmt: skip
    if head_of(entries[: int(length)]) != head:
        raise _damaged(f"its first {length} entries are not those of the head that was noted: they "
                       "were written anew")  # fmt: skip


def _damaged(what: str) -> DpmarkovError:
    return DpmarkovError(
        f"the ledger is damaged: {what}. Do not release anything against it; go back to a copy "
        "whose chain is whole"
    )
