"""The garbage-collection columns, computed from the logs of the nodes."""

from __future__ import annotations

import json
import os
import re
from itertools import count
from pathlib import Path

import pytest

from loadstone.systems.base.jvm import read_collections
from scripted_cassandra import (
    Answer,
    Execution,
    FakeCassandra,
)
from stress_support import Stress

JVM_START = "[2026-11-27T17:17:48.074+0000][0.015s][info][gc] Using G1\n"


GC_RESULTS = {
    "3.0": {
        "total gc count": "3",
        "total gc mb": "117",
        "total gc time (s)": "0",
        "avg gc time(ms)": "20",
        "stdev gc time(ms)": "8",
    },
    "4": {
        "Total GC count": "3",
        "Total GC memory": "117.000 MiB",
        "Total GC time": "   0.1 seconds",
        "Avg GC time": "  20.0 ms",
        "StdDev GC time": "   8.2 ms",
    },
}


def pause_line(number: int, pause_ms: int) -> str:
    """The `-Xlog:gc` line of a pause that freed 39 MiB."""
    cause = "Pause Young (Normal) (G1 Evacuation Pause)"
    return f"[2026-11-27T17:17:53.295+0000][5.236s][info][gc] GC({number}) {cause} 63M->24M(1024M) {pause_ms}.000ms\n"


@pytest.mark.parametrize("compat", GC_RESULTS)
def test_gc_columns_agree_with_the_lab(stress: Stress, tmp_path: Path, compat: str) -> None:
    log = tmp_path / "gc.log"
    log.write_text(JVM_START + pause_line(0, 900))
    begin = log.stat().st_size
    with FakeCassandra() as server:

        def script(execution: Execution) -> Answer:
            if execution.number in (10, 50, 110):
                with log.open("a") as file:
                    file.write(pause_line(execution.number, {10: 30, 50: 10, 110: 20}[execution.number]))
            return None

        server.script = script
        environment = {**os.environ, "LOADSTONE_GC_LOGS": json.dumps({f"127.0.0.1:{server.port}": str(log)})}
        line = f"write n=130 no-warmup -rate threads=1 throttle=100/s -compat {compat}"
        outcome = stress(server, line, environment=environment)
    outcome.check_end()
    assert "gc-unknown" not in outcome.stderr
    values = dict(re.findall(r"^(\w.*?) +: (.*)$", outcome.stdout.partition("Results:")[2], re.MULTILINE))
    assert {label: values[label] for label in GC_RESULTS[compat]} == GC_RESULTS[compat]
    rows = [[float(cell) for cell in row.split(",")[-5:]] for row in re.findall(r"^total,.*$", outcome.stdout, re.M)]
    counts, longest, total_ms, _, freed = zip(*rows, strict=True)
    collections = read_collections(log, begin)
    assert (sum(counts), sum(total_ms)) == (collections.pauses, collections.pause_ns / 1e6) == (3, 60)
    assert (max(longest), sum(freed)) == (30, 3 * 39)


def test_unknown_collections_are_explained_once(stress: Stress, tmp_path: Path) -> None:
    log, minutes = tmp_path / "gc.log", count(20)
    log.write_text(JVM_START)
    with FakeCassandra() as server:

        def script(execution: Execution) -> Answer:
            if execution.number in (10, 30):
                # The node restarts.
                log.write_text(JVM_START.replace("17:17", f"17:{next(minutes)}") + pause_line(0, 5))
            return None

        server.script = script
        line = "write n=60 no-warmup -rate threads=2 throttle=100/s"
        logs = {"127.0.0.2:9042": str(log)}, {f"127.0.0.1:{server.port}": str(log)}
        for paths in logs:
            environment = {**os.environ, "LOADSTONE_GC_LOGS": json.dumps(paths)}
            outcome = stress(server, line, environment=environment)
            outcome.check_end()
            assert outcome.stderr.count("note: gc-unknown: ") == 1
            assert re.search(r"^Total GC count +: 0$", outcome.stdout, re.MULTILINE)
            assert re.search(r"^Avg GC time +: +NaN ms", outcome.stdout, re.MULTILINE)
            server.executions.clear()
