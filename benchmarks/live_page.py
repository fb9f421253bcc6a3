"""The cost of the live page and of the metrics: first paints over many results, and the share of a processor.

    python benchmarks/live_page.py [--experiments 200] [--trials 50] [--blocks 50] [--seconds 20] [--viewers 2]

The first part writes result folders, serves them, and measures the first paint of the list in a browser. The second
does this with the page of a running experiment with 200 trials in each block, and with a reload of this page. The third
runs an experiment with `--live` and viewers, and compares the CPU time of the server with the time of one processor
and with the engine's CPU time. The fourth does the same with `--metrics-port` and a scrape per second.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("support", "unit")]

from lab import create_folder  # noqa: E402
from playwright.sync_api import Page, sync_playwright  # noqa: E402

from browser_support import find  # noqa: E402
from lab_support import SMALL, command, environment, experiment  # noqa: E402
from live_support import write_folder  # noqa: E402
from test_expectations import make_run, scatter  # noqa: E402

PAINT_SECONDS = 1.0
# The server's share of a processor, or of the engine's CPU time if the load keeps a processor busy.
SHARE_MAX = 0.01
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
# The share of the window in which CPU time is measured.
WATCHED = 0.8
TICKS = os.sysconf("SC_CLK_TCK")


def measure_paint(home: Path, experiments: int, trials: int) -> float:
    """The median of five first paints of the list, s."""
    half = trials // 2
    results = make_run({"old": scatter(1000, n=half), "new": scatter(900, n=trials - half, seed=2)})
    first = write_folder(home / "results" / "e0" / "1", results).path
    for number in range(1, experiments):
        shutil.copytree(first, home / "results" / f"e{number}" / "1")
    paints = []
    with browse(home) as (page, address):
        for _ in range(5):
            page.goto(address)
            page.wait_for_timeout(500)
            paints.append(float(page.evaluate(PAINT)) / 1e3)
            assert page.evaluate("document.querySelectorAll('#rows tr').length") == experiments
    return sorted(paints)[2]


def measure_running_paint(home: Path, blocks: int) -> Iterator[tuple[str, float, float]]:
    """Yields the first paint of a running experiment's page and the time until the page shows every trial, s: for the
    first visit, then for five reloads."""
    folder = create_folder(home / "results/large/1", blocks)
    trials = folder.load_results().trials
    for block in range(1, blocks + 1):
        folder.record_block(block, {trial.trial: trial.config for trial in trials if trial.repeat == block})
    with folder.hold_lock(), browse(home) as (page, address):
        for name in ("opened", *["reloaded"] * 5):
            page.wait_for_timeout(2_000)
            start = time.monotonic()
            page.goto(f"{address}run/large/1", wait_until="commit")
            while page.evaluate("document.querySelectorAll('.strip i:not(.median)').length") < len(trials):
                page.wait_for_timeout(20)
            yield name, float(page.evaluate(PAINT)) / 1e3, time.monotonic() - start


@contextmanager
def browse(home: Path) -> Iterator[tuple[Page, str]]:
    """A browser page that has the server's token, and the address of the results list for `home`."""
    server = subprocess.Popen(
        command("serve", "results"), cwd=home, env=environment(home), stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        address = server.stdout.readline().strip()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find(), chromium_sandbox=os.geteuid() != 0)
            page = browser.new_page()
            page.goto(address)
            yield page, address.partition("?")[0]
            browser.close()
    finally:
        server.terminate()
        server.wait()


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def view(address: str, stop: threading.Event) -> None:
    """A viewer: reads server-sent events until the end."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.netloc, timeout=60)
    connection.request("GET", f"/?{place.query}")
    reply = connection.getresponse()
    cookie, location = reply.headers["set-cookie"].partition(";")[0], reply.headers["location"]
    reply.read()
    connection.request("GET", f"{location}/events", headers={"Cookie": cookie})
    reply = connection.getresponse()
    while not stop.is_set() and reply.readline():
        pass


def scrape(address: str, stop: threading.Event) -> None:
    """Prometheus with a scrape per second, more often than its default interval of a minute."""
    place = urlsplit(address)
    while not stop.wait(1):
        connection = http.client.HTTPConnection(place.netloc, timeout=60)
        connection.request("GET", place.path)
        text = connection.getresponse().read()
        connection.close()
        assert text.endswith(b"# EOF\n")


def measure_share(home: Path, seconds: int, viewers: int) -> tuple[float, float]:
    """The CPU time of the server and of the engine during a window, s; without viewers, the server serves metrics."""
    text = SMALL.replace("duration: 200ms", f"duration: {seconds}s").replace("repeats: 3", "repeats: 2")
    lab = subprocess.Popen(
        command("run", experiment(home, text), *(["--live"] if viewers else ["--metrics-port", "0"])),
        cwd=home,
        env=environment(home),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert lab.stderr is not None
    name, client = ("live: ", view) if viewers else ("metrics: ", scrape)
    address = next(line for line in lab.stderr if line.startswith(name)).removeprefix(name).strip()
    stop = threading.Event()
    for _ in range(viewers or 1):
        threading.Thread(target=client, args=(address, stop), daemon=True).start()
    (server,) = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and "\0serve\0" in read(entry / "cmdline") and str(lab.pid) == parent(entry)
    ]
    while (
        not (events := [*home.glob("results/small/*/trials/*.part/run.events.jsonl")]) or not events[0].stat().st_size
    ):
        time.sleep(0.1)
    before = cpu_seconds(server)
    time.sleep(seconds * WATCHED)
    used = cpu_seconds(server) - before
    lines = [json.loads(line) for line in events[0].read_text().splitlines()[1:]]
    engine = sum(sum(line["cpu_ns"]) for line in lines if line["event"] == "interval") / 1e9
    stop.set()
    lab.terminate()
    lab.wait()
    return used, engine


def read(path: Path) -> str:
    """The content of a file in /proc; empty if its process has exited."""
    try:
        return path.read_text()
    except OSError:
        return ""


def parent(entry: Path) -> str:
    """The pid of a process's parent."""
    return read(entry / "stat").rpartition(")")[2].split()[1] if read(entry / "stat") else ""


def main() -> int:
    """Prints all figures; the exit status is 1 if a figure exceeds its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("experiments", 200), ("trials", 50), ("blocks", 50), ("seconds", 20), ("viewers", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        paint = measure_paint(Path(home), options.experiments, options.trials)
    results = f"{options.experiments} experiments, {options.experiments * options.trials:,} trials"
    print(f"first paint of {results}: {paint:.2f} s (at most {PAINT_SECONDS} s)", flush=True)
    paints = [paint]
    with tempfile.TemporaryDirectory() as home:
        for name, seconds, complete in measure_running_paint(Path(home), options.blocks):
            paints.append(seconds)
            times = f"first paint {seconds:.2f} s, complete {complete:.2f} s"
            print(f"page of {200 * options.blocks:,} trials {name}: {times}", flush=True)
    shares = []
    for viewers in (options.viewers, 0):
        with tempfile.TemporaryDirectory() as home:
            used, engine = measure_share(Path(home), options.seconds, viewers)
        shares.append(used / (options.seconds * WATCHED))
        load = f"{viewers} viewers" if viewers else "a scrape per second"
        print(f"server with {load}: {used:.2f} s of CPU time, {shares[-1]:.2%} of a processor")
        print(f"that is {used / engine:.2%} of the engine's {engine:.1f} s", flush=True)
    return int(max(paints) > PAINT_SECONDS or max(shares) > SHARE_MAX)


if __name__ == "__main__":
    sys.exit(main())
