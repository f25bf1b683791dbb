"""The exact profile beside the textbook formula: time, and the error of each.

    python benchmarks/privacy.py

Both are evaluated in one run at the same 60 settings; the truth is the formula in ball
arithmetic. Times are medians over the settings; ratios are what counts on a busy machine.
"""

from __future__ import annotations

import time

import numpy as np
from flint import arb, ctx
from scipy.special import betainc, expit

from dpmarkov import privacy


def textbook(rate, mass, epsilon):
    kappa, x = rate * mass, expit(-epsilon / rate)
    return betainc(kappa, kappa + rate, x) - np.exp(epsilon) * betainc(kappa + rate, kappa, x)


def exact(rate, mass, epsilon):
    with ctx.workprec(1000):
        k, h, e = arb(rate) * arb(mass), arb(rate), arb(epsilon)
        x = 1 / (1 + (e / h).exp())
        values = [x.beta_lower(a, b, True) for a, b in ((k, k + h), (k + h, k))]
        return values[0] - e.exp() * values[1]


def median_time(function, settings):
    times = []
    for setting in settings:
        start = time.perf_counter()
        function(*setting)
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def main() -> None:
    rng = np.random.default_rng(1)
    settings = [
        (r := 10 ** rng.uniform(-3, 2), 10 ** rng.uniform(0, 4), r * 10 ** rng.uniform(-1, 3))
        for _ in range(60)
    ]
    settings = [s for s in settings if float(exact(*s)) > 1e-300]

    def ours(rate, mass, epsilon):
        return privacy.profile("destination", rate=rate, mass=mass, epsilon=epsilon)

    def calibrate(unit):
        return lambda rate, mass, _: privacy.calibrate(unit, epsilon=2, delta=1e-6, mass=mass + 9)

    def invert(unit):
        return lambda rate, mass, _: privacy.epsilon(unit, rate=rate, mass=mass, delta=1e-6)

    for name, function in (("textbook", textbook), ("dpmarkov", ours)):
        with ctx.workprec(1000):
            errors = [float((arb(float(function(*s))) - exact(*s)) / exact(*s)) for s in settings]
        worst, least = max(errors, key=abs), min(errors)
        print(
            f"profile, {name}: {median_time(function, settings):.3f} ms; relative error at worst "
            f"{worst:.1e}, understated by at most {max(-least, 0):.1e} ({len(settings)} settings)"
        )
    for unit in ("destination", "transition"):
        print(f"epsilon,   {unit:12} {median_time(invert(unit), settings):6.2f} ms")
        print(f"calibrate, {unit:12} {median_time(calibrate(unit), settings):6.2f} ms")
    epsilons = np.linspace(0, 5, 10_000)
    start = time.perf_counter()
    privacy.profile("transition", rate=1.0, mass=30.0, epsilon=epsilons)
    print(f"profile of 10,000 epsilons at once: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
