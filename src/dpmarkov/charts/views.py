"""The charts of a release and of a chain: what `release.plot_*` and `chain.plot_*` call.

A release draws what a chain draws, with error bars: how far off each number may be is read off the
release itself. The mixins here hold the methods; they import nothing heavy until one is called.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from os import PathLike

    import altair as alt
    from numpy.typing import NDArray

    from dpmarkov.artefact import Release
    from dpmarkov.chain import MarkovChain
    from dpmarkov.charts.transitions import Cells
    from dpmarkov.planning import Deviations

    Geojson = Mapping[str, Any] | str | PathLike[str]

__all__ = [
    "ChainPlots",
    "LongRun",
    "ReleasePlots",
    "cells_of_chain",
    "cells_of_release",
    "long_run_of",
]


class _Plots:
    """Charts of where a chain is in the long run, and of who goes where.

    Those who inherit give their `_cells` and their `_long_run`.
    """

    def plot_stationary(self: Any, *, most: int = 70) -> alt.LayerChart:
        """Draw the stationary distribution as bars, the largest first.

        Those of a release have error bars: two standard deviations to either side.

        Parameters
        ----------
        most : int
            How many bars at most.
        """
        from dpmarkov.charts.shares import bars

        shown = self._long_run()
        chart: alt.LayerChart = bars(
            shown.labels, shown.shares, shown.deviations, most=most, title=shown.what
        )
        return chart

    def plot_map(self: Any, geojson: Geojson, *, name: str | None = None) -> alt.LayerChart:
        """Draw the stationary distribution as a map.

        Parameters
        ----------
        geojson : path or mapping
            The outlines of the states, a FeatureCollection of polygons.
        name : str, optional
            The property that names a state; without it the one that names most of them.
        """
        from dpmarkov.charts.maps import read_map, share_map

        shown = self._long_run()
        members = [label for group in shown.groups.values() for label in group]
        outlines = read_map(geojson, members or shown.labels, name)
        chart: alt.LayerChart = share_map(
            outlines, shown.labels, shown.shares, shown.deviations,
            groups=shown.groups, title=shown.what,
        )  # fmt: skip
        return chart

    def plot_matrix(self: Any, *, order: str = "size") -> alt.Chart:
        """Draw the transition matrix as a heat map, for up to 320 states.

        Parameters
        ----------
        order : {"size", "likeness", "declared"}
            How states are ordered at first; the chart lets one choose.
        """
        from dpmarkov.charts.transitions import heat_map

        chart: alt.Chart = heat_map(self._cells(), order=order)
        return chart

    def plot_flows(self: Any, *, most: int = 40) -> alt.Chart:
        """Draw the largest flows, each as the share of all steps that take it.

        Parameters
        ----------
        most : int
            How many.
        """
        from dpmarkov.charts.flows import top_flows

        chart: alt.Chart = top_flows(self._cells(), most=most)
        return chart

    def plot_flows_from(self: Any, origin: Hashable | None = None) -> alt.LayerChart:
        """Draw the likeliest next states of one state, which the chart lets one choose.

        Parameters
        ----------
        origin : label, optional
            Which is shown at first; without it the one with the most steps.
        """
        from dpmarkov.charts.flows import flows_from

        chart: alt.LayerChart = flows_from(self._cells(), origin)
        return chart


class ChainPlots(_Plots):
    """The charts of a Markov chain. Each is an altair chart: ``.save("chart.svg")`` keeps it."""

    def plot_mixing(self: Any) -> alt.LayerChart:
        """Draw the distance to the long run against steps, from the worst start."""
        from dpmarkov.charts.mixing import mixing

        chart: alt.LayerChart = mixing(self)
        return chart

    def _cells(self: Any) -> Cells:
        return cells_of_chain(self)

    def _long_run(self: Any) -> LongRun:
        return LongRun(self.labels, self.stationary_distribution())


class ReleasePlots(_Plots):
    """The charts of a release. Each is an altair chart: ``.save("chart.svg")`` keeps it."""

    def plot_profile(self: Any) -> alt.LayerChart:
        """Draw the privacy profile: which delta is kept at any epsilon."""
        from dpmarkov.charts.guarantee import profile

        chart: alt.LayerChart = profile(self.guarantee)
        return chart

    def plot_distribution(self: Any, *, most: int = 70) -> alt.LayerChart:
        """Draw a single row as bars, the largest first, with error bars.

        Parameters
        ----------
        most : int
            How many bars at most.
        """
        if self.space.kind != "row":
            raise DpmarkovError("this release has several rows: use plot_stationary()")
        chart: alt.LayerChart = self.plot_stationary(most=most)
        return chart

    def plot_mixing(self: Any) -> alt.LayerChart:
        """Draw the distance to the long run against steps, from the worst start."""
        chart: alt.LayerChart = self.chain.plot_mixing()
        return chart

    def _cells(self: Any) -> Cells:
        return cells_of_release(self)

    def _long_run(self: Any) -> LongRun:
        from dpmarkov.planning import expected_deviations

        return long_run_of(self, expected_deviations(self))


def cells_of_chain(chain: MarkovChain) -> Cells:
    """Lay out a chain for the charts of its transitions."""
    from scipy import sparse

    from dpmarkov.charts.transitions import Cells

    P = sparse.coo_array(chain.transition_matrix)
    return Cells(
        chain.labels, chain.labels, P.row.astype(np.int64), P.col.astype(np.int64), P.data,
        weights=chain.stationary_distribution(),
    )  # fmt: skip


def cells_of_release(release: Release, off: Deviations | None = None) -> Cells:
    """Lay out a release for the charts of its transitions.

    Parameters
    ----------
    release : Release
        Of a chain or a rectangular table.
    off : Deviations, optional
        What `dpmarkov.planning.expected_deviations` gives, if that is known already.

    Returns
    -------
    Cells
        Weighted by the long run, or by the totals of the rows where there is none.
    """
    from dpmarkov.charts.transitions import Cells
    from dpmarkov.planning import expected_deviations
    from dpmarkov.planning.released import totals_of

    space = release.space
    if space.kind == "row":
        raise DpmarkovError("a single distribution has no transitions: use plot_distribution()")
    totals = totals_of(release)
    weights = totals / totals.sum()
    if space.kind == "square":
        with suppress(DpmarkovError):  # without a single long run what was counted stands in
            weights = release.chain.stationary_distribution()
    return Cells(
        space.origins, space.destinations, space.rows, space.columns, release.probabilities,
        (off or expected_deviations(release)).cells, weights,
    )  # fmt: skip


class LongRun(NamedTuple):
    """Shares of states, and what they are shares of."""

    labels: Sequence[Any]
    shares: NDArray[np.float64]
    deviations: NDArray[np.float64] | None = None
    what: str = "share of the long run"
    groups: Mapping[Any, Sequence[Any]] = {}


def long_run_of(release: Release, off: Deviations) -> LongRun:
    """Give the shares of a chain's long run, or of a single row, with their deviations."""
    space = release.space
    if space.kind == "row":
        return LongRun(space.labels, release.probabilities, off.cells, "share")
    pi = release.chain.stationary_distribution()
    return LongRun(space.labels, pi, off.states, groups=space.groups)
