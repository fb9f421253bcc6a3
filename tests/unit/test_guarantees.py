"""The guarantees of settings, their page, and the frequency of losses."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from conftest import ROOT
from judge_cases_faults import CASSANDRA, KILL, TWIN, fail_verification, ledger, with_fault
from judge_support import Change, both, facts, set_figures, sound
from loadstone.judge import guarantees
from loadstone.judge.checks import loss
from loadstone.judge.finding import Severity
from loadstone.judge.guarantees import guarantee_of, reads_are_current
from loadstone.judge.settings import Settings
from loadstone.results.fault import FaultRecord
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.statistics.availability import clopper_pearson

MS = 1e6
LOCAL = "read LOCAL_QUORUM, write LOCAL_QUORUM"
ALL = replace(KILL, servers=("node-1", "node-2", "node-3"))
TWO = replace(KILL, servers=("node-1", "node-2"))
POWER = replace(KILL, kind="power")
REDIS: dict[str, Scalar] = {"store": "redis", "appendonly": "yes", "replication": 1}
ASYNC: dict[str, Scalar] = {"store": "postgres", "durability": "interval", "fsync": "on", "wal_writer_delay": "200 ms"}
PAUSE, FULL, CUT = (replace(KILL, kind=kind) for kind in ("pause", "full", "cut"))
HBASE: dict[str, Scalar] = {"store": "hbase", "durability": "os", "wal.file_system": "hdfs", "consistency": "strong"}
# The facts of a primary and a standby that the lab started.
PAIR: dict[str, Scalar] = {"primary": "primary", "replication": 2, "replication_acknowledged": "1 and * (on)"}


def hit(server: str, kind: str = "kill") -> FaultRecord:
    """A fault on one server of a pair."""
    return replace(KILL, kind=kind, servers=(server,))


def test_page_of_guarantees_is_current() -> None:
    text = (ROOT / guarantees.PAGE).read_text()
    assert guarantees.complete_page(text) == text


@pytest.mark.parametrize(
    ("changes", "fault", "age_ns"),
    [
        ({}, KILL, 100 * MS),
        ({}, POWER, None),
        ({"commitlog_sync_period": "10000ms"}, POWER, 10_000 * MS),
        ({"commitlog_sync_period": "60s"}, POWER, 60_000 * MS),
        ({}, FULL, 100 * MS),
        ({}, replace(KILL, kind="pause"), 0),
        ({}, replace(KILL, kind="stop"), 0),
        ({}, replace(KILL, kind="restart"), 0),
        ({"store": "redis", "appendonly": "yes", "appendfsync": "everysec"}, replace(KILL, kind="restart"), 0),
        ({"commitlog_sync": "batch"}, KILL, 0),
        ({"durable_writes": "no"}, KILL, math.inf),
        ({"commitlog_format": "compressed", "commitlog_sync_period": "10000ms"}, KILL, 10_000 * MS),
        ({"replication": "6", "replication_acknowledged": "2", "consistency": LOCAL}, TWO, 100 * MS),
        ({"replication": "3", "consistency": "read QUORUM, write QUORUM"}, KILL, 0),
        ({"replication": "3", "consistency": "read QUORUM, write QUORUM"}, ALL, 100 * MS),
        ({"replication": "3", "consistency": "read QUORUM, write QUORUM"}, TWO, 100 * MS),
        ({"replication": "3", "consistency": "read ONE, write ALL"}, TWO, 0),
        ({"replication": "3", "consistency": "read ONE, write ONE"}, KILL, 100 * MS),
        ({"replication": "3", "consistency": "read ONE, write ONE"}, TWO, 100 * MS),
        ({"replication": "2", "consistency": "read ONE, write TWO"}, KILL, 0),
        ({"consistency": "unknown"}, KILL, None),
        ({"store": "fjall"}, KILL, None),
        ({"store": "redis", "appendonly": "no"}, replace(KILL, kind="stop"), math.inf),
        ({"store": "redis", "appendonly": "yes", "appendfsync": "everysec"}, KILL, 2000 * MS),
        ({"store": "redis", "appendonly": "yes", "appendfsync": "no"}, KILL, 0),
        ({"store": "redis", "appendonly": "yes", "appendfsync": "always"}, POWER, 0),
        ({**REDIS, "appendfsync": "always", "no_appendfsync_on_rewrite": "yes"}, KILL, 0),
        ({**REDIS, "appendfsync": "always", "no_appendfsync_on_rewrite": "yes"}, POWER, math.inf),
        ({**REDIS, "appendfsync": "everysec", "no_appendfsync_on_rewrite": "yes"}, POWER, math.inf),
        ({**REDIS, "appendfsync": "no", "no_appendfsync_on_rewrite": "yes"}, POWER, math.inf),
        ({**REDIS, "appendfsync": "always", "replication": "2 replicas, after the answer"}, KILL, None),
        ({**REDIS, "appendfsync": "always", "replication": 2}, PAUSE, None),
        ({**REDIS, "appendfsync": "always"}, PAUSE, 0),
        (ASYNC, KILL, 600 * MS),
        ({**ASYNC, "wal_writer_delay": "10ms"}, KILL, 30 * MS),
        ({**ASYNC, "wal_writer_delay": "10000 ms"}, POWER, 30_000 * MS),
        ({**ASYNC, "wal_writer_delay": "unknown"}, KILL, None),
        ({**ASYNC, "fsync": "off"}, KILL, 600 * MS),
        ({**ASYNC, "fsync": "off"}, POWER, math.inf),
        (ASYNC, FULL, 600 * MS),
        (ASYNC, PAUSE, 0),
        ({"store": "postgres", "durability": "device"}, POWER, 0),
        ({**REDIS, **PAIR, "appendfsync": "everysec"}, hit("primary"), 2000 * MS),
        ({**REDIS, **PAIR, "appendfsync": "everysec"}, hit("primary", "pause"), 0),
        ({**REDIS, **PAIR, "appendfsync": "everysec"}, hit("replica-1"), 0),
        ({**REDIS, **PAIR, "appendonly": "no"}, hit("replica-1", "stop"), 0),
        ({**REDIS, **PAIR, "appendonly": "no"}, hit("primary"), math.inf),
        ({**ASYNC, **PAIR}, hit("primary"), 600 * MS),
        ({**ASYNC, **PAIR}, hit("standby-1", "power"), 0),
        ({**PAIR, "store": "postgrenosql", "durability": "device"}, hit("primary", "power"), 0),
        ({"store": "postgres", "durability": "device", "data_nodes": 2}, KILL, None),
        ({"store": "postgres", "durability": "device", "replication_acknowledged": "1 and * (on)"}, PAUSE, None),
        ({"store": "hbase", "durability": "os", "wal.file_system": "hdfs"}, KILL, 0),
        (HBASE, replace(TWO, kind="power"), None),
        (HBASE, CUT, 0),
        ({**HBASE, "durability": "none"}, PAUSE, math.inf),
        ({**HBASE, "durability": "interval"}, CUT, None),
        ({"store": "hbase", "durability": "os", "wal.file_system": "ext4 (local)"}, KILL, None),
        ({"store": "hbase", "durability": "interval", "wal.file_system": "hdfs"}, KILL, None),
    ],
)
def test_guarantee_follows_setting_and_fault(
    changes: dict[str, Scalar], fault: FaultRecord, age_ns: float | None
) -> None:
    assert guarantee_of({**CASSANDRA, **changes}, [fault]).age_ns == age_ns


def test_faults_on_primary_and_standby_have_primarys_bound() -> None:
    assert guarantee_of({**ASYNC, **PAIR}, [hit("standby-1"), hit("primary")]).age_ns == 600 * MS
    assert guarantee_of({**ASYNC, **PAIR}, [replace(KILL, servers=("primary", "standby-1"))]).age_ns == 600 * MS


def test_several_faults_have_the_weakest_guarantee() -> None:
    facts: dict[str, Scalar] = {**CASSANDRA, "commitlog_sync_period": "10000ms"}
    assert guarantee_of(facts, [KILL, POWER]).age_ns == 10_000 * MS
    assert guarantee_of(CASSANDRA, [KILL, POWER]).age_ns is None


@pytest.mark.parametrize(
    ("levels", "copies", "is_current"),
    [("read QUORUM, write QUORUM", 3, True), ("read ONE, write TWO", 2, True), ("read ONE, write ONE", 2, False)],
)
def test_overlapping_levels_exclude_stale_reads(levels: str, copies: int, is_current: bool) -> None:
    assert reads_are_current({"consistency": levels, "replication": copies}) is is_current


def kills(*counts: int, oldest_ms: float = 94.0) -> list[TrialResult]:
    """One repeat with a kill for each of these counts of lost writes."""
    changes = [
        ledger(lost_allowed=count, **({"oldest": oldest_ms * MS, "oldest_max": 2 * oldest_ms * MS} if count else {}))
        for count in counts
    ]
    return [change(sound("cassandra", number)) for number, change in enumerate(changes, 1)]


def test_loss_is_a_frequency_with_an_interval() -> None:
    losses = loss.count_losses(kills(1, 19, 7, *[0] * 17), Settings())
    assert losses is not None
    assert losses.sentence == (
        "acknowledged writes lost in 3 of 20 kills, 1 to 19 writes each, the oldest between 94.0 and 188 ms old (the"
        " setting allows up to 100 ms); probability of a loss per kill: 3.2–38 % (95 % interval)"
    )
    assert losses.probability == clopper_pearson(3, 20)


def test_no_loss_has_an_upper_bound() -> None:
    losses = loss.count_losses(kills(*[0] * 20), Settings())
    assert losses is not None
    assert losses.sentence == "no acknowledged write lost in 20 kills (probability of a loss per kill: at most 17 %)"


def test_loss_in_every_kill_is_a_percentage() -> None:
    losses = loss.count_losses(kills(*[4] * 20), Settings())
    assert losses is not None
    assert losses.sentence.endswith("; probability of a loss per kill: 83–100 % (95 % interval)")


def test_loss_beyond_the_guarantee_is_named() -> None:
    losses = loss.count_losses(kills(0, 4, oldest_ms=101.0), Settings())
    assert losses is not None
    assert "(beyond the guarantee)" in losses.sentence


@pytest.mark.parametrize("setting", [{}, {"store": "redis", "appendonly": "no"}])
def test_loss_after_the_fault_is_not_allowed(setting: dict[str, Scalar]) -> None:
    trial = both(ledger(lost=2, lost_later=2), facts(**setting))(sound("cassandra", 1))
    (finding,) = loss.find_lost_writes(trial, guarantee_of(trial.facts, trial.faults))
    assert (finding.check, finding.severity) == (loss.LOST, Severity.INVALID)
    assert "2 of them sent after the fault" in finding.message


@pytest.mark.parametrize(
    "change",
    [
        ledger(unsettled=3),
        ledger(proved=0),
        ledger(proven=0.5),
        ledger(undecided=1),
        ledger(acknowledged=0),
        with_fault(fail_verification("held", "still answers")),
        with_fault(TWIN),
        both(with_fault(), set_figures(without=("ledger.acknowledged",))),
    ],
)
def test_inconclusive_ledger_is_no_evidence(change: Change) -> None:
    assert loss.count_losses([change(sound("cassandra", 1))], Settings()) is None


def test_unknown_guarantee_is_stated_as_unknown() -> None:
    losses = loss.count_losses([facts(store="fjall")(trial) for trial in kills(5, 0)], Settings())
    assert losses is not None
    assert "(guarantee unknown)" in losses.sentence
