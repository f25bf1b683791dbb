"""The expected error of a release, from the published file alone.

The released rows stand in for the true ones, and the row totals are public (`destination`) or
private estimates (elsewhere): all of it is post-processing, so it may be printed beside the
release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmarkov.mechanisms.projection import project
from dpmarkov.planning.noise import Setting
from dpmarkov.planning.prediction import Deviations, Prediction, deviations, predict
from dpmarkov.planning.shape import Shape

if TYPE_CHECKING:
    from dpmarkov.artefact import Release

__all__ = ["expected_deviations", "expected_error", "setting_of", "totals_of"]

Floats = npt.NDArray[np.float64]


def expected_error(release: Release) -> Prediction:
    """Predict how far off a release is, as its reader can.

    Parameters
    ----------
    release : Release
        What was published.

    Returns
    -------
    Prediction

    Examples
    --------
    >>> import dpmarkov as dpm
    >>> space = dpm.StateSpace(["sun", "rain"])
    >>> counts = dpm.TransitionCounts.from_dense([[9000, 1000], [3000, 2000]], space)
    >>> out = dpm.release(counts, epsilon=1.0, delta=1e-6, unit="transition")
    >>> 0 < expected_error(out).stationary_tv < 0.01
    True
    """
    promise = release.guarantee
    return predict(
        setting_of(release), _shape_of(release), epsilon=promise.epsilon, delta=promise.delta
    )


def expected_deviations(release: Release) -> Deviations:
    """Predict how far off every number of a release is, as its reader can.

    Parameters
    ----------
    release : Release
        What was published.

    Returns
    -------
    Deviations

    Examples
    --------
    >>> import dpmarkov as dpm
    >>> space = dpm.StateSpace(["sun", "rain"])
    >>> counts = dpm.TransitionCounts.from_dense([[9000, 1000], [3000, 2000]], space)
    >>> out = dpm.release(counts, epsilon=1.0, delta=1e-6, unit="transition")
    >>> bool(expected_deviations(out).cells.max() < 0.01)
    True
    """
    return deviations(setting_of(release), _shape_of(release))


def totals_of(release: Release) -> Floats:
    """Give how many transitions leave each origin: public, or estimated from private counts."""
    space = release.space
    if release.private_counts is not None:
        return np.maximum(space.row_sums(release.private_counts), 1.0)
    assert release.row_totals is not None  # one of the two is public, whatever the unit
    return release.row_totals.astype(np.float64)


def _shape_of(release: Release) -> Shape:
    told = ("read off the release",)
    totals = totals_of(release)
    return Shape(release.space, totals, _estimated(release, totals), told)


def _estimated(release: Release, totals: Floats) -> Floats:
    """Give the rows of the release, or what they were before a prior drew them to uniform."""
    space, m = release.space, release.prior
    if release.debiased or not m:
        return release.probabilities
    counts = release.private_counts
    if counts is None:
        counts = release.probabilities * space.spread(totals + m * space.row_sizes) - m
    return project(counts, totals, space)[0]


def setting_of(release: Release) -> Setting:
    """Give the noise of a release and how it was used."""
    promise = release.guarantee
    return Setting(promise.noise, promise.unit, release.prior, release.debiased, **promise.bounds)
