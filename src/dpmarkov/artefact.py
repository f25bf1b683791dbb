"""The release as others see it: probabilities, guarantee and parameters, and nothing else.

A `Release` holds public values only, so whatever is computed from it is post-processing. This
module knows no counts: it can be used, and its files read, where the sensitive data never were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmarkov.charts.views import ReleasePlots
from dpmarkov.errors import DpmarkovError
from dpmarkov.guarantee import Guarantee, in_full
from dpmarkov.noise import Dirichlet
from dpmarkov.states import Label, StateSpace

if TYPE_CHECKING:
    from os import PathLike

    from dpmarkov.chain import MarkovChain
    from dpmarkov.noise import Mechanism

__all__ = ["Release"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Release(ReleasePlots):
    """Private rows with their guarantee.

    Made by `dpmarkov.release` or read by `dpmarkov.load`; there is seldom a reason to make one by
    hand.

    Parameters
    ----------
    space : StateSpace
        The declared states and feasible transitions.
    probabilities : array of float
        Private transition probabilities aligned with the support, all above zero.
    guarantee : Guarantee
        What is promised.
    prior : float
        The pseudo-counts m of the Dirichlet mechanism: every feasible cell drew
        Gamma(r (count + m)), where the rate r is that of the guarantee's noise. The other
        mechanisms have none.
    debiased : bool
        Whether rows are unbiased estimates, projected to positive ones: always where noise is
        added to counts; from the Dirichlet mechanism if the prior was taken out again.
    touched : int
        How many cells the projection left at its floor.
    row_totals : array of int, optional
        How many transitions leave each origin; public under the unit `destination`, else absent.
    private_counts : array of float, optional
        Unbiased private counts aligned with the support (units `transition` and `user`); some are
        below zero. Their variance is (count + m) / r from the Dirichlet mechanism, and that of the
        noise from the others.
    weak_rows : tuple of labels
        Origins without data, or with so few that their noise outweighs them: the row is all or
        mostly prior, or noise.
    charge : str, optional
        Under which random id a ledger was charged for it, before its noise was drawn.
    on_saved : callable, optional
        What is told the name of a file once it is safely on disk: the ledger, which confirms the
        charge. A release that was loaded has none.

    Raises
    ------
    DpmarkovError
        If the values do not fit together.
    """

    space: StateSpace
    probabilities: Floats
    guarantee: Guarantee
    prior: float
    debiased: bool
    touched: int
    row_totals: npt.NDArray[np.int64] | None
    private_counts: Floats | None
    weak_rows: tuple[Label, ...]
    charge: str | None = None
    on_saved: Callable[[str], None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_rows(self.space, self.probabilities)
        _check_shape("private_counts", self.private_counts, self.space.n_cells)
        _check_shape("row_totals", self.row_totals, self.space.shape[0])
        self._check_parameters()
        if self.row_totals is not None and self.guarantee.unit != "destination":
            raise DpmarkovError("row totals are public under the unit 'destination' only")
        if self.private_counts is not None and self.guarantee.unit == "destination":
            raise DpmarkovError(
                "private counts are covered by the units 'transition' and 'user' only"
            )
        if self.space.merges and not (
            self.guarantee.spent_epsilon or self.guarantee.unit == "destination"
        ):
            raise DpmarkovError(
                f"states were merged by their row totals, which takes a share of the budget under "
                f"the unit {self.guarantee.unit!r}, and the guarantee counts none; the file was "
                "altered, or the merged space was used for other counts"
            )
        for array in (self.probabilities, self.row_totals, self.private_counts):
            if array is not None:
                array.flags.writeable = False

    def _check_parameters(self) -> None:
        noise = self.guarantee.noise
        mass = noise.mass if isinstance(noise, Dirichlet) else 0.0
        if self.prior not in (0.0, mass):
            raise DpmarkovError(f"prior={self.prior:g} does not belong to the noise {noise}")
        if not 0 <= self.touched <= self.space.n_cells:
            raise DpmarkovError(
                f"touched={self.touched} is no number of {self.space.n_cells} cells"
            )
        if self.row_totals is not None and np.any(self.row_totals < 0):
            raise DpmarkovError("row totals must not be negative; the file was altered")
        if not set(self.weak_rows) <= set(self.space.origins):
            raise DpmarkovError("a weak row is not an origin of the space; the file was altered")

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that drew the noise."""
        return self.guarantee.noise.mechanism

    @property
    def matrix(self) -> Any:
        """The private transition matrix: an array, or a SciPy sparse array on a sparse support."""
        if self.space.is_complete:
            return self.space.to_dense(self.probabilities)
        return self.space.to_sparse(self.probabilities)

    @cached_property
    def chain(self) -> MarkovChain:
        """The private Markov chain (square spaces only)."""
        if self.space.kind != "square":
            raise DpmarkovError(
                f"a {self.space.kind} space is not a chain: use .rows, .matrix or .distribution"
            )
        from dpmarkov.chain import MarkovChain

        return MarkovChain(self.matrix, self.space.labels)

    @property
    def distribution(self) -> dict[Label, float]:
        """The private distribution of a single row, by category."""
        if self.space.kind != "row":
            raise DpmarkovError("this release has several rows: use .rows, .matrix or .chain")
        return dict(zip(self.space.destinations, self.probabilities.tolist(), strict=True))

    @cached_property
    def rows(self) -> dict[Label, dict[Label, float]]:
        """The private rows by label: origin to destination to probability, feasible ones only."""
        destinations = [self.space.destinations[j] for j in self.space.columns.tolist()]
        values, starts = self.probabilities.tolist(), self.space.row_starts.tolist()
        return {
            origin: dict(zip(destinations[a:b], values[a:b], strict=True))
            for origin, a, b in zip(self.space.origins, starts[:-1], starts[1:], strict=True)
        }

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to a file, all of it or nothing.

        Parameters
        ----------
        path : path
            Ends in ``.json`` (for people) or ``.parquet`` (for big chains).
        overwrite : bool
            Whether a file of that name may be replaced.

        Raises
        ------
        DpmarkovError
            If the file exists, the ending is another, or it cannot be written; or if it is
            written, and the ledger that was charged for it cannot be told.
        """
        from dpmarkov.files import save

        if self.on_saved is None:
            save(self, path, overwrite=overwrite)
            return
        done = "is not written"
        try:
            save(self, path, overwrite=overwrite)
            done = "is written, but its charge is not confirmed (save once more to confirm it)"
            self.on_saved(Path(path).name)
        except DpmarkovError as error:
            raise DpmarkovError(
                f"{path} {done}: {error}. It is charged as {self.charge}, which counts all the same"
            ) from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        return all(_same(getattr(self, k), getattr(other, k)) for k in _FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        promise = self.guarantee
        return (
            f"Release({repr(self.space)[len('StateSpace(') : -1]}; {self.mechanism}; "
            f"epsilon={in_full(promise.epsilon)}, delta={in_full(promise.delta)}, "
            f"unit={promise.unit!r})"
        )


_FIELDS = tuple(name for name in Release.__dataclass_fields__ if name != "on_saved")


def _same(mine: object, theirs: object) -> bool:
    if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
        return np.array_equal(mine, theirs)  # type: ignore[arg-type]
    return mine == theirs


def _check_rows(space: StateSpace, probabilities: Floats) -> None:
    _check_shape("probabilities", probabilities, space.n_cells)
    if not (np.all(probabilities > 0) and np.all(probabilities <= 1)):
        raise DpmarkovError("probabilities must be above 0 and at most 1; the file was altered")
    worst = float(np.max(np.abs(space.row_sums(probabilities) - 1)))
    if not worst <= 1e-9:
        raise DpmarkovError(
            f"a row sums to 1 only within {worst:g}, not 1e-9; the file was altered"
        )


def _check_shape(name: str, values: npt.NDArray[Any] | None, size: int) -> None:
    if values is not None and (values.shape != (size,) or not np.all(np.isfinite(values))):
        raise DpmarkovError(f"{name} must be {size} finite numbers, not shape {values.shape}")
