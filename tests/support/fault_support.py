"""An experiment with faults on a scripted store: two consistency levels, each with a kill
and with its twin, in six blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from judge_cases_faults import CASSANDRA, LEDGER
from judge_support import FACTS, value
from loadstone.results.fault import FaultRecord
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Series, TrialResult, values_by_metric
from loadstone.results.value import Value
from loadstone.runner.fault_figures import DEFAULTS, FaultInterval, apply_deadline, figures_of_faults
from simulated_store import MILLISECOND, SECOND, SimulatedStore, Span, fault

RATE, SECONDS, REPEATS = 60, 200, 6
LEVELS = {"ONE": 1, "QUORUM": 3}


def instants(repeat: int) -> tuple[int, int]:
    """The instants at which the fault and its lift are ordered in a block, ns."""
    order_ns = round((70 + 20 * (repeat * 0.6180339887 % 1)) * SECOND)
    return order_ns, order_ns + 30 * SECOND


def record_of(kind: str, repeat: int) -> FaultRecord:
    """The record of a block's fault, or of its twin."""
    order_ns, lift_ns = instants(repeat)
    if kind == "none":
        return fault(order_ns, lift_ns, "none")
    record = fault(order_ns, lift_ns, kind, lift_ns + 9 * SECOND, order_ns + 21 * SECOND)
    held_ns, lifted_ns = order_ns + 40 * MILLISECOND, lift_ns + 300 * MILLISECOND
    victim = (f"node-{repeat % 3 + 1}",)
    return replace(record, servers=victim, held_ns=held_ns, lifted_ns=lifted_ns, facts={"share": 0.33})


def store_of(level: str, kind: str, repeat: int) -> SimulatedStore:
    """At ONE, requests to the killed node fail until its failure is detected.

    At QUORUM, requests for a third of the keys fail until the node is back.
    """
    order_ns, lift_ns = instants(repeat)
    if kind == "none":
        return SimulatedStore(RATE, SECONDS, [], 4000)
    back_ns = lift_ns + (9 + repeat % 3) * SECOND
    detected_ns = order_ns + 2 * SECOND
    spans = [Span(order_ns, detected_ns, "silent", 3)]
    if level == "QUORUM":
        spans.append(Span(detected_ns, back_ns, "refuse", 3))
    spans.append(Span(back_ns, back_ns + 2 * SECOND, "slow", 2))
    return SimulatedStore(RATE, SECONDS, spans, 4000)


def series_of(rows: list[FaultInterval]) -> Series:
    """The time series of a trial."""
    starts = tuple(row.start_ns / 1e9 for row in rows)
    lengths = tuple(row.length_ns / 1e9 for row in rows)
    rates = tuple((row.good + row.late) * 1e9 / row.length_ns for row in rows)
    quantiles = tuple(2e6 if row.good else None for row in rows)
    return Series(
        starts,
        lengths,
        rates,
        quantiles,
        quantiles,
        tuple(row.failed for row in rows),
        tuple(row.due or 0 for row in rows),
        tuple(row.good + row.late + row.failed for row in rows),
        tuple(row.good for row in rows),
        tuple(row.late for row in rows),
    )


@cache
def trial_of(level: str, kind: str, repeat: int) -> tuple[TrialResult, Series]:
    """One trial with its figures and its time series."""
    store = store_of(level, kind, repeat)
    rows, deadline_ns = apply_deadline(store.rows(store.operations()), instants(repeat)[0], DEFAULTS)
    record = record_of(kind, repeat)
    operations = RATE * SECONDS
    lost = repeat * 3 if (level, kind) == ("ONE", "kill") and repeat in (2, 5) else 0
    ledger = {
        **LEDGER,
        "ledger.lost_allowed": lost,
        **({"ledger.oldest": 41e6, "ledger.oldest_max": 41e6 + repeat * 1e6} if lost else {}),
    }
    figures = [
        Value("throughput", RATE * (1 + 1e-4 * len(level) + 1e-5 * repeat**2 * len(level)), "op/s", operations),
        Value("runtime", SECONDS * 1e9, "ns", 1),
        *(value(metric, figure, operations) for metric, figure in (("operations", operations), ("errors", 0))),
        *(value(metric, figure, operations) for metric, figure in (("censored", 0), ("late.client", 0))),
        *(value(metric, figure, operations) for metric, figure in (("late.generator", 0), ("segments.lost", 0))),
        *(value(metric, figure, operations) for metric, figure in (("executor.busy_max", 0.2), ("cpu.steal", 0))),
        *(value(metric, figure, operations) for metric, figure in ledger.items()),
        *figures_of_faults([record], rows, replace(DEFAULTS, deadline_ns=deadline_ns)),
    ]
    copies = {"replication": str(LEVELS[level]), "consistency": f"read {level}, write {level}"}
    facts = {**FACTS, **CASSANDRA, **copies, "target": RATE}
    trial = TrialResult(
        f"{level}-{kind}-{repeat}",
        {"level": level, "fault": kind},
        repeat,
        values_by_metric(*figures),
        4000,
        "open",
        facts,
    )
    return replace(trial, faults=(record,)), series_of(list(rows))


def experiment_with_faults(repeats: int = REPEATS) -> ResultSet:
    """Two levels, each with a kill and its twin."""
    trials = {
        trial.trial: (trial, series)
        for repeat in range(1, repeats + 1)
        for level in LEVELS
        for kind in ("none", "kill")
        for trial, series in [trial_of(level, kind, repeat)]
    }
    question = Question(
        text="What does the loss of one node of three cost at ONE and at QUORUM, and is any acknowledged write lost?",
        by="level",
        baseline="ONE",
        promises=("consistency",),
        guarantees={"level": ("consistency", "replication")},
        metrics=("outage",),
    )
    every = [trial for trial, _ in trials.values()]
    return ResultSet("cassandra-failure", every, question, interleaved=True, series=lambda name: trials[name][1])
