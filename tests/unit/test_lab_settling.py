"""The lab waits until servers are idle after a load, but not longer than the limit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from loadstone.experiment.plan.required_servers import StartedSystems, VariantServers
from loadstone.observe.host_counters import TICKS_PER_SECOND
from loadstone.observe.process import read_stat
from loadstone.observe.server_usage import Watched, sum_ticks
from loadstone.runner.server_pool import TrialServers
from loadstone.runner.settling import LONGEST_S, PROCESSORS, SAMPLE_S, Waited, wait
from loadstone.runner.started_system import Stack

# Busy for the time in its input, then idle.
WORKER = """
import sys, time
end = time.process_time() + float(sys.stdin.readline())
while time.process_time() < end:
    pass
print("done", flush=True)
sys.stdin.read()
"""


@dataclass
class UsageScript:
    """Servers that use this many processors in each second; time passes only in `sleep`."""

    use: Sequence[float]
    now: float = 0.0

    def sample_ticks(self, servers: Sequence[Watched]) -> int:
        """The ticks used so far. After the script, usage stays at the level of its last second."""
        seconds = round(self.now)
        used = sum(self.use[:seconds]) + self.use[-1] * max(seconds - len(self.use), 0)
        return round(used * TICKS_PER_SECOND)

    def sleep(self, seconds: float) -> None:
        """Advances the time."""
        self.now += seconds

    def wait_result(self) -> Waited:
        """The result of the wait."""
        return wait((), self.sample_ticks, self.sleep, lambda: self.now)


@pytest.mark.parametrize(
    ("use", "seconds"),
    [
        ([0.0], 1.0),
        ([1.9, 1.2, 0.1], 3.0),
        ([0.1, 1.9], 1.0),
        # A second at the limit is not idle.
        ([PROCESSORS, 0.24], 2.0),
    ],
)
def test_servers_are_idle_after_one_quiet_second(use: list[float], seconds: float) -> None:
    assert UsageScript(use).wait_result() == Waited(seconds, idle=True)


def test_the_wait_for_busy_servers_is_limited() -> None:
    waited = UsageScript([1.0]).wait_result()
    assert waited == Waited(LONGEST_S, idle=False)
    expected = VariantServers(StartedSystems((), keep=False), fresh="table", table="usertable", options={})
    at = TrialServers(expected, Stack(), None, must_load=True, waited=waited)
    (note,) = at.still_busy()
    assert (note.name, note.message) == ("not-steady", "the servers were still busy 300 s after the load")
    assert [value.value for value in at.values()] == [LONGEST_S * 1e9]


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[str]]:
    """A process that works for a given time."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", WORKER], stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.kill()


def test_real_process_is_idle_after_its_work(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin
    assert worker.stdout
    usage = read_stat(worker.pid)
    assert usage is not None
    watched = [Watched("worker", "127.0.0.1:1", worker.pid, usage.start_ticks)]
    before = sum_ticks(watched)
    worker.stdin.write("2.0\n")
    worker.stdin.flush()
    assert wait(watched).idle
    # If other processes use the processors, the worker may seem idle early; the tests above cover the end of the wait.
    assert worker.stdout.readline() == "done\n"
    assert sum_ticks(watched) - before >= (2.0 - PROCESSORS * SAMPLE_S) * TICKS_PER_SECOND
    worker.kill()
    worker.wait()
    assert sum_ticks(watched) == 0
    assert wait(watched).idle
