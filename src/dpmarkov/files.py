"""Releases on disk: JSON for people, Parquet for big chains. Both round-trip exactly.

Both hold a header (guarantee, mechanism, states) and the columns of the cells. A checksum covers
all of it, and loading validates everything again, down to the claim that the noise gives
(epsilon, delta). A file appears under its name only when it is complete: it is written beside its
place, flushed to disk and moved there. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmarkov.artefact import Release
from dpmarkov.errors import DpmarkovError
from dpmarkov.guarantee import Guarantee
from dpmarkov.noise import noise_of
from dpmarkov.states import Label, StateSpace

__all__ = ["atomically", "load", "save"]

_FORMAT = "dpmarkov release"
_VERSION = 1
_META = b"dpmarkov"


def save(release: Release, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a release to a file, all of it or nothing.

    Parameters
    ----------
    release : Release
        What to write.
    path : path
        Ends in ``.json`` or ``.parquet``.
    overwrite : bool
        Whether a file of that name may be replaced.
    """
    target = Path(path)
    if "\0" in str(target):
        raise DpmarkovError(f"{str(target)!r} holds a NUL character; choose another name")
    write = _by_suffix(target, {".json": _write_json, ".parquet": _write_parquet})
    if target.exists() and not overwrite:
        raise DpmarkovError(f"{target} exists; choose another name, or pass overwrite=True")
    atomically(target, lambda part: write(release, part))


def load(path: str | os.PathLike[str]) -> Release:
    """Read a release and check it.

    Parameters
    ----------
    path : path
        A file that `Release.save` wrote.

    Returns
    -------
    Release

    Raises
    ------
    DpmarkovError
        If the file cannot be read, was altered, or claims more privacy than its noise gives.
    """
    source = Path(path)
    read = _by_suffix(source, {".json": _read_json, ".parquet": _read_parquet})
    try:
        header, columns, names = read(source)
        _check_header(header, columns)
        release = _release(header, columns)
        _check_names(names, release.space)
        return release
    except FileNotFoundError:
        raise DpmarkovError(f"there is no file {source}") from None
    except Exception as error:  # a hostile file may upset a parser in any way
        raise DpmarkovError(
            f"{source} is not a release that can be read: {str(error) or type(error).__name__}"
        ) from error


# -- what is written -------------------------------------------------------------------------

Columns = dict[str, npt.NDArray[Any]]
_KINDS: dict[str, type] = {"row": int, "column": int, "probability": float, "private_count": float}


def _header(release: Release) -> dict[str, Any]:
    promise, space = release.guarantee, release.space
    totals = release.row_totals
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "guarantee": {
            "in_words": str(promise),
            "unit": promise.unit,
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "spent_epsilon": promise.spent_epsilon,
            **promise.bounds,
            "conditions": list(promise.conditions),
        },
        "mechanism": {
            "name": release.mechanism,
            "noise": asdict(promise.noise),
            "prior": release.prior,
            "debiased": release.debiased,
            "touched": release.touched,
        },
        "states": {
            "kind": space.kind,
            "origins": list(space.origins) if space.kind == "rectangular" else None,
            "destinations": list(space.destinations),
            "complete": space.is_complete,
            "merges": list(space.merges),
            "groups": list(space.groups.values()),
        },
        "row_totals": None if totals is None else totals.tolist(),
        "weak_rows": list(release.weak_rows),
        "charge": release.charge,
    }


def _columns(release: Release) -> Columns:
    columns: Columns = {"probability": release.probabilities}
    if release.private_counts is not None:
        columns["private_count"] = release.private_counts
    if not release.space.is_complete:
        columns = {"row": release.space.rows, "column": release.space.columns, **columns}
    return columns


def _checksum(header: dict[str, Any], columns: Columns) -> str:
    text = {key: value for key, value in header.items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(text, sort_keys=True).encode())
    for name in sorted(columns):
        kind = "<f8" if columns[name].dtype.kind == "f" else "<i8"
        digest.update(name.encode() + columns[name].astype(kind).tobytes())
    return digest.hexdigest()


def _release(header: dict[str, Any], columns: Columns) -> Release:
    promise, mechanism = _typed(header, "guarantee", dict), _typed(header, "mechanism", dict)
    totals = _typed(header, "row_totals", list, type(None))
    return Release(
        space=_space(_typed(header, "states", dict), columns),
        probabilities=columns["probability"],
        guarantee=Guarantee(
            promise["unit"],
            float(_typed(promise, "epsilon", int, float)),
            float(_typed(promise, "delta", int, float)),
            noise_of(mechanism["name"], _typed(mechanism, "noise", dict)),
            tuple(_typed(promise, "conditions", list, of=str)),
            float(_typed(promise, "spent_epsilon", int, float)),
            **{
                name: _typed(promise, name, int)
                for name in ("max_cells", "max_per_cell")
                if name in promise
            },
        ),
        prior=float(_typed(mechanism, "prior", int, float)),
        debiased=_typed(mechanism, "debiased", bool),
        touched=_typed(mechanism, "touched", int),
        row_totals=None
        if totals is None
        else np.array(_typed(header, "row_totals", list, of=int), np.int64),
        private_counts=columns.get("private_count"),
        weak_rows=_labels(_typed(header, "weak_rows", list)),
        # Files from before the ledger have no charge.
        charge=_typed(header, "charge", str, type(None)) if "charge" in header else None,
    )


def _typed(part: dict[str, Any], name: str, *kinds: type, of: type | None = None) -> Any:
    """Give a value of the header, or say that it is of another type (True is no number)."""
    value = part[name]
    if type(value) not in kinds or (of and any(type(x) is not of for x in value)):
        raise DpmarkovError(f"{name} is not of the type that Release.save writes")
    return value


def _space(states: dict[str, Any], columns: Columns) -> StateSpace:
    destinations = _labels(_typed(states, "destinations", list))
    kind = states["kind"]
    rectangular = kind == "rectangular"
    origins = _labels(_typed(states, "origins", list)) if rectangular else destinations
    support = None
    if not _typed(states, "complete", bool):
        from scipy.sparse import coo_array

        rows, cols = columns["row"], columns["column"]
        if not np.all(np.diff(rows * len(destinations) + cols) > 0):
            raise DpmarkovError("the cells are not in the order of the support")
        size = (1 if kind == "row" else len(origins), len(destinations))
        support = coo_array((np.ones(rows.size, dtype=bool), (rows, cols)), shape=size)
    if rectangular:
        return StateSpace(origins=origins, destinations=destinations, support=support)
    if kind == "row":
        return StateSpace(categories=destinations, support=support)
    merges = [(kept, gone) for kept, gone in map(_labels, states["merges"])]
    space = StateSpace(destinations, support=support, merges=merges)
    if _labels(states["groups"]) != tuple(space.groups.values()):  # written for people to read
        raise DpmarkovError("the groups are not those that the merges lead to")
    return space


def _labels(listed: list[Any]) -> tuple[Label, ...]:
    """Turn JSON's lists back into tuples."""
    return tuple(_labels(x) if isinstance(x, list) else x for x in listed)


def _check_header(header: dict[str, Any], columns: Columns) -> None:
    if header.get("format") != _FORMAT:
        raise DpmarkovError(f"it is not a {_FORMAT}; give a file that Release.save wrote")
    if header.get("version") != _VERSION:
        raise DpmarkovError(
            f"it has format version {header.get('version')!r} and this dpmarkov reads {_VERSION}; "
            "install a newer one"
        )
    if header.get("checksum") != _checksum(header, columns):
        raise DpmarkovError(
            "it does not match its checksum: it was altered after it was written; ask its "
            "publisher for the original"
        )


# -- the two formats ---------------------------------------------------------------------------


def _write_json(release: Release, path: Path) -> None:
    header, columns = _header(release), _columns(release)
    header["checksum"] = _checksum(header, columns)
    cells = {name: values.tolist() for name, values in columns.items()}
    lines = [f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in header.items()]
    lines += [f'"cells": {json.dumps(cells)}']
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _read_json(path: Path) -> tuple[dict[str, Any], Columns, dict[str, Any]]:
    header = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_each_once)
    if not isinstance(header, dict):
        raise ValueError("it holds no JSON object")
    cells = header.pop("cells", {})
    columns = {name: _column(name, np.array(values)) for name, values in cells.items()}
    return header, columns, {}


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name given twice, of which a person would read the one and `json` the other."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice in one of its objects")
    return dict(pairs)


def _write_parquet(release: Release, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    header, columns = _header(release), _columns(release)
    header["checksum"] = _checksum(header, columns)
    space = release.space
    named = {
        "origin": pa.DictionaryArray.from_arrays(space.rows, _arrow_labels(space.origins)),
        "destination": pa.DictionaryArray.from_arrays(
            space.columns, _arrow_labels(space.destinations)
        ),
    }
    table = pa.table({**named, **{name: pa.array(values) for name, values in columns.items()}})
    table = table.replace_schema_metadata({_META: json.dumps(header).encode()})
    pq.write_table(table, path)


def _arrow_labels(labels: tuple[Label, ...]) -> Any:
    """Labels as a column for people; loading takes them from the header."""
    import pyarrow as pa

    if all(isinstance(label, int) and abs(label) < 2**63 for label in labels):
        return pa.array(labels)
    return pa.array([str(label) for label in labels])


def _read_parquet(path: Path) -> tuple[dict[str, Any], Columns, dict[str, Any]]:
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    if _META not in (schema.metadata or {}):
        raise ValueError("its metadata has no release header")
    header = json.loads(schema.metadata[_META])
    table = pq.read_table(path)
    names = {name: table[name] for name in ("origin", "destination")}
    columns = {
        name: _column(name, table[name].to_numpy())
        for name in table.column_names
        if name not in names
    }
    return header, columns, names


def _check_names(names: dict[str, Any], space: StateSpace) -> None:
    """Refuse names beside the cells that are not the header's: some reader takes these."""
    import pyarrow as pa

    sides = {
        "origin": (space.origins, space.rows),
        "destination": (space.destinations, space.columns),
    }
    for side, named in names.items():
        labels, cells = sides[side]
        expected = _arrow_labels(labels).take(pa.array(cells))
        if not named.combine_chunks().cast(expected.type).equals(expected):
            raise ValueError(f"its column {side!r} was altered: it does not name the cells")


def _column(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if name not in _KINDS:
        raise ValueError(f"it has a column {name!r}, which no release has")
    if values.ndim != 1 or values.dtype != _KINDS[name]:
        raise ValueError(f"its column {name!r} is not a list of {_KINDS[name].__name__}")
    return values


# -- paths ---------------------------------------------------------------------------------------


def _by_suffix(path: Path, choices: dict[str, Any]) -> Any:
    if path.suffix.lower() not in choices:
        raise DpmarkovError(
            f"{path} ends in {path.suffix!r}; releases are files that end in {' or '.join(choices)}"
        )
    return choices[path.suffix.lower()]


def atomically(target: Path, write: Callable[[Path], None]) -> None:
    """Write beside the target, flush to disk, and move into place; or leave nothing behind."""
    part = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    try:
        part.touch(exist_ok=False)  # who may read it is for the umask to say
    except OSError as error:
        raise DpmarkovError(f"cannot write to {target.parent}: {error.strerror}") from error
    try:
        write(part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise DpmarkovError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Flush the name of a file that was moved here, where the system lets one open a folder."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
