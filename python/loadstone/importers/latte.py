"""The JSON report of latte 0.26 and later, and of Scylla's fork: its histograms, in ns, and its configuration.

A cycle is one call of the workload's function. With a rate, latencies are measured from the due time of a cycle.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from loadstone.importers import hlog_parser
from loadstone.importers.json_text import Document, read_documents
from loadstone.importers.number import number_or_text
from loadstone.importers.run import ALL, OPERATIONS, ImportedRun, build_series, check_rate, histogram_figures, mix_fact
from loadstone.importers.source import Source
from loadstone.results.value import Value

NAME = "latte"
TITLE = "latte JSON"
SIGN = '"conf"'
# Means and percentiles outside histograms are in ms.
MS = 1e6
# Settings of a run and of its connections, and the facts that record them.
FACTS = {
    "consistency": "consistency", "serial_consistency": "serial_consistency", "cass_version": "version",
    "db_version": "version", "workload": "workload", "count": "work.connections", "ssl": "encryption",
    "retry_number": "work.retry_number", "page_size": "work.page_size", "start_cycle": "work.start_cycle",
    "end_cycle": "work.end_cycle",
}  # fmt: skip
CUT = "import the whole report of latte"


def recognise_text(text: str) -> bool:
    """Whether the text contains a latte report."""
    return SIGN in text and '"cycle_latency"' in text


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a run is truncated."""
    result: list[ImportedRun] = []
    read_documents(source, SIGN, CUT, lambda document: result.append(read_report(document)), "latte report")
    return result


def read_report(document: Document) -> ImportedRun:
    """A report's figures. Raises LookupError or ValueError if a figure is missing or damaged."""
    conf, result = document["conf"], document["result"]
    run = ImportedRun(facts={"tool": NAME})
    run.start_unix_ns = start_of(result)
    run.clients = int(conf["concurrency"]) * int(conf.get("threads", 1))
    connection = conf.get("connection", {})
    for name, fact in FACTS.items():
        value = conf.get(name, connection.get(name))
        if isinstance(value, str | int | float):
            run.facts[fact] = value
    for name, value in conf.get("params", []):
        # A parameter of the workload may change anything about an operation.
        run.facts[f"work.{name}"] = number_or_text(str(value))
    if functions := conf.get("functions"):
        # Versions without weights run only one function per workload.
        run.facts["mix"] = mix_fact({str(part["name"]): float(part["weight"]) for part in functions})
    rate = conf.get("rate")
    if isinstance(rate, dict):
        # Scylla's fork may vary its rate.
        if rate.get("rate_sine_amplitude"):
            run.facts["work.rate_amplitude"] = float(rate["rate_sine_amplitude"])
            run.facts["work.rate_period"] = str(rate.get("rate_sine_period"))
        rate = rate["rate"]
    if rate:
        run.loop = "open"
        run.facts["target"] = float(rate)
    run.facts["latency"] = "response" if rate else "service"
    cycles = int(result["cycle_count"])
    errors = int(result.get("error_count", 0))
    seconds = float(result["elapsed_time_s"])
    # The throughput is the mean of samples, and the last sample may be shorter. NaN is null in JSON.
    rate_mean = mean_value(result["cycle_throughput"])
    if rate_mean is None:
        run.add_note("not-a-number", "latte printed no throughput", "check the run")
    else:
        check_rate(rate_mean, seconds, cycles, slack=0.05 * cycles + rate_mean)
        run.add_figure("throughput", run.subtract_failures(rate_mean, errors, cycles), "op/s", cycles)
    run.add_figure("runtime", seconds * 1e9, "ns", 1)
    run.add_figure("operations", cycles, OPERATIONS, cycles)
    run.add_figure("errors", errors, OPERATIONS, cycles)
    shares = [float(share) for share in document["percentiles"]]
    add_distribution(run, ALL, result["cycle_latency"], cycles, shares)
    for name, part in result.get("cycle_latency_by_fn", {}).items():
        if isinstance(part, Document):
            add_distribution(run, name.lower(), part, 0, shares)
        else:
            run.unknown[name] = None
    requests = result.get("request_latency")
    if requests:
        add_distribution(run, "request", requests, int(result.get("request_count", 0)), shares)
    rows = [
        (float(sample["time_s"]), float(sample["duration_s"]), float(sample["cycle_throughput"]))
        for sample in result.get("log", [])
        if float(sample["duration_s"]) > 0
    ]
    counts = [int(sample["cycle_count"]) for sample in result.get("log", []) if "cycle_count" in sample]
    if counts and abs(sum(counts) - cycles) > 1 + 0.001 * cycles:
        raise ValueError(f"its samples cover {sum(counts)} cycles, but its total is {cycles}")
    run.series = build_series(rows)
    if errors:
        run.statuses["CYCLE"] = {"OK": max(cycles - errors, 0), "ERROR": errors}
    return run


def start_of(result: Document) -> int | None:
    """The start of a run, ns since the epoch; None if the report does not state it with a time zone."""
    try:
        start = datetime.fromisoformat(str(result.get("start_time")))
    except ValueError:
        return None
    return round(start.timestamp() * 1e9) if start.tzinfo else None


def mean_value(value: Any) -> float | None:
    """A mean, which most versions print with its standard error; None if it is not a number."""
    number = value["value"] if isinstance(value, dict) else value
    return None if number is None else float(number)


def add_distribution(run: ImportedRun, name: str, part: Document, n: int, shares: list[float]) -> None:
    """Adds a distribution's latencies: from its histogram, in ns, if it has one, else from its percentiles, in ms."""
    encoded = part.get("histogram")
    if isinstance(encoded, str):
        histogram = hlog_parser.decode_any_version(encoded)
        if n and abs(histogram.count - n) > 0.01 * n:
            raise ValueError(f"{name} has {histogram.count} latencies for {n} operations")
        run.values += histogram_figures(name, histogram)
        return
    points = part["percentiles"]
    points = points if isinstance(points, list) else points["0"]
    if (mean := mean_value(part["mean"])) is None:
        # The percentiles of a distribution without latencies are zeros.
        return
    run.add_figure(f"{name}.mean", mean * MS, "ns", n)
    for share, point in zip(shares, points, strict=True):
        statistic = {0.0: "min", 100.0: "max"}.get(share, f"p{share:.6g}")
        run.values.append(Value(f"{name}.{statistic}", (mean_value(point) or 0.0) * MS, "ns", n))
