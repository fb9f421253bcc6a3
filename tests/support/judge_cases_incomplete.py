"""Crafted results that do or do not trigger the check of missing planned trials."""

from __future__ import annotations

from dataclasses import replace

from judge_support import Case, asking, experiment, facts, with_end
from loadstone.judge.finding import Severity

NOTE, SUSPECT, INVALID = Severity.NOTE, Severity.SUSPECT, Severity.INVALID


def make_plan(repeats: int, *systems: str) -> dict[str, dict[str, str]]:
    """A plan with `repeats` repeats of each system."""
    return {f"{system}-{n}": {"system": system} for system in systems for n in range(1, repeats + 1)}


CASES = [
    Case("incomplete", "all there", experiment(planned=make_plan(6, "rocksdb", "lmdb"))),
    Case(
        "incomplete",
        "the time series of a trial by Loadstone",
        experiment(facts(engine="0.2.0"), series=lambda _: None),
        SUSPECT,
        "series.json is missing or damaged: not-steady, stalled could not run",
    ),
    Case("incomplete", "the time series of an imported trial", experiment(series=lambda _: None)),
    Case(
        "incomplete",
        "a repeat",
        experiment(planned=make_plan(7, "rocksdb", "lmdb")),
        SUSPECT,
        "1 of 7 planned repeats are missing",
    ),
    Case(
        "incomplete",
        "a repeat that was not needed",
        experiment(planned=make_plan(7, "rocksdb", "lmdb"), question=asking(until=0.05)),
    ),
    Case(
        "incomplete",
        "a point",
        experiment(planned=make_plan(6, "rocksdb", "lmdb", "fjall")),
        SUSPECT,
        "1 of 3 planned variants are missing: system=fjall",
    ),
    Case(
        "incomplete",
        "the baseline",
        experiment(question=asking(baseline="redb")),
        SUSPECT,
        "the baseline system=redb has no trial; system=rocksdb is used instead",
    ),
    Case(
        "incomplete",
        "a metric",
        experiment(question=asking(metrics=("throughput", "read.p98"))),
        NOTE,
        "requested but not measured: read.p98",
    ),
    Case(
        "incomplete",
        "a trial that failed",
        experiment(with_end("failed", "failed", "the disk is full")),
        INVALID,
        "the trial was not finished: failed: the disk is full",
    ),
    Case(
        "incomplete",
        "a trial whose servers did not start",
        experiment(
            with_end("failed", "servers", "port 127.0.0.1:6379, which redis needs, is in use by python3 (pid 7)")
        ),
        INVALID,
        "the trial was not finished: failed: port 127.0.0.1:6379, which redis needs, is in use by python3 (pid 7)",
    ),
    Case(
        "incomplete",
        "a trial that was stopped",
        experiment(with_end("stopped")),
        INVALID,
        "the trial was not finished: stopped",
    ),
    Case(
        "incomplete",
        "no counterpart",
        experiment(
            lambda trial: replace(trial, config={**trial.config, "clients": 20 if trial.trial == "lmdb-6" else 10})
        ),
        NOTE,
        "1 of 3 variants have no counterpart to compare with: clients=20 system=lmdb",
    ),
]
