"""Counting against its limits and rivals, side by side in one run.

    python benchmarks/counting.py [--rows 100_000_000] [--events 20_000_000] [--rounds 3]
                                  [--folder kept] [--only "paths" ...]

Every measurement runs in a process of its own (so that its peak memory is its own), the
contestants take turns, and the best of the rounds counts. The data are generated once into a
temporary folder and removed at the end, or kept in the folder that is given. Processor time
stands beside the time on the clock, because only the first means much on a machine that others use.

* Limit for counting: DuckDB's own ``GROUP BY`` of the same file. Rivals: pandas and
  ``numpy.unique``, which must read the file first, as we do.
* Limit for pairing: DuckDB's own window query, which has no tie-break and no policy.
* Memory: the same rows as a file of CSV text larger than 1 GiB.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIMITS = {"GROUP BY": 1.3, "window": 1.5}
EDGES_PER_STATE = 50


# -- data ----------------------------------------------------------------------------------


def generate(folder: Path, rows: int, events: int) -> None:
    import duckdb

    connection = duckdb.connect(config={"temp_directory": str(folder / "spill")})
    uniform = f"""SELECT (hash(range) % 263)::INTEGER AS origin,
        (hash(range + {rows}) % 263)::INTEGER AS destination FROM range({rows})"""
    sparse = f"""SELECT o AS origin, ((o * 7919 + (k * k * 13) % 100003) % 100000)::INTEGER
        AS destination FROM (SELECT (hash(range) % 100000)::INTEGER AS o,
        hash(range + {rows}) % {EDGES_PER_STATE} AS k FROM range({rows}))"""
    paths = f"""SELECT (hash(range) % {max(events // 20, 1)})::INTEGER AS entity,
        TIMESTAMP '2024-01-01' + to_seconds((hash(range + {events}) % 31536000)::BIGINT) AS time,
        (hash(range + 2 * {events}) % 263)::INTEGER AS state FROM range({events})"""
    queries = {"263.parquet": uniform, "100000.parquet": sparse, "events.parquet": paths}
    queries["100000.csv"] = f"FROM '{folder / '100000.parquet'}'"
    for name, query in queries.items():
        if not (folder / name).exists():
            connection.execute(f"COPY ({query}) TO '{folder / name}'")


def space_of_100000() -> Any:
    import numpy as np
    from scipy.sparse import coo_array

    from dpmarkov.states import StateSpace

    o = np.repeat(np.arange(100_000, dtype=np.int64), EDGES_PER_STATE)
    k = np.tile(np.arange(EDGES_PER_STATE, dtype=np.int64), 100_000)
    d = (o * 7919 + (k * k * 13) % 100003) % 100_000
    edges = coo_array((np.ones(o.size, dtype=bool), (o, d)), shape=(100_000, 100_000))
    return StateSpace(range(100_000), support=edges)


# -- contestants: each gives a function that is timed ---------------------------------------


def raw(query: str) -> Callable[[Path], Callable[[], Any]]:
    def contestant(path: Path) -> Callable[[], Any]:
        import duckdb

        return lambda: duckdb.connect().sql(query.format(path=path)).to_arrow_table()

    return contestant


GROUP_BY = raw("SELECT origin, destination, count(*) FROM '{path}' GROUP BY ALL")
WINDOW = raw("""SELECT origin, state, count(*) FROM (
    SELECT lag(state) OVER (PARTITION BY entity ORDER BY time) AS origin, state FROM '{path}')
    WHERE origin IS NOT NULL GROUP BY ALL""")


def ours(path: Path) -> Callable[[], Any]:
    from dpmarkov.counting import count_transitions

    states = range(263) if path.stem == "263" else space_of_100000()
    return lambda: count_transitions(
        path, origin="origin", destination="destination", states=states
    )


def our_paths(path: Path) -> Callable[[], Any]:
    from dpmarkov.counting import count_paths

    return lambda: count_paths(path, entity="entity", time="time", state="state", states=range(263))


def pandas(path: Path) -> Callable[[], Any]:
    import pandas as pd

    return lambda: pd.read_parquet(path).groupby(["origin", "destination"]).size()


def numpy_unique(path: Path) -> Callable[[], Any]:
    import numpy as np
    import pyarrow.parquet as pq

    def count() -> Any:
        table = pq.read_table(path)
        o, d = (table[name].to_numpy() for name in ("origin", "destination"))
        return np.unique(o.astype(np.int64) * 100_000 + d, return_counts=True)

    return count


CONTESTS: dict[str, tuple[str, dict[str, Callable[[Path], Callable[[], Any]]]]] = {
    "263 states": (
        "263.parquet",
        {"GROUP BY": GROUP_BY, "ours": ours, "pandas": pandas, "numpy.unique": numpy_unique},
    ),
    "100000 states": (
        "100000.parquet",
        {"GROUP BY": GROUP_BY, "ours": ours, "pandas": pandas, "numpy.unique": numpy_unique},
    ),
    "paths": ("events.parquet", {"window": WINDOW, "ours": our_paths}),
    "CSV, 100000 states": ("100000.csv", {"GROUP BY": GROUP_BY, "ours": ours}),
}


# -- measuring -----------------------------------------------------------------------------


def measure_here(contest: str, name: str, folder: Path) -> None:
    """Run one contestant in this process: first on nothing, so that imports are not timed."""
    file, contestants = CONTESTS[contest]
    warm_up()
    run = contestants[name](folder / file)
    start, worked = time.perf_counter(), time.process_time()
    run()
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": worked, "MiB": peak}))


def warm_up() -> None:
    import pyarrow as pa

    from dpmarkov.counting import count_transitions

    count_transitions(pa.table({"o": [0], "d": [1]}), origin="o", destination="d", states=[0, 1])


def measure(contest: str, name: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", contest, name, str(folder)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(printed.splitlines()[-1])
    return result


def report(contest: str, folder: Path, rounds: int) -> None:
    file, contestants = CONTESTS[contest]
    size = (folder / file).stat().st_size / 2**20
    print(f"\n{contest} ({file}, {size:,.0f} MiB), best of {rounds}")
    runs = {name: [] for name in contestants}  # type: dict[str, list[dict[str, float]]]
    for _ in range(rounds):
        for name in contestants:
            runs[name].append(measure(contest, name, folder))
    best = {name: {key: min(run[key] for run in of) for key in of[0]} for name, of in runs.items()}
    for name, of in runs.items():
        ratio, work = (best["ours"][key] / best[name][key] for key in ("seconds", "cpu"))
        limit = f"  (limit {LIMITS[name]})" if name in LIMITS and ".parquet" in file else ""
        print(
            f"  {name:13}{best[name]['seconds']:7.2f} s  ours/this {ratio:5.2f}{limit}"
            f"  of processor time {work:5.2f}  {max(run['MiB'] for run in of):6,.0f} MiB"
        )


def run(asked: argparse.Namespace, folder: Path) -> None:
    # Not in this process: a child starts with the peak memory of its parent.
    sizes = ["--rows", str(asked.rows), "--events", str(asked.events)]
    command = [sys.executable, __file__, "--generate", str(folder), *sizes]
    subprocess.run(command, check=True)
    for contest in asked.only or CONTESTS:
        report(contest, folder, asked.rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", nargs="*", choices=CONTESTS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--generate", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        contest, name, folder = asked.one
        measure_here(contest, name, Path(folder))
    elif asked.generate:
        generate(asked.generate, asked.rows, asked.events)
    elif asked.folder:
        asked.folder.mkdir(parents=True, exist_ok=True)
        run(asked, asked.folder)
    else:
        with tempfile.TemporaryDirectory(prefix="dpmarkov-benchmark-") as temporary:
            run(asked, Path(temporary))


if __name__ == "__main__":
    main()
