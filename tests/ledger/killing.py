"""Kill a loop of releases again and again; run by test_processes in a process of its own.

It imports once and forks, so that a kill costs milliseconds. Arguments: URL of the ledger, folder
of the artefacts, how many kills. A kill comes before two releases would be done.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import numpy as np

import dpmarkov as dpm

SUFFIXES = (".json", ".parquet")


def release(url: str, folder: Path, names: Iterable[str]) -> None:
    dataset = dpm.Ledger(url).dataset("trips")
    counts = dpm.TransitionCounts(dpm.StateSpace(list("abc")), np.arange(9) * 100 + 10)
    for name in names:
        out = dpm.release(counts, epsilon=1, delta=0, unit="transition", mechanism="geometric",
                          ledger=dataset)  # fmt: skip
        out.save(folder / name)


def started(url: str, folder: Path, names: Iterable[str]) -> int:
    """Release in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            release(url, folder, names)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return child


def seconds_of_two(url: str, folder: Path, name: str) -> float:
    begin = time.monotonic()
    os.waitpid(started(url, folder, [f"{name}{suffix}" for suffix in SUFFIXES]), 0)
    return time.monotonic() - begin


def main(url: str, folder: Path, kills: int) -> None:
    waits, two = random.Random(7), 0.0
    release(url, folder, ["first.json", "first.parquet"])  # so that all is imported
    for number in range(kills):
        if number % 50 == 0:  # the longer the ledger, the longer it takes
            two = seconds_of_two(url, folder, f"timed-{number}")
        child = started(url, folder, (f"{number}-{i}{SUFFIXES[number % 2]}" for i in count()))
        time.sleep(waits.uniform(0, two))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit("a release ended by itself")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
