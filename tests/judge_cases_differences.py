"""Crafted results for the checks of the differences between two sides, both ways."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from judge_support import Case, Spoil, asking, both, experiment, facts, rocksdb, sound
from loadstone.judge.finding import Severity
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult

NOTE, SUSPECT, INVALID = Severity.NOTE, Severity.SUSPECT, Severity.INVALID


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


def later(**known: Any) -> Spoil:
    """Other facts from the fourth block on."""
    return lambda trial: facts(**known)(trial) if trial.repeat >= 4 else trial


def alone(spoil: Spoil) -> ResultSet:
    """One variant."""
    whole = experiment(spoil)
    return replace(whole, trials=[trial for trial in whole.trials if trial.config["system"] == "rocksdb"])


MIXES = both(facts(mix="95 % read, 5 % update"), rocksdb(facts(mix="100 % read")))
CASES = [
    Case("hosts-differ", "alike", experiment()),
    Case(
        "hosts-differ",
        "three nodes against one",
        experiment(rocksdb(facts(data_nodes=3))),
        SUSPECT,
        "rocksdb and lmdb ran on different hosts: data nodes 3 against 1",
    ),
    Case(
        "hosts-differ",
        "kernel and memory",
        experiment(rocksdb(facts(kernel="6.8.0", memory_bytes="32000000000"))),
        SUSPECT,
        "rocksdb and lmdb ran on different hosts: memory 32.0 GB against 64.0 GB, kernel 6.8.0 against 6.1.0",
    ),
    Case("hosts-differ", "memory but for a little", experiment(rocksdb(facts(memory_bytes=63_000_000_000)))),
    Case(
        "hosts-differ",
        "one side says nothing",
        experiment(
            rocksdb(lambda trial: replace(trial, facts={k: v for k, v in trial.facts.items() if k != "kernel"}))
        ),
    ),
    Case(
        "hosts-differ",
        "another durability on both sides from a block on",
        experiment(later(durability="device")),
        SUSPECT,
        "the durability changed between repeats: os and device; os and device",
    ),
    Case("hosts-differ", "a durability that was not known in some repeats", experiment(later(durability="unknown"))),
    Case(
        "hosts-differ",
        "another file system on both sides from a block on",
        experiment(later(file_system="xfs")),
        NOTE,
        "the file system changed between blocks (ext4 and xfs); within each block it is the same",
    ),
    Case(
        "hosts-differ",
        "another file system on one side from a block on",
        experiment(rocksdb(later(file_system="xfs"))),
        SUSPECT,
        "the file system changed within blocks 4, 5, 6: ext4 and xfs; ext4",
    ),
    Case(
        "hosts-differ",
        "more hosts on both sides from a block on",
        experiment(both(facts(hosts=1), later(hosts=2))),
        NOTE,
        "the number of hosts changed between blocks (1 and 2); within each block it is the same",
    ),
    Case(
        "hosts-differ",
        "half the memory on both sides from a block on",
        experiment(later(memory_bytes=32_000_000_000)),
        NOTE,
        "the memory changed between blocks (64.0 GB and 32.0 GB); within each block it is the same",
    ),
    Case(
        "hosts-differ",
        "memory but for a little, and a device measured again",
        experiment(later(memory_bytes=63_900_000_000, device_read_bps=990_000_000)),
    ),
    Case(
        "hosts-differ",
        "another JVM for a variant that is not compared",
        alone(both(facts(jvm="17"), later(jvm="21"))),
        SUSPECT,
        "the JVM changed between repeats: 17 and 21",
    ),
    Case(
        "hosts-differ",
        "another kernel for a variant that is not compared",
        alone(later(kernel="6.8.0")),
        SUSPECT,
        "the kernel changed between repeats: 6.1.0 and 6.8.0",
    ),
    Case("hosts-differ", "a variant that is not compared", alone(facts(jvm="17"))),
    Case("guarantees-differ", "alike", experiment()),
    Case(
        "guarantees-differ",
        "another durability kept",
        experiment(rocksdb(facts(durability="device"))),
        INVALID,
        "rocksdb keeps durability device, lmdb os",
    ),
    Case(
        "guarantees-differ",
        "another number of copies",
        experiment(both(facts(replication=3), rocksdb(facts(replication=1)))),
        INVALID,
        "rocksdb keeps replication 1, lmdb 3",
    ),
    Case(
        "guarantees-differ",
        "another consistency",
        experiment(both(facts(consistency="QUORUM"), rocksdb(facts(consistency="ONE")))),
        INVALID,
        "rocksdb keeps consistency ONE, lmdb QUORUM",
    ),
    Case(
        "guarantees-differ",
        "which is what is compared",
        experiment(
            lambda trial: replace(
                trial,
                config={"durability": trial.config["system"]},
                facts={**trial.facts, "durability": str(trial.config["system"])},
            )
        ),
        NOTE,
        "rocksdb keeps durability rocksdb, lmdb lmdb",
    ),
    Case(
        "guarantees-differ",
        "which stands for what is compared",
        experiment(rocksdb(facts(durability="device")), question=asking(by="system", promises=("durability",))),
        NOTE,
        "rocksdb keeps durability device, lmdb os",
    ),
    Case(
        "guarantees-differ",
        "copies that are compared by a number, and what is acknowledged with them",
        experiment(
            lambda trial: replace(
                trial,
                config={"rf": 1 if trial.config["system"] == "rocksdb" else 3},
                facts={
                    **trial.facts,
                    "replication": "1" if trial.config["system"] == "rocksdb" else "3",
                    "replication_acknowledged": 1 if trial.config["system"] == "rocksdb" else 2,
                },
            )
        ),
        NOTE,
        "1 keeps replication 1, 3 3",
    ),
    Case(
        "guarantees-differ",
        "what is acknowledged, without what it follows from",
        experiment(both(facts(replication_acknowledged=2), rocksdb(facts(replication_acknowledged=1)))),
        INVALID,
        "rocksdb keeps replicas acknowledged 1, lmdb 2",
    ),
    Case(
        "guarantees-differ",
        "one side says nothing",
        experiment(
            rocksdb(lambda trial: replace(trial, facts={k: v for k, v in trial.facts.items() if k != "durability"}))
        ),
        SUSPECT,
        "rocksdb does not state its durability; the other side keeps os",
    ),
    Case("between-runs", "interleaved", experiment()),
    Case(
        "between-runs", "one after the other", experiment(interleaved=False), NOTE, "between runs: order not randomised"
    ),
    Case("between-runs", "nothing to compare", ResultSet("one", [sound(repeat=n) for n in range(1, 7)])),
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
