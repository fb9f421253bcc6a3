"""Simulated experiments whose true answer is known, and what an honest judge has to say of them.

The expectations follow from the design and the documentation (docs/checks, docs/concepts, docs/guides), not from the
judge's code.
"""

from __future__ import annotations

import io
import json
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

from rich.console import Console

from judge_support import Spoil
from loadstone.commands.reading import document, finite
from loadstone.judge.finding import Severity
from loadstone.judge.judge import judge
from loadstone.judge.judgement import Comparison, Judgement
from loadstone.report.terminal import tables
from loadstone.results.projection import Projection, project
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Scalar, Series, TrialResult
from loadstone.results.value import Value, statistic

SECONDS = 60
CLIENTS = 10
MS = 1e6
UNITS = {"throughput": "op/s", "bandwidth": "B/s", "runtime": "ns", "driver": "ns", "settle": "ns", "lag_p99": "ns"}
# Everything that the judge compares hosts and guarantees by, the same on both sides.
FACTS: Mapping[str, Scalar] = {
    "engine": "0.2.0",
    "profile": "release",
    "networked": "no",
    "durability": "os",
    "file_system": "ext4",
    "hosts": 1,
    "kernel": "6.1.0",
    "cpu_model": "EPYC 7763",
    "cpus": 16,
    "memory_bytes": 64_000_000_000,
    "device_read_bps": 1_000_000_000,
    "device_write_bps": 500_000_000,
}
# Latencies as multiples of the mean.
SHAPE = {"min": 0.1, "p10": 0.5, "p25": 0.7, "p50": 0.9, "p90": 1.6, "p95": 2.0, "p99": 3.0, "p99.9": 5.0, "max": 20.0}


def bucket(latency_ns: float) -> float:
    """The width of the bucket of an HDR histogram of 3 significant digits that a latency falls into, ns."""
    return max(1.0, 2.0 ** (math.floor(math.log2(max(latency_ns, 1.0))) - 10))


def figure(metric: str, number: float, n: int) -> Value:
    """A figure in the unit that its name tells; a percentile is the upper edge of its bucket."""
    last = statistic(metric)
    if last.startswith("p") and last[1:2].isdigit():
        step = bucket(number)
        return Value(metric, math.ceil(number / step) * step, "ns", n, None, step)
    return Value(metric, number, "ns" if last in ("mean", "min", "max") else UNITS.get(last, ""), n)


def typical(n: int, deviation: float, seed: object) -> list[float]:
    """n factors around 1 that are spread as a normal distribution is, in an order drawn by the seed.

    They are quantiles, not draws: a sample of them is neither lucky nor unlucky.
    """
    normal = NormalDist()
    factors = [math.exp(deviation * normal.inv_cdf((at + 0.5) / n)) for at in range(n)]
    random.Random(repr(seed)).shuffle(factors)
    return factors


def trial(system: str, block: int, rate: float, target: float | None = None, mean_ns: float = 10 * MS) -> TrialResult:
    """A minute of reads of 1 kB by ten clients, with nothing wrong.

    In a closed loop the latencies follow from the rate; at a target they are around `mean_ns`, and `rate` is what the
    system did of the target.
    """
    operations = round((target or rate) * SECONDS)
    mean = 0.98e9 * CLIENTS / rate if target is None else mean_ns
    latencies = {name: mean * factor for name, factor in SHAPE.items()} | {"mean": mean}
    figures: dict[str, float] = {f"{kind}.{name}": each for kind in ("read", "all") for name, each in latencies.items()}
    if target is not None:
        figures |= {f"read.{kind}.{name}": each for kind in ("lower", "service") for name, each in latencies.items()}
        figures["due"] = operations
    figures |= {
        "throughput": rate,
        "runtime": SECONDS * 1e9,
        "operations": operations,
        "read.count": operations,
        **dict.fromkeys(("errors", "not_yet", "censored", "carried.max", "unclosed", "saturated"), 0),
        **dict.fromkeys(("late.generator", "late.client", "wrong", "clock.jumps", "load.errors"), 0),
        "carried": CLIENTS,
        "verified": operations,
        "returned": 1000 * operations,
        "stored": 0,
        # Nine reads of ten reach the device, which gives a page of 4 kB for each.
        "device.reads": 0.9 * operations,
        "device.read": 0.9 * 4096 * operations,
        "device.read_per_operation": 0.9 * 4096,
        "device.written": 0,
        "device.written_per_operation": 0,
        "device.written_after": 0,
        "device.utilisation": 0.5,
        "engine.read": 0.9 * 4096 * operations,
        "engine.written": 0,
        "cpu.engine": 0.5,
        "cpu.busy": 0.1,
        "cpu.iowait": 0.1,
        "cpu.steal": 0.001,
        "cpu.others": 0.005,
        "io.others": 0,
        "executor.lag_p99": 60_000,
        "executor.lag_max": 400_000,
        "driver": 2_000,
        "segments": 1,
        "segments.lost": 0,
        "load.operations": 1_000_000,
        "load.throughput": 50_000,
        "load.settle": 1e9,
    }
    values = {metric: figure(metric, each, operations) for metric, each in figures.items()}
    loop = "closed" if target is None else "open"
    statuses = {"READ": {"OK": operations}}
    return TrialResult(
        f"{system}-{block}", {"system": system}, block, values, CLIENTS, loop, dict(FACTS), statuses=statuses
    )


Shape = Callable[[int], float]


def course(
    of: TrialResult, rates: Shape = lambda _: 1.0, latencies: Shape = lambda _: 1.0, seconds: int = 60
) -> Series:
    """A trial's minute, second by second, with a noise of 1 %; the shapes multiply throughput and latencies."""
    jitter = typical(seconds, 0.01, ("series", of.trial))
    throughput = [of.values["throughput"].value * rates(at) * jitter[at] for at in range(seconds)]
    p50, p99 = (
        tuple((of.value(f"read.{name}") or 1.0) * latencies(at) / jitter[at] for at in range(seconds))
        for name in ("p50", "p99")
    )
    due = of.value("due")
    return Series(
        tuple(map(float, range(seconds))),
        (1.0,) * seconds,
        tuple(throughput),
        p50,
        p99,
        (0,) * seconds,
        () if due is None else (round(due / seconds),) * seconds,
        tuple(map(round, throughput)),
    )


def world(
    rates: Mapping[str, float] | None = None,
    repeats: int = 6,
    noise: float = 0.01,
    drift: float = 0.0,
    spoil: Spoil | None = None,
    make: Callable[[str, int, float], TrialResult] = trial,
    minute: Callable[[TrialResult], Series | None] = course,
    **fields: Any,
) -> ResultSet:
    """Interleaved systems by their true rates, op/s: repeats differ by `noise`, the machine slows down by `drift`."""
    rates = rates or {"rocksdb": 1000.0, "lmdb": 4000 / 3}
    factors = {system: typical(repeats, noise, (system, noise)) for system in rates}
    made = []
    for block in range(1, repeats + 1):
        slower = 1 - drift * (block - 1) / max(repeats - 1, 1)
        for system, rate in rates.items():
            one = make(system, block, rate * slower * factors[system][block - 1])
            made.append(replace(one if spoil is None else spoil(one), order=len(made)))
    return of_trials(made, minute, **fields)


def of_trials(
    trials: Iterable[TrialResult], minute: Callable[[TrialResult], Series | None] = course, **fields: Any
) -> ResultSet:
    """Our own trials with what belongs to them: a plan, and each one's course over time."""
    made = list(trials)
    by_name = {each.trial: each for each in made}
    planned = {each.trial: each.config for each in made}
    results = ResultSet(
        "crafted", made, Question(), planned, interleaved=True, series=lambda name: minute(by_name[name])
    )
    return replace(results, **fields)


def on(system: str, spoil: Spoil, *blocks: int) -> Spoil:
    """Spoils one system's trials, in these blocks or in all."""
    return lambda one: spoil(one) if one.config["system"] == system and one.repeat in (blocks or (one.repeat,)) else one


def bounded(metric: str, bound: Any) -> Spoil:
    """Makes a figure a bound."""
    return lambda one: replace(one, values={**one.values, metric: replace(one.values[metric], bound=bound)})


def scaled(metrics: Iterable[str], factor: float) -> Spoil:
    """Figures a few times as large."""

    def spoil(one: TrialResult) -> TrialResult:
        changed = {
            metric: figure(metric, one.values[metric].value * factor, one.values[metric].n) for metric in metrics
        }
        return replace(one, values={**one.values, **changed})

    return spoil


def faster(factor: float) -> Spoil:
    """The same trial at another speed, with everything that follows from it."""
    return lambda one: trial(str(one.config["system"]), one.repeat, one.values["throughput"].value * factor)


def failed(share: float) -> Spoil:
    """This share of the operations failed at once, evenly over the minute."""

    def spoil(one: TrialResult) -> TrialResult:
        operations = round(one.values["operations"].value)
        errors = round(share * operations)
        made = replace(one, statuses={"READ": {"OK": operations - errors, "ERROR": errors}})
        made = scaled(("throughput", "read.count"), 1 - share)(made)
        made = replace(made, values={**made.values, "errors": figure("errors", errors, operations)})
        for kind in ("read", "all"):
            for percentile, beyond in (("p99.9", 0.001), ("p99", 0.01), ("p95", 0.05), ("p90", 0.1), ("max", 0)):
                if share > beyond:
                    made = bounded(f"{kind}.{percentile}", "failed")(made)
        return made

    return spoil


def parts(count: int) -> tuple[str, ...]:
    """Names of figures that nobody knows which way should differ: less is better."""
    return tuple(f"engine.part{number:02}" for number in range(count))


def with_parts(count: int, repeats: int = 6, noise: float = 0.05) -> Spoil:
    """So many figures more, in which the sides do not differ."""

    def spoil(one: TrialResult) -> TrialResult:
        factors = {name: typical(repeats, noise, (name, one.config))[one.repeat - 1] for name in parts(count)}
        extra = {name: Value(name, 1e6 * factor, "ns", 60_000) for name, factor in factors.items()}
        return replace(one, values={**one.values, **extra})

    return spoil


@dataclass(frozen=True)
class Judged:
    """What the judge says of one experiment."""

    results: ResultSet
    metric: str
    # Which comparison is meant where there are several: the contender, the context.
    contender: Scalar | None = None
    context: Mapping[str, Scalar] = field(default_factory=dict)

    @cached_property
    def judgement(self) -> Judgement:
        """The judgement."""
        return judge(self.results)

    @cached_property
    def comparison(self) -> Comparison | None:
        """The comparison that is meant."""
        found = [
            each
            for each in self.judgement.comparisons
            if each.metric == self.metric
            and self.contender in (None, dict(each.contender.variant).get(each.by))
            and self.context.items() <= dict(each.context).items()
        ]
        return found[0] if found else None

    @property
    def claim(self) -> str:
        """What is claimed, `absent` without a comparison."""
        return "absent" if self.comparison is None else self.comparison.claim

    @property
    def winner(self) -> Scalar | None:
        """The side that is said to be better."""
        if self.comparison is None or self.claim not in ("better", "worse"):
            return None
        side = self.comparison.contender if self.claim == "better" else self.comparison.baseline
        return dict(side.variant)[self.comparison.by]

    @property
    def fired(self) -> dict[str, str]:
        """The checks that fired, each with its worst severity."""
        worst: dict[str, Any] = {}
        for each in self.judgement.all_findings:
            worst[each.check] = max(worst.get(each.check, each.severity), each.severity, key=list(Severity).index)
        return {check: severity.name.lower() for check, severity in worst.items()}

    @cached_property
    def said(self) -> str:
        """Everything that a user can read of it without opening the report."""
        console = Console(file=io.StringIO(), width=400, highlight=False)
        projected = project(self.results, Projection())
        tables.show(console, judge(projected.results), projected)
        assert isinstance(console.file, io.StringIO)
        messages = [f"{each.message} {each.hint}" for each in self.judgement.all_findings]
        as_json = json.dumps(finite(document(self.judgement)), ensure_ascii=False, default=str)
        return "\n".join([self.judgement.answer, *messages, as_json, console.file.getvalue()])

    def actual(self) -> str:
        """What the judge said, in one line."""
        ratio = "none" if self.comparison is None else self.comparison.ratio
        verdict = "" if self.comparison is None else self.comparison.verdict
        why = "" if self.comparison is None else self.comparison.why
        return f"{self.claim} {why} ratio={ratio} verdict={verdict} fired={self.fired} answer={self.judgement.answer!r}"


@dataclass(frozen=True)
class Expectation:
    """One thing that an honest judge must say."""

    text: str
    holds: Callable[[Judged], bool]


@dataclass(frozen=True)
class Case:
    """A world, what goes wrong in it, and what must be said of it."""

    name: str
    results: Callable[[], ResultSet]
    expect: tuple[Expectation, ...]
    metric: str = "throughput"
    contender: Scalar | None = None
    context: Mapping[str, Scalar] = field(default_factory=dict)

    def judged(self) -> Judged:
        """What the judge says."""
        return Judged(self.results(), self.metric, self.contender, self.context)


def wins(system: Scalar, ratio: float, spread: float = 0.03) -> Expectation:
    """A claim for this side. `ratio` is the true one, contender ÷ baseline, and lies in the interval."""

    def holds(said: Judged) -> bool:
        found = said.comparison
        if found is None or said.winner != system or found.ratio.low is None or found.ratio.high is None:
            return False
        near = abs(found.ratio.value / ratio - 1) <= spread
        return near and found.ratio.low <= ratio <= found.ratio.high and not found.ratio.low <= 1 <= found.ratio.high

    return Expectation(f"{system} wins, ratio {ratio:g}", holds)


def wins_by_a_bound(system: Scalar, low: float, high: float) -> Expectation:
    """A claim for this side with a bound instead of a ratio."""

    def holds(said: Judged) -> bool:
        bounds = [float(each) for each in re.findall(r"at least (\d+\.?\d*)", said.said)]
        return said.winner == system and any(low <= each <= high for each in bounds)

    return Expectation(f"{system} wins by at least {low:g} to {high:g}", holds)


def favours(system: Scalar) -> Expectation:
    """A claim for this side, as a ratio or as a bound."""
    return Expectation(f"{system} wins", lambda said: said.winner == system)


def no_claim() -> Expectation:
    """Whatever else is said, neither side wins, and they are not called equal."""
    return Expectation(
        "no claim", lambda said: said.winner is None and "no difference that matters" not in said.judgement.answer
    )


def not_for(system: Scalar) -> Expectation:
    """Whatever else is said, this side does not win."""
    return Expectation(f"{system} does not win", lambda said: said.winner != system)


def not_trusted() -> Expectation:
    """No claim, or one that is not valid."""
    return Expectation(
        "no valid claim",
        lambda said: said.winner is None or said.comparison is None or str(said.comparison.verdict) != "valid",
    )


def undecided() -> Expectation:
    """`~`: neither a difference nor equality was shown."""
    return Expectation(
        "undecided (~)",
        lambda said: said.claim == "none" and "no difference that matters" not in said.judgement.answer,
    )


def same() -> Expectation:
    """Shown to be equal for all that matters."""
    return Expectation(
        "no difference that matters",
        lambda said: said.winner is None and "no difference that matters" in said.said,
    )


def same_or_differs_little() -> Expectation:
    """Equal for all that matters; whether the rest is certain is left open."""
    return Expectation(
        "no difference that matters, or one that is less than matters",
        lambda said: same().holds(said) or differs_little().holds(said),
    )


def differs_little() -> Expectation:
    """A difference that is certain and smaller than matters."""
    return Expectation(
        "differs, but by less than matters",
        lambda said: said.winner is None and "by less than matters" in said.said,
    )


def refused(*checks: str) -> Expectation:
    """No claim, because of one of these checks."""
    return Expectation(
        f"refused by {' or '.join(checks)}",
        lambda said: said.claim == "refused" and any(said.fired.get(check) == "invalid" for check in checks),
    )


def unranked() -> Expectation:
    """No claim, as one side's figure is a bound."""
    return Expectation("not ranked, as a figure is a bound", lambda said: said.claim == "unranked")


def too_few() -> Expectation:
    """A ratio without a claim, as there are too few repeats."""
    return Expectation(
        "no claim possible, too few repeats",
        lambda said: said.claim == "impossible" and said.comparison is not None and said.comparison.p is None,
    )


def verdict(*names: str) -> Expectation:
    """The verdict of the comparison."""
    return Expectation(
        f"verdict {' or '.join(names)}",
        lambda said: said.comparison is not None and str(said.comparison.verdict) in names,
    )


def fires(check: str, *severities: str) -> Expectation:
    """A check speaks up, with one of these severities or with any."""
    return Expectation(
        f"{check} fires {' or '.join(severities)}".strip(),
        lambda said: check in said.fired and (not severities or said.fired[check] in severities),
    )


def silent(check: str) -> Expectation:
    """A check has nothing to say."""
    return Expectation(f"{check} is silent", lambda said: check not in said.fired)


def says(pattern: str) -> Expectation:
    """A text that a user can read."""
    return Expectation(f"says {pattern!r}", lambda said: re.search(pattern, said.said) is not None)
