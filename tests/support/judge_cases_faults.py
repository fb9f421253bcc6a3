"""Crafted results that do or do not trigger the checks of faults and losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from judge_cases_failures import note_stall
from judge_support import Case, Change, both, experiment, facts, set_figures, value
from loadstone.judge.finding import Severity
from loadstone.results.fault import FaultRecord
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value

NOTE, _, UNCHECKED, SUSPECT, INVALID = Severity
SECOND = 10**9
KILL = FaultRecord(
    "kill", ("node-2",), 40 * SECOND, 60 * SECOND, None, 40 * SECOND, 41 * SECOND, 60 * SECOND, 61 * SECOND, 70 * SECOND
)
# A kill that only a command verified, and figures that show no effect of the kill.
COMMANDED = replace(KILL, facts={"verified_by": "command"})
UNAFFECTED = set_figures(deadline=1e8, during__failed=0, during__late=0, during__unanswered=0)
TWIN = FaultRecord("none", (), 40 * SECOND, 60 * SECOND)
# The figures of a fault that lasted for 20 s; the store recovered 12 s after the lift.
FIGURES: Mapping[str, float] = MappingProxyType(
    {
        "outage": 8e9,
        "recovered": 12e9,
        "recovered.held": 28e9,
        "recovered.hold": 28e9,
        "recovered.median": 1.0,
        "recovered.noise": 0.001,
        "before.failed": 0,
        "after.failed": 0,
        "before.unanswered": 0,
        "after.unanswered": 0,
        "during.failed": 6000,
        "unsent": 0,
        "censored": 0,
    }
)
CASSANDRA = {
    "store": "cassandra",
    "networked": "yes",
    "nodes": "3",
    "replication": "1",
    "consistency": "read ONE, write ONE",
    "commitlog_sync": "periodic",
    "durable_writes": "yes",
}
LEDGER = {
    "ledger.acknowledged": 50_000,
    "ledger.lost": 0,
    "ledger.lost_allowed": 0,
    "ledger.lost_loaded": 0,
    "ledger.proven": 1,
    "ledger.proved": 1,
    "ledger.stale": 0,
    "ledger.phantom": 0,
    "ledger.corrupt": 0,
}


def with_fault(fault: FaultRecord = KILL, line: tuple[float, int] = (0.95, 14), bound: str = "") -> Change:
    """A trial at a rate with one fault; `line` is the value of `recovered.line` and its number of windows."""

    def add(trial: TrialResult) -> TrialResult:
        measured = {metric: value(metric, figure) for metric, figure in {**FIGURES, **LEDGER}.items()}
        figures = {**trial.values, **measured, "recovered.line": Value("recovered.line", line[0], "share", line[1])}
        if bound:
            figures["recovered"] = Value("recovered", 40e9, "ns", 1, "at_least")
        return replace(facts(**CASSANDRA)(trial), faults=(fault,), values=figures, loop="open")

    return add


def ledger(**counts: float) -> Change:
    """A trial with a kill and these counts of its ledger."""

    def add(trial: TrialResult) -> TrialResult:
        figures = {metric: value(metric, count) for metric, count in ledger_metrics(counts).items()}
        return replace(trial, values={**trial.values, **figures})

    return both(with_fault(), add)


def ledger_metrics(counts: Mapping[str, float]) -> dict[str, float]:
    """Counts of a ledger by the names of their metrics."""
    return {f"ledger.{name}": count for name, count in counts.items()}


def fail_verification(step: str, reason: str) -> FaultRecord:
    """A kill with a step that could not be verified."""
    return replace(KILL, unverified={step: reason})


def fail_reads(trial: TrialResult) -> TrialResult:
    """Failed reads, each of which YCSB counts as a failed verification."""
    statuses = {"READ": {"OK": 43_000, "TIMEOUT": 7000}, "VERIFY": {"OK": 43_000, "ERROR": 7000}}
    return replace(set_figures(wrong=7000, before__read__count=1)(trial), statuses=statuses)


def miss_reads(window: str) -> Change:
    """Reads that found no record before or after the fault."""

    def change(trial: TrialResult) -> TrialResult:
        failed = set_figures(before__failed=1000) if window == "before" else set_figures(after__failed=1000)
        return replace(failed(trial), statuses={"READ": {"OK": 49_000, "NOT_FOUND": 1000}})

    return change


def run_closed_loop(gap_s: float) -> Change:
    """A closed loop without a failure during the fault, in which no operation completed for `gap_s` seconds."""
    change = set_figures(during__failed=0, longest_gap=gap_s * SECOND)
    return lambda trial: replace(change(trial), loop="closed")


SOUND = experiment(with_fault())
CASES = [
    Case("fault-errors", "no failure", experiment(both(with_fault(), set_figures(during__failed=0)))),
    Case(
        "fault-errors",
        "writes refused while a node is considered down",
        experiment(both(with_fault(), note_stall)),
        NOTE,
        "6,000 operations failed during the kill of node-2, the first: Unavailable: Cannot achieve consistency level"
        " TWO; 127.0.0.2:9042 was considered down from 41.0 s to 61.5 s",
    ),
    Case(
        "fault-errors",
        "the statuses of the failures, the most frequent first",
        experiment(
            both(
                with_fault(),
                set_figures(
                    during__failed__unavailable=2000, during__failed__timeout=4000, returning__failed__timeout=0
                ),
            )
        ),
        NOTE,
        "6,000 operations failed during the kill of node-2 (4,000 timeout, 2,000 unavailable)",
    ),
    Case(
        "fault-errors",
        "the statuses of a closed loop, which has no recovery",
        experiment(
            both(
                with_fault(),
                run_closed_loop(0.0),
                set_figures(during__failed=4000, during__failed__timeout=4000),
                set_figures(after__failed=1000, after__failed__refused=1000),
            )
        ),
        NOTE,
        "5,000 operations failed during the kill of node-2 (4,000 timeout, 1,000 refused)",
    ),
    Case("server-events", "quoted with the failures", experiment(both(with_fault(), note_stall))),
    *(Case(check, "a sound trial", SOUND) for check in ("fault-missed", "not-lifted", "bystander-hit")),
    *(Case(check, "a sound trial", SOUND) for check in ("before-unsteady", "not-recovered", "hidden-retries")),
    *(Case(check, "a sound trial", SOUND) for check in ("shared-host", "lost-writes", "lost-as-allowed")),
    *(Case(check, "a sound trial", SOUND) for check in ("stale", "phantom", "corrupt", "errors", "rate-not-held")),
    Case(
        "fault-missed",
        "not verified",
        experiment(with_fault(fail_verification("held", "port 9042 of node-2 still answers"))),
        INVALID,
        "kill of node-2 did not take effect: port 9042 of node-2 still answers",
    ),
    Case(
        "fault-missed",
        "never ordered",
        experiment(with_fault(FaultRecord("kill", ("node-2",), 40 * SECOND))),
        INVALID,
        "kill of node-2 did not take effect: it was never ordered",
    ),
    Case(
        "fault-missed",
        "after the window",
        experiment(with_fault(replace(KILL, ordered_ns=100 * SECOND))),
        INVALID,
        "kill of node-2 did not take effect: it was ordered outside the measured window",
    ),
    Case("fault-missed", "the twin", experiment(with_fault(TWIN))),
    Case(
        "fault-missed",
        "a wrong command on the only server",
        experiment(both(with_fault(COMMANDED), both(UNAFFECTED, facts(data_nodes=1)))),
        INVALID,
        "only the command `verify` shows that kill of node-2 took effect: no operation during it failed or was delayed",
    ),
    Case(
        "fault-missed",
        "a wrong command on one of three servers",
        experiment(
            both(
                with_fault(COMMANDED),
                both(both(UNAFFECTED, set_figures(connections__attempted=0)), facts(data_nodes=3)),
            )
        ),
        SUSPECT,
        "only the command `verify` shows that kill of node-2 took effect: no operation during it failed or was delayed,"
        " and no connection was lost",
    ),
    *(
        Case(
            "fault-missed",
            f"a command, in a closed loop with a gap of {gap} s",
            experiment(both(with_fault(COMMANDED), both(run_closed_loop(gap), facts(data_nodes=1)))),
            severity,
            text,
        )
        for gap, severity, text in (
            (9.0, INVALID, "only the command `verify` shows that kill of node-2 took effect: no operation during it"
             " failed or was delayed"),
            (10.0, None, ""),
        )
    ),
    Case(
        "fault-missed",
        "a command, and a lost connection",
        experiment(
            both(
                with_fault(COMMANDED),
                both(both(UNAFFECTED, set_figures(connections__attempted=1)), facts(data_nodes=3)),
            )
        ),
    ),
    Case(
        "fault-missed",
        "a command, and late operations",
        experiment(both(with_fault(COMMANDED), both(UNAFFECTED, set_figures(during__late=1)))),
    ),
    Case(
        "fault-missed",
        "a command, and a fault within the deadline",
        experiment(both(with_fault(COMMANDED), both(UNAFFECTED, set_figures(deadline=20e9)))),
    ),
    Case(
        "fault-missed",
        "ordered late",
        experiment(with_fault(replace(KILL, ordered_ns=42 * SECOND + SECOND // 2, lift_ordered_ns=60 * SECOND))),
        SUSPECT,
        "kill of node-2 lasted 17.5 s instead of 20.0 s, so it cannot be compared with the other faults of its block",
    ),
    Case(
        "fault-missed",
        "late and equally long",
        experiment(with_fault(replace(KILL, ordered_ns=43 * SECOND, lift_ordered_ns=63 * SECOND))),
        SUSPECT,
        "kill of node-2 began 3.00 s after its planned instant, so it cannot be compared with the other faults of its"
        " block",
    ),
    Case(
        "fault-missed",
        "a slow restart",
        experiment(
            with_fault(
                replace(KILL, kind="restart", planned_lift_ns=KILL.planned_at_ns, lift_ordered_ns=44 * SECOND)
            )
        ),
    ),
    Case(
        "fault-missed",
        "late by less than the limit",
        experiment(with_fault(replace(KILL, ordered_ns=41 * SECOND, lift_ordered_ns=60 * SECOND))),
    ),
    Case(
        "not-lifted",
        "neither verified nor lifted",
        experiment(with_fault(replace(KILL, unverified={"held": "it answers", "lifted": "no route to the host"}))),
        INVALID,
        "kill of node-2 was not lifted: no route to the host",
    ),
    Case(
        "not-lifted",
        "still down at the end",
        experiment(with_fault(replace(KILL, lifted_ns=None))),
        INVALID,
        "kill of node-2 was not lifted: the trial ended first",
    ),
    Case("not-lifted", "no lift planned", experiment(with_fault(replace(KILL, planned_lift_ns=None, lifted_ns=None)))),
    Case(
        "bystander-hit",
        "another node",
        experiment(with_fault(fail_verification("bystanders", "node-3 ended as well"))),
        INVALID,
        "kill of node-2 also hit other servers: node-3 ended as well",
    ),
    Case(
        "before-unsteady",
        "eleven windows",
        experiment(with_fault(line=(0.95, 11))),
        INVALID,
        "only 11 windows precede the fault, fewer than 12: the noise is unknown",
    ),
    Case(
        "before-unsteady",
        "half of it late",
        experiment(both(with_fault(line=(0.49, 14)), set_figures(recovered__median=0.52))),
        INVALID,
        "before the fault, only 52 % of the operations were answered in time",
    ),
    Case(
        "before-unsteady",
        "noise",
        experiment(with_fault(line=(0.3, 14))),
        INVALID,
        "the yield before the fault varies: 30 % would count as recovered",
    ),
    Case(
        "not-recovered",
        "never",
        experiment(with_fault(bound="at_least")),
        NOTE,
        "not recovered within 40.0 s after the lift",
    ),
    Case(
        "not-recovered",
        "watched too briefly",
        experiment(both(with_fault(), set_figures(recovered__held=5e9, recovered__hold=30e9))),
        SUSPECT,
        "recovered after 12.0 s, but observed for only 5.00 s instead of 30.0 s",
    ),
    Case(
        "not-recovered",
        "the twin",
        experiment(with_fault(TWIN, bound="at_least")),
        SUSPECT,
        "without a fault, the yield did not stay at its level within 40.0 s",
    ),
    Case(
        "hidden-retries",
        "a client that retries",
        experiment(both(with_fault(), facts(store="hbase"))),
        NOTE,
        "the client retries within an operation: failures appear as latency, not as failed operations",
    ),
    Case(
        "shared-host",
        "servers that were observed",
        experiment(both(with_fault(), facts(cpus=2), set_figures(server__node__cpu=1.2))),
        NOTE,
        "servers, load generator and lab share 2 processors: the restart's CPU time is part of the recovery",
    ),
    Case(
        "lost-writes",
        "older than the guarantee",
        experiment(ledger(lost=19, oldest=150e6, oldest_max=157.01e6)),
        INVALID,
        "19 of 50,000 acknowledged writes are lost, the oldest between 150 and 158 ms old; cassandra, commit log"
        " `periodic`, mapped (default), one acknowledging replica allows the loss of the last 100 ms",
    ),
    Case(
        "lost-writes",
        "unknown guarantee",
        experiment(both(ledger(lost=19, oldest=50e6), facts(store="fjall"))),
        UNCHECKED,
        "19 of 50,000 acknowledged writes are lost, the oldest at least 50.0 ms old; the guarantee of this"
        " setting is unknown",
    ),
    Case("lost-writes", "allowed", experiment(ledger(lost_allowed=19, oldest=94e6))),
    Case(
        "lost-as-allowed",
        "younger than the guarantee",
        experiment(ledger(lost_allowed=19, oldest=94e6)),
        NOTE,
        "19 of 50,000 acknowledged writes are lost, the oldest at least 94.0 ms old; cassandra, commit log `periodic`,"
        " mapped (default), one acknowledging replica allows the loss of the last 100 ms",
    ),
    Case(
        "stale",
        "at ONE",
        experiment(ledger(stale=3)),
        NOTE,
        "3 acknowledged writes are missing at the workload's consistency level, but not at the strongest",
    ),
    Case(
        "stale",
        "at QUORUM through a pause",
        experiment(
            both(
                with_fault(replace(KILL, kind="pause")),
                both(set_figures(ledger__stale=3), facts(replication="3", consistency="read QUORUM, write QUORUM")),
            )
        ),
        SUSPECT,
        "3 acknowledged writes are missing at the workload's consistency level, but not at the strongest; its levels"
        " (R + W > RF) rule this out",
    ),
    Case(
        "phantom",
        "one field",
        experiment(ledger(phantom=1)),
        INVALID,
        "1 field contains a write that was refused or never sent",
    ),
    Case(
        "corrupt",
        "one field",
        experiment(ledger(corrupt=1)),
        INVALID,
        "1 field contains a value that no write of the trial wrote (of 50,000 writes)",
    ),
    Case(
        "errors",
        "before the fault",
        experiment(both(with_fault(), set_figures(before__failed=1000))),
        INVALID,
        "1,000 of 200,000 operations outside the fault failed (0.5 %)",
    ),
    Case("errors", "during the fault", experiment(both(with_fault(), set_figures(errors=6000, attempts__failed=6000)))),
    Case("errors", "in flight at the fault",
         experiment(both(with_fault(), set_figures(before__failed=1000, before__interrupted=1000)))),
    Case("unverified", "reads that failed in the fault", experiment(both(with_fault(), fail_reads))),
    Case("unverified", "a wrong value among them",
         experiment(both(both(with_fault(), fail_reads), set_figures(wrong=7001))),
         INVALID, "1 of 43,000 values read differed from the values written"),
    Case("unverified", "losses that the guarantee covers", experiment(ledger(lost_allowed=19, oldest=94e6))),
    Case("unverified", "reads of lost writes",
         experiment(both(both(ledger(lost_allowed=19, oldest=94e6), miss_reads("after")), set_figures(wrong=1000))),
         NOTE, "1,000 of 50,000 values read differed from the values written"),
    Case("unverified", "a wrong value in addition to reads of lost writes",
         experiment(both(both(ledger(lost_allowed=19, oldest=94e6), miss_reads("after")), set_figures(wrong=1001))),
         INVALID, "1,001 of 50,000 values read differed from the values written"),
    Case("unverified", "a wrong value that no loss explains",
         experiment(both(ledger(lost_allowed=19, oldest=94e6), set_figures(wrong=5))),
         INVALID, "5 of 50,000 values read differed from the values written"),
    Case("errors", "reads of lost records", experiment(both(ledger(lost_allowed=1, oldest=94e6), miss_reads("after")))),
    Case("errors", "reads of missing records before the loss",
         experiment(both(ledger(lost_allowed=1, oldest=94e6), miss_reads("before"))),
         INVALID, "1,000 of 200,000 operations outside the fault failed (0.5 %)"),
    Case("errors", "reads of missing records without a loss", experiment(both(with_fault(), miss_reads("after"))),
         INVALID, "1,000 of 200,000 operations outside the fault failed (0.5 %)"),
    Case(
        "client-limited",
        "during the fault",
        experiment(both(with_fault(), set_figures(late__client=1000))),
        INVALID,
        "1 % of the operations waited over 1 ms because all clients were busy",
    ),
    Case(
        "client-limited",
        "during the fault of the only server",
        experiment(both(with_fault(), both(facts(nodes="1"), set_figures(late__client=1000)))),
        NOTE,
        "1 % of the operations waited over 1 ms because all clients were busy",
    ),
    Case("rate-not-held", "unanswered in the fault", experiment(both(with_fault(), set_figures(censored=6000)))),
    Case("interference", "the lab's own restart", experiment(both(with_fault(), set_figures(cpu__others=0.2))), NOTE,
         "other processes used 20 % of the CPU time"),
    Case("interference", "more than a restart", experiment(both(with_fault(), set_figures(cpu__others=0.4))), SUSPECT,
         "other processes used 40 % of the CPU time"),
]  # fmt: skip
