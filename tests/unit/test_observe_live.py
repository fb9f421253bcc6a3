"""The observer measures the host on which the tests run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadstone.observe.host_counters import TICKS_PER_SECOND
from loadstone.observe.observer import Observer
from loadstone.observe.page_cache import flush_file_system
from loadstone.observe.process import read_stat
from loadstone.observe.sample import LAB
from loadstone.observe.summary import window_figures as figures_of
from observe_support import read, window_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to read")

# A busy host may not grant a process enough CPU time at first.
OBSERVATIONS_MAX = 5
BURN = "import time\nend = time.monotonic() + 30\nwhile time.monotonic() < end: pass"


@pytest.fixture
def stranger() -> Iterator[Callable[[], int]]:
    """Starts a process that uses a processor and is not a descendant of the lab; returns its pid."""
    started: list[int] = []

    def start() -> int:
        # The shell exits immediately; init adopts its child.
        script = '"$0" -c "$1" >/dev/null 2>&1 & echo $!'
        shell = subprocess.run(["sh", "-c", script, sys.executable, BURN], capture_output=True, text=True, check=True)
        started.append(int(shell.stdout))
        return started[-1]

    yield start
    for pid in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def figures(observer: Observer, phase: str) -> dict[str, float]:
    return {value.metric: value.value for value in observer.phase_figures(phase)}


def observe(observer: Observer, seconds: float = 1.5) -> None:
    """Observes a phase `measure` of this length."""
    observer.begin_phase("measure")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.05)
        observer.poll_sample()
    observer.begin_phase("after")


def blame_process(observer: Observer, pid: int) -> tuple[float, float]:
    """A process's use of processors, and the share of all processors that the observer attributes to other work."""
    start, before = time.monotonic(), read_stat(pid)
    observe(observer)
    after, seconds = read_stat(pid), time.monotonic() - start
    assert before is not None
    assert after is not None
    # The usage is read from the kernel's accounting, because the hypervisor may not grant a whole processor.
    used = (after.cpu_ticks - before.cpu_ticks) / TICKS_PER_SECOND / seconds
    return used, figures(observer, "measure")["cpu.others"]


def test_only_unwatched_processes_count_as_foreign_cpu(stranger: Callable[[], int], tmp_path: Path) -> None:
    pid = stranger()
    with Observer(tmp_path) as observer:
        for _ in range(OBSERVATIONS_MAX):
            used, blamed = blame_process(observer, pid)
            if used > 0.2:
                break
        observer.watch_process("engine", pid)
        observe(observer)
        known = figures(observer, "measure")
    # If the process used less, the tolerance of the next check would hide an error.
    assert used > 0.2
    assert blamed > 0.9 * used / (os.cpu_count() or 1) - 0.02
    # The process is now part of the lab; other programs on this machine may still use any amount of CPU time.
    assert known["engine.cpu"] > 0
    assert known["cpu.busy"] - known["cpu.others"] > 0.9 * known["engine.cpu"] / (os.cpu_count() or 1) - 0.02
    assert known["engine.memory_max"] > 1_000_000


def test_bytes_flushed_in_a_phase_are_device_bytes(tmp_path: Path) -> None:
    with Observer(tmp_path) as observer:
        flush_file_system(tmp_path)
        observer.begin_phase("measure")
        (tmp_path / "file").write_bytes(os.urandom(8_000_000))
        flush_file_system(tmp_path)
        observer.begin_phase("after")
        assert observer.backing is not None
        if observer.backing.device is None:
            pytest.skip(f"device bytes cannot be counted here: {observer.backing.description}")
        assert figures(observer, "measure")["device.written"] >= 8_000_000


def test_file_of_samples_reproduces_its_figures(tmp_path: Path) -> None:
    path = tmp_path / "observed.jsonl"
    with Observer(tmp_path, {"engine": os.getpid()}, interval_seconds=0.1, path=path) as observer:
        observe(observer, 0.6)
        measured = figures(observer, "measure")
        looks = observer.phase_figures("measure")[0].n
        device = observer.backing.device if observer.backing else None
    samples = list(read(path))
    assert [sample.mark for sample in samples if sample.mark] == ["measure", "after"]
    assert len(samples) == looks
    again = {value.metric: value.value for value in figures_of(window_of(samples), device)}
    # Figures that need a census cannot be computed from the file, and the file does not distinguish interfaces.
    apart = ("cpu.others", "io.", "network.")
    assert {name: value for name, value in measured.items() if not name.startswith(apart)} == {
        name: value for name, value in again.items() if not name.startswith(apart)
    }


def test_sample_waits_for_the_end_of_its_interval(tmp_path: Path) -> None:
    with Observer(tmp_path, interval_seconds=3600) as observer:
        assert observer.poll_sample() is not None
        assert observer.poll_sample() is None
        assert observer.take_sample().processes.keys() == {LAB}


def test_ended_process_is_no_longer_observed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as engine:
        observer = Observer(tmp_path, {"engine": engine.pid})
        assert "engine" in observer.begin_phase("measure").processes
        engine.communicate(b"\n")
    assert "engine" not in observer.take_sample().processes
    observer.watch_process("ghost", engine.pid)
    assert "ghost" not in observer.begin_phase("after").processes
    assert figures(observer, "measure")["engine.memory_max"] > 0


def test_unwritable_file_is_reported_without_ending_the_phase() -> None:
    with Observer(path=Path("/dev/full")) as observer:
        observe(observer, 0.3)
        assert observer.problem == "cannot write /dev/full: No space left on device"
        assert observer.phase_figures("measure")[0].n >= 2


def test_opaque_host_is_observed_without_figures(tmp_path: Path) -> None:
    with Observer(tmp_path, {"engine": 1}, proc=tmp_path / "proc", sys=tmp_path / "sys") as observer:
        observe(observer, 0.1)
        assert observer.phase_figures("measure") == []
        assert observer.backing is not None
        assert observer.backing.description == "unknown"


def test_observed_figures_are_in_the_reference(tmp_path: Path) -> None:
    reference = (Path(__file__).parents[2] / "docs/reference/observation.md").read_text()
    with Observer(tmp_path, {"engine": os.getpid()}) as observer:
        observe(observer, 0.6)
        result = observer.phase_figures("measure")
    assert result
    assert [value.metric for value in result if f"`{value.metric}`" not in reference] == []
