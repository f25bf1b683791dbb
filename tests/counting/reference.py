"""Counting in plain Python, row by row, as the documentation says it: the oracle of these tests."""

from __future__ import annotations

from collections import Counter, defaultdict
from hashlib import sha256
from itertools import pairwise
from typing import Any

Row = dict[str, Any]
P = 2**31 - 1


def code(label: Any, states: list[Any], other: Any) -> int:
    if label in states and not isinstance(label, bool):
        return states.index(label)
    return -1 if other is None else states.index(other)


def transitions(rows: list[Row], states: list[Any], other: Any = None) -> tuple[list[Any], int]:
    """Give (user, i, j, n) of every row that counts, and the number of rows affected."""
    found, affected = [], 0
    for row in rows:
        unusable = ("user" in row and row["user"] is None) or (
            "count" in row and (row["count"] is None or row["count"] < 0)
        )
        undeclared = any(row[x] not in states for x in ("origin", "destination"))
        affected += undeclared or unusable
        i, j = (code(row[x], states, other) for x in ("origin", "destination"))
        if i >= 0 and j >= 0 and not unusable:
            found.append((row.get("user"), i, j, row.get("count", 1)))
    return found, affected


def steps(
    rows: list[Row],
    states: list[Any],
    other: Any = None,
    max_gap: Any = None,
    drop_self: bool = False,
    by_user: bool = False,
) -> tuple[list[Any], int]:
    """Give (user, i, j, 1) of every pair that counts, and the number of events affected."""
    paths, affected = defaultdict(list), 0
    keys = ("entity", "user") if by_user else ("entity",)
    for row in rows:
        if any(row[key] is None for key in (*keys, "time")):
            affected += 1
            continue
        affected += row["state"] not in states
        tie = (row["tie"] is not None, row["tie"] or 0)
        place = (row["time"], tie, code(row["state"], states, None))
        paths[tuple(row[key] for key in keys)].append(place)
    found = []
    for path, events in paths.items():
        events.sort()
        if other is not None:
            events = [(t, tie, states.index(other) if i < 0 else i) for t, tie, i in events]
        for (t, _, i), (u, _, j) in pairwise(events):
            close = max_gap is None or u - t <= max_gap
            if i >= 0 and j >= 0 and close and not (drop_self and i == j):
                found.append((path[-1], i, j, 1))
    return found, affected


def cells(found: list[Any], n: int) -> list[int]:
    total: Counter[int] = Counter()
    for _, i, j, count in found:
        total[i * n + j] += count
    return [total[cell] for cell in range(n * n)]


def lot(user: Any, cell: int, key: str) -> int:
    digest = sha256(f"{key}/{user}".encode()).hexdigest()
    a = [int(digest[16 * k : 16 * k + 15], 16) % P for k in range(4)]
    x = cell % P
    return (a[3] * x**3 + a[2] * x**2 + a[1] * x + a[0]) % P


def bounded(found: list[Any], n: int, max_cells: int, max_per_cell: int, key: str) -> list[Any]:
    """Keep of each user the cells that the lot draws, and clip them."""
    of_user: dict[Any, Counter[int]] = defaultdict(Counter)
    for user, i, j, count in found:
        of_user[user][i * n + j] += count
    kept = []
    for user, counted in of_user.items():
        drawn = sorted(+counted, key=lambda cell: (lot(user, cell, key), cell))[:max_cells]
        kept += [(user, *divmod(cell, n), min(counted[cell], max_per_cell)) for cell in drawn]
    return kept
