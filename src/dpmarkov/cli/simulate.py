"""``dpmarkov simulate``: synthetic trajectories from a release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmarkov.cli.options import Force, General
from dpmarkov.cli.output import check_target, print_json
from dpmarkov.cli.show import File
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    import pyarrow as pa

    from dpmarkov.chain import MarkovChain

__all__ = ["simulate"]

_SUFFIXES = (".csv", ".parquet")
_ROWS_AT_ONCE = 2_000_000


def simulate(
    file: File,
    walkers: Annotated[int, typer.Option(help="How many trajectories.", min=1)],
    steps: Annotated[int, typer.Option(help="How many steps each takes.", min=0)],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to: .csv or .parquet.")
    ],
    general: General,
    start: Annotated[
        str | None, typer.Option(help="State to begin in; else as in the long run.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="To repeat a simulation.", min=0)] = None,
    force: Force = False,
) -> None:
    """Draw synthetic trajectories from a release.

    This is post-processing: it costs no privacy, and a seed does no harm.

    Example:
    dpmarkov simulate city.json --walkers 1000 --steps 24 -o walks.csv
    """
    import dpmarkov as dpm
    from dpmarkov.files import atomically

    check_target(output, force, _SUFFIXES)
    made = dpm.load(file)
    if made.space.kind != "square":
        raise DpmarkovError(f"{file} holds no chain to walk on, but {made!r}")
    chain = made.chain
    atomically(output, lambda part: _write(part, output.suffix, chain, walkers, steps, start, seed))
    rows = walkers * (steps + 1)
    if general.json:
        print_json({"file": str(output), "walkers": walkers, "steps": steps, "rows": rows})
        return
    typer.echo(f"Wrote {output}: {walkers:,} walkers, {steps:,} steps each, {rows:,} rows.")


def _write(
    path: Path,
    suffix: str,
    chain: MarkovChain,
    walkers: int,
    steps: int,
    start: str | None,
    seed: int | None,
) -> None:
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    tables = _tables(chain, walkers, steps, start, seed)
    first = next(tables)
    kind: Any = pq.ParquetWriter if suffix.lower() == ".parquet" else pa_csv.CSVWriter
    with kind(str(path), first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _tables(
    chain: MarkovChain, walkers: int, steps: int, start: str | None, seed: int | None
) -> Iterator[pa.Table]:
    """Walk a part of the walkers after the other: one row for each walker and step."""
    import numpy as np
    import pyarrow as pa

    begin = next((label for label in chain.labels if str(label) == start), start)
    labels = pa.array([x if isinstance(x, str | int) else str(x) for x in chain.labels])
    rng = np.random.default_rng(seed)
    at_once = max(1, _ROWS_AT_ONCE // (steps + 1))
    for done in range(0, walkers, at_once):
        paths = chain.simulate(steps, min(at_once, walkers - done), start=begin, rng=rng)
        who = np.arange(done, done + len(paths))
        yield pa.table(
            {
                "walker": np.repeat(who, steps + 1),
                "step": np.tile(np.arange(steps + 1), len(paths)),
                "state": labels.take(pa.array(paths.reshape(-1))),
            }
        )
