"""Run every study one after the other, and write the page that shows them all."""

from __future__ import annotations

import sys
from importlib import import_module

from studies import NAMES
from studies.report import Options, main


def run_all() -> int:
    """Run the studies named by NAMES; the status is 1 if one of them failed."""
    if "--list" in sys.argv[1:]:
        for name in NAMES:
            print(f"python -m studies.{name:18} {_headline(name)}")
        return 0
    return max(main(import_module(f"studies.{name}").study) for name in NAMES)


def _headline(name: str) -> str:
    return (import_module(f"studies.{name}").__doc__ or "").splitlines()[0]


if __name__ == "__main__":
    Options.parsed("studies", __doc__ or "", "--list")
    sys.exit(run_all())
