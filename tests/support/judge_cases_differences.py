"""Crafted results that do or do not trigger the checks of differences between two sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from judge_support import Case, Change, asking, both, experiment, facts, rocksdb, sound
from loadstone.judge.finding import Severity
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult

NOTE, UNCHECKED, SUSPECT, INVALID = Severity.NOTE, Severity.UNCHECKED, Severity.SUSPECT, Severity.INVALID


def clients(trial: TrialResult) -> TrialResult:
    """Gives rocksdb ten clients and lmdb twenty."""
    return replace(trial, clients=10 if trial.config["system"] == "rocksdb" else 20)


def also_by_clients(trial: TrialResult) -> TrialResult:
    """Compares the variants by system and number of clients; lmdb has twice as many clients as rocksdb."""
    changed = clients(trial)
    return replace(changed, config={"system,clients": f"{trial.config['system']},{changed.clients}"})


def place_systems(is_shared: str) -> Change:
    """Turns the two systems into the placements `apart` and `beside`, on different numbers of machines."""

    def change(trial: TrialResult) -> TrialResult:
        is_apart = trial.config["system"] == "rocksdb"
        shared = is_shared if is_apart else "no"
        changed = facts(hosts=2 if is_apart else 3, machines=5 if is_apart else 3, machines_shared=shared)(trial)
        return replace(changed, config={"placement": "apart" if is_apart else "beside"})

    return change


def use_bytes(trial: TrialResult) -> TrialResult:
    """Replaces the throughput with a figure in bytes per second."""
    return replace(
        trial, values={**trial.values, "throughput": replace(trial.values["throughput"], unit="B/s", value=5e6)}
    )


def vary_setting(dimension: str, *names: str) -> ResultSet:
    """Trials compared by this dimension, whose value is also the value of the requested settings `names`."""

    def change(trial: TrialResult) -> TrialResult:
        value = trial.config["system"]
        return replace(trial, config={dimension: value}, requested={**trial.requested, **dict.fromkeys(names, value)})

    return experiment(change, question=asking(by=dimension))


def later(**known: Any) -> Change:
    """Changes facts from the fourth block on."""
    return lambda trial: facts(**known)(trial) if trial.repeat >= 4 else trial


def single_variant(change: Change) -> ResultSet:
    """The trials of rocksdb only: a single variant."""
    whole = experiment(change)
    return replace(whole, trials=[trial for trial in whole.trials if trial.config["system"] == "rocksdb"])


MIXES = both(facts(mix="95 % read, 5 % update"), rocksdb(facts(mix="100 % read")))
CASES = [
    Case("sides-differ", "alike", experiment()),
    Case("sides-differ", "compared by arrival", vary_setting("arrival", "pace.arrival")),
    Case("sides-differ", "compared by length", vary_setting("operations", "work.operations", "until.operations")),
    Case(
        "sides-differ",
        "three nodes against one",
        experiment(rocksdb(facts(data_nodes=3))),
        SUSPECT,
        "rocksdb and lmdb differ in number of data nodes (3 against 1)",
    ),
    Case(
        "sides-differ",
        "kernel and memory",
        experiment(rocksdb(facts(kernel="6.8.0", memory_bytes="32000000000"))),
        SUSPECT,
        "rocksdb and lmdb differ in kernel (6.8.0 against 6.1.0), memory (32.0 GB against 64.0 GB)",
    ),
    Case("sides-differ", "nearly equal memory", experiment(rocksdb(facts(memory_bytes=63_000_000_000)))),
    Case(
        "sides-differ",
        "unknown on one side",
        experiment(
            rocksdb(lambda trial: replace(trial, facts={k: v for k, v in trial.facts.items() if k != "kernel"}))
        ),
    ),
    Case(
        "sides-differ",
        "another durability on both sides after a block",
        experiment(later(durability="device")),
        SUSPECT,
        "the durability changed between repeats: os and device; os and device",
    ),
    Case("sides-differ", "unknown durability in some repeats", experiment(later(durability="unknown"))),
    Case(
        "sides-differ",
        "another file system on both sides after a block",
        experiment(later(file_system="xfs")),
        NOTE,
        "the file system changed between blocks (ext4 and xfs); within each block it is the same",
    ),
    Case(
        "sides-differ",
        "another file system on one side after a block",
        experiment(rocksdb(later(file_system="xfs"))),
        SUSPECT,
        "the file system changed within blocks 4, 5, 6: ext4 and xfs; ext4",
    ),
    Case(
        "sides-differ",
        "more hosts on both sides after a block",
        experiment(both(facts(hosts=1), later(hosts=2))),
        NOTE,
        "the number of hosts changed between blocks (1 and 2); within each block it is the same",
    ),
    Case(
        "sides-differ",
        "half the memory on both sides after a block",
        experiment(later(memory_bytes=32_000_000_000)),
        NOTE,
        "the memory changed between blocks (64.0 GB and 32.0 GB); within each block it is the same",
    ),
    Case(
        "sides-differ",
        "nearly equal memory, and a device measured again",
        experiment(later(memory_bytes=63_900_000_000, device_read_bps=990_000_000)),
    ),
    Case(
        "sides-differ",
        "another JVM for a variant outside the comparison",
        single_variant(both(facts(jvm="17"), later(jvm="21"))),
        SUSPECT,
        "the JVM changed between repeats: 17 and 21",
    ),
    Case(
        "sides-differ",
        "another kernel for a variant outside the comparison",
        single_variant(later(kernel="6.8.0")),
        SUSPECT,
        "the kernel changed between repeats: 6.1.0 and 6.8.0",
    ),
    Case("sides-differ", "a variant outside the comparison", single_variant(facts(jvm="17"))),
    Case("sides-differ", "alike", experiment()),
    Case(
        "sides-differ",
        "another durability kept",
        experiment(rocksdb(facts(durability="device"))),
        INVALID,
        "rocksdb and lmdb differ in durability (device against os)",
    ),
    Case(
        "sides-differ",
        "another number of copies",
        experiment(both(facts(replication=3), rocksdb(facts(replication=1)))),
        INVALID,
        "rocksdb and lmdb differ in replication (1 against 3)",
    ),
    Case(
        "sides-differ",
        "another consistency",
        experiment(both(facts(consistency="QUORUM"), rocksdb(facts(consistency="ONE")))),
        INVALID,
        "rocksdb and lmdb differ in consistency (ONE against QUORUM)",
    ),
    Case(
        "sides-differ",
        "the compared dimension",
        experiment(
            lambda trial: replace(
                trial,
                config={"durability": trial.config["system"]},
                facts={**trial.facts, "durability": str(trial.config["system"])},
            )
        ),
        NOTE,
        "rocksdb and lmdb differ in durability (rocksdb against lmdb)",
    ),
    Case(
        "sides-differ",
        "a consequence of the compared dimension",
        experiment(rocksdb(facts(durability="device")), question=asking(by="system", promises=("durability",))),
        NOTE,
        "rocksdb and lmdb differ in durability (device against os)",
    ),
    Case(
        "sides-differ",
        "copies compared by number, with the acknowledgements that follow from them",
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
        "1 and 3 differ in replication (1 against 3), replicas acknowledged (1 against 2)",
    ),
    Case(
        "sides-differ",
        "acknowledgements without the setting that determines them",
        experiment(both(facts(replication_acknowledged=2), rocksdb(facts(replication_acknowledged=1)))),
        INVALID,
        "rocksdb and lmdb differ in replicas acknowledged (1 against 2)",
    ),
    Case(
        "sides-differ",
        "unknown on one side",
        experiment(
            rocksdb(lambda trial: replace(trial, facts={k: v for k, v in trial.facts.items() if k != "durability"}))
        ),
        SUSPECT,
        "rocksdb does not state its durability; the other side states durability os",
    ),
    Case(
        "sides-differ",
        "one after the other",
        experiment(interleaved=False),
        UNCHECKED,
        "unknown for at least one side: order of the runs",
    ),
    Case("sides-differ", "nothing to compare", ResultSet("one", [sound(repeat=n) for n in range(1, 7)])),
    Case(
        "sides-differ",
        "clients",
        experiment(clients),
        SUSPECT,
        "rocksdb and lmdb differ in number of clients (10 against 20)",
    ),
    Case("sides-differ", "clients are compared", experiment(also_by_clients, question=asking(by="system,clients"))),
    Case("sides-differ", "placements", experiment(place_systems("no"), question=asking(by="placement"))),
    Case(
        "sides-differ",
        "placements on one machine",
        experiment(place_systems("yes"), question=asking(by="placement")),
        SUSPECT,
        "the hosts of clients and of servers are one machine (one kernel): clients and servers compete for the same"
        " processors in every placement",
    ),
    Case("sides-differ", "unknown on one side", experiment(rocksdb(lambda trial: replace(trial, clients=None)))),
    Case(
        "sides-differ",
        "a rate on one side",
        experiment(rocksdb(lambda trial: replace(trial, loop="open"))),
        INVALID,
        "rocksdb and lmdb differ in loop (open against closed), meaning of latency (response against service)",
    ),
    Case(
        "sides-differ",
        "another mix within an experiment",
        experiment(MIXES),
        SUSPECT,
        "rocksdb and lmdb differ in operations (100 % read against 95 % read, 5 % update)",
    ),
    Case(
        "sides-differ",
        "another mix between runs",
        experiment(MIXES, interleaved=False),
        SUSPECT,
        "rocksdb and lmdb differ in operations (100 % read against 95 % read, 5 % update)",
    ),
    Case(
        "sides-differ",
        "more records between runs",
        experiment(both(facts(records=1_000_000), rocksdb(facts(records=1000))), interleaved=False),
        SUSPECT,
        "rocksdb and lmdb differ in number of records (1,000 against 1,000,000)",
    ),
    Case("sides-differ", "two units", experiment(rocksdb(use_bytes)), INVALID, "throughput is in B/s and in op/s"),
]
