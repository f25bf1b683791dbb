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

PROCESSES = 8
# Budgets of epsilon = 1, with room for three more: one is used up by sums, one by composed losses
# (five Gaussian releases compose to 0.99, six to more than 1).
PURE = {"epsilon": 0.25, "delta": 0, "unit": "transition", "mechanism": "geometric"}
COMPOSED = {"epsilon": 0.47, "delta": 1e-7, "unit": "transition", "mechanism": "gaussian"}
BUDGETS = ((0, PURE, 1), (1e-6, COMPOSED, 2))  # delta, what is asked for, how many are charged


def accepted(dataset, counts, target):
    """Tell whether a release was let through."""
    try:
        dpm.release(counts, **target, ledger=dataset)
    except dpm.BudgetError:
        return False
    return True


def race(start, tallies, urls, runs):
    counts = dpm.TransitionCounts(dpm.StateSpace(list("abc")), np.arange(9) * 100 + 10)
    try:
        for i, url in enumerate(urls):
            for run, dataset in enumerate(dpm.Ledger(url).datasets()):
                start.wait()
                if accepted(dataset, counts, BUDGETS[run % 2][1]):
                    with tallies.get_lock():
                        tallies[i * runs + run] += 1
    except BaseException:
        start.abort()  # or the others would wait
        raise


def main(runs, urls):
    counts = dpm.TransitionCounts(dpm.StateSpace(list("ab")), [9, 9, 9, 9])
    for url in urls:
        ledger = dpm.Ledger.create(url)
        for run in range(runs):
            delta, target, before = BUDGETS[run % 2]
            dataset = ledger.add_dataset(f"run {run}", unit="transition", epsilon=1, delta=delta)
            for _ in range(before):
                dpm.release(counts, **target, ledger=dataset)
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
