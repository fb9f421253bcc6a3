"""Handmade result sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone.engine.histogram import Histogram, decode_histogram
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Scalar, TrialResult, values_by_metric
from loadstone.results.value import Value


def trial(name: str, config: Mapping[str, Scalar], throughput: float, repeat: int = 1, **more: Any) -> TrialResult:
    """A trial with a throughput and one latency."""
    measured = values_by_metric(
        Value("throughput", throughput, "op/s", 1000), Value("read.p99", 1e9 / throughput, "ns", 1000)
    )
    return TrialResult(trial=name, config=config, repeat=repeat, values=measured, **more)


def matrix(rates: Mapping[tuple[Scalar, ...], Sequence[float]], dimensions: Sequence[str], **more: Any) -> ResultSet:
    """A result set from the rates of each variant's repeats; a key of `rates` has the values of `dimensions`."""
    trials = [
        trial(
            f"{'-'.join(map(str, key))}-r{repeat}", dict(zip(dimensions, key, strict=True)), rate, repeat, order=repeat
        )
        for key, result in rates.items()
        for repeat, rate in enumerate(result, 1)
    ]
    question = more.pop("question", Question(by=dimensions[0]))
    return ResultSet(name=more.pop("name", "made"), trials=trials, question=question, **more)


def intervals(path: Path) -> Iterator[tuple[str, float, float, Histogram]]:
    """The lines of an interval log: tag, start and length in s, and histogram."""
    for line in path.read_text().splitlines():
        if not line.startswith(("#", '"')):
            tag, start, length, _, text = line.split(",")
            yield tag.removeprefix("Tag="), float(start), float(length), decode_histogram(text)


def merge_by_tag(histograms: Iterable[tuple[str, float, float, Histogram]]) -> dict[str, Histogram]:
    """The histograms of all intervals, added by tag."""
    entries: dict[str, Histogram] = {}
    for tag, _, _, histogram in histograms:
        entries.setdefault(tag, Histogram()).add_histogram(histogram)
    return entries
