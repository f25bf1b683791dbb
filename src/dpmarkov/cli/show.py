"""``dpmarkov show``: what a release says, from its public file alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmarkov.cli.options import General
from dpmarkov.cli.output import print_json, print_tables
from dpmarkov.cli.telling import as_dict, in_words

if TYPE_CHECKING:
    from dpmarkov.artefact import Release
    from dpmarkov.planning.text import Table

__all__ = ["show", "top_table"]

# Powers of larger chains take longer than one cares to wait for a summary.
_MOST_STATES = 1500
_MIXED = 0.01

File = Annotated[Path, typer.Argument(metavar="FILE", help="What release wrote.")]


def show(
    file: File,
    general: General,
    top: Annotated[int, typer.Option(help="How many states to list.", min=1)] = 10,
) -> None:
    """Show a release: its guarantee, its long run and how far off it may be.

    Reads the public file and nothing else, and checks its guarantee and its checksum.

    Example:
    dpmarkov show city.json --top 5
    """
    import dpmarkov as dpm

    release = dpm.load(file)
    if general.json:
        shares = [[label, share] for label, share in _shares(release)]
        print_json({**as_dict(release), "chain": _chain(release), "shares": shares})
        return
    typer.echo(in_words(release))
    facts = [f"{name} {value:.4g}" for name, value in _chain(release).items() if value is not None]
    if facts:
        typer.echo(f"Chain: {'; '.join(facts).replace('_', ' ')}.")
    if release.space.kind != "rectangular":
        print_tables([top_table(release, top)])


def top_table(release: Release, top: int) -> Table:
    """List the states in which the chain is most often, or the commonest categories."""
    from dpmarkov.planning.text import Table

    shares = sorted(_shares(release), key=lambda pair: -pair[1])[:top]
    title = (
        "Commonest categories:"
        if release.space.kind == "row"
        else "Busiest states in the long run:"
    )
    return Table(title, ("state", "share"), [(str(label), f"{x:.4f}") for label, x in shares])


def _shares(release: Release) -> list[tuple[Any, float]]:
    """Give the stationary distribution of a chain, or a single row itself."""
    if release.space.kind == "row":
        return list(release.distribution.items())
    if release.space.kind == "rectangular":
        return []
    pi = release.chain.stationary_distribution().tolist()
    return list(zip(release.space.labels, pi, strict=True))


def _chain(release: Release) -> dict[str, float | None]:
    if release.space.kind != "square":
        return {}
    chain = release.chain
    small = chain.n_states <= _MOST_STATES and chain.period == 1
    return {
        "mixing_time": chain.mixing_time(_MIXED) if small else None,
        "spectral_gap": chain.spectral_gap() if small else None,
        "kemeny_constant": chain.kemeny_constant() if small else None,
        "entropy_rate": chain.entropy_rate(),
    }
