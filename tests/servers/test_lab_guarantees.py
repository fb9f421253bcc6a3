"""The durability and replication that a trial records: as reported by servers, or why they are unknown."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lab_support import experiment, loadstone, single_folder, trials
from loadstone.runner.guarantees import UNKNOWN, guarantee_facts
from systems_support import free_port

LOGGED = {"durability": "device", "how": "commit log, synced before a write is acknowledged"}
SET = "'CONFIG', 'SET', 'appendfsync', 'always'"
REFUSED = "unknown: the server refuses CONFIG GET"


def test_store_query_takes_precedence_over_the_lab() -> None:
    settings = {"durable_writes": "no", "commitlog_sync": "batch", "replication": "1"}
    facts = guarantee_facts("none", "the keyspace has no commit log", settings, LOGGED)
    assert (facts["durability"], facts["how"]) == ("none", "the keyspace has no commit log")


def test_unknown_durability_is_omitted_with_its_reason() -> None:
    assert guarantee_facts("unknown", REFUSED, {"appendonly": "unknown"}, {}) == {UNKNOWN: REFUSED, "how": REFUSED}


def test_silent_binding_is_covered_by_the_lab_query() -> None:
    assert guarantee_facts("unknown", "nothing is known about it", {}, LOGGED) == LOGGED


def test_why_the_labs_query_failed_is_recorded() -> None:
    facts = {UNKNOWN: "redis does not answer CONFIG GET: timed out"}
    assert guarantee_facts("unknown", "nothing is known about it", {}, facts)[UNKNOWN] == facts[UNKNOWN]


@pytest.mark.parametrize("durability", ["none", "interval"])
def test_a_reported_durability_of_none_is_recorded(durability: str) -> None:
    assert guarantee_facts(durability, "why", {}, LOGGED)["durability"] == durability


def test_single_copy_is_recorded_equally_for_every_store() -> None:
    settings = {"appendonly": "no", "replication": "none"}
    assert guarantee_facts("none", "no log", settings, {})["replication"] == 1
    settings = {"appendonly": "no", "replication": "2 replicas, after the answer"}
    assert "replication" not in guarantee_facts("none", "no log", settings, {})


def test_facts_are_queried_after_hooks_changed_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_SYSTEMS", str(tmp_path / "systems"))
    port = free_port()
    change = f"from loadstone.systems.redis.client import RedisClient as C; C('127.0.0.1', {port}).send_command({SET})"
    hook = json.dumps(f'{sys.executable} -c "{change}"')
    text = f"""
systems: {{redis: {{store: redis, start: {{system: redis, settings: {{port: {port}, appendonly: "yes"}}}}}}}}
workload: {{file: %s/workloads/workloada, properties: {{recordcount: 50, fieldcount: 1}}}}
measure: {{warmup: 0, duration: 200ms, settle: false}}
hooks: {{before: [{hook}]}}
repeats: 2
"""
    loadstone(tmp_path, "run", experiment(tmp_path, text), "--no-report")
    for trial in trials(single_folder(tmp_path)):
        names = ("appendonly", "appendfsync", "durability", "replication", "data_in")
        assert [trial.facts[name] for name in names] == ["yes", "always", "device", 1, "memory"]
