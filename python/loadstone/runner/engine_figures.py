"""Converts an engine's summary into figures: values in base units, with the names of loadstone.results.value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from loadstone.engine.events import CENSORED, COMPOSED, NOT_YET, TIMED_STEPS, Executor, Outcome, Result, Summary
from loadstone.engine.histogram import decode_histogram
from loadstone.results.value import PERCENTILES, Value
from loadstone.statistics.percentile import Population

# The name for all operations together.
ALL = "all"


# The latencies of an outcome, keyed by the suffix of metric names. `lower` excludes the generator's own lateness.
TIMES: dict[str, Callable[[Outcome], str | None]] = {
    "response": lambda outcome: outcome.response,
    # Older engines do not report the lower bound; an operation that never completed then has only its response time.
    "lower": lambda outcome: outcome.response_lower or (outcome.response if outcome.status == CENSORED else None),
    "service": lambda outcome: outcome.service,
}


def summarize_run(result: Result, memory_max: int, prefix: str = "") -> Iterator[Value]:
    """The figures of one phase, with `prefix` before their names; `memory_max` comes from the phase's intervals."""
    summary = result.summary
    if summary.measured_ns:
        yield Value(f"{prefix}throughput", summary.throughput, "op/s", summary.completed)
    yield Value(f"{prefix}runtime", float(summary.measured_ns), "ns", 1)
    yield Value(f"{prefix}operations", summary.operations, "operations", summary.operations)
    # In an open loop, operations that never completed mean that the rate is too high, which a separate check reports.
    # In a closed loop, the store sets the pace, so an unanswered operation is a failure.
    unanswered = summary.in_flight + summary.carried.unanswered if summary.due is None else 0
    yield Value(f"{prefix}errors", summary.failures + unanswered, "operations", summary.operations)
    yield Value(f"{prefix}not_yet", summary.not_yet, "operations", summary.operations)
    yield from attempts(summary, unanswered, prefix)
    if summary.due is not None:
        yield Value(f"{prefix}due", summary.due, "operations", summary.due)
    yield Value(f"{prefix}censored", summary.never_ended, "operations", summary.operations + summary.never_ended)
    carried = summary.carried.ended + summary.carried.unanswered + summary.carried.unsent
    yield Value(f"{prefix}carried", carried, "operations", carried)
    if carried:
        yield Value(f"{prefix}carried.max", summary.carried.ns_max, "ns", carried)
    if summary.settle_seconds is not None:
        yield Value(f"{prefix}settle", summary.settle_seconds * 1e9, "ns", 1)
    yield from latencies(summary, prefix)
    for name, late in (("generator", summary.late_generator), ("client", summary.late_client)):
        yield Value(f"{prefix}late.{name}", late, "operations", summary.operations)
    if summary.measured_ns:
        yield Value(f"{prefix}cpu.engine", sum(summary.cpu_ns) / summary.measured_ns, "processors", 1)
    yield from executor_figures(summary.executors, prefix)
    yield Value(f"{prefix}clock.jumps", summary.clock.jumps, "jumps", 1)
    yield Value(f"{prefix}unclosed", summary.unclosed, "clients", 1)
    yield Value(f"{prefix}saturated", summary.saturated_values, "operations", summary.operations)
    yield Value(f"{prefix}driver", result.ready.driver_ns, "ns", 1)
    # The kernel's maximum in the summary is not used, because it includes the lab's memory at the fork.
    if memory_max:
        yield Value(f"{prefix}engine.memory_max", memory_max, "B", 1)
    yield Value(f"{prefix}engine.read", summary.device_bytes[0], "B", 1)
    yield Value(f"{prefix}engine.written", summary.device_bytes[1], "B", 1)
    yield from verification_figures(summary, prefix)


def attempts(summary: Summary, unanswered: int, prefix: str) -> Iterator[Value]:
    """Figures about attempts at operations (including retries), attempts to connect, and pauses of clients."""
    total = summary.operations + summary.retried
    yield Value(f"{prefix}attempts", total, "attempts", total)
    yield Value(f"{prefix}attempts.failed", summary.failures + unanswered + summary.retried, "attempts", total)
    for status, count in summary.retried_by_status.items():
        yield Value(f"{prefix}attempts.retried.{status.lower()}", count, "attempts", total)
    yield Value(f"{prefix}unsent", summary.unsent + summary.unreached, "operations", summary.operations)
    yield Value(f"{prefix}unsent.unreached", summary.unreached, "operations", summary.operations)
    if summary.due is not None:
        yield Value(f"{prefix}overdue", summary.overdue, "operations", summary.operations)
    if summary.pauses.count:
        yield Value(f"{prefix}pauses", summary.pauses.count, "pauses", summary.pauses.count)
        yield Value(f"{prefix}pauses.sum", summary.pauses.ns_sum, "ns", summary.pauses.count)
    if (connecting := summary.connection_attempts) is not None:
        yield Value(f"{prefix}connections.attempted", connecting.attempted, "attempts", connecting.attempted)
        yield Value(f"{prefix}connections.failed", connecting.failed, "attempts", connecting.attempted)


def executor_figures(executors: Sequence[Executor], prefix: str) -> Iterator[Value]:
    """The utilisation of the busiest executor, and the worst wake-up delays.

    The conductor is excluded: it has no clients and does not limit the load. Clients that run in separate threads have
    no executor; only the engine's share of all processors shows their utilisation.
    """
    if busy := [executor.busy for executor in executors if executor.clients]:
        yield Value(f"{prefix}executor.busy_max", max(busy), "share", 1)
    if held_ns := max((executor.held_ns for executor in executors), default=0):
        yield Value(f"{prefix}executor.held_max", held_ns, "ns", 1)
    lags = [lag for executor in executors if (lag := decode_histogram(executor.lag)).count]
    if lags:
        ticks = sum(lag.count for lag in lags)
        yield Value(f"{prefix}executor.lag_p99", max(lag.value_at_quantile(0.99) for lag in lags), "ns", ticks)
        yield Value(f"{prefix}executor.lag_max", max(lag.value_at_quantile(1) for lag in lags), "ns", ticks)


def latencies(summary: Summary, prefix: str) -> Iterator[Value]:
    """The latency of each operation: service time and, in an open loop, also response time and its lower bound."""
    open_loop = any(outcome.response is not None for outcome in summary.outcomes)
    kinds = ["response", "lower", "service"] if open_loop else ["service"]
    if not any(outcome.response_lower is not None for outcome in summary.outcomes):
        kinds = [kind for kind in kinds if kind != "lower"]
    for kind in kinds:
        suffix = f".{kind}" if open_loop and kind != "response" else ""
        for operation, (population, mean) in group_by_operation(summary.outcomes, kind).items():
            yield from quantiles(f"{prefix}{operation}{suffix}", population, mean)
        if summary.operations and kind != "lower":
            mean = time_ns(summary.outcomes, kind) / summary.operations
            yield Value(f"{prefix}{ALL}{suffix}.mean", mean, "ns", summary.operations)


def group_by_operation(outcomes: Iterable[Outcome], kind: str) -> dict[str, tuple[Population, float]]:
    """The latencies of all operations that were due, and the mean latency of successful operations, ns; both keyed by
    operation in lower case, and by `all`.

    A read of a record whose insert or delete was in flight reveals nothing about the store, so it is excluded.
    """
    populations: dict[str, Population] = defaultdict(Population)
    sums: dict[str, float] = defaultdict(float)
    for outcome in outcomes:
        text = TIMES[kind](outcome)
        if text is None or outcome.status == NOT_YET or not outcome.count:
            continue
        population, time = Population(), 0.0
        if outcome.is_failure:
            population.failed = outcome.count
        elif outcome.status == CENSORED:
            population.censored = decode_histogram(text)
        else:
            population.well = decode_histogram(text)
            time = total_ns(outcome, kind)
        names = [outcome.operation.lower()]
        # A composed operation is represented by its parts, which are reported only when the whole operation completes.
        if outcome.operation not in TIMED_STEPS and (outcome.operation not in COMPOSED or outcome.status == CENSORED):
            names.append(ALL)
        for name in names:
            populations[name].add_population(population)
            sums[name] += time
    return {
        name: (population, sums[name] / population.well.count if population.well.count else 0.0)
        for name, population in populations.items()
    }


def total_ns(outcome: Outcome, kind: str) -> float:
    """The total time of an outcome's operations, ns: exact if the engine reports it, otherwise from the histogram."""
    exact = {"service": outcome.service_ns_sum, "response": outcome.response_ns_sum}.get(kind)
    if exact is not None:
        return float(exact)
    text = TIMES[kind](outcome)
    histogram = decode_histogram(text) if text is not None else None
    return histogram.mean * histogram.count if histogram is not None and histogram.count else 0.0


def time_ns(outcomes: Iterable[Outcome], kind: str) -> float:
    """The total time of all operations, including failures, for Little's law."""
    ended = (outcome for outcome in outcomes if outcome.count and outcome.status != CENSORED)
    return sum(total_ns(outcome, kind) for outcome in ended if outcome.operation not in TIMED_STEPS | COMPOSED)


def quantiles(name: str, population: Population, mean: float) -> Iterator[Value]:
    """The latency figures of one operation; the judge decides which percentiles have too few values above them.

    Count, mean and minimum cover successful operations; percentiles and maximum cover every operation that was due.
    """
    every = population.count
    if not every:
        return
    if count := population.well.count:
        yield Value(f"{name}.count", count, "operations", count)
        yield Value(f"{name}.mean", mean, "ns", count)
        yield Value(f"{name}.min", population.well.minimum, "ns", count)
    names = {**PERCENTILES, "max": 1.0}
    for statistic, percentile in zip(names, population.read_percentiles(list(names.values())), strict=True):
        yield Value(f"{name}.{statistic}", percentile.value, "ns", every, percentile.bound)


def verification_figures(summary: Summary, prefix: str) -> Iterator[Value]:
    """The number of verified values, the share compared in full, and the number of wrong values."""
    counts = [(outcome.status, outcome.count) for outcome in summary.outcomes if outcome.operation == "VERIFY"]
    if counts:
        total = sum(count for _, count in counts)
        yield Value(f"{prefix}verified", total, "values", total)
        if summary.compared:
            yield Value(f"{prefix}verified.whole", summary.compared / total, "share", total)
        yield Value(f"{prefix}wrong", sum(count for status, count in counts if status != "OK"), "values", total)


def statuses(summary: Summary) -> dict[str, dict[str, int]]:
    """The number of operations, keyed by operation and status."""
    by_operation: dict[str, dict[str, int]] = {}
    for outcome in (outcome for outcome in summary.outcomes if outcome.count):
        counts = by_operation.setdefault(outcome.operation, {})
        counts[outcome.status] = counts.get(outcome.status, 0) + outcome.count
    return by_operation
