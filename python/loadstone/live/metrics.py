"""The metrics of a run in the OpenMetrics text format, for Prometheus.

Counters and classic histograms cover only the current and the previous trial. As Prometheus expects, a series ends soon
after its trial, so a scrape of a run with 10,000 trials does not contain the series of 10,000 trials.
Specification: <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from loadstone.engine.histogram import Histogram
from loadstone.live.run import FollowedRun
from loadstone.live.trial import LOAD, Attempt

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# The upper bounds of the buckets, s: 1, 2.5 and 5 of each decade from 1 µs to 50 s.
BUCKETS = tuple(float(f"{digit}e{exponent}") for exponent in range(-6, 2) for digit in ("1", "2.5", "5"))
BOUNDS_NS = [bound * 1e9 for bound in BUCKETS]
# Label names with a fixed meaning; a dimension with such a name gets a prefix.
RESERVED = frozenset({"step", "status", "window", "repeat", "block", "trial", "le", "state", "experiment", "role"})

Labels = Mapping[str, object]
Sample = tuple[str, Labels, float]


def render_metrics(run: FollowedRun | None, attempts: Sequence[Attempt]) -> str:
    """The text of all metric families, and the end marker."""
    families = [] if run is None else [*describe_run(run), *describe_attempts(attempts)]
    return "".join(render_family(*part) for part in families) + "# EOF\n"


def render_family(name: str, kind: str, unit: str, help_text: str, samples: Sequence[Sample]) -> str:
    """The text of one metric family; empty if it has no samples."""
    if not samples:
        return ""
    lines = [
        f"# TYPE {name} {kind}",
        *([f"# UNIT {name} {unit}"] if unit else []),
        f"# HELP {name} {escape_text(help_text)}",
    ]
    lines += [f"{name}{suffix}{write_labels(labels)} {write_number(value)}" for suffix, labels, value in samples]
    return "\n".join(lines) + "\n"


def describe_run(run: FollowedRun) -> Iterator[tuple[str, str, str, str, list[Sample]]]:
    """The metrics of the run's progress."""
    state = run.page_state()
    experiment = {"experiment": run.folder.name}
    counts = {"planned": state["planned"], "done": state["done"], "failed": state["failed"]}
    trials: list[Sample] = [("", {**experiment, "state": name}, number) for name, number in counts.items()]
    yield "loadstone_trials", "gauge", "", "Trials of the run: planned, done and failed.", trials
    yield "loadstone_running", "gauge", "", "1 while the lab is running.", [("", experiment, int(state["running"]))]
    yield (
        "loadstone_findings", "gauge", "", "The judge's findings on individual trials, excluding notes.",
        [("", experiment, sum(map(len, run.findings.values())))],
    )  # fmt: skip


def describe_attempts(attempts: Sequence[Attempt]) -> Iterator[tuple[str, str, str, str, list[Sample]]]:
    """The metrics of the trials' operations, and of the processors in use."""
    operations: list[Sample] = []
    latencies: list[Sample] = []
    due: list[Sample] = []
    cpu: list[Sample] = []
    for attempt in attempts:
        labels = labels_of(attempt)
        for phase, steps in attempt.steps.items():
            window = {**labels, "window": LOAD if phase == LOAD else "measured"}
            for (step, status), count in steps.counts.items():
                key = {"step": step, "status": status, **window}
                operations.append(("_total", key, count))
                # Only the current phase changes between scrapes.
                rendered = steps.rendered.get((step, status), (0, ()))
                if rendered[0] != count:
                    rendered = (count, classic_histogram(steps.latencies[step, status], key))
                    steps.rendered[step, status] = rendered
                latencies += rendered[1]
            known = [row.due for row in attempt.rows[phase].values() if row.due is not None]
            if known:
                due.append(("_total", window, sum(known)))
        for use in attempt.hosts[-1:]:
            cpu += [("", {**labels, "role": role}, use[role]) for role in ("host", "engine", "servers", "steal")]
    yield "loadstone_operations", "counter", "", "Operations by step, status and window.", operations
    yield (
        "loadstone_latency_seconds", "histogram", "seconds",
        "Latency of operations: response time at a rate, else service time. The sum has three significant digits.",
        latencies,
    )  # fmt: skip
    yield "loadstone_due", "counter", "", "Operations that were due, at a rate.", due
    yield "loadstone_processors", "gauge", "", "Processors in use on the host, by role.", cpu


def labels_of(attempt: Attempt) -> dict[str, object]:
    """The labels of a trial: its variant, repeat and block. Repeats with the same number form a block."""
    config: dict[str, object] = {}
    for key in sorted(attempt.config):
        name = label_name(key)
        # Prometheus reserves labels that begin with two underscores.
        name = f"vary_{name}" if name in RESERVED or name.startswith("__") else name
        while name in config:
            name += "_"
        config[name] = attempt.config[key]
    return {**config, "repeat": attempt.repeat, "block": attempt.repeat, "trial": attempt.trial}


def label_name(name: str) -> str:
    """The label name for a dimension, which consists of letters, digits and underscores."""
    text = "".join(letter if letter.isascii() and (letter.isalnum() or letter == "_") else "_" for letter in name)
    return f"_{text}" if not text or text[0].isdigit() else text


def classic_histogram(histogram: Histogram, labels: Labels) -> list[Sample]:
    """The samples of a histogram: cumulative buckets, count and sum, in seconds."""
    # A latency counts from the first bound that is not below the latency. One search per bucket keeps a scrape cheap.
    counts, total = [0] * (len(BUCKETS) + 1), 0.0
    for index, count in histogram.counts.items():
        total += count * histogram.layout.bucket_middle(index)
        counts[bisect_left(BOUNDS_NS, histogram.layout.highest_equivalent(index))] += count
    samples: list[Sample] = [
        ("_bucket", {**labels, "le": write_number(bound)}, count)
        for bound, count in zip(BUCKETS, accumulate(counts), strict=False)
    ]
    number = histogram.count
    return [
        *samples,
        ("_bucket", {**labels, "le": "+Inf"}, number),
        ("_count", labels, number),
        ("_sum", labels, total / 1e9),
    ]


def write_labels(labels: Labels) -> str:
    """The text of labels, in braces."""
    text = ",".join(f'{name}="{escape_text(str(value))}"' for name, value in labels.items())
    return f"{{{text}}}" if text else ""


def write_number(value: Any) -> str:
    """The text of a number; a whole bucket bound has a decimal point (`1.0`), as OpenMetrics requires."""
    if isinstance(value, int):
        return str(value)
    return repr(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "+Inf"


def escape_text(text: str) -> str:
    """Escapes text for use in the quotation marks of a label or in a HELP line."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
