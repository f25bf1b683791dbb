"""A release in words and as plain values, from its public file alone."""

from __future__ import annotations

from dataclasses import asdict
from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmarkov.artefact import Release

__all__ = ["advised", "as_dict", "in_words"]

_NOT_FROM_RESULTS = (
    " (read off this release: do not choose the noise of another release of these data by it, "
    "which would break the condition above)"
)


def in_words(release: Release) -> str:
    """Write the guarantee, the parameters and the expected error of a release."""
    from dpmarkov.planning import expected_error
    from dpmarkov.planning.text import number

    expected = expected_error(release)
    errors = {
        "row total variation": expected.row_tv,
        "row KL divergence": expected.row_kl,
        "stationary distribution, total variation": expected.stationary_tv,
        "ergodicity coefficient at most": expected.ergodicity,
    }
    told = "; ".join(f"{name} {number(x)}" for name, x in errors.items() if x is not None)
    rough = "" if expected.reliable else " (rough: noise is not small beside the counts)"
    lines = [
        f"Noise: {release.guarantee.noise}, standard deviation {number(expected.noise)} on a count"
        + (f"; prior {release.prior:g} pseudo-counts" if release.prior else "")
        + f". {release.touched} of {release.space.n_cells} cells ended at the floor.",
        f"Expected error, from this release alone: {told}{rough}.",
    ]
    if release.weak_rows:
        lines.append(f"Mostly noise or prior: {_some(release.weak_rows)}.")
    if release.charge is not None:
        lines.append(f"Charged to a ledger as {release.charge}.")
    return "\n".join(
        [str(release.guarantee), *(fill(line, 88, subsequent_indent="  ") for line in lines)]
    )


def as_dict(release: Release) -> dict[str, Any]:
    """Give the guarantee, the parameters and the expected error as plain values."""
    from dpmarkov.planning import expected_error

    promise, space = release.guarantee, release.space
    return {
        "guarantee": {
            "unit": promise.unit,
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            **promise.bounds,
            "conditions": list(promise.conditions),
            "in_words": str(promise),
        },
        "mechanism": {
            "name": promise.noise.mechanism,
            **asdict(promise.noise),
            "prior": release.prior,
            "debiased": release.debiased,
        },
        "states": {"kind": space.kind, "shape": list(space.shape), "transitions": space.n_cells},
        "cells_at_floor": release.touched,
        "weak_rows": list(release.weak_rows),
        "charge": release.charge,
        "expected_error": asdict(expected_error(release)),
    }


def advised(release: Release) -> str | None:
    """Say which other mechanism would have been clearly better, from what is published.

    Under a ledger that is a reason for another time only: what several releases add up to holds as
    long as the noise of none is chosen by the results of the others.
    """
    from dpmarkov.planning import advice, expected_error, setting_of

    promise = release.guarantee
    found = advice(
        setting_of(release),
        epsilon=promise.epsilon - promise.spent_epsilon,
        delta=promise.delta,
        mean_cell=expected_error(release).mean_cell,
    )
    return found and found + _NOT_FROM_RESULTS * (release.charge is not None)


def _some(labels: tuple[Any, ...], most: int = 5) -> str:
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(map(str, labels[:most])) + more
