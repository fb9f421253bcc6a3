"""The number of lost writes equals the number of writes that a relay dropped."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pytest

from conftest import Engine
from ledger_support import WORK, Liar, Proof, proof
from loadstone.engine.events import Summary
from loadstone.engine.histogram import decode_histogram
from loadstone.fleet.local import Local
from loadstone.fleet.segments import split_spec
from systems_support import Up

RATE, OPERATIONS, ENGINES = 500, 2500, 4
# Updates of whole records, the most frequent records several times a second, and inserts.
LINE = (
    f"run redis {WORK} operationcount={OPERATIONS} target={RATE} threadcount=16 writeallfields=true "
    "readproportion=0.2 updateproportion=0.5 insertproportion=0.3 requestdistribution=zipfian redis.timeout=10000 "
    "core_workload_insertion_retry_limit=3 core_workload_insertion_retry_interval=0.01 ledger=part"
)
# Writes to one record whose due times are this many operations apart have a known order: 200 ms.
APART = RATE // 5
# A trial in which an operation takes longer than these 200 ms is not evidence, and is repeated.
ATTEMPTS = 5


@dataclass(frozen=True)
class Trial:
    """One trial of four engines through a relay, and its read-back."""

    liar: Liar
    output: dict[str, Any]
    # Whether each operation was done before the next operation of a known order was due.
    is_on_time: bool


def run(redis: Proof, system: Up, number: int, drops: Collection[int], errors: dict[int, bool]) -> Trial:
    """Loads a fresh table and runs the workload on it."""
    system.running.recreate_table("usertable")
    redis.load()
    liar = Liar(system.properties["redis.host"], int(system.properties["redis.port"]), drops, errors)
    with liar.listening():
        line = (LINE, f"runnumber={number}", *redis.properties)
        spec = json.loads(redis.engine(*line, f"redis.port={liar.own_port}", "--print-spec").out)
        spec["sinks"] = [{"sink": "hdr_ns"}]
        spec["ledger"]["file"] = str(redis.engine.home / f"part-{number}")
        with Local().launch(split_spec(spec, ENGINES), lambda *_: None) as engines:
            summaries = [event for _, event in engines.events() if isinstance(event, Summary)]
    assert len(summaries) == ENGINES
    responses = [
        decode_histogram(outcome.response) for summary in summaries for outcome in summary.outcomes if outcome.response
    ]
    slowest_ns = max(
        histogram.layout.highest_equivalent(max(histogram.counts)) for histogram in responses if histogram.counts
    )
    redis.runs.append(f"part-{number}")
    verdict = redis.judge(line, *(f"part-{number}.{k}" for k in range(ENGINES)))
    assert verdict.output["proved"], verdict
    assert verdict.code == (1 if verdict.output["lost"]["writes"] else 0), verdict
    return Trial(liar, verdict.output, slowest_ns < APART / RATE * 1e9)


def droppable(liar: Liar, errors: Collection[int]) -> list[list[int]]:
    """For each record, the indices of its last writes that certainly follow all earlier writes. The record with the
    most writes is first."""
    histories: dict[bytes, list[int]] = defaultdict(list)
    for index, key in sorted(liar.keys.items()):
        histories[key].append(index)
    ends = []
    for indices in sorted(histories.values(), key=len, reverse=True):
        for place in range(len(indices) - 1, -1, -1):
            before = indices[place - 1] if place else -APART
            # A preceding insert that is retried may be applied after this write.
            if indices[place] - before >= APART and before not in errors:
                ends.append(indices[place:])
                break
    return ends


def choose(ends: list[list[int]], count: int) -> set[int]:
    """`count` of these writes: all last writes of some records, including the record with the most writes."""
    chosen: set[int] = set()
    for end in ends:
        if len(chosen) + len(end) <= count:
            chosen.update(end)
    assert len(chosen) == count
    return chosen


@pytest.mark.parametrize("retried", [False, True])
def test_lost_writes_equal_dropped_writes(engine: Engine, retried: bool) -> None:
    with proof(engine, "redis") as (redis, system):
        # The spec determines the writes, regardless of the run's number.
        dry = run(redis, system, 1, (), {})
        first = {key: index for index, key in sorted(dry.liar.keys.items(), reverse=True)}
        inserts = sorted(first[key] for key in dry.liar.inserted & first.keys())
        errors = {index: place % 2 == 0 for place, index in enumerate(inserts[::10])} if retried else {}
        ends = droppable(dry.liar, errors)
        for number, count in enumerate((0, 7, 100), 2):
            drops = choose(ends, count)
            # If the first attempt of a dropped insert were passed on, the insert would not be lost.
            passed_on = {index: done and index not in drops for index, done in errors.items()}
            for attempt in range(ATTEMPTS):
                trial = run(redis, system, 10 * number + attempt, drops, passed_on)
                assert trial.liar.dropped == dict.fromkeys(drops, 1)
                assert trial.liar.failed == set(errors)
                assert trial.output["writes"]["retried"] == len(errors)
                assert trial.output["writes"]["acknowledged"] == len(dry.liar.keys)
                # A write without a known order may have been overwritten.
                assert trial.output["lost"]["writes"] <= count
                if trial.is_on_time:
                    assert trial.output["lost"]["writes"] == count
                    break
            else:
                pytest.skip("the host is too busy for writes of a known order")
    assert len(ends[0]) > 1, "a hot record"
