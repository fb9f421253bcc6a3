"""Runs processes and measures their resources; computes ratios with intervals.

Benchmarks compare only numbers measured in one run.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# The same default as in the Makefile: a binary in any other folder may be out of date.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or CACHE / "loadstone" / "target")
ENGINE = str(TARGET / "release" / "loadstone-engine")


@dataclass(frozen=True)
class Ratio:
    """The median of paired ratios and the order-statistic interval of that median.

    ``low`` and ``high`` are the k-th smallest and k-th largest ratio with the largest k whose binomial level is at
    least 95 % (David & Nagaraja, Order Statistics, 2003, section 7.1); ``level`` is that level.
    """

    median: float
    low: float
    high: float
    level: float
    n: int

    def __str__(self) -> str:
        interval = f"[{self.low:.3f}, {self.high:.3f}]"
        return f"{self.median:.3f}  {interval}  ({self.level:.1%} interval of the median, n={self.n})"


def ratio_of(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """The ratio first ÷ second of pairs that were measured consecutively."""
    ratios = sorted(a / b for a, b in pairs)
    n = len(ratios)
    best, level = 1, 0.0
    for k in range(1, n // 2 + 1):
        outside = 2 * sum(math.comb(n, i) for i in range(k)) / 2**n
        if 1 - outside < 0.95 and k > 1:
            break
        best, level = k, 1 - outside
    return Ratio(statistics.median(ratios), ratios[best - 1], ratios[n - best], level, n)


@dataclass(frozen=True)
class Used:
    """The resources and output of a finished process."""

    cpu_seconds: float
    stdout: str
    stderr: str


def run(command: Sequence[str], stdin: str = "", environment: Mapping[str, str] | None = None) -> Used:
    """Runs a command to its end and measures its CPU time. Raises on a non-zero exit."""
    before = os.times()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    out, err = process.communicate(stdin)
    after = os.times()
    if process.returncode != 0:
        raise SystemExit(f"error: {' '.join(command)} exited {process.returncode}\n{err}")
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return Used(cpu, out, err)


def marginal_cpu_ns(cpu_of: Callable[[int], float], few: int, many: int) -> float:
    """CPU time per operation, ns, as the difference between a long and a short run: start-up and warm-up cancel."""
    return (cpu_of(many) - cpu_of(few)) / (many - few) * 1e9


def narrow(ratio: Ratio) -> bool:
    """Whether an interval is within 2 % of its median on both sides."""
    return max(ratio.high - ratio.median, ratio.median - ratio.low) <= 0.02 * ratio.median


def verdict(met: bool) -> str:
    """A goal's verdict."""
    return "met" if met else "NOT met"


def summary(events: str) -> dict[str, Any]:
    """The summary event of a trial."""
    last = json.loads(events.splitlines()[-1])
    if last.get("event") != "summary":
        raise SystemExit("error: the engine's last event is no summary")
    return dict(last)


def peak_of(command: Sequence[str]) -> int:
    """Runs a command to its end without its output; returns its peak resident memory, B. Raises on a non-zero exit."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"error: {' '.join(command)} ended with exit status {process.returncode}")
    return usage.ru_maxrss * 1024


def spec(arguments: list[str], engine: str = ENGINE) -> dict[str, object]:
    """The TrialSpec for a YCSB command line, with Loadstone's own measurements."""
    printed = subprocess.run([engine, "ycsb", *arguments, "--print-spec"], capture_output=True, text=True, check=True)
    document = dict(json.loads(printed.stdout))
    document["sinks"] = [{"sink": "hdr_ns"}]
    return document


def trial(trial_spec: dict[str, object], engine: str = ENGINE) -> dict[str, Any]:
    """Runs a trial; returns its summary, with the seconds that connecting took."""
    # Stdin must stay open: it is the lease.
    process = subprocess.Popen([engine, "trial"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(trial_spec) + "\n")
    process.stdin.flush()
    events = process.stdout.read()
    process.stdin.close()
    if process.wait() != 0:
        raise SystemExit("error: the trial failed")
    ready = json.loads(events.splitlines()[0])
    return {**summary(events), "connect_seconds": ready["connect_seconds"]}
