"""Eight processes race for the last of a budget; run by test_processes in a process of its own.

Arguments: how many runs for each ledger, then the URLs of the ledgers. It prints, as JSON, how many
releases were accepted in each run, as the processes themselves saw it.
"""

from __future__ import annotations

import json
import multiprocessing
import sys

import numpy as np

import dpmarkov as dpm
from dpmarkov.noise import Geometric

PROCESSES = 8
TARGET = {"epsilon": 0.25, "delta": 0, "unit": "transition", "mechanism": "geometric"}


def accepted(dataset, counts):
    """Tell whether a release was let through."""
    try:
        dpm.release(counts, **TARGET, ledger=dataset)
    except dpm.BudgetError:
        return False
    return True


def race(start, tallies, urls, runs):
    counts = dpm.TransitionCounts(dpm.StateSpace(list("abc")), np.arange(9) * 100 + 10)
    try:
        for i, url in enumerate(urls):
            for run, dataset in enumerate(dpm.Ledger(url).datasets()):
                start.wait()
                if accepted(dataset, counts):
                    with tallies.get_lock():
                        tallies[i * runs + run] += 1
    except BaseException:
        start.abort()  # or the others would wait
        raise


def main(runs, urls):
    for url in urls:
        ledger = dpm.Ledger.create(url)
        for run in range(runs):
            dataset = ledger.add_dataset(f"run {run}", unit="transition", epsilon=1, delta=0)
            dataset.charge(dpm.Guarantee("transition", 0.25, 0.0, Geometric(4.0), ()))
    fork = multiprocessing.get_context("fork")
    start, tallies = fork.Barrier(PROCESSES, timeout=300), fork.Array("i", runs * len(urls))
    racers = [fork.Process(target=race, args=(start, tallies, urls, runs)) for _ in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    if any(racer.exitcode for racer in racers):
        sys.exit("a racer failed")
    print(json.dumps(list(tallies)))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
