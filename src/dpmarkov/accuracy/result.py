"""A number, or an array of them, that says who may see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Result", "audience"]


def audience(publishable: bool) -> str:
    """Return who may see a result, in words."""
    return "publishable" if publishable else "curator only"


@dataclass(frozen=True, eq=False, repr=False)
class Result(NDArrayOperatorsMixin):
    """A value that can be used as a number, with the label of who may see it.

    Arithmetic and comparison see the bare value and give bare values: whether a combination may
    be published is not for this class to guess.

    Parameters
    ----------
    value : float or ndarray
        The number, or the array of numbers.
    publishable : bool
        True if it was computed from public or released values only.

    Examples
    --------
    >>> error = Result(0.0123, publishable=False)
    >>> print(error)
    0.0123 (curator only)
    >>> bool(error < 0.02), float(error)
    (True, 0.0123)
    >>> print(f"{error:.1%}")
    1.2%
    """

    value: float | NDArray[np.float64]
    publishable: bool

    def __float__(self) -> float:
        return float(self.value)

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        bare = (x.value if isinstance(x, Result) else x for x in inputs)
        return getattr(ufunc, method)(*bare, **kwargs)

    def __getitem__(self, index: Any) -> Result:
        return Result(np.asarray(self.value)[index], self.publishable)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __str__(self) -> str:
        return f"{self.value} ({audience(self.publishable)})"

    __repr__ = __str__
