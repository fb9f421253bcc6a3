"""The report's page in a real browser: on a desktop and on a phone, in light and in dark mode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import report_support
from browser_support import Browser
from loadstone.judge.judge import judge_results

LAYOUT = (Path(__file__).parents[1] / "support/browser_layout.js").read_text()
SIZES = {"desk": (1280, 900), "phone": (360, 800)}
# A page with every fault that the audit detects, and a page that makes a network request.
FAULTY = """<!doctype html><title>x</title><body style="margin:0;font:16px/1.2 sans-serif">
<p>first line</p><p style="margin-top:-28px">second line</p>
<p style="width:40px;overflow:hidden;white-space:nowrap">a text that is cut off</p>
<p style="color:#bbb;background:#fff">a faint text</p>
<p style="width:2000px;text-align:right">far out</p></body>"""
ASKING = """<!doctype html><title>x</title><img src="http://127.0.0.1:9/x.png"><script>console.error("oh")</script>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of every crafted judgement, and of the usual results as judged."""
    directory = tmp_path_factory.mktemp("pages")
    judgements = {name: make() for name, make in report_support.ALL.items()}
    # The crafted sides differ in file system and time; a phone's first screen cannot hold these findings and a chart.
    usual, differing = judgements["usual"].results, {"file_system", "device"}
    alike = [
        replace(
            trial,
            start_unix_ns=None,
            facts={name: fact for name, fact in trial.facts.items() if name not in differing},
        )
        for trial in usual.trials
    ]
    judgements["judged"] = judge_results(replace(usual, trials=alike))
    judgements["many"] = report_support.large(1_000)
    entries = {}
    for name, judgement in judgements.items():
        entries[name] = directory / f"{name}.html"
        entries[name].write_text(report_support.page(judgement))
    return entries


@pytest.mark.parametrize(
    ("name", "size"),
    [*((name, size) for name in report_support.ALL for size in SIZES), ("judged", "desk"), ("many", "phone")],
)
def test_page_has_no_overlaps_faint_text_or_fetches(
    browser: Browser, pages: dict[str, Path], name: str, size: str
) -> None:
    width, height = SIZES[size]
    browser.open(pages[name], width, height, touch=size == "phone")
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.value(LAYOUT) == []
    browser.dark(True)
    assert browser.value(LAYOUT) == []
    assert browser.requests() == []
    assert browser.complaints() == []


@pytest.mark.parametrize("size", SIZES)
def test_first_screen_has_question_answer_verdict_and_chart(
    browser: Browser, pages: dict[str, Path], size: str
) -> None:
    width, height = SIZES[size]
    browser.open(pages["judged"], width, height, touch=size == "phone")
    for part in ("h1", ".answer", ".stand .badge", "figure svg"):
        box = browser.value(f"document.querySelector('{part}').getBoundingClientRect().toJSON()")
        assert 0 < box["top"] < box["bottom"] <= height, part


def test_every_chart_is_drawn(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["usual"], 1280, 900)
    charts = browser.value("document.querySelectorAll('[data-chart]').length")
    assert charts == 25
    assert browser.value("document.querySelectorAll('[data-chart] svg').length") == charts
    # Each panel has marks and not only axes.
    drawings = "[...document.querySelectorAll('[data-chart] svg')]"
    empty = f"{drawings}.filter(each => !each.querySelector('.mark-symbol path, .mark-rect.role-mark path')).length"
    assert browser.value(empty) == 0


def test_charts_follow_the_colour_scheme_without_redrawing(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["usual"], 1280, 900)
    line = "getComputedStyle(document.querySelector('[data-chart=percentiles-0] .mark-line path')).stroke"
    assert browser.value(line) == "rgb(0, 143, 104)"
    browser.dark(True)
    assert browser.value(line) == "rgb(63, 207, 160)"


def test_hovering_shows_the_figure(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["usual"], 1280, 900)
    point = browser.value(
        """(() => {
            const point = document.querySelector('[data-chart=percentiles-0] .mark-symbol path');
            point.scrollIntoView({ block: "center", behavior: "instant" });
            const box = point.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        })()"""
    )
    browser.page.mouse.move(*point)
    browser.wait("document.querySelector('#vg-tooltip-element.visible')?.innerText.includes('latency')")
    tooltip = browser.value("document.querySelector('#vg-tooltip-element').innerText").split()
    assert tooltip[:2] == ["name", "rocksdb"]
    assert "µs" in tooltip


def test_crosshair_follows_the_pointer_over_time(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["usual"], 1280, 900)
    chart = "document.querySelector('[data-chart=throughput-over-time-0] svg')"
    rules = f"[...{chart}.querySelectorAll('.mark-rule.role-mark line')]"
    visible = f"{rules}.filter(line => line.getAttribute('opacity') > 0.5).length"
    assert browser.value(visible) == 0
    middle = browser.value(
        f"""(() => {{
            {chart}.scrollIntoView({{ block: "center", behavior: "instant" }});
            const box = {chart}.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()"""
    )
    browser.page.mouse.move(*middle)
    browser.wait(f"{visible} === 1")
    browser.wait("document.querySelector('#vg-tooltip-element.visible')?.innerText.includes('median throughput')")
    tooltip = browser.value("document.querySelector('#vg-tooltip-element').innerText")
    assert "op/s" in tooltip
    assert "undefined" not in tooltip
    for is_dark in (False, True):
        browser.dark(is_dark)
        assert not [line for line in browser.value(LAYOUT) if "faint" in line]


def test_names_from_outside_stay_text(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["hostile"], 1280, 900)
    assert browser.value("document.querySelector('h1').textContent") == '<script>alert("x")</script>'
    assert browser.value("document.title") == "</title><b> · Loadstone"
    assert browser.value("document.querySelectorAll('main script, main img, main b > *').length") == 0


def test_the_page_prints_light_and_without_its_links(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["usual"], 794, 1123, dark=True)
    browser.page.emulate_media(media="print", color_scheme="dark")
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.value("document.documentElement.scrollWidth") <= 794


def test_print_shows_folded_content(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["usual"], 794, 1123)
    height = "document.querySelector('#trials details').getBoundingClientRect().height"
    folded = browser.value(height)
    browser.page.emulate_media(media="print")
    assert browser.value(height) > 10 * folded


@pytest.mark.parametrize("name", ["usual", "scaling", "import_pair"])
def test_paper_keeps_tables_and_whole_charts(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.open(pages[name], 1280, 900, dark=True)
    browser.page.emulate_media(media="print", color_scheme="dark")
    # A4 between margins of 12 mm.
    browser.page.set_viewport_size({"width": 703, "height": 1000})
    assert browser.value("getComputedStyle(document.querySelector('.table table')).display") == "table"
    assert browser.value(LAYOUT) == []


def test_the_audit_sees_faults(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "faulty.html"
    page.write_text(FAULTY)
    browser.open(page, 360, 800)
    result = " ".join(browser.value(LAYOUT))
    for fault in (
        "the page is 2000 px wide",
        '"first line" and "second line" overlap',
        '"a text that is cut off" is cut off by <p',
        '"a faint text" is faint: 1.9',
        '"far out" leaves the window',
    ):
        assert fault in result


def test_the_browser_reports_requests_and_errors(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "asking.html"
    page.write_text(ASKING)
    browser.open(page, 360, 800)
    assert browser.requests() == ["http://127.0.0.1:9/x.png"]
    assert any("oh" in complaint for complaint in browser.complaints())


def test_the_page_forbids_itself_the_network(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(
        pages["single_variant"].read_text().replace("<main>", '<main><img src="http://127.0.0.1:9/x.png">', 1)
    )
    browser.open(page, 360, 800)
    assert any("Content Security Policy" in complaint for complaint in browser.complaints())
