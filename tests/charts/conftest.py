"""A browser, and reports to open in it: a city, four states with hostile labels, and 300 states."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hostile import HOSTILE, TARGET

import dpmarkov as dpm
from dpmarkov.charts import curator_report, report
from dpmarkov.datasets import simulate_city


class Case(NamedTuple):
    """A release with its counts, and both of its reports."""

    file: Path
    counts: dpm.TransitionCounts
    public: Path
    curator: Path
    geojson: Path | None = None


def made(folder, counts, geojson=None, title=None):
    file = folder / "release.json"
    dpm.release(counts, **TARGET).save(file)
    public, curator = folder / "report.html", folder / "curator.html"
    report(file, public, geojson=geojson, title=title)
    curator_report(file, counts, curator, geojson=geojson, title=title)
    return Case(file, counts, public, curator, geojson)


@pytest.fixture(scope="session")
def city(tmp_path_factory) -> Case:
    folder = tmp_path_factory.mktemp("city")
    simulated = simulate_city(63, 300_000, rng=np.random.default_rng(1))
    files = simulated.save(folder)
    counts = dpm.count_transitions(
        files["trips"], origin="origin", destination="destination", states=simulated.space
    )
    return made(folder, counts, files["map"], "A city")


@pytest.fixture(scope="session")
def four(tmp_path_factory) -> Case:
    counts = dpm.TransitionCounts.from_dense(
        [[500, 100, 90, 30], [80, 700, 60, 50], [40, 30, 900, 20], [10, 90, 80, 400]],
        dpm.StateSpace(HOSTILE),
    )
    return made(tmp_path_factory.mktemp("four"), counts, title=HOSTILE[1])


@pytest.fixture(scope="session")
def many(tmp_path_factory) -> Case:
    rng = np.random.default_rng(0)
    weights = rng.gamma(0.3, size=(300, 300)) * rng.gamma(0.5, size=300)
    cells = rng.poisson(3e6 * weights / weights.sum())
    counts = dpm.TransitionCounts.from_dense(
        cells, dpm.StateSpace([f"S{i:03d}" for i in range(300)])
    )
    return made(tmp_path_factory.mktemp("many"), counts)


class Opened:
    """A report in a browser tab, with all that it printed, asked for or raised."""

    def __init__(self, browser, path: Path, width: int = 1400, scheme: str = "light") -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.noise: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.noise.append(message.text))
        self.page.on("pageerror", lambda error: self.noise.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.noise.append("a dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.url = path.as_uri()
        self.page.goto(self.url)
        self.page.wait_for_selector("html[data-drawn]")

    def names(self) -> list[str]:
        return self.page.eval_on_selector_all(
            "[data-chart]", "all => all.map(e => e.dataset.chart)"
        )

    def labels(self, chart: str) -> list[str]:
        """Give the names on the axes of a chart, as they stand."""
        return self.page.eval_on_selector_all(
            f"#{chart} .role-axis-label text", "all => all.map(e => e.textContent)"
        )

    def tooltip(self) -> str:
        self.page.wait_for_selector("#vg-tooltip-element.visible")
        return self.page.inner_text("#vg-tooltip-element")


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    program = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if program is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        running = playwright.chromium.launch(executable_path=program, args=flags)
        yield running
        running.close()


@pytest.fixture
def opened(browser) -> Iterator[object]:
    """Open reports, and close their tabs."""
    tabs: list[Opened] = []

    def open_report(path: Path, width: int = 1400, scheme: str = "light") -> Opened:
        tabs.append(Opened(browser, path, width, scheme))
        return tabs[-1]

    yield open_report
    for tab in tabs:
        tab.page.close()
