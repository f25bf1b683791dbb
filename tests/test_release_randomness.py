"""Where the noise of a release comes from: the operating system, each time anew, without a seed."""

from __future__ import annotations

import inspect
import os
import random

import numpy as np
import pytest

import dpmarkov as dpm
from dpmarkov.mechanisms import dirichlet

TARGET = {"epsilon": 0.1, "delta": 1e-6}
SPACE = dpm.StateSpace(["home", "work", "shop"])
COUNTS = dpm.TransitionCounts.from_dense([[120, 3000, 400], [2500, 900, 600], [900, 100, 0]], SPACE)


@pytest.mark.parametrize("mechanism", ["dirichlet", "gaussian"])
def test_two_releases_never_share_noise(mechanism):
    # whole numbers do meet by chance: for them see the sampler's own tests
    a, b = (dpm.release(COUNTS, **TARGET, unit="transition", mechanism=mechanism) for _ in range(2))
    assert not np.any(a.private_counts == b.private_counts)


def test_no_release_takes_a_generator_or_a_seed():
    names = set(inspect.signature(dpm.release).parameters)
    names |= set(inspect.signature(dirichlet.draw).parameters)
    assert not names & {"rng", "seed", "random_state", "generator"}


@pytest.mark.parametrize("unit", ["destination", "transition"])
@pytest.mark.parametrize("mechanism", ["dirichlet", "geometric", "gaussian"])
def test_a_release_asks_the_operating_system_and_no_ordinary_generator(
    unit, mechanism, monkeypatch
):
    def forbidden(*args, **kwargs):
        raise AssertionError("an ordinary generator was asked")

    options = {**TARGET, "unit": unit, "mechanism": mechanism}
    dpm.release(COUNTS, **options)  # what is imported on the way may look at the generators
    asked, urandom = [], os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or urandom(size))
    for generators, names in (
        (np.random, ("default_rng", "RandomState", "random", "standard_normal", "standard_gamma")),
        (random, ("random", "gauss", "getrandbits", "gammavariate", "Random")),
    ):
        for name in names:
            monkeypatch.setattr(generators, name, forbidden)
    dpm.release(COUNTS, **options)
    assert sum(asked) >= 8 * COUNTS.space.n_cells  # at least a word of 64 bits for each cell
