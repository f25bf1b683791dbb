"""``dpmarkov demo``: the whole way on a simulated city, with nothing but the package."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from dpmarkov.cli.options import Force, General
from dpmarkov.cli.output import in_options, print_json, print_tables, stages
from dpmarkov.cli.show import top_table
from dpmarkov.cli.telling import advised, as_dict
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from dpmarkov.artefact import Release
    from dpmarkov.counts import TransitionCounts
    from dpmarkov.planning import Plan

__all__ = ["demo"]

# The paper's section 5.2: zones of an island, and a month of trips.
_ZONES, _TRIPS = 63, 2_933_898


def demo(
    general: General,
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("dpmarkov-demo"),
    force: Force = False,
    epsilon: Annotated[float, typer.Option(help="Epsilon.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Delta.")] = 1e-6,
    unit: Annotated[
        Literal["destination", "transition"], typer.Option(help="What is hidden.")
    ] = "transition",
    mechanism: Annotated[
        Literal["dirichlet", "geometric", "gaussian"], typer.Option(help="The noise.")
    ] = "dirichlet",
    zones: Annotated[int, typer.Option(help="Zones of the city.")] = _ZONES,
    trips: Annotated[int, typer.Option(help="Trips in a month.")] = _TRIPS,
    seed: Annotated[int, typer.Option(help="Which city; the noise has no seed.", min=0)] = 1,
) -> None:
    """Simulate a city, and publish how people move in it.

    Makes trips at the paper's scale, counts, plans and releases them, and says how far off the
    published chain is. The trips are invented; the noise is real.

    Example:
    dpmarkov demo --folder my-city --epsilon 0.5
    """
    target = {"epsilon": epsilon, "delta": delta, "unit": unit}
    made = _made(folder, force, zones, trips, seed, target, mechanism)
    from dpmarkov.planning import actual_errors

    # Only a simulated city lets anyone see how far off a release is.
    actual = actual_errors(made.release, made.counts)
    if general.json:
        print_json(_as_dict(made, actual))
    else:
        _tell(made, actual, zones, trips)


class _Made(NamedTuple):
    """What the demo made."""

    files: dict[str, str]
    counts: TransitionCounts
    plan: Plan
    release: Release


def _made(
    folder: Path,
    force: bool,
    zones: int,
    trips: int,
    seed: int,
    target: dict[str, Any],
    mechanism: Any,
) -> _Made:
    with stages(5) as begin:
        begin("importing")
        import numpy as np

        import dpmarkov as dpm
        from dpmarkov.counting import count_transitions
        from dpmarkov.datasets import simulate_city
        from dpmarkov.planning import plan

        output = folder / "release.json"
        if output.exists() and not force:
            raise DpmarkovError(f"{output} exists; choose another --folder, or pass --force")
        begin("simulating a city")
        city = simulate_city(zones, trips, rng=np.random.default_rng(seed))
        begin("planning")  # before any file is written: it refuses what cannot be
        made_plan = plan(city.space, expected_total=trips, mechanism=mechanism, **target)
        begin("writing and counting trips")
        files = city.save(folder, overwrite=force)
        counts = count_transitions(
            files["trips"], origin="origin", destination="destination", states=files["states"]
        )
        begin("drawing noise")
        guess: dict[str, Any] = {"expected_total": trips} if mechanism == "dirichlet" else {}
        release = dpm.release(counts, mechanism=mechanism, **guess, **target)
        release.save(output, overwrite=force)
    paths = {name: str(path) for name, path in {**files, "release": output}.items()}
    return _Made(paths, counts, made_plan, release)


def _as_dict(made: _Made, actual: dict[str, float]) -> dict[str, Any]:
    return {
        **as_dict(made.release),
        "actual_error": actual,
        "plan": made.plan.to_dict(),
        "advice": advised(made.release),
        "files": made.files,
    }


def _tell(made: _Made, actual: dict[str, float], zones: int, trips: int) -> None:
    from dpmarkov.planning import expected_error
    from dpmarkov.planning.text import Table, number

    typer.echo(f"A simulated city: {zones} zones, {trips:,} trips.\n")
    typer.echo(made.release.guarantee)
    names = {"row_tv": "row, total variation", "stationary_tv": "long run, total variation"}
    expected = expected_error(made.release)
    rows = [
        (name, *(number(x) for x in (getattr(made.plan.prediction, key), getattr(expected, key))),
         number(actual[key]))
        for key, name in names.items()
    ]  # fmt: skip
    headers = ("error", "planned", "told by the release", "actual (simulated data only)")
    print_tables([Table("How far off:", headers, rows)])
    typer.echo(fill(f"Planned with {'; '.join(made.plan.assumptions)}.", 88))
    print_tables([top_table(made.release, 5)])
    advice = advised(made.release)
    if advice:
        typer.echo(f"\nAdvice: {in_options(advice)}.")
    typer.echo("\nFiles:")
    for name, path in made.files.items():
        typer.echo(f"  {name:10} {path}")
    typer.echo(f"\nNext: dpmarkov show {made.files['release']}")
    typer.echo("And then, with the extra of reports (pip install '.[report]'):")
    typer.echo(
        f"      dpmarkov report {made.files['release']} --map {made.files['map']} -o report.html"
    )
