"""What a command costs from its start to its end, beside the start of Python with NumPy and SciPy.

    python benchmarks/commands.py

The limits that were asked for are 15 seconds for the demo and 3 for New York's taxis (real data,
left out where they are absent), on two cores.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
COMMAND = [sys.executable, "-m", "dpmarkov"]
NEW_YORK = [
    "release", DATA / "nyc_yellow_360k.parquet", "--origin", "PULocationID",
    "--destination", "DOLocationID", "--invalid", "drop",
    "--states", DATA / "taxi_zone_lookup.csv", "--state-column", "LocationID",
    "--state-where", "Borough=Manhattan", "--state-except", "103,104,105,153,194,202",
    "--epsilon", "1", "--delta", "1e-6", "--unit", "transition", "-o", "new_york.json",
]  # fmt: skip


def seconds(command: list[object], folder: str) -> float:
    start = time.perf_counter()
    subprocess.run(list(map(str, command)), cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        plain = seconds([sys.executable, "-c", "import numpy, scipy.special"], folder)
        cases: dict[str, list[object]] = {
            "demo": [*COMMAND, "demo"],
            "show": [*COMMAND, "show", "dpmarkov-demo/release.json"],
            "report": [*COMMAND, "report", "dpmarkov-demo/release.json", "--map",
                       "dpmarkov-demo/zones.geojson", "-o", "report.html"],
        }  # fmt: skip
        if DATA.exists():
            cases["release of New York's taxis"] = [*COMMAND, *NEW_YORK]
        for name, command in cases.items():
            taken = seconds(command, folder)
            print(f"{name:28} {taken:5.2f} s, {taken / plain:5.1f} times NumPy's and SciPy's start")


if __name__ == "__main__":
    main()
