"""What a budget buys, before any of it is spent; and how the mechanisms compare.

* `plan`: feasibility, noise and predicted errors of a release, from public numbers only.
* `compare`: the mechanisms side by side at one target, by simulation.
* `expected_error`, `expected_deviations`: how far off a release is, all in all and number by
  number, from the published file alone.
* `actual_errors`: how far off it is, which only the curator can measure and nobody may publish.
* `advice`: one line when another mechanism is predicted to be clearly better.
"""

from dpmarkov.planning.comparison import Comparison, Contender, Estimate, compare
from dpmarkov.planning.hindsight import actual_errors
from dpmarkov.planning.noise import Setting, advice, calibrated
from dpmarkov.planning.plans import Plan, plan
from dpmarkov.planning.prediction import Deviations, Prediction
from dpmarkov.planning.released import expected_deviations, expected_error, setting_of
from dpmarkov.planning.shape import Shape, check_connected, public_shape

__all__ = [
    "Comparison",
    "Contender",
    "Deviations",
    "Estimate",
    "Plan",
    "Prediction",
    "Setting",
    "Shape",
    "actual_errors",
    "advice",
    "calibrated",
    "check_connected",
    "compare",
    "expected_deviations",
    "expected_error",
    "plan",
    "public_shape",
    "setting_of",
]
