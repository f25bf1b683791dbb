"""Publish Markov chains from sensitive event data with differential privacy.

Count, privatize, use::

    import dpmarkov as dpm

    counts = dpm.count_transitions("trips.parquet", origin="from", destination="to",
                                   states=["home", "work", "shop"])  # sensitive
    release = dpm.release(counts, epsilon=1, delta=1e-6, unit="transition")
    release.chain.stationary_distribution()                          # public
    print(release.guarantee)

Names are imported when they are first used, so that ``import dpmarkov`` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "BudgetError",
    "DpmarkovError",
    "Guarantee",
    "InfeasibleError",
    "Ledger",
    "MarkovChain",
    "Release",
    "StateSpace",
    "TransitionCounts",
    "accuracy",
    "charts",
    "count_categories",
    "count_paths",
    "count_transitions",
    "datasets",
    "load",
    "mechanisms",
    "merge_states",
    "plan",
    "planning",
    "privacy",
    "release",
]

if TYPE_CHECKING:
    from dpmarkov import accuracy, charts, datasets, mechanisms, planning, privacy
    from dpmarkov.artefact import Release
    from dpmarkov.chain import MarkovChain
    from dpmarkov.counting import count_categories, count_paths, count_transitions
    from dpmarkov.counts import TransitionCounts
    from dpmarkov.errors import BudgetError, DpmarkovError, InfeasibleError
    from dpmarkov.files import load
    from dpmarkov.guarantee import Guarantee
    from dpmarkov.ledger import Ledger
    from dpmarkov.merging import merge_states
    from dpmarkov.planning import plan
    from dpmarkov.privatize import release
    from dpmarkov.states import StateSpace

_HOMES = {
    "BudgetError": "errors",
    "DpmarkovError": "errors",
    "Guarantee": "guarantee",
    "InfeasibleError": "errors",
    "Ledger": "ledger",
    "MarkovChain": "chain",
    "Release": "artefact",
    "StateSpace": "states",
    "TransitionCounts": "counts",
    "count_categories": "counting",
    "count_paths": "counting",
    "count_transitions": "counting",
    "load": "files",
    "merge_states": "merging",
    "plan": "planning",
    "release": "privatize",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"dpmarkov.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"dpmarkov.{name}")
    raise AttributeError(f"module 'dpmarkov' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
