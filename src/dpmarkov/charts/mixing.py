"""How fast a chain forgets where it began: its distance to the long run against steps.

The distance is total variation from the worst start. It dies out like ``|lambda_2|^t``, which is
drawn beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmarkov.charts.look import FAINT, HEIGHT, INK, PRIVATE, WIDTH, altair, rounded, table

if TYPE_CHECKING:
    from dpmarkov.chain import MarkovChain

__all__ = ["MOST_STATES", "distances", "mixing"]

MOST_STATES = 1000  # powers of larger chains take longer than a chart is worth
_MIXED = 0.01
_POINTS = 40


def distances(chain: MarkovChain) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Follow the distance to the long run until it is well below 1%.

    Parameters
    ----------
    chain : MarkovChain
        With one closed class, aperiodic, of at most 1,000 states.

    Returns
    -------
    steps : array of int
        At most some 40, evenly spread.
    distances : array of float
        The largest total variation of any start, after so many steps.

    Examples
    --------
    >>> from dpmarkov.chain import MarkovChain
    >>> steps, far = distances(MarkovChain([[0.9, 0.1], [0.3, 0.7]]))
    >>> steps[:3].tolist(), far[:3].round(2).tolist()
    ([0, 1, 2], [0.75, 0.45, 0.27])
    """
    last = int(1.4 * chain.mixing_time(_MIXED)) + 2
    steps = np.unique(np.rint(np.linspace(0, last, min(last, _POINTS) + 1)).astype(np.int64))
    P, pi = chain.transition_matrix, chain.stationary_distribution()
    P = np.asarray(P.toarray() if hasattr(P, "toarray") else P)
    jumps: dict[int, Any] = {}
    reached, far = np.eye(len(pi)), []
    for jump in np.diff(steps, prepend=0).tolist():
        if jump not in jumps:
            jumps[jump] = np.linalg.matrix_power(P, jump)
        reached = reached @ jumps[jump]
        far.append(float(np.abs(reached - pi).sum(axis=1).max()) / 2)
    return steps, np.array(far)


def mixing(chain: MarkovChain) -> Any:
    """Draw the distance to the long run against steps.

    Parameters
    ----------
    chain : MarkovChain
        With one closed class, aperiodic, of at most 1,000 states.

    Returns
    -------
    altair.LayerChart
    """
    alt = altair()
    steps, far = distances(chain)
    second = chain.second_eigenvalue_modulus()
    rows = [
        {"step": t, "distance": rounded(d), "eigenvalue": rounded(second**t)}
        for t, d in zip(steps.tolist(), far.tolist(), strict=True)
    ]
    base = alt.Chart(table(rows))
    x = alt.X("step:Q", title="steps", axis=alt.Axis(tickMinStep=1, format="d"))
    y = alt.Y("distance:Q", title="distance to the long run", scale=alt.Scale(domain=[0, 1]))
    tips = [
        alt.Tooltip("step:Q", title="steps"),
        alt.Tooltip("distance:Q", title="distance", format=".3g"),
    ]
    slowest = base.mark_line(color=FAINT, strokeDash=[5, 4]).encode(x, alt.Y("eigenvalue:Q"))
    line = base.mark_line(color=PRIVATE, strokeWidth=2.5).encode(x, y)
    points = base.mark_point(color=PRIVATE, filled=True, size=36, opacity=1).encode(
        x, y, tooltip=tips
    )
    limit = (
        alt.Chart(table([{"distance": _MIXED}])).mark_rule(color=INK, strokeDash=[2, 3]).encode(y)
    )
    return alt.layer(slowest, limit, line, points).properties(
        width=WIDTH, height=HEIGHT, description="Distance to the long run against steps."
    )
