"""Privatizations of chains, simulated once and shared by the tests of every closed form."""

from __future__ import annotations

import numpy as np
import pytest
from accuracy_simulation import CHAINS, Simulated, simulate


@pytest.fixture(scope="session", params=CHAINS)
def simulated(request: pytest.FixtureRequest) -> Simulated:
    P, k, draws = CHAINS[request.param]
    uneven_strengths = k * np.exp(np.random.default_rng(1).uniform(-1, 1, size=len(P)))
    return simulate(P, uneven_strengths, draws)
