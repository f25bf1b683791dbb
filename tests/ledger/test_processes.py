"""What no single process can show: kills at random instants, and races for the last of a budget.

By default 100 kills and 20 races on each database. ``DPMARKOV_LEDGER_TRIALS=10`` makes ten times as
many.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dpmarkov as dpm

from .conftest import NewUrl

TRIALS = float(os.environ.get("DPMARKOV_LEDGER_TRIALS", "1"))
HERE = Path(__file__).parent


def run(program: str, *arguments: object) -> str:
    command = [sys.executable, str(HERE / program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def charge_of_part(part: Path) -> str | None:
    name = part.name[1:].rpartition(".")[0]
    whole = part.rename(part.with_name(f"part-{name}"))
    try:
        return dpm.load(whole).charge
    except dpm.DpmarkovError:
        return None
    finally:
        whole.unlink()


def test_a_process_killed_at_any_instant_leaves_no_artefact_without_a_charge(
    ledger: dpm.Ledger, url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    dataset = ledger.add_dataset("trips", unit="transition", epsilon=1e6, delta=0)
    run("killing.py", url, folder, int(100 * TRIALS))
    ledger.verify()
    charges = {charge.id: charge for charge in dataset.charges()}
    artefacts = [path for path in folder.iterdir() if not path.name.startswith(".")]
    released = {path.name: dpm.load(path).charge for path in artefacts}  # no file is half-written
    assert len(set(released.values())) == len(released)
    assert set(released.values()) <= set(charges)
    for part in folder.glob(".*"):  # what was being written: cut off, or whole with its charge
        charge = charge_of_part(part)
        assert charge is None or charge in charges
    confirmed = {name: c.id for c in charges.values() for name in c.artefacts}
    assert confirmed.items() <= released.items()
    unconfirmed = len(charges) - len(confirmed)
    print(f"{len(charges)} charges, {len(artefacts)} artefacts, {unconfirmed} unconfirmed, "
          f"{len(released) - len(confirmed)} of them with an artefact")  # fmt: skip
    # The kills came before, between and after the steps, or this shows nothing.
    assert len(confirmed) > 10 * TRIALS
    assert unconfirmed > 10 * TRIALS
    dpm.release(
        dpm.TransitionCounts(dpm.StateSpace(list("ab")), [9, 9, 9, 9]),
        epsilon=1, delta=0, unit="transition", mechanism="geometric", ledger=dataset,
    )  # fmt: skip


def test_eight_processes_never_overspend_the_last_of_a_budget(new_url: NewUrl) -> None:
    runs = 10
    urls = [new_url() for _ in range(int(2 * TRIALS))]
    tallies = json.loads(run("racing.py", runs, *urls))
    assert len(tallies) == runs * len(urls)
    assert set(tallies) == {3}  # no more than there is room for, and no fewer
    for url in urls:
        ledger = dpm.Ledger(url)
        ledger.verify()
        assert all(0.98 < dataset.spent() <= 1 for dataset in ledger.datasets())
