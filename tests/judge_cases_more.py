"""Crafted results for the checks of pairs, of what is missing, and of the rest, both ways, at their edges."""

from __future__ import annotations

from dataclasses import replace

from judge_support import (
    STEADY,
    Case,
    asking,
    both,
    course,
    ended,
    experiment,
    facts,
    failing,
    given,
    rocksdb,
    sound,
    told,
)
from loadstone.judge.finding import Severity
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value

NOTE, WITHHELD, SUSPECT, INVALID = Severity


def verified_by_statuses(trial: TrialResult) -> TrialResult:
    """As YCSB counts, without a figure."""
    kept = given(without=("verified", "wrong"))(trial)
    return replace(kept, statuses={"VERIFY": {"OK": 990, "UNEXPECTED_STATE": 10}})


def planned(repeats: int, *systems: str) -> dict[str, dict[str, str]]:
    """A plan of `repeats` of each system."""
    return {f"{system}-{n}": {"system": system} for system in systems for n in range(1, repeats + 1)}


# As many operations were waited for this long at least.
BELOW = Value("read.p99.9", 1e6, "ns", 100_000, "at_least")
CASES = [
    Case(
        "stalled",
        "a second of silence, a slow tail",
        experiment(given(all__p99__9=1.01e8), rates=(*STEADY, 0.0, *STEADY)),
    ),
    Case(
        "stalled",
        "a second of silence",
        experiment(given(all__p99__9=1e8), rates=(*STEADY, 0.0, *STEADY)),
        SUSPECT,
        "no operation ended for 1.00 s, from 30 s on, 10 times the p99.9",
    ),
    Case(
        "stalled",
        "a second of silence, which the p99.9 of few operations is itself",
        experiment(given(n=500, without=("read.p99.9",), all__p99__9=1e9), rates=(*STEADY, 0.0, *STEADY)),
        SUSPECT,
        "no operation ended for 1.00 s, from 30 s on",
    ),
    Case("stalled", "less than a second", experiment(series=lambda _: course((*STEADY, 0.0, *STEADY), length=0.9))),
    Case(
        "stalled",
        "two halves",
        experiment(series=lambda _: course((*STEADY, 0.0, 0.0, *STEADY), length=0.5)),
        SUSPECT,
        "no operation ended for 1.00 s, from 15 s on, 20 times the p99.9",
    ),
    Case(
        "stalled",
        "operations ended badly, due long before",
        experiment(
            series=lambda _: replace(course((*STEADY, 0.0, 0.0)), ended=(100,) * 30 + (7, 7)),
        ),
    ),
    Case(
        "stalled",
        "nothing ended, though what was due then failed later",
        experiment(
            given(all__p99__9=1e8),
            series=lambda _: replace(course((*STEADY, 0.0), (0,) * 30 + (7,)), ended=(100,) * 30 + (0,)),
        ),
        SUSPECT,
        "no operation ended for 1.00 s, from 30 s on, 10 times the p99.9",
    ),
    Case("stalled", "errors came back", experiment(series=lambda _: course((*STEADY, 0.0), (0,) * 30 + (7,)))),
    Case(
        "stalled",
        "no answer to the end",
        experiment(told("hung", "3 operations got no answer")),
        SUSPECT,
        "3 operations got no answer",
    ),
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
    Case("interference", "a twentieth", experiment(given(cpu__steal=0.05, cpu__others=0.05, io__others=0.05))),
    Case(
        "interference",
        "steal",
        experiment(given(cpu__steal=0.06)),
        SUSPECT,
        "the hypervisor took 6 % of the processors for other machines",
    ),
    Case(
        "interference",
        "others",
        experiment(given(cpu__others=0.06)),
        SUSPECT,
        "other processes used 6 % of the processors",
    ),
    Case(
        "interference",
        "others' bytes",
        experiment(given(io__others=0.06)),
        SUSPECT,
        "other processes kept the disks busy for 6 % of the time",
    ),
    Case("unverified", "asked and done", experiment(question=asking(verify=True))),
    Case("unverified", "neither", experiment(given(without=("verified", "wrong")))),
    Case(
        "unverified",
        "asked and not done",
        experiment(given(without=("verified",)), question=asking(verify=True)),
        INVALID,
        "`verify` was asked for, but no value was verified",
    ),
    Case(
        "unverified",
        "wrong, though nobody asked",
        experiment(given(wrong=1)),
        INVALID,
        "1 of 50,000 values read were not what had been written",
    ),
    Case(
        "unverified",
        "wrong by YCSB's statuses",
        experiment(verified_by_statuses),
        INVALID,
        "10 of 1,000 values read were not what had been written",
    ),
    Case("unverified", "one in a hundred too early", experiment(given(not_yet=1_000))),
    Case(
        "unverified",
        "more too early",
        experiment(given(not_yet=1_100)),
        SUSPECT,
        "1.1 % of the operations read records whose insert or delete was still under way",
    ),
    Case("lost-segment", "none", experiment()),
    Case("lost-segment", "one of four", experiment(given(segments__lost=1)), INVALID, "segments lost: 1 of 4"),
    Case(
        "lost-segment",
        "the engine itself",
        experiment(ended("lost", "lost-segment", "ended by SIGKILL")),
        INVALID,
        "the engine vanished before it reported its result: ended by SIGKILL",
    ),
    Case(
        "lost-segment",
        "the lab",
        experiment(ended("lease")),
        INVALID,
        "the engine stopped by itself because it lost contact with the lab",
    ),
    Case("server-died", "all there", experiment()),
    Case(
        "server-died",
        "one of the system's",
        experiment(told("server-died", "region-server-2 (127.0.0.2:16020, pid 4711) ended during the trial")),
        INVALID,
        "region-server-2 (127.0.0.2:16020, pid 4711) ended during the trial",
    ),
    Case("retried", "the first attempt", experiment()),
    Case(
        "retried",
        "the second attempt of the slower system",
        experiment(rocksdb(failing("the engine was ended by SIGKILL"))),
        SUSPECT,
        "1 earlier attempt at this trial failed, the last: the engine was ended by SIGKILL",
    ),
    Case("incomplete", "all there", experiment(planned=planned(6, "rocksdb", "lmdb"))),
    Case(
        "incomplete",
        "the course of a trial of ours",
        experiment(facts(engine="0.2.0"), series=lambda _: None),
        SUSPECT,
        "series.json is missing or damaged: not-steady, stalled could not look",
    ),
    Case("incomplete", "the course of an imported trial", experiment(series=lambda _: None)),
    Case(
        "incomplete",
        "a repeat",
        experiment(planned=planned(7, "rocksdb", "lmdb")),
        SUSPECT,
        "1 of 7 repeats planned are missing",
    ),
    Case(
        "incomplete",
        "a repeat that was not needed",
        experiment(planned=planned(7, "rocksdb", "lmdb"), question=asking(until=0.05)),
    ),
    Case(
        "incomplete",
        "a point",
        experiment(planned=planned(6, "rocksdb", "lmdb", "fjall")),
        SUSPECT,
        "1 of 3 planned points are missing: system=fjall",
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
        "asked for and not measured: read.p98",
    ),
    Case(
        "incomplete",
        "a trial that failed",
        experiment(ended("failed", "failed", "the disk is full")),
        INVALID,
        "the trial was not finished: failed: the disk is full",
    ),
    Case(
        "incomplete",
        "a trial that was stopped",
        experiment(ended("stopped")),
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
    Case("impossible", "as fast as the device", experiment(given(read__bandwidth=1e9))),
    Case(
        "impossible",
        "faster",
        experiment(given(read__bandwidth=1_000_010_000)),
        INVALID,
        "read at 1,000.01 MB/s, but the device gives 1,000 MB/s",
    ),
    Case(
        "impossible",
        "written faster",
        experiment(given(write__bandwidth=6e8)),
        INVALID,
        "wrote at 600 MB/s, but the device gives 500 MB/s",
    ),
    Case(
        "impossible",
        "faster than a link that it need not take",
        experiment(both(given(write__bandwidth=4.7e8), facts(network_bps=125_000_000))),
    ),
    Case(
        "impossible",
        "bytes from the device",
        experiment(given(device__read=1.01e11)),
        INVALID,
        "the device was read at 1,010 MB/s, but the device gives 1,000 MB/s",
    ),
    Case(
        "impossible",
        "bytes from the device, most of them of a warm-up",
        experiment(given(device__read=1.01e11, device__read_per_operation=1e5)),
    ),
    Case("page-cache", "a store in memory", experiment(both(given(device__read=0), facts(data_in="memory")))),
    Case(
        "page-cache",
        "a store in memory, claimed to be the device's",
        experiment(both(given(device__read=0), facts(data_in="memory")), question=asking(claims="device")),
        INVALID,
        "the results are claimed to be the device's, but the store keeps its data in memory",
    ),
    Case(
        "page-cache",
        "bytes from the device, most of them of a warm-up",
        experiment(given(device__read=1e9, device__read_per_operation=1e3)),
        NOTE,
        "reads returned 10.0 GB, of which the device gave 100 MB; at most 1 % of it was not cached",
    ),
    Case(
        "impossible",
        "values through a link",
        experiment(both(given(returned=2e10), facts(networked="yes", network_bps=125_000_000))),
        INVALID,
        "values were returned at 200 MB/s, but the link gives 125 MB/s",
    ),
    Case(
        "impossible",
        "as many nodes together",
        experiment(both(given(read__bandwidth=1.5e9), facts(data_nodes=2, bandwidth_of="cluster"))),
    ),
    Case(
        "impossible",
        "percentiles that fall",
        experiment(given(read__p99=6e7)),
        INVALID,
        "read.p99 of 60.0 ms, above read.p99.9 of 50.0 ms",
    ),
    Case(
        "impossible",
        "a bound below the percentile under it",
        experiment(lambda trial: replace(trial, values={**trial.values, "read.p99.9": BELOW})),
    ),
    Case("impossible", "by rounding only", experiment(given(read__p99=5.04e7))),
    Case(
        "impossible",
        "a mean above the maximum",
        experiment(given(read__mean=3e8)),
        INVALID,
        "read.mean of 300 ms, above read.max of 200 ms",
    ),
    Case(
        "impossible",
        "a mean below the minimum",
        experiment(given(read__mean=5e5)),
        INVALID,
        "read.mean of 500 µs, below read.min of 1.00 ms",
    ),
    Case(
        "impossible",
        "a mean of all that failures have raised above what went well",
        experiment(given(all__max=2e8, all__mean=3e8, errors=50)),
    ),
    Case(
        "impossible",
        "a mean of all above its maximum, without failures",
        experiment(given(all__max=2e8, all__mean=3e8)),
        INVALID,
        "all.mean of 300 ms, above all.max of 200 ms",
    ),
    Case(
        "impossible",
        "less than nothing",
        experiment(given(throughput=-5)),
        INVALID,
        "throughput is negative: -5.00 op/s",
    ),
    Case("between-runs", "interleaved", experiment()),
    Case(
        "between-runs", "one after the other", experiment(interleaved=False), NOTE, "between runs: order not randomised"
    ),
    Case("between-runs", "nothing to compare", ResultSet("one", [sound(repeat=n) for n in range(1, 7)])),
]
