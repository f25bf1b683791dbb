"""The privacy that a mechanism gives: exact profiles, calibration and the paper's accountant.

`profile` (also called `delta`), `epsilon` and `renyi` say what a rate gives at a mass; `calibrate`
finds the rate for a target and `minimum_mass` what a target needs at least. `compose` adds up
several releases. The accountant of the paper itself, with its assumptions, is
`dpmarkov.privacy.paper`.
"""

from dpmarkov.privacy import paper
from dpmarkov.privacy.calibration import calibrate, minimum_mass
from dpmarkov.privacy.composition import Composition, compose
from dpmarkov.privacy.distribution import distribution
from dpmarkov.privacy.profiles import delta, epsilon, profile, renyi

__all__ = [
    "Composition",
    "calibrate",
    "compose",
    "delta",
    "distribution",
    "epsilon",
    "minimum_mass",
    "paper",
    "profile",
    "renyi",
]
