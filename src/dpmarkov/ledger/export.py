"""A ledger as a file for others: CSV for a spreadsheet, JSON for a program, whole or not at all."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import fields
from os import PathLike
from pathlib import Path

from dpmarkov.errors import DpmarkovError
from dpmarkov.files import atomically
from dpmarkov.ledger.entries import Entry, head_of

__all__ = ["export"]


def export(entries: Sequence[Entry], path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write entries as they are, hashes and all.

    Parameters
    ----------
    entries : sequence of Entry
        What a ledger holds.
    path : path
        Ends in ``.csv`` or ``.json``.
    overwrite : bool
        Whether a file of that name may be replaced.
    """
    target = Path(path)
    writers = {".csv": _write_csv, ".json": _write_json}
    if target.suffix.lower() not in writers:
        raise DpmarkovError(f"{target} must end in .csv or .json, not {target.suffix!r}")
    if target.exists() and not overwrite:
        raise DpmarkovError(f"{target} exists; choose another name, or pass overwrite=True")
    atomically(target, lambda part: writers[target.suffix.lower()](entries, part))


def _write_csv(entries: Sequence[Entry], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(field.name for field in fields(Entry))
        lines.writerows(vars(entry).values() for entry in entries)


def _write_json(entries: Sequence[Entry], path: Path) -> None:
    rows = [{k: v for k, v in vars(entry).items() if v is not None} for entry in entries]
    whole = {"format": "dpmarkov ledger", "head": head_of(entries), "entries": rows}
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
