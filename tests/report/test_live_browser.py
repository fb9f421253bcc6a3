"""The live page in a real browser: a run from its start to a killed lab, on a desktop and on a phone."""

from __future__ import annotations

import fcntl
import json
import signal
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from browser_support import Browser
from event_support import interval, outcome
from lab_support import SMALL, experiment, single_folder, start
from live_support import serve, write_folder
from loadstone.engine.events import Note
from loadstone.results.fault import FaultRecord
from loadstone.runner.trial import append_fault
from test_expectations import make_run, scatter

LAYOUT = (Path(__file__).parents[1] / "support/browser_layout.js").read_text()
# Long enough for a kill while a trial runs.
LONG = SMALL.replace("duration: 200ms", "duration: 20m").replace("clients: 2", "clients: 1\nrate: 500")
# Makes the page's source of events available as `source`.
EXPOSE_SOURCE = """
const Source = EventSource;
EventSource = class extends Source {
  constructor(...options) { super(...options); window.source = this; }
};
"""
HOSTILE = '<img src=x onerror="document.title=1">'


def text_of(browser: Browser, selector: str) -> str:
    """The text of an element."""
    return str(browser.value(f"document.querySelector({json.dumps(selector)}).textContent"))


def wait_for_text(browser: Browser, selector: str, text: str) -> None:
    """Waits until an element contains the text."""
    browser.wait(f"document.querySelector({json.dumps(selector)}).textContent.includes({json.dumps(text)})")


def test_run_is_shown_until_its_lab_is_killed(browser: Browser, tmp_path: Path) -> None:
    lab = start(tmp_path, "run", experiment(tmp_path, LONG), "--live")
    try:
        assert lab.stderr is not None
        address = next(line for line in lab.stderr if line.startswith("live: ")).removeprefix("live: ").strip()
        browser.open(address, 1280, 900)
        wait_for_text(browser, "#status", "running")
        browser.wait("document.querySelectorAll('#chart-throughput .mark-line path').length > 1")
        wait_for_text(browser, "#tile-due", "500")
        wait_for_text(browser, "#trial", "measure")
        browser.wait("/^0 of 6 trials · about [0-9:]+ left$/.test(document.querySelector('#progress').textContent)")
        for name in ("throughput", "p50", "p99", "max", "failed", "host"):
            browser.wait(f"/[0-9]/.test(document.querySelector('#tile-{name}').textContent)")
        for name in ("latency", "processors"):
            browser.wait(f"document.querySelectorAll('#chart-{name} .mark-line path').length > 0")
        assert text_of(browser, "h1") == "Do two copies of one store differ?"
        assert browser.value("document.querySelectorAll('.variant .trials i').length") == 6
        lab.send_signal(signal.SIGKILL)
        lab.wait()
        wait_for_text(browser, "#status", "interrupted")
        assert browser.complaints() == []
    finally:
        lab.kill()
        lab.communicate()
    assert single_folder(tmp_path).load_results().trials == []


def test_finished_trial_adds_point_and_finding(browser: Browser, tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000)})
    first, second, *_ = results.trials
    folder = write_folder(tmp_path / "results/demo/1", replace(results, trials=[first]))
    with folder.hold_lock(), serve(tmp_path) as server:
        browser.open(server.address, 1280, 900)
        browser.value("document.querySelector('#rows a').click()")
        wait_for_text(browser, "#progress", "1 of 6 trials")
        assert browser.value("document.querySelectorAll('.strip i:not(.median)').length") == 1
        folder.append_trial(replace(second, end="failed", notes=(Note("failed", "the disk is full", ""),)))
        wait_for_text(browser, "#findings", "the disk is full")
        folder.append_trial(replace(second, attempt=2))
        browser.wait("document.querySelectorAll('.strip i:not(.median)').length === 2")
        wait_for_text(browser, "#progress", "2 of 6 trials")


def free_port() -> int:
    """A port that is currently free."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def write_trial(home: Path, name: str = "demo") -> Path:
    """A finished run whose last trial has intervals, a fault and hostile names."""
    results = make_run({HOSTILE: scatter(1000), "new": scatter(900, seed=2)})
    fault = FaultRecord("kill", ("a",), 2_000_000_000, 4_000_000_000, held_ns=2_100_000_000, lifted_ns=4_000_000_000)
    trials = [*results.trials[:-1], replace(results.trials[-1], faults=(fault,))]
    question = replace(results.question, text=HOSTILE, expect=(HOSTILE,))
    named = replace(results, name=name, trials=trials, question=question)
    folder = write_folder(home / "results" / name / "1", named)
    directory = folder.files_of(trials[-1].trial, 1)
    directory.mkdir()
    outcomes = [outcome("READ", "OK", [1_000_000, 2_000_000, 30_000_000])]
    lines = [json.dumps(interval(k, outcomes, due=3, failed=k % 2)) for k in range(8)]
    (directory / "run.events.jsonl").write_text("\n".join(lines) + "\n")
    return folder.path


def test_page_connects_again_to_a_new_server(browser: Browser, tmp_path: Path) -> None:
    path = write_trial(tmp_path)
    port = free_port()
    arguments = ("--no-token", "--port", str(port))
    with (path / "lock").open("a") as lock, serve(tmp_path, *arguments) as server:
        fcntl.flock(lock, fcntl.LOCK_EX)
        browser.open(f"{server.address}run/demo/1", 1280, 900)
        wait_for_text(browser, "#status", "running")
        server.process.kill()
        server.process.wait()
        wait_for_text(browser, "#status", "connection lost")
        with serve(tmp_path, *arguments):
            wait_for_text(browser, "#status", "running")


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_nothing_overlaps_or_leaves_the_window(browser: Browser, tmp_path: Path, width: int, height: int) -> None:
    write_trial(tmp_path)
    with serve(tmp_path) as server:
        browser.open(server.address, width, height, touch=width < 500)
        wait_for_text(browser, "#rows", HOSTILE)
        browser.wait("![...document.querySelectorAll('.badge')].some(badge => badge.textContent === '…')")
        for dark in (False, True):
            browser.dark(dark)
            assert browser.value(LAYOUT) == []
        browser.value("document.querySelector('#rows a').click()")
        browser.wait("document.documentElement.dataset.drawn === 'all'")
        browser.wait("document.querySelectorAll('#chart-latency .mark-line path').length === 3")
        wait_for_text(browser, "#findings", "")
        for dark in (False, True):
            browser.dark(dark)
            assert browser.value(LAYOUT) == []
        assert browser.complaints() == []


def test_hostile_names_and_faults_are_drawn_as_text(browser: Browser, tmp_path: Path) -> None:
    write_trial(tmp_path)
    with serve(tmp_path) as server:
        browser.open(server.address, 1280, 900)
        browser.value("document.querySelector('#rows a').click()")
        wait_for_text(browser, "#plan", HOSTILE)
        wait_for_text(browser, "#expected", HOSTILE)
        wait_for_text(browser, "#chart-throughput", "kill")
        wait_for_text(browser, "#chart-failed", "0.2")
        assert browser.value("document.querySelectorAll('main img').length") == 0
        assert "Loadstone" in browser.value("document.title")


def test_fault_in_effect_is_a_band(browser: Browser, tmp_path: Path) -> None:
    path = write_trial(tmp_path)
    directory = next((path / "trials").iterdir())
    directory = directory.rename(directory.with_name("9-now.part"))
    (directory / "begun.json").write_text("{}")
    record = FaultRecord("pause", ("a",), 2_000_000_000, ordered_ns=2_000_000_000, held_ns=2_100_000_000)
    append_fault(directory / "faults.jsonl", 0, record)
    with (path / "lock").open("a") as lock, serve(tmp_path) as server:
        fcntl.flock(lock, fcntl.LOCK_EX)
        browser.open(server.address, 1280, 900)
        browser.value("document.querySelector('#rows a').click()")
        wait_for_text(browser, "#chart-throughput", "pause")
        width = "document.querySelector('#chart-throughput .mark-rect path').getBoundingClientRect().width"
        lasting = float(str(browser.value(width)))
        append_fault(directory / "faults.jsonl", 0, replace(record, lifted_ns=3_000_000_000))
        with (directory / "run.events.jsonl").open("a") as file:
            file.write(json.dumps(interval(8, [])) + "\n")
        browser.wait(f"{width} < {lasting / 2}")


def test_outage_interrupts_the_line_of_latency(browser: Browser, tmp_path: Path) -> None:
    path = write_trial(tmp_path)
    outcomes = [outcome("READ", "OK", [1_000_000, 2_000_000])]
    with next((path / "trials").glob("*/run.events.jsonl")).open("a") as file:
        file.writelines(json.dumps(interval(k, [] if k == 8 else outcomes)) + "\n" for k in range(8, 12))
    with serve(tmp_path) as server:
        browser.open(server.address, 1280, 900)
        browser.value("document.querySelector('#rows a').click()")
        browser.wait(
            "document.querySelector('#chart-latency .mark-line path')?.getAttribute('d').match(/M/g).length === 2"
        )


def test_charts_contain_updates_that_arrive_while_drawing(browser: Browser, tmp_path: Path) -> None:
    write_trial(tmp_path)
    points = "document.querySelector('#chart-throughput .mark-line path')?.getAttribute('d').split('L').length"
    with serve(tmp_path) as server:
        browser.open(server.address, 1280, 900)
        browser.page.add_init_script(EXPOSE_SOURCE)
        browser.value("document.querySelector('#rows a').click()")
        browser.wait(f"{points} === 8")
        point = {"phase": "run", "throughput": 3, "due": 3, "failed": 0, "p50": 1e6, "p99": 2e6, "max": 3e6}
        updates = [{"points": [{**point, "k": k, "at": k + 1}], "first": 0, "hosts": []} for k in (8, 9)]
        message = "new MessageEvent('points', {data: JSON.stringify(update)})"
        # The second update arrives while the charts are drawn.
        browser.value(f"{json.dumps(updates)}.forEach((update) => source.dispatchEvent({message}))")
        browser.wait(f"{points} === 10")


def test_search_and_choice_survive_updates(browser: Browser, tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        write_trial(tmp_path, name)
    with serve(tmp_path) as server:
        browser.open(server.address, 1280, 900)
        for box in browser.page.query_selector_all("#rows tr:not([data-id='third/1']) input"):
            box.check()
        browser.page.fill("#search", "ir")
        write_trial(tmp_path, "fourth")
        wait_for_text(browser, "#number", "2 of 4")
        assert text_of(browser, "#compare") == "Compare 2"
        browser.page.reload()
        wait_for_text(browser, "#number", "2 of 4")
        assert text_of(browser, "#compare") == "Compare 2"
        browser.page.click("#compare")
        browser.wait("document.documentElement.dataset.drawn === 'all'")
        browser.page.go_back()
        wait_for_text(browser, "#number", "2 of 4")
        assert text_of(browser, "#compare") == "Compare 2"


def test_search_and_choice_lead_to_a_comparison(browser: Browser, tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        write_trial(tmp_path, name)
    with serve(tmp_path) as server:
        browser.open(server.address, 1280, 900)
        browser.page.fill("#search", "ir")
        wait_for_text(browser, "#number", "2 of 3")
        assert browser.value("document.querySelector('#compare').disabled")
        for box in browser.page.query_selector_all("#rows tr:not([hidden]) input"):
            box.check()
        browser.page.click("#compare")
        browser.wait("document.documentElement.dataset.drawn === 'all'")
        assert browser.value("document.querySelectorAll('figure svg').length") > 0
