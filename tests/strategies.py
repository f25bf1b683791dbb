"""What hypothesis draws in several test files."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import dpmarkov as dpm


@st.composite
def any_counts(draw):
    """Counts with absent cells, empty rows, rows of one transition, on any support and form."""
    m, n = draw(st.integers(1, 5)), draw(st.integers(2, 5))
    mask = np.array(draw(st.lists(st.booleans(), min_size=m * n, max_size=m * n))).reshape(m, n)
    mask[:, :2] = True
    kind = draw(st.sampled_from(["square", "rectangular", "row"]))
    if kind == "square":
        space = dpm.StateSpace(range(n), support=np.resize(mask, (n, n)) | (np.arange(n) < 2))
    elif kind == "row":
        space = dpm.StateSpace(categories=range(n))
    else:
        space = dpm.StateSpace(origins=range(m), destinations=range(n), support=mask)
    size = st.lists(
        st.sampled_from([0, 0, 0, 1, 1, 2, 30, 10**6]),
        min_size=space.n_cells,
        max_size=space.n_cells,
    )
    return dpm.TransitionCounts(space, draw(size))
