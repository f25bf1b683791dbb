"""Reports in a real browser: every chart drawn, nothing fetched, no complaint, nothing run."""

from __future__ import annotations

import re

import pytest
from hostile import HOSTILE

CASES = ("city", "four", "many")
PUBLIC = {"profile", "bars", "matrix", "flows-from", "mixing-chart"}
CURATOR = {"both", "utility-chart"}
MAPS = {"public": {"map"}, "curator": {"map-private", "map-true"}}

MARKS = """element => {
  const canvas = element.querySelector("canvas");
  if (canvas) {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return new Set(new Uint32Array(pixels.buffer)).size;  // how many colours there are
  }
  return element.querySelectorAll(
    ".mark-rect.role-mark path, .mark-line.role-mark path, .mark-shape.role-mark path"
  ).length;
}"""


@pytest.fixture(params=CASES)
def case(request):
    return request.param, request.getfixturevalue(request.param)


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("audience", ["public", "curator"])
def test_every_chart_is_drawn_and_nothing_is_fetched_or_overflows(case, audience, width, opened):
    name, made = case
    tab = opened(getattr(made, audience), width)
    expected = {"public": PUBLIC, "curator": CURATOR}[audience]
    if name == "city":
        expected = expected | MAPS[audience]
    assert set(tab.names()) == expected
    for chart in expected:
        marks = tab.page.eval_on_selector(f"#{chart} .chart", MARKS)
        assert marks >= (63 if "map" in chart else 16 if chart == "matrix" else 1), chart
        box = tab.page.locator(f"#{chart} .chart").bounding_box()
        drawn = tab.page.locator(f"#{chart} .chart > svg, #{chart} .chart > canvas").bounding_box()
        assert drawn["height"] > 80
        assert box["x"] >= 0
        assert drawn["x"] + drawn["width"] <= width
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.noise == []
    assert tab.requests == [tab.url]


def test_pointing_at_marks_tells_their_numbers(city, opened):
    tab = opened(city.public)
    tab.page.hover("#bars .mark-rect.role-mark path >> nth=0")
    first = tab.labels("bars")[-63]
    assert first in tab.tooltip()
    assert "standard deviation" in tab.tooltip()
    tab.page.hover("#map .mark-shape.role-mark path >> nth=5")
    assert re.search(r"share of the long run\s+0\.\d", tab.tooltip())
    tab.page.hover("#matrix .mark-rect.role-mark path >> nth=200")
    assert re.search(r"from\s+\w.*to\s+\w.*probability\s+[\d.e-]+.*standard deviation\s+[\d.e-]+",
                     tab.tooltip(), re.S)  # fmt: skip
    framed = "#matrix .mark-rect.role-mark path[stroke='#222222']"
    tab.page.wait_for_selector(framed, state="attached")
    assert tab.page.locator(framed).count() == 1


def test_pointing_works_on_a_canvas_of_90_000_cells_too(many, opened):
    tab = opened(many.public)
    canvas = tab.page.locator("#matrix canvas")
    canvas.scroll_into_view_if_needed()
    canvas.hover(position={"x": 400, "y": 300})
    assert re.search(r"from\s+S\d{3}\s+to\s+S\d{3}\s+probability", tab.tooltip())


def test_another_origin_and_another_order_can_be_chosen_by_keyboard(city, opened):
    tab = opened(city.public)
    before = tab.labels("flows-from")
    tab.page.focus("#flows-from select")
    tab.page.keyboard.press("ArrowDown")
    tab.page.wait_for_timeout(300)
    assert tab.labels("flows-from") != before
    before = tab.labels("matrix")
    tab.page.select_option("#matrix select", "declared")
    tab.page.wait_for_timeout(500)
    assert tab.labels("matrix") != before
    declared = [str(label) for label in city.counts.space.labels]
    assert declared[0] in tab.labels("matrix")
    assert tab.noise == []


def test_the_heat_map_zooms_with_ctrl_and_leaves_the_wheel_to_the_page(city, opened):
    tab = opened(city.public)
    box = tab.page.locator("#matrix svg").bounding_box()
    tab.page.locator("#matrix svg").scroll_into_view_if_needed()
    box = tab.page.locator("#matrix svg").bounding_box()
    tab.page.mouse.move(box["x"] + 400, box["y"] + 300)
    wide = "#matrix .mark-rect.role-mark path >> nth=0"
    before = tab.page.get_attribute(wide, "d")
    tab.page.mouse.wheel(0, -300)
    tab.page.wait_for_timeout(300)
    assert tab.page.get_attribute(wide, "d") == before
    tab.page.keyboard.down("Control")
    tab.page.locator("#matrix svg").scroll_into_view_if_needed()
    box = tab.page.locator("#matrix svg").bounding_box()
    tab.page.mouse.move(box["x"] + 400, box["y"] + 300)
    tab.page.mouse.wheel(0, -300)
    tab.page.wait_for_timeout(500)
    assert tab.page.get_attribute(wide, "d") != before


@pytest.mark.parametrize("audience", ["public", "curator"])
def test_hostile_labels_are_shown_as_they_stand_and_run_nothing(four, audience, opened):
    tab = opened(getattr(four, audience))
    assert tab.page.title().endswith(HOSTILE[1])
    assert tab.page.inner_text("h1") == HOSTILE[1]
    cells = tab.page.eval_on_selector_all("tbody th", "all => all.map(e => e.textContent)")
    assert set(HOSTILE) <= set(cells)
    assert tab.page.locator("img").count() == 0
    if audience == "public":
        options = tab.page.eval_on_selector_all(
            "#flows-from option", "all => all.map(e => e.textContent)"
        )
        assert set(options) == set(HOSTILE)
        tab.page.hover("#matrix .mark-rect.role-mark path >> nth=1")
        assert any(label in tab.tooltip() for label in HOSTILE)
    assert tab.noise == []
    assert tab.requests == [tab.url]


def test_dark_and_light_are_both_readable(city, opened):
    tab = opened(city.public, scheme="dark")
    assert tab.page.get_attribute("html", "data-drawn") == "dark"
    ink = "#bars .role-axis-label text >> nth=0"
    assert tab.page.get_attribute(ink, "fill") == "#e8eaed"
    assert contrast(tab) >= 4.5
    tab.page.emulate_media(color_scheme="light")
    tab.page.wait_for_selector("html[data-drawn=light]")
    assert tab.page.get_attribute(ink, "fill") == "#222222"
    assert contrast(tab) >= 4.5


def contrast(tab):
    """Give the smallest contrast (WCAG 2) of any text on the page with its ground."""
    colours = tab.page.evaluate(
        """() => [...document.querySelectorAll("body *")]
        .filter(e => e.offsetParent !== null && !e.matches(".skip, .watermark") && e.innerText)
        .map(e => {
          const fill = node => getComputedStyle(node).backgroundColor;
          let ground = e;
          while (fill(ground) === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
          return [getComputedStyle(e).color, fill(ground)];
        })"""
    )
    return min(_ratio(*map(_luminance, pair)) for pair in {tuple(pair) for pair in colours})


def _luminance(colour):
    channels = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _ratio(one, other):
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def test_headings_landmarks_and_charts_have_names(city, opened):
    tab = opened(city.public)
    page = tab.page
    assert page.get_attribute("html", "lang") == "en"
    assert page.locator("h1").count() == page.locator("main").count() == 1
    assert page.locator("section > h2").count() == page.locator("section").count() >= 6
    for chart in tab.names():
        drawn = page.locator(f"#{chart} .chart")
        assert drawn.get_attribute("role") == "graphics-document"
        said = page.inner_text(f"#{chart} figcaption")
        assert len(said) > 30
        assert drawn.get_attribute("aria-label") == said
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"


def test_every_printed_sheet_of_the_curator_is_marked_and_no_public_one(city, opened):
    for path, marked in ((city.curator, True), (city.public, False)):
        tab = opened(path, scheme="dark")
        tab.page.emulate_media(media="print")
        mark = tab.page.locator(".watermark")
        assert mark.count() == marked
        if marked:  # what is fixed stands on every sheet
            assert mark.evaluate("e => getComputedStyle(e).position") == "fixed"
            assert mark.is_visible()
        assert tab.page.locator("nav").is_hidden()
        assert tab.page.pdf().startswith(b"%PDF")
