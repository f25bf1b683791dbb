"""The figures of docs/studies.md that have a closed form are what the studies give."""

from __future__ import annotations

import re

import pytest
from command_line import ROOT, strict

from dpmarkov.planning.text import number

DOCS = ROOT / "docs"
PAGE = " ".join((DOCS / "studies.md").read_text().split())


def shown(value, digits=3):
    text = number(value, digits)
    if "e-" in text:  # the page writes small numbers out
        mantissa, exponent = text.split("e-")
        text = f"{float(text):.{len(mantissa.replace('.', '')) + int(exponent) - 1}f}"
    return text


def on_the_page(values, digits=3):
    missing = [shown(x, digits) for x in values if shown(x, digits) not in PAGE]
    assert not missing


def test_grades(figures_of):
    found = figures_of("grades")
    on_the_page([found["anchors"][x] for x in ("epsilon", "delta")], 4)
    on_the_page([found["anchors"][x] for x in ("exact epsilon", "delta at 3.31")])
    for each in found["curves"].values():
        on_the_page([each["theorem 2"][0]], 4)
    for each in found["same_privacy"].values():
        on_the_page([x["exact k"] for x in each])


def test_taxis(figures_of):
    found = figures_of("taxis")
    every, merged = found["sweeps"]
    on_the_page([*merged["epsilon"], every["epsilon"][0]], 4)
    on_the_page([*merged["exact epsilon"], *merged["predicted"], every["exact epsilon"][0]])
    (city,) = found["merging"]
    on_the_page([x["exact"] for x in city["steps"]])


def test_exactness(figures_of):
    found = figures_of("exactness")
    for each in (found["at the paper's guarantee"], *found["all zones"]):
        on_the_page(each["exact"].values())
    ratio = found["at the paper's guarantee"]["least k ratio"]
    assert f"k may be {ratio:.0f} times larger" in PAGE


def test_the_points_of_the_text(figures_of):
    found = figures_of("taxis")["text"]
    on_the_page([x["exact epsilon"] for x in found.values()])
    for which in ("strongest", "weak"):
        assert f"{found[which]['size']:,} trips" in PAGE
    wider = f"({number(found['wider']['epsilon'])}, {number(found['wider']['delta'])})"
    assert wider.replace("e-0", "e-") in PAGE


@pytest.mark.parametrize("key", ["printed", "sound"])
def test_errata(figures_of, key):
    on_the_page([x[key] for x in figures_of("errata")["theorem 5"]])


def test_every_study_has_its_command_on_the_page_and_says_what_fails():
    from studies import NAMES

    for name in NAMES:
        assert f"python -m studies.{name} " in PAGE
    assert PAGE.count("**Not reproduced.**") == 4


def words(svg):
    """Give what is written on a chart, without the numbers, which tell fast from full."""
    return {text for text in re.findall("<text[^>]*>([^<]+)<", svg) if not re.search(r"\d", text)}


def test_the_page_shows_every_chart_as_the_studies_draw_it(all_studies):
    _, out = all_studies
    charts = {name for path in out.glob("*.json") for name in strict(path.read_text())["charts"]}
    assert sorted(re.findall(r"\]\(figures/(\w+)\.svg\)", PAGE)) == sorted(charts)
    for name in charts:
        drawn, shown = ((folder / f"{name}.svg").read_text() for folder in (out, DOCS / "figures"))
        missing = words(drawn) - words(shown)
        assert not missing, f"copy {name}.svg of a full run to docs/figures"
