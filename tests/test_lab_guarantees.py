"""What a trial records of durability and copies: the servers' own answer, or why there is none."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lab_support import experiment, loadstone, only_folder, trials
from loadstone.runner.guarantees import UNKNOWN, guarantee_facts
from systems_support import free_port

LOGGED = {"durability": "device", "how": "commit log, synced before a write is acknowledged"}
SET = "'CONFIG', 'SET', 'appendfsync', 'always'"
REFUSED = "not known: the server refuses CONFIG GET"


def test_what_the_store_was_told_on_its_own_connection_counts_before_what_the_lab_was_told() -> None:
    asked = {"durable_writes": "no", "commitlog_sync": "batch", "replication": "1"}
    found = guarantee_facts("none", "the keyspace has no commit log", asked, LOGGED)
    assert (found["durability"], found["how"]) == ("none", "the keyspace has no commit log")


def test_a_durability_that_nobody_could_ask_for_is_left_out_and_the_reason_is_recorded() -> None:
    assert guarantee_facts("unknown", REFUSED, {"appendonly": "unknown"}, {}) == {UNKNOWN: REFUSED, "how": REFUSED}


def test_what_the_lab_could_ask_of_servers_it_started_stands_in_for_a_binding_that_tells_nothing() -> None:
    assert guarantee_facts("unknown", "nothing is known of it", {}, LOGGED) == LOGGED


def test_why_the_lab_could_not_ask_is_recorded_too() -> None:
    told = {UNKNOWN: "redis does not answer CONFIG GET: timed out"}
    assert guarantee_facts("unknown", "nothing is known of it", {}, told)[UNKNOWN] == told[UNKNOWN]


@pytest.mark.parametrize("durability", ["none", "interval"])
def test_no_durability_is_an_answer_where_the_server_gave_it(durability: str) -> None:
    assert guarantee_facts(durability, "why", {}, LOGGED)["durability"] == durability


def test_one_copy_is_one_copy_in_every_stores_words() -> None:
    asked = {"appendonly": "no", "replication": "none"}
    assert guarantee_facts("none", "no log", asked, {})["replication"] == 1
    asked = {"appendonly": "no", "replication": "2 replicas, after the answer"}
    assert "replication" not in guarantee_facts("none", "no log", asked, {})


def test_facts_are_the_servers_after_a_hook_has_changed_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_SYSTEMS", str(tmp_path / "systems"))
    port = free_port()
    change = f"from loadstone.systems.redis.client import RedisClient as C; C('127.0.0.1', {port}).ask({SET})"
    hook = json.dumps(f'{sys.executable} -c "{change}"')
    text = f"""
systems: {{redis: {{store: redis, start: {{system: redis, settings: {{port: {port}, appendonly: "yes"}}}}}}}}
workload: {{file: %s/workloads/workloada, properties: {{recordcount: 50, fieldcount: 1}}}}
measure: {{warmup: 0, duration: 200ms, settle: false}}
hooks: {{before: [{hook}]}}
repeats: 2
"""
    loadstone(tmp_path, "run", experiment(tmp_path, text))
    for trial in trials(only_folder(tmp_path)):
        names = ("appendonly", "appendfsync", "durability", "replication", "data_in")
        assert [trial.facts[name] for name in names] == ["yes", "always", "device", 1, "memory"]
