"""The paper's experiments, replicated and surpassed: short scripts over the public API.

From a clone with the package and its extra `report` installed::

    python -m studies              # all of them, and one page with every table and chart
    python -m studies.grades       # one of them
    python -m studies.taxis --fast # a variant of seconds

Every study sets three columns side by side. *Paper* is what the paper prints; *replicated* is what
its recipe gives when it is run again, with an interval where chance is involved; *exact* is what
the closed forms of dpmarkov say about the same noise. Noise is simulated from fixed seeds here:
these are studies, and nothing of them is a release.
"""

import os

__all__ = ["NAMES"]

# The studies run one thread a core of their own; more of them inside the BLAS would only wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

NAMES = ("grades", "monte_carlo_delta", "taxis", "exactness", "errata", "users")
"""The studies in the order of the page."""
