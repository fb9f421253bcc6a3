"""Logs of other tools with a given throughput or duration."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta

from imports_support import FIXTURES
from known_truth_imports import Ycsb
from liar_support import noise


def pgbench(rate: float, seed: object, version: str = "15.4", script: str = "<builtin: TPC-B>") -> list[str]:
    """pgbench's reports of 8 clients for a minute."""
    texts = []
    for factor in noise(seed):
        done = round(rate * factor * 60)
        steps = noise((seed, factor), 12)
        texts.append(
            "\n".join(
                [
                    f"pgbench ({version})",
                    *(f"progress: {5 * at}.0 s, {done / 60 * step:.1f} tps, lat 0.4 ms stddev 0.1, 0 failed"
                      for at, step in enumerate(steps, 1)),
                    f"transaction type: {script}",
                    "scaling factor: 100",
                    "query mode: simple",
                    "number of clients: 8",
                    "number of threads: 2",
                    "maximum number of tries: 1",
                    "duration: 60 s",
                    f"number of transactions actually processed: {done}",
                    "number of failed transactions: 0 (0.000%)",
                    f"latency average = {8 * 60_000 / done:.3f} ms",
                    f"tps = {done / 60:.6f} (without initial connection time)",
                ]
            )
            + "\n"
        )  # fmt: skip
    return texts


def sysbench(rate: float, seed: object, command: str = "") -> list[str]:
    """sysbench's reports of an OLTP test of two threads for a minute, after its command."""
    texts = []
    for factor in noise(seed):
        count = round(rate * factor * 60)
        texts.append(
            "\n".join(
                [
                    *([f"$ sysbench {command} --threads=2 --time=60 run"] if command else []),
                    "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)",
                    "Running the test with following options:",
                    "Number of threads: 2",
                    "SQL statistics:",
                    "    queries performed:",
                    *(f"        {name}: {share * count}"
                      for name, share in (("read", 14), ("write", 4), ("other", 2), ("total", 20))),
                    f"    transactions: {count} ({count / 60:.2f} per sec.)",
                    f"    queries: {20 * count} ({count / 3:.2f} per sec.)",
                    "    ignored errors: 0 (0.00 per sec.)",
                    "    reconnects: 0 (0.00 per sec.)",
                    "General statistics:",
                    "    total time: 60.0000s",
                    f"    total number of events: {count}",
                    "Latency (ms):",
                    "    min: 0.10",
                    f"    avg: {119_000 / count:.2f}",
                    "    max: 100.00",
                    f"    95th percentile: {300_000 / count:.2f}",
                    "    sum: 119000.00",
                    "Threads fairness:",
                    f"    events (avg/stddev): {count / 2:.4f}/9.00",
                    "    execution time (avg/stddev): 59.5000/0.00",
                ]
            )
            + "\n"
        )  # fmt: skip
    return texts


def go_ycsb(rate: float, seed: object, **properties: object) -> list[str]:
    """go-ycsb's reports of reads by ten clients for a minute, after its properties."""
    stated = {"recordcount": 1000, "requestdistribution": "uniform", "threadcount": 10, "command": "run"}
    texts = []
    for factor in noise(seed):
        count = round(rate * factor * 60)
        figures = f"Takes(s): 60.0, Count: {count}, OPS: {count / 60:.1f}, Avg(us): {round(5.9e8 / count)}"
        rows = [f"{name} - {figures}, Min(us): 10, Max(us): 90000, 99th(us): {round(2e9 / count)}"
                for name in ("READ  ", "TOTAL ")]  # fmt: skip
        lines = [f'"{name}"="{value}"' for name, value in {**stated, **properties}.items()]
        heading = "***************** properties *****************"
        texts.append("\n".join([heading, *lines, "*" * 46, *rows, "Run finished, takes 1m0s", *rows]) + "\n")
    return texts


def teragen(seconds: float, seed: object, rows: int = 1_000_000) -> list[str]:
    """Logs of TeraGen, whose job takes this time."""
    text, texts = (FIXTURES / "teragen.txt").read_text().replace("1000000", str(rows)), []
    for factor in noise(seed):
        end = datetime(2026, 11, 21, 9, 42, 6, 908_000) + timedelta(seconds=seconds * factor)
        texts.append(text.replace("2026-11-21 09:42:09,922", f"{end:%Y-%m-%d %H:%M:%S},{end.microsecond // 1000:03d}"))
    return texts


def memtier(rate: float, seed: object, hits: float = 1.0, lost: int = 0) -> list[str]:
    """memtier_benchmark's reports, with this share of reads that found a value and this number of lost connections."""
    texts = []
    for factor in noise(seed):
        scale = rate * factor
        document = json.loads((FIXTURES / "memtier.json").read_text())
        document["ALL STATS"]["Runtime"]["Total duration"] /= scale
        for name in ("Sets", "Gets", "Totals"):
            part = document["ALL STATS"][name]
            del part["Time-Serie"]
            reads = part["Misses/sec"] * scale
            part |= {key: value / scale for key, value in part.items() if "Latency" in key}
            part |= {"Ops/sec": part["Ops/sec"] * scale, "Hits/sec": reads * hits, "Misses/sec": reads * (1 - hits)}
            part |= {"Connection Errors": lost}
            numbers = part["Percentile Latencies"]
            numbers |= {key: value / scale for key, value in numbers.items() if key.startswith("p")}
        texts.append(json.dumps(document))
    return texts


def drop_progress(texts: list[str]) -> list[str]:
    """The reports without progress lines."""
    return [re.sub(r"(?m)^progress: .*\n", "", text) for text in texts]


def copy_log(texts: list[str], pattern: str, digits: str) -> list[str]:
    """The logs; the last is a copy of the first with other last digits in the total."""
    return [*texts[:-1], re.sub(pattern, rf"\g<1>{digits}", texts[0])]


def equal_percentiles(rate: float, seed: object) -> list[str]:
    """Logs with equal percentiles, as if read from a histogram in whole milliseconds."""
    return [Ycsb(rate * factor, 0.98e7 / rate / factor, 30_000).text() for factor in noise(seed)]
