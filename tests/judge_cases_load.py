"""Crafted results for the check of what the sides were given to do; see judge_cases."""

from __future__ import annotations

from dataclasses import replace

from judge_support import Case, asking, both, experiment, facts, rocksdb
from loadstone.judge.finding import Severity
from loadstone.results.trial_result import TrialResult

SUSPECT, INVALID = Severity.SUSPECT, Severity.INVALID


def clients(trial: TrialResult) -> TrialResult:
    """Twice as many clients for lmdb."""
    return replace(trial, clients=10 if trial.config["system"] == "rocksdb" else 20)


def also_by_clients(trial: TrialResult) -> TrialResult:
    """The same as a part of what is compared."""
    changed = clients(trial)
    return replace(changed, config={"system,clients": f"{trial.config['system']},{changed.clients}"})


def in_bytes(trial: TrialResult) -> TrialResult:
    """A throughput that is a bandwidth."""
    return replace(
        trial, values={**trial.values, "throughput": replace(trial.values["throughput"], unit="B/s", value=5e6)}
    )


MIXES = both(facts(mix="95 % read, 5 % update"), rocksdb(facts(mix="100 % read")))
CASES = [
    Case("load-differs", "alike", experiment(both(facts(records=1000, mix="100 % read")), interleaved=False)),
    Case(
        "load-differs",
        "clients",
        experiment(clients),
        SUSPECT,
        "rocksdb and lmdb had different loads: clients 10 against 20",
    ),
    Case("load-differs", "clients are compared", experiment(also_by_clients, question=asking(by="system,clients"))),
    Case("load-differs", "one side says nothing", experiment(rocksdb(lambda trial: replace(trial, clients=None)))),
    Case(
        "load-differs",
        "a rate on one side",
        experiment(rocksdb(lambda trial: replace(trial, loop="open"))),
        SUSPECT,
        "rocksdb and lmdb had different loads: loop open against closed",
    ),
    # Within an experiment only what is compared can do that.
    Case("load-differs", "another mix within an experiment", experiment(MIXES)),
    Case(
        "load-differs",
        "another mix between runs",
        experiment(MIXES, interleaved=False),
        SUSPECT,
        "rocksdb and lmdb had different loads: operations 100 % read against 95 % read, 5 % update",
    ),
    Case(
        "load-differs",
        "more records between runs",
        experiment(both(facts(records=1_000_000), rocksdb(facts(records=1000))), interleaved=False),
        SUSPECT,
        "rocksdb and lmdb had different loads: records 1,000 against 1,000,000",
    ),
    Case("load-differs", "two units", experiment(rocksdb(in_bytes)), INVALID, "throughput is in B/s and in op/s"),
]
