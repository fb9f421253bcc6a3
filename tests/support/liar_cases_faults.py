"""Faults that did not happen, recoveries by chance, and losses that are false or were not counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fault_support import experiment_with_faults
from judge_support import Change, both, facts, value
from known_truth_expected import (
    Case,
    expect_no_claim,
    expect_overall,
    expect_refusal,
    fires,
    says,
    silent,
    verdict,
    wins,
)
from loadstone.engine.events import Note
from loadstone.judge.checks import attempts
from loadstone.results.fault import FaultRecord
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value

SECOND = 10**9
KILL = {"fault": "kill"}


def change_trials(change: Change, level: str = "QUORUM", kind: str = "kill", repeats: int = 6) -> ResultSet:
    """The experiment with faults, with a change to some of its trials."""
    results = experiment_with_faults()
    trials = [
        change(trial) if trial.config == {"level": level, "fault": kind} and trial.repeat <= repeats else trial
        for trial in results.trials
    ]
    return replace(results, trials=trials)


def alter_fault(**fields: object) -> Change:
    """Changes fields in the fault's record."""

    def change(trial: TrialResult) -> TrialResult:
        return replace(trial, faults=(replace(trial.faults[0], **fields),))  # type: ignore[arg-type]

    return change


def alter_figures(**figures: float) -> Change:
    """Changes figures; a double underscore in a name represents a dot."""
    named = {name.replace("__", "."): figure for name, figure in figures.items()}
    return lambda trial: replace(
        trial, values={**trial.values, **{name: value(name, figure) for name, figure in named.items()}}
    )


def censor(trial: TrialResult) -> TrialResult:
    """A trial without a recovery within a minute."""
    recovered = Value("recovered", 60e9, "ns", 1, "at_least")
    figures = {name: figure for name, figure in trial.values.items() if name != "recovered.held"}
    return replace(trial, values={**figures, "recovered": recovered})


def close_loop(trial: TrialResult) -> TrialResult:
    """A closed loop, which reports a pause of half a minute as a few slow operations."""
    figures = {name: figure for name, figure in trial.values.items() if not name.startswith(("outage", "recovered"))}
    shares = {
        "during.throughput_share": value("during.throughput_share", 0.02),
        "longest_gap": value("longest_gap", 3e10),
    }
    return replace(trial, loop="closed", values={**figures, **shares})


def few_windows(trial: TrialResult) -> TrialResult:
    """A fault that began so early that the windows before it are too few to estimate the noise."""
    return replace(trial, values={**trial.values, "recovered.line": Value("recovered.line", 0.95, "share", 5)})


def move_fault(trial: TrialResult) -> TrialResult:
    """Gives the fault the planned instant of another block."""
    record: FaultRecord = trial.faults[0]
    return replace(trial, faults=(replace(record, planned_at_ns=record.planned_at_ns + 9 * SECOND),))


def end_server(trial: TrialResult) -> TrialResult:
    """A trial in which the restarted victim exited again."""
    note = Note(name=attempts.DIED, message="node-2 exited during the trial", hint="read its log")
    return replace(trial, notes=(note,))


def fault_case(name: str, results: Callable[[], ResultSet], *expect: object) -> Case:
    """A case about the outage caused by a kill."""
    return Case(name, results, expect, "outage", "QUORUM", KILL)  # type: ignore[arg-type]


FAULTS = [
    fault_case(
        "a kill of one node, as requested",
        experiment_with_faults,
        wins("ONE", 14.33 / 1.6667, 0.05),
        verdict("valid"),
        says("outage 14.3 s"),
        silent("fault-missed"),
    ),
    fault_case(
        "a kill that was never verified",
        lambda: change_trials(alter_fault(held_ns=None, unverified={"held": "node-2 still answers"})),
        expect_refusal("fault-missed"),
        says("node-2 still answers"),
        says("unknown, because all repeats were excluded"),
    ),
    fault_case(
        "a kill after the end of the window",
        lambda: change_trials(alter_fault(ordered_ns=300 * SECOND)),
        expect_refusal("fault-missed"),
    ),
    fault_case(
        "a kill that was never ordered",
        lambda: change_trials(alter_fault(ordered_ns=None, held_ns=None)),
        expect_refusal("fault-missed"),
    ),
    fault_case(
        "a node that was not started again",
        lambda: change_trials(alter_fault(lifted_ns=None)),
        expect_refusal("not-lifted"),
    ),
    fault_case(
        "a kill that also hit a bystander",
        lambda: change_trials(alter_fault(unverified={"bystanders": "node-1 ended as well"})),
        expect_refusal("bystander-hit"),
    ),
    fault_case(
        "a fault before the noise could be measured",
        lambda: change_trials(few_windows),
        expect_refusal("before-unsteady"),
    ),
    fault_case(
        "a store that was late before the fault",
        lambda: change_trials(alter_figures(recovered__median=0.5)),
        expect_refusal("before-unsteady"),
    ),
    fault_case(
        "a recovery by chance, at the end of the window",
        lambda: change_trials(alter_figures(recovered__held=5e9)),
        fires("not-recovered", "suspect"),
        says(r"not recovered within \d+\.\d s in 6 of 6"),
        verdict("suspect"),
    ),
    fault_case(
        "most repeats never recover",
        lambda: change_trials(censor, repeats=4),
        fires("not-recovered", "note"),
        says("not within 60.0 s in 4 of 6"),
        wins("ONE", 14.33 / 1.6667, 0.05),
        verdict("valid"),
    ),
    fault_case(
        "a twin that does not recover although it had no fault",
        lambda: change_trials(censor, kind="none"),
        fires("not-recovered", "suspect"),
        expect_overall("suspect"),
    ),
    fault_case(
        "retries hidden in the client",
        lambda: change_trials(facts(store="hbase")),
        fires("hidden-retries", "note"),
        says("failures appear as latency"),
    ),
    fault_case(
        "a closed loop whose outage looks like 3 %",
        lambda: change_trials(close_loop),
        says("stalls count once per client, so there is no outage in seconds"),
        expect_no_claim(),
    ),
    fault_case(
        "a lost write that the setting allows",
        lambda: change_trials(alter_figures(ledger__lost_allowed=4, ledger__oldest=80e6), "ONE", repeats=1),
        fires("lost-as-allowed", "note"),
        silent("lost-writes"),
        says("in 3 of 6 kills"),
        verdict("valid"),
    ),
    fault_case(
        "a lost write that is too old",
        lambda: change_trials(alter_figures(ledger__lost=4, ledger__oldest=300e6), "ONE"),
        expect_refusal("lost-writes"),
        says("beyond the guarantee"),
    ),
    fault_case(
        "a write lost at QUORUM",
        lambda: change_trials(alter_figures(ledger__lost_allowed=1, ledger__oldest=5e6)),
        expect_refusal("lost-writes"),
        says("beyond the guarantee"),
    ),
    fault_case(
        "a loss under an unknown guarantee",
        lambda: change_trials(both(facts(commitlog_sync="unknown"), alter_figures(ledger__lost=2, ledger__oldest=5e6))),
        fires("lost-writes", "unchecked"),
        says("guarantee unknown"),
    ),
    fault_case(
        "a ledger with a gap",
        lambda: change_trials(alter_figures(ledger__unsettled=12)),
        says("losses unknown: the ledger is inconclusive"),
    ),
    fault_case(
        "a ledger whose checker is blind",
        lambda: change_trials(alter_figures(ledger__proved=0)),
        fires("unverified", "invalid"),
        says("losses unknown: the ledger is inconclusive"),
    ),
    fault_case(
        "too few clients to keep the load open",
        lambda: change_trials(alter_figures(late__client=90_000)),
        expect_refusal("client-limited"),
    ),
    fault_case(
        "operations that failed before the fault",
        lambda: change_trials(alter_figures(before__failed=2000)),
        expect_refusal("errors"),
    ),
    fault_case(
        "failures of the fault itself",
        lambda: change_trials(alter_figures(errors=600, attempts__failed=600, censored=300)),
        silent("errors"),
        silent("rate-not-held"),
        verdict("valid"),
    ),
    fault_case(
        "a refused write that is present",
        lambda: change_trials(alter_figures(ledger__phantom=1)),
        expect_refusal("phantom"),
    ),
    fault_case(
        "a value from outside the trial",
        lambda: change_trials(alter_figures(ledger__corrupt=1)),
        expect_refusal("corrupt"),
    ),
    fault_case(
        "a server that ended again after its restart",
        lambda: change_trials(end_server),
        expect_refusal(attempts.DIED),
    ),
    fault_case(
        "a fault at another instant on one side",
        lambda: change_trials(move_fault),
        fires("sides-differ", "suspect"),
        verdict("suspect"),
    ),
]  # fmt: skip
