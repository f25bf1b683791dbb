"""The charts of a release and of a chain: what `release.plot_*` and `chain.plot_*` call.

A release draws what a chain draws, with error bars: how far off each number may be is read off the
release itself. The mixins here hold the methods; they import nothing heavy until one is called.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from os import PathLike

    import altair as alt

    from dpmarkov.artefact import Release
    from dpmarkov.chain import MarkovChain
    from dpmarkov.charts.transitions import Cells
    from dpmarkov.planning import Deviations

    Geojson = Mapping[str, Any] | str | PathLike[str]

__all__ = ["ChainPlots", "ReleasePlots", "cells_of_chain", "cells_of_release", "long_run_of"]


class ChainPlots:
    """The charts of a Markov chain. Each is an altair chart: ``.save("chart.svg")`` keeps it."""

    def plot_stationary(self: Any, *, most: int = 70) -> alt.LayerChart:
        """Draw the stationary distribution as bars, the largest first.

        Parameters
        ----------
        most : int
            How many bars at most.
        """
        from dpmarkov.charts.shares import bars

        chart: alt.LayerChart = bars(self.labels, self.stationary_distribution(), most=most)
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

        outlines = read_map(geojson, self.labels, name)
        chart: alt.LayerChart = share_map(outlines, self.labels, self.stationary_distribution())
        return chart

    def plot_matrix(self: Any, *, order: str = "size") -> alt.Chart:
        """Draw the transition matrix as a heat map, for up to 320 states.

        Parameters
        ----------
        order : {"size", "likeness", "declared"}
            How states are ordered at first; the chart lets one choose.
        """
        from dpmarkov.charts.transitions import heat_map

        chart: alt.Chart = heat_map(cells_of_chain(self), order=order)
        return chart

    def plot_flows(self: Any, *, most: int = 40) -> alt.Chart:
        """Draw the largest flows, each as the share of all steps that take it.

        Parameters
        ----------
        most : int
            How many.
        """
        from dpmarkov.charts.transitions import top_flows

        chart: alt.Chart = top_flows(cells_of_chain(self), most=most)
        return chart

    def plot_flows_from(self: Any, origin: Hashable | None = None) -> alt.LayerChart:
        """Draw the likeliest next states of one state, which the chart lets one choose.

        Parameters
        ----------
        origin : label, optional
            Which is shown at first; without it the one with the most steps.
        """
        from dpmarkov.charts.transitions import flows_from

        chart: alt.LayerChart = flows_from(cells_of_chain(self), origin)
        return chart

    def plot_mixing(self: Any) -> alt.LayerChart:
        """Draw the distance to the long run against steps, from the worst start."""
        from dpmarkov.charts.mixing import mixing

        chart: alt.LayerChart = mixing(self)
        return chart


class ReleasePlots:
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
        from dpmarkov.charts.shares import bars
        from dpmarkov.planning import expected_deviations

        shares = np.array(list(self.distribution.values()))
        off = expected_deviations(self).cells
        chart: alt.LayerChart = bars(self.space.destinations, shares, off, most=most, title="share")
        return chart

    def plot_stationary(self: Any, *, most: int = 70) -> alt.LayerChart:
        """Draw the stationary distribution as bars, the largest first, with error bars.

        Parameters
        ----------
        most : int
            How many bars at most.
        """
        from dpmarkov.charts.shares import bars
        from dpmarkov.planning import expected_deviations

        off = expected_deviations(self).states
        chart: alt.LayerChart = bars(
            self.chain.labels, self.chain.stationary_distribution(), off, most=most
        )
        return chart

    def plot_map(self: Any, geojson: Geojson, *, name: str | None = None) -> alt.LayerChart:
        """Draw the stationary distribution (or a single row) as a map.

        Parameters
        ----------
        geojson : path or mapping
            The outlines of the states, a FeatureCollection of polygons.
        name : str, optional
            The property that names a state; without it the one that names most of them.
        """
        from dpmarkov.charts.maps import read_map, share_map
        from dpmarkov.planning import expected_deviations

        space, off = self.space, expected_deviations(self)
        members = [label for group in space.groups.values() for label in group]
        outlines = read_map(geojson, members or space.labels, name)
        shares, sd, word = long_run_of(self, off)
        chart: alt.LayerChart = share_map(
            outlines, space.labels, shares, sd, groups=space.groups, title=word
        )
        return chart

    def plot_matrix(self: Any, *, order: str = "size") -> alt.Chart:
        """Draw the transition matrix as a heat map, for up to 320 states.

        Parameters
        ----------
        order : {"size", "likeness", "declared"}
            How states are ordered at first; the chart lets one choose.
        """
        from dpmarkov.charts.transitions import heat_map

        chart: alt.Chart = heat_map(cells_of_release(self), order=order)
        return chart

    def plot_flows(self: Any, *, most: int = 40) -> alt.Chart:
        """Draw the largest flows, each as the share of all steps that take it.

        Parameters
        ----------
        most : int
            How many.
        """
        from dpmarkov.charts.transitions import top_flows

        chart: alt.Chart = top_flows(cells_of_release(self), most=most)
        return chart

    def plot_flows_from(self: Any, origin: Hashable | None = None) -> alt.LayerChart:
        """Draw the likeliest destinations of one origin, which the chart lets one choose.

        Parameters
        ----------
        origin : label, optional
            Which is shown at first; without it the one with the most steps.
        """
        from dpmarkov.charts.transitions import flows_from

        chart: alt.LayerChart = flows_from(cells_of_release(self), origin)
        return chart

    def plot_mixing(self: Any) -> alt.LayerChart:
        """Draw the distance to the long run against steps, from the worst start."""
        chart: alt.LayerChart = self.chain.plot_mixing()
        return chart


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


def long_run_of(release: Release, off: Deviations) -> tuple[Any, Any, str]:
    """Give the shares of a chain's long run or of a single row, their deviations, and a word."""
    if release.space.kind == "row":
        return release.probabilities, off.cells, "share"
    return release.chain.stationary_distribution(), off.states, "share of the long run"
