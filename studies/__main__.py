"""Run every study one after the other, or list them (--list)."""

from __future__ import annotations

import sys
from importlib import import_module

from studies import NAMES
from studies.report import Options, main


def run(arguments: list[str]) -> int:
    """Run all studies with the same options; the status is 1 if one of them failed."""
    modules = [import_module(f"studies.{name}") for name in NAMES]
    if "--list" in arguments:
        for module in modules:
            print(f"python -m {module.__name__:27} {(module.__doc__ or '').splitlines()[0]}")
        return 0
    options = Options.parsed("studies", __doc__ or "", arguments)
    return max([main(module.study, options) for module in modules])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
