"""What only the curator can know of a release: how far off it is, and what else would have given.

Everything here holds a release against the sensitive counts. None of it may be published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmarkov.errors import DpmarkovError
from dpmarkov.planning.noise import calibrated
from dpmarkov.planning.prediction import Prediction, predict
from dpmarkov.planning.released import setting_of
from dpmarkov.planning.shape import Shape
from dpmarkov.planning.simulation import Truth, errors_of

if TYPE_CHECKING:
    from dpmarkov.artefact import Release
    from dpmarkov.counts import TransitionCounts

__all__ = ["actual_errors", "after_merging", "at_other_epsilon", "truth_of"]

_FACTORS = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.5, 5.0, 10.0)
_FEWEST_STATES = 4


def truth_of(release: Release, counts: TransitionCounts) -> Truth:
    """Give what a release is held against.

    Parameters
    ----------
    release : Release
        What was published.
    counts : TransitionCounts
        The sensitive counts, of the same states and feasible transitions.

    Returns
    -------
    Truth

    Raises
    ------
    DpmarkovError
        If the counts are of other states.
    """
    if counts.space != release.space:
        raise DpmarkovError(
            f"the counts are of {counts.space!r}, the release is of {release.space!r}: count over "
            "the states, the feasible transitions and the merges that were released"
        )
    return Truth(counts.space, counts.cells.astype(np.float64))


def actual_errors(release: Release, counts: TransitionCounts) -> dict[str, float]:
    """Measure how far off a release is. For the curator only.

    Parameters
    ----------
    release : Release
        What was published.
    counts : TransitionCounts
        The sensitive counts.

    Returns
    -------
    dict of str to float
        ``row_tv``, ``row_kl`` and, of a chain, ``stationary_tv`` and ``ergodicity``: the actual
        values of what `expected_error` predicts.

    Examples
    --------
    >>> import dpmarkov as dpm
    >>> space = dpm.StateSpace(["sun", "rain"])
    >>> counts = dpm.TransitionCounts.from_dense([[9000, 1000], [3000, 2000]], space)
    >>> out = dpm.release(counts, epsilon=1.0, delta=1e-6, unit="transition")
    >>> actual_errors(out, counts)["row_tv"] < 0.05
    True
    """
    truth = truth_of(release, counts)
    errors = errors_of(release.probabilities[np.newaxis], truth)
    return {name: float(values[0]) for name, values in errors.items()}


def at_other_epsilon(release: Release, counts: TransitionCounts) -> tuple[Prediction, ...]:
    """Predict the errors at other budgets, from the true counts. For the curator only.

    Parameters
    ----------
    release : Release
        Whose mechanism, unit and delta are kept.
    counts : TransitionCounts
        The sensitive counts.

    Returns
    -------
    tuple of Prediction
        From a tenth of epsilon to ten times as much, where it is feasible.
    """
    shape = _true_shape(truth_of(release, counts))
    epsilon = _left(release)
    return _predicted(release, [(shape, factor * epsilon) for factor in _FACTORS])


def after_merging(
    release: Release, counts: TransitionCounts, adjacency: Any, *, name: str | None = None
) -> tuple[Prediction, ...]:
    """Predict the errors after merging to a half, a quarter, ... of the states.

    For the curator only. What noise in the row totals would cost is left out.

    Parameters
    ----------
    release : Release
        Whose mechanism, unit and target are kept. Not for the unit `user`, whose bounds widen.
    counts : TransitionCounts
        The sensitive counts.
    adjacency, name
        As for `dpmarkov.merge_states`.

    Returns
    -------
    tuple of Prediction
        The release itself first.
    """
    from dpmarkov.merging import merge_states

    shapes = [_true_shape(truth_of(release, counts))]
    # Merged here by their true totals, whatever the unit: this is never released.
    own = replace(counts, merged_for=None, spent_epsilon=0.0, bounds_epsilon=0.0, charge=None)
    states = counts.space.shape[0] // 2
    while states >= _FEWEST_STATES and release.guarantee.unit != "user":
        try:
            merged = merge_states(own, adjacency, to=states, unit="destination", name=name)
        except DpmarkovError:  # the adjacency leads no further
            break
        shapes.append(_true_shape(Truth(merged.space, merged.cells.astype(np.float64))))
        states //= 2
    return _predicted(release, [(shape, _left(release)) for shape in shapes])


def _left(release: Release) -> float:
    return release.guarantee.epsilon - release.guarantee.spent_epsilon


def _true_shape(truth: Truth) -> Shape:
    rows = truth.chain_rows if truth.space.kind == "square" else truth.rows
    return Shape(truth.space, truth.totals, rows, ("the true counts",))


def _predicted(release: Release, cases: Sequence[tuple[Shape, float]]) -> tuple[Prediction, ...]:
    setting, delta = setting_of(release), release.guarantee.delta
    dirichlet = setting.law.mechanism == "dirichlet"
    options: dict[str, Any] = {"debias": setting.debias} if dirichlet else {}
    found = []
    for shape, epsilon in cases:
        try:
            able = calibrated(
                setting.law.mechanism, shape, unit=setting.unit, epsilon=epsilon, delta=delta,
                **options, **setting.bounds,
            )  # fmt: skip
        except DpmarkovError:
            continue
        found.append(predict(able, shape, epsilon=epsilon, delta=delta))
    return tuple(found)
