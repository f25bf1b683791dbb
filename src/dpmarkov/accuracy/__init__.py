"""How far off a released row or chain may be: closed forms, sound bounds, a prediction.

A row is released as ``X ~ Dirichlet(k p)`` with ``p = E[X]``; everything here is a function of
``p`` and ``k``.

* One row (`rows`): expected KL divergence (Theorem 2) and its bound from public numbers
  (Corollary 1); mean absolute and mean square deviation of every entry, with bounds (Lemma 7).
* A chain (`chains`): sound bounds on the errors of the stationary distribution and of the
  ergodicity coefficient, and a first-order prediction of the former, good to 10% where the
  error is small.
* The paper's own bounds as printed (`paper`), under names that say so: one of them is false.

Every result says whether it may be published: what is computed from the sensitive chain is for
the curator only, unless the caller states with ``released=True`` that the chain came out of a
release; what is computed from public numbers alone is publishable.

Numbers of theorems and lemmas are those of "Differentially Private Data-Driven Markov Chain
Modeling" (UAI 2026).
"""

from dpmarkov.accuracy.chains import (
    StationaryPrediction,
    ergodicity_bound,
    prediction_from_variances,
    stationary_bound,
    stationary_covariance,
    stationary_prediction,
)
from dpmarkov.accuracy.paper import (
    paper_ergodicity_bound,
    paper_mean_absolute_deviation_lower_bound,
    paper_stationary_bound,
)
from dpmarkov.accuracy.result import Result
from dpmarkov.accuracy.rows import (
    expected_kl,
    kl_bound,
    mean_absolute_deviation,
    mean_absolute_deviation_bound,
    mean_absolute_deviation_lower_bound,
    variance,
    variance_bound,
)

__all__ = [
    "Result",
    "StationaryPrediction",
    "ergodicity_bound",
    "expected_kl",
    "kl_bound",
    "mean_absolute_deviation",
    "mean_absolute_deviation_bound",
    "mean_absolute_deviation_lower_bound",
    "paper_ergodicity_bound",
    "paper_mean_absolute_deviation_lower_bound",
    "paper_stationary_bound",
    "prediction_from_variances",
    "stationary_bound",
    "stationary_covariance",
    "stationary_prediction",
    "variance",
    "variance_bound",
]
