"""Every figure of a fault equals a calculation from the operations of a scripted store."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from event_support import summary
from loadstone.engine.events import KeyRanges, Outcome
from loadstone.engine.histogram import encode_histogram
from loadstone.results.trial_result import TrialResult, values_by_metric
from loadstone.results.value import Value
from loadstone.runner.fault_figures import (
    DEFAULTS,
    FaultInterval,
    Options,
    attempt_figures,
    figures_of_faults,
    read_ranges,
)
from loadstone.statistics.availability import (
    SECOND_NS,
    OfferedLoad,
    clopper_pearson,
    find_recovery,
    line_before,
    measure_dip,
    window_of,
)
from simulated_store import (
    INTERVAL_NS,
    MILLISECOND,
    SECOND,
    SERVICE_NS,
    Operation,
    SimulatedStore,
    Span,
    fault,
    histogram_of,
)

DEADLINE_NS = 50 * MILLISECOND
SCHEDULES = 1000


def figures(store: SimulatedStore, order_ns: int, lift_ns: int | None, **options: int) -> dict[str, Value]:
    rows = store.rows(store.operations())
    return {value.metric: value for value in figures_of_faults([fault(order_ns, lift_ns)], rows, Options(**options))}


def is_good(operation: Operation) -> bool:
    return operation.status == "OK" and operation.response_ns is not None and operation.response_ns <= DEADLINE_NS


def outage_of(operations: list[Operation], from_ns: int, end_ns: int) -> float:
    """The outage in ns, computed from the operations by the definition of an outage."""
    due: Counter[int] = Counter()
    good: Counter[int] = Counter()
    for operation in operations:
        due[operation.due_ns // INTERVAL_NS] += 1
        good[operation.due_ns // INTERVAL_NS] += is_good(operation)
    first = from_ns // INTERVAL_NS
    return sum((1 - good[at] / due[at]) * INTERVAL_NS for at in range(first, end_ns // INTERVAL_NS))


@pytest.mark.parametrize("clients", [4, 32, 256])
def test_refused_outage_is_independent_of_clients(clients: int) -> None:
    store = SimulatedStore(100, 120, [Span(60 * SECOND, 72 * SECOND, "refuse")], clients)
    measured = figures(store, 60 * SECOND, 72 * SECOND)
    assert measured["outage"].value == pytest.approx(12 * SECOND)
    assert measured["longest_gap"].value == measured["width"].value == 12 * SECOND
    assert measured["depth"].value == 1
    assert measured["first_error"].value == pytest.approx(MILLISECOND / 5, rel=1e-3)
    assert (measured["recovered"].value, measured["recovered"].bound) == (0, None)
    assert measured["recovered.held"].value == 48 * SECOND
    assert measured["during.failed.service_unavailable"].value == measured["during.failed"].value == 12 * 100
    assert measured["during.yield"].value == 0
    assert measured["after.yield"].value == measured["before.yield"].value == 1
    assert measured["during.read.p50"].bound == "failed"
    assert measured["before.read.p99"].value == pytest.approx(SERVICE_NS, rel=1e-3)


DEADLINES_NS = tuple(DEADLINE_NS << at for at in range(8))


def count_ranges(
    store: SimulatedStore, every: int, operations: Sequence[Operation], deadlines_ns: Sequence[int] = DEADLINES_NS
) -> KeyRanges:
    """The counts that the engine would report if operation n belonged to key range n % every."""
    intervals = store.end_ns // INTERVAL_NS
    sent = np.zeros((every, intervals), dtype=int)
    good = np.zeros((len(deadlines_ns), every, intervals), dtype=int)
    for number, operation in enumerate(operations):
        place = number % every, operation.due_ns // INTERVAL_NS
        sent[place] += 1
        within = np.searchsorted(deadlines_ns, operation.response_ns or 0)
        if operation.status == "OK" and operation.response_ns is not None and within < len(deadlines_ns):
            good[within, *place] += 1
    return KeyRanges(
        interval_ns=INTERVAL_NS,
        shares=(1 / every,) * every,
        sent=tuple(map(tuple, sent.tolist())),
        deadlines_ns=tuple(deadlines_ns),
        good=tuple(tuple(map(tuple, table)) for table in good.tolist()),
    )


def range_figures(
    store: SimulatedStore, ranges: KeyRanges, order_ns: int, lift_ns: int, options: Options = DEFAULTS
) -> dict[str, Value]:
    rows = store.rows(store.operations())
    return {
        value.metric: value for value in figures_of_faults([fault(order_ns, lift_ns)], rows, options, ranges=ranges)
    }


@pytest.mark.parametrize("mode", ["refuse", "pause", "slow", "never"])
def test_fault_of_a_third_is_its_ranges_outage(mode: str) -> None:
    store = SimulatedStore(90, 60, [Span(30 * SECOND, 40 * SECOND, mode, every=3)], 4000)
    operations = store.operations()
    measured = range_figures(store, count_ranges(store, 3, operations), 30 * SECOND, 40 * SECOND)
    assert measured["range.outage"].value == pytest.approx(outage_of(operations[::3], 30 * SECOND, store.end_ns))
    assert measured["range.outage"].value == pytest.approx(3 * measured["outage"].value)
    assert measured["range.longest_gap"].value == pytest.approx(10 * SECOND, abs=INTERVAL_NS)
    assert measured["longest_gap"].value == 0
    assert (measured["range.interrupted"].value, measured["range.interrupted"].n) == (1, 3)
    assert measured["range.affected"].value == pytest.approx(1 / 3)
    assert measured["range.affected"].bound is None


def test_outage_of_ranges_adds_up_to_the_total() -> None:
    chooser = random.Random(40)
    for seed in range(SCHEDULES // 20):
        order_ns = chooser.randrange(12 * SECOND, 14 * SECOND)
        ends = sorted(order_ns + chooser.randrange(8 * SECOND) for _ in range(2))
        mode = chooser.choice(("refuse", "silent", "pause", "slow"))
        store = SimulatedStore(120, 24, [Span(ends[0], ends[1] + 1, mode, chooser.choice((1, 2, 4)))], 4000)
        operations = store.operations()
        measured = range_figures(store, count_ranges(store, 4, operations), order_ns, order_ns + 8 * SECOND)
        by_range = [outage_of(operations[at::4], order_ns, store.end_ns) for at in range(4)]
        assert measured["range.outage"].value == pytest.approx(max(by_range), abs=1), seed
        assert measured["outage"].value == pytest.approx(sum(by_range) / 4, abs=1), seed


def test_unsent_operations_extend_the_outage_of_ranges() -> None:
    # All clients wait for the store until the end, so most operations are never sent.
    store = SimulatedStore(100, 60, [Span(30 * SECOND, 60 * SECOND, "never")], 4)
    operations = store.operations()
    ranges = count_ranges(store, 4, operations[: 30 * 100 + 4])
    measured = range_figures(store, ranges, 30 * SECOND, 40 * SECOND)
    assert measured["outage"].value == measured["range.outage"].value == 30 * SECOND
    assert measured["range.longest_gap"].value == 30 * SECOND
    assert (measured["range.interrupted"].value, measured["range.affected"].value) == (4, 1)


def test_failures_outside_the_fault_interrupt_no_range() -> None:
    # The outage ends 1 s before the fault, and one operation in a hundred fails afterwards.
    unlucky = frozenset(range(3000, 6000, 101))
    store = SimulatedStore(100, 60, [Span(20 * SECOND, 29 * SECOND, "refuse", every=4)], 4000, unlucky=unlucky)
    measured = range_figures(store, count_ranges(store, 4, store.operations()), 30 * SECOND, 40 * SECOND)
    assert measured["range.interrupted"].value == measured["range.affected"].value == 0
    assert measured["range.outage"].value < SECOND


@pytest.mark.parametrize(("length_ms", "interrupted"), [(300, 0), (700, 1)])
def test_half_a_second_interrupts_a_range(length_ms: int, interrupted: int) -> None:
    end_ns = 31 * SECOND + length_ms * MILLISECOND
    store = SimulatedStore(200, 60, [Span(31 * SECOND, end_ns, "refuse", every=4)], 4000)
    measured = range_figures(store, count_ranges(store, 4, store.operations()), 30 * SECOND, 40 * SECOND)
    assert measured["range.interrupted"].value == interrupted
    assert measured["range.outage"].value == pytest.approx(length_ms * MILLISECOND)


def test_range_with_few_operations_is_not_judged() -> None:
    store = SimulatedStore(100, 60)
    ranges = count_ranges(store, 2, store.operations())
    # The second range received only 19 operations after the fault began, and all of them failed.
    sparse = tuple(int(300 <= at < 319) for at in range(600))
    counts = replace(ranges, sent=(ranges.sent[0], sparse), good=tuple((table[0], (0,) * 600) for table in ranges.good))
    rows = [replace(row, due=5 + sparse[at], good=5, outcomes=[]) for at, row in enumerate(store.rows([]))]
    options = Options(deadline_ns=DEADLINE_NS)
    measured = {
        value.metric: value
        for value in figures_of_faults([fault(30 * SECOND, 40 * SECOND)], rows, options, ranges=counts)
    }
    assert (measured["range.interrupted"].value, measured["range.interrupted"].n) == (0, 1)
    assert (measured["range.affected"].value, measured["range.affected"].bound) == (0, "at_least")


def test_deadline_without_counts_has_no_range_figures() -> None:
    store = SimulatedStore(100, 60)
    ranges = count_ranges(store, 2, store.operations())
    known = range_figures(store, ranges, 30 * SECOND, 40 * SECOND, Options(deadline_ns=DEADLINES_NS[-1]))
    unknown = range_figures(store, ranges, 30 * SECOND, 40 * SECOND, Options(deadline_ns=DEADLINES_NS[-1] + 1))
    assert "range.outage" in known
    assert not any(metric.startswith("range.") for metric in unknown)


def test_ranges_of_segments_are_added(tmp_path: Path) -> None:
    ranges = KeyRanges(100, (0.25, 0.75), ((1, 2), (3, 4)), (50,), (((1, 1), (1, 1)),))
    paths = [tmp_path / f"run.{at}.events.jsonl" for at in range(2)]
    event = summary([])
    for path in paths:
        path.write_text(json.dumps({**event, "key_ranges": asdict(ranges)}) + "\n")
    expected = replace(ranges, sent=((2, 4), (6, 8)), good=(((2, 2), (2, 2)),))
    assert read_ranges(paths) == expected
    paths[1].write_text(json.dumps({**event, "key_ranges": asdict(replace(ranges, shares=(0.5, 0.5)))}) + "\n")
    assert read_ranges(paths) is None
    paths[1].write_text(json.dumps(event) + "\n")
    assert read_ranges(paths) is None


def test_operations_in_flight_at_the_fault_are_interrupted() -> None:
    # The store is silent from 0.5 s before the fault is ordered: operations due in this time fail during the fault.
    store = SimulatedStore(100, 60, [Span(29 * SECOND + 500 * MILLISECOND, 32 * SECOND, "silent")], 4000)
    measured = figures(store, 30 * SECOND, 35 * SECOND)
    assert measured["before.failed"].value == measured["before.interrupted"].value == 50


def test_failures_before_the_fault_are_not_interrupted() -> None:
    measured = figures(SimulatedStore(100, 60, [Span(20 * SECOND, 21 * SECOND, "refuse")]), 30 * SECOND, 35 * SECOND)
    assert (measured["before.failed"].value, measured["before.interrupted"].value) == (100, 0)


def test_late_answers_of_a_pause_are_an_outage() -> None:
    store = SimulatedStore(100, 120, [Span(60 * SECOND, 70 * SECOND, "pause")], 4000)
    measured = figures(store, 60 * SECOND, 70 * SECOND)
    # Operations due in the last 48 ms of the pause were answered within the deadline.
    late = sum(operation.due_ns >= 60 * SECOND and not is_good(operation) for operation in store.operations())
    assert measured["outage"].value == pytest.approx(late / 100 * SECOND)
    assert measured["during.late"].value == late
    assert "first_error" not in measured
    assert measured["first_late"].value == DEADLINE_NS
    assert measured["during.read.p50"].value == pytest.approx(5 * SECOND + SERVICE_NS, rel=0.01)


def test_slow_restart_is_part_of_returning() -> None:
    spans = [Span(60 * SECOND, 80 * SECOND, "silent"), Span(80 * SECOND, 87 * SECOND, "refuse")]
    measured = figures(SimulatedStore(100, 150, spans, 4000), 60 * SECOND, 70 * SECOND)
    assert measured["recovered"].value == 17 * SECOND
    assert measured["recovered.held"].value == 63 * SECOND
    assert measured["returning.length"].value == 17 * SECOND
    assert measured["returning.yield"].value == 0
    assert measured["after.due"].value == 63 * 100
    assert measured["outage"].value == pytest.approx(27 * SECOND)
    assert measured["during.failed.timeout"].value == 1000
    assert measured["first_error"].value == pytest.approx(2 * SECOND, rel=1e-3)


def test_outage_without_end_is_censored() -> None:
    measured = figures(SimulatedStore(100, 150, [Span(60 * SECOND, 150 * SECOND, "refuse")]), 60 * SECOND, 80 * SECOND)
    assert (measured["recovered"].value, measured["recovered"].bound) == (70 * SECOND, "at_least")
    assert "after.due" not in measured
    assert "recovered.held" not in measured
    assert measured["returning.length"].value == 70 * SECOND


def test_survivors_carry_the_load_is_absorbed() -> None:
    measured = figures(SimulatedStore(100, 150, [Span(60 * SECOND, 64 * SECOND, "refuse")]), 60 * SECOND, 100 * SECOND)
    assert measured["absorbed"].value == 4 * SECOND
    assert measured["recovered"].value == 0


@pytest.mark.parametrize(("part_ms", "seconds"), [(60, 10), (30, 5), (20, 0)])
def test_read_modify_write_is_late_once(part_ms: int, seconds: int) -> None:
    rows = []
    for at in range(1200):
        part_ns = part_ms * MILLISECOND if 600 <= at < 700 else SERVICE_NS
        latencies = {"READ": [part_ns] * 10, "UPDATE": [part_ns] * 5, "READ-MODIFY-WRITE": [2 * part_ns] * 5}
        texts = {name: encode_histogram(histogram_of(values)) for name, values in latencies.items()}
        outcomes = [
            Outcome(operation=name, status="OK", count=len(latencies[name]), service=text, response=text)
            for name, text in texts.items()
        ]
        rows.append(FaultInterval(at * INTERVAL_NS, INTERVAL_NS, 10, good=10, outcomes=outcomes))
    record = fault(60 * SECOND, 70 * SECOND)
    measured = {value.metric: value.value for value in figures_of_faults([record], rows)}
    assert measured["outage"] == pytest.approx(seconds * SECOND)
    assert measured["during.late"] == seconds * 100


def test_fault_without_lift_is_observed_from_its_order() -> None:
    store = SimulatedStore(100, 150, [Span(60 * SECOND, 64 * SECOND, "refuse")])
    # The lab lifts the fault when the load has ended.
    record = replace(fault(60 * SECOND, None), lift_ordered_ns=151 * SECOND, lifted_ns=152 * SECOND)
    measured = {value.metric: value for value in figures_of_faults([record], store.rows(store.operations()))}
    assert (measured["recovered"].value, measured["recovered"].bound) == (4 * SECOND, None)
    assert measured["recovered.held"].value == 86 * SECOND


def test_planned_twin_does_not_move_the_lift() -> None:
    store = SimulatedStore(100, 200, [Span(60 * SECOND, 80 * SECOND, "refuse")])
    twins = [fault(50 * SECOND, 55 * SECOND, "none"), fault(140 * SECOND, 150 * SECOND, "none")]
    records = [twins[0], fault(60 * SECOND, 70 * SECOND), twins[1]]
    measured = {value.metric: value for value in figures_of_faults(records, store.rows(store.operations()))}
    assert measured["recovered"].value == measured["during.length"].value == 10 * SECOND
    assert measured["before.length"].value == 60 * SECOND


@pytest.mark.parametrize(("usable", "after_s", "rate"), [(85, 5, 2.0), (75, 0, 3.0), (None, None, 0.5)])
def test_connection_attempts_are_divided_by_unusable_time(usable: int | None, after_s: int | None, rate: float) -> None:
    store = SimulatedStore(100, 150, [Span(60 * SECOND, 80 * SECOND, "refuse")])
    usable_ns = None if usable is None else usable * SECOND
    record = replace(fault(60 * SECOND, 80 * SECOND), unusable_ns=65 * SECOND, usable_ns=usable_ns)
    measured = {value.metric: value.value for value in figures_of_faults([record], store.rows(store.operations()))}
    assert measured["unusable"] == 5 * SECOND
    assert measured.get("usable") == (None if after_s is None else after_s * SECOND)
    attempted = {85: 40, 75: 30, None: 60}[usable]
    counts = (Value("connections.attempted", attempted, "attempts", 1), Value("runtime", 185 * SECOND, "ns", 1))
    trial = TrialResult("a", {}, 1, values_by_metric(*counts), 1, "open", {}, faults=(record,))
    assert [value.value for value in attempt_figures(trial)] == [rate]


def test_unanswered_operations_are_outage_and_infinite() -> None:
    store = SimulatedStore(100, 120, [Span(60 * SECOND, 62 * SECOND, "never")], 4000)
    measured = figures(store, 60 * SECOND, 62 * SECOND)
    assert measured["outage"].value == pytest.approx(2 * SECOND)
    assert measured["during.unanswered"].value == 200
    assert measured["during.read.p50"].bound == "failed"


def check_schedule(seed: int, *, has_latencies: bool) -> None:
    """Draws a random schedule of faults, and checks that the figures equal sums over the operations."""
    draw = random.Random(seed)
    seconds, rate = draw.randint(22, 25), draw.choice((10, 20))
    order_ns = draw.randrange(12 * SECOND, 14 * SECOND)
    lift_ns = order_ns + draw.randrange(SECOND, 4 * SECOND)
    # The store is unavailable for a time within the fault, and possibly for some time after the lift.
    start_ns = order_ns + draw.randrange(0, lift_ns - order_ns)
    end_ns = draw.randrange(start_ns + 1, lift_ns + draw.choice((1, 3 * SECOND)))
    spans = [Span(start_ns, end_ns, draw.choice(("refuse", "silent", "pause", "slow", "never")))]
    unlucky = frozenset(draw.sample(range(rate * seconds), draw.choice((0, 0, 5))))
    store = SimulatedStore(rate, seconds, spans, 300, unlucky=unlucky)
    operations = store.operations()
    # If the latencies are unknown, the engine itself has counted the operations that missed the deadline.
    rows = store.rows(operations, None if has_latencies else DEADLINE_NS, has_latencies=has_latencies)
    options = Options(deadline_ns=None if has_latencies else DEADLINE_NS)
    measured = {value.metric: value.value for value in figures_of_faults([fault(order_ns, lift_ns)], rows, options)}
    case = f"seed {seed}"
    assert measured["outage"] == pytest.approx(outage_of(operations, order_ns, store.end_ns), abs=1), case
    check_windows(measured, operations, order_ns, lift_ns, case)


def test_thousand_drawn_schedules_equal_arithmetic() -> None:
    for seed in range(SCHEDULES):
        check_schedule(seed, has_latencies=False)


def test_default_deadline_counts_late_operations() -> None:
    for seed in range(20):
        check_schedule(seed, has_latencies=True)


def check_windows(
    measured: dict[str, int | float], operations: list[Operation], order_ns: int, lift_ns: int, case: str
) -> None:
    """Checks the counts of each window; an interval that contains a border belongs to the later window."""
    names = ["before", "during", "returning", "after"]
    borders = [order_ns, lift_ns, *([lift_ns + measured["recovered"]] if "recovered.held" in measured else [])]
    expected: Counter[str] = Counter()
    for operation in operations:
        interval_ns = operation.due_ns // INTERVAL_NS * INTERVAL_NS
        name = names[sum(border < interval_ns + INTERVAL_NS for border in borders)]
        expected[f"{name}.due"] += 1
        expected[f"{name}.failed"] += operation.status != "OK" and operation.response_ns is not None
        expected[f"{name}.unanswered"] += operation.response_ns is None
        expected[f"{name}.late"] += operation.status == "OK" and bool(operation.response_ns) and not is_good(operation)
    for metric, count in expected.items():
        assert measured[metric] == count, (case, metric)
    assert sum(measured.get(f"{name}.due", 0) for name in names) == len(operations), case


@pytest.mark.parametrize(("start", "window"), [(0, 0), (899, 0), (900, 0), (901, 1), (1000, 1), (1899, 1), (1901, 2)])
def test_interval_with_a_border_belongs_to_later_window(start: int, window: int) -> None:
    assert window_of(start, 100, [1000, 2000]) == window


def load_of(yields: list[float], due: float = 100.0) -> OfferedLoad:
    count = len(yields)
    starts = np.arange(count, dtype=np.int64) * INTERVAL_NS
    lengths = np.full(count, INTERVAL_NS, dtype=np.int64)
    return OfferedLoad(starts, lengths, np.full(count, due), np.array(yields) * due)


def test_empty_intervals_join_the_next_interval() -> None:
    load = load_of([1.0, 1.0, 0.0, 0.0, 1.0])
    load.due[2] = load.good[2] = 0
    assert measure_dip(load, INTERVAL_NS).outage_ns == 2 * INTERVAL_NS


def test_flapping_store_does_not_recover() -> None:
    flapping = ([1.0] * 50 + [0.0] * 50) * 6
    load = load_of([1.0] * 700 + [0.0] * 100 + flapping)
    line = line_before(load, 70 * SECOND_NS)
    assert line is not None
    recovery = find_recovery(load, line, 80 * SECOND_NS)
    assert recovery.after_ns is None or recovery.held_ns <= 10 * SECOND_NS


def test_single_relapse_postpones_recovery() -> None:
    load = load_of([1.0] * 700 + [0.0] * 100 + [1.0] * 200 + [0.0] * 50 + [1.0] * 900)
    line = line_before(load, 70 * SECOND_NS)
    assert line is not None
    assert find_recovery(load, line, 80 * SECOND_NS).after_ns == 25 * SECOND_NS


def test_line_of_strong_noise_is_not_negative() -> None:
    load = load_of(([1.0] * 50 + [0.2] * 50) * 8)
    line = line_before(load, 80 * SECOND_NS)
    assert line is not None
    assert line.median - 3 * line.noise < 0
    assert line.level == 0.0


def test_noise_rules_the_line_of_an_unsteady_host() -> None:
    source = np.random.default_rng(3)
    noisy = list(np.clip(np.repeat(source.normal(0.8, 0.08, 40), 50), 0, 1))
    line = line_before(load_of(noisy), 150 * SECOND_NS)
    assert line is not None
    assert line.level < 0.95 * line.median


def noisy_yields(source: np.random.Generator, kind: str, count: int) -> list[float]:
    """Success rates of intervals without a fault: errors, a drifting level (AR(1)), or stalls of 0.5 s on average."""
    if kind == "errors":
        return list(source.binomial(100, 0.995, count) / 100)
    if kind == "stalls":
        stalled, at = np.ones(count), source.exponential(200)
        while at < count:
            length = source.exponential(5)
            stalled[int(at) : int(at + length) + 1] = 0
            at += length + source.exponential(200)
        return list(stalled)
    level, levels = 0.0, []
    for noise in source.normal(0, 1, count):
        level = float(kind) * level + (1 - float(kind) ** 2) ** 0.5 * noise
        levels.append(min(max(0.9 + 0.05 * level, 0.0), 1.0))
    return levels


@pytest.mark.parametrize("kind", ["errors", "0.5", "0.9", "0.98", "stalls"])
def test_series_without_fault_rarely_fails_to_recover(kind: str) -> None:
    source, failures, runs = np.random.default_rng(11), 0, 100
    for _ in range(runs):
        load = load_of(noisy_yields(source, kind, 1800))
        order_ns = int(source.uniform(60, 100) * SECOND_NS)
        line = line_before(load, order_ns)
        assert line is not None
        recovery = find_recovery(load, line, order_ns + 30 * SECOND_NS)
        failures += recovery.after_ns is None
    assert binomtest(failures, runs, 0.05, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize(("count", "trials"), [(3, 20), (0, 20), (20, 20), (1, 1), (17, 300)])
def test_clopper_pearson_equals_scipy(count: int, trials: int) -> None:
    expected = binomtest(count, trials).proportion_ci(method="exact")
    assert clopper_pearson(count, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_closed_loop_has_throughput_and_no_outage() -> None:
    def row(at: int) -> FaultInterval:
        return FaultInterval(at * INTERVAL_NS, INTERVAL_NS, completed=0 if 300 <= at < 350 else 10)

    rows = [row(at) for at in range(600)]
    measured = {value.metric: value.value for value in figures_of_faults([fault(30 * SECOND, 40 * SECOND)], rows)}
    assert "outage" not in measured
    assert "recovered" not in measured
    assert measured["longest_gap"] == 5 * SECOND
    assert measured["during.throughput_share"] == 0.5
    assert measured["before.throughput"] == measured["after.throughput"] == 100
