"""Systems with servers in an experiment file: short and long forms, defaults, and the resulting plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from experiment_support import ROOT, WORKLOADS, experiment, loaded, mistakes, warnings
from loadstone.experiment.file import load_experiment
from loadstone.experiment.plan.description import describe_plan
from loadstone.experiment.plan.forecast import estimate_seconds, estimate_space, list_starts
from loadstone.experiment.plan.plan import Plan, plan_experiment
from loadstone.experiment.plan.required_servers import Attached, StartedSystems, StartRequest, VariantServers
from loadstone.systems import registry

TAIL = "workload: WORKLOADS/workloada\n"
GUIDE = ROOT / "docs/guides/measuring-servers.md"
READS = "workload: {file: WORKLOADS/workloadc}\n"
READING = "{file: WORKLOADS/workloada, properties: {updateproportion: 0, readproportion: 1}}"


def planned(directory: Path, text: str, *settings: str) -> Plan:
    """The plan of an experiment."""
    return plan_experiment(loaded(directory, text if "workload:" in text else text + TAIL, *settings).experiment)


def servers(directory: Path, text: str, *settings: str) -> list[VariantServers]:
    """The servers of each variant; every variant has some."""
    return [each.servers for each in planned(directory, text, *settings).variants if each.servers is not None]


def test_a_string_is_the_system_with_its_defaults(tmp_path: Path) -> None:
    for text in ("start: redis", "start: {system: redis}", "start: {system: redis, nodes: 1}"):
        (found,) = servers(tmp_path, f'systems: {{a: {{store: "null", {text}}}}}\n')
        assert found == VariantServers(
            StartedSystems((StartRequest("redis", 1, {}),), keep=False), "table", "usertable", {}
        )


def test_a_stores_own_system_need_not_be_named(tmp_path: Path) -> None:
    (found,) = servers(tmp_path, "systems: {redis: {start: {keep: true}}}\n")
    assert found.how == StartedSystems((StartRequest("redis", 1, {}),), keep=True)


def test_system_of_any_name_uses_its_started_store(tmp_path: Path) -> None:
    text = f"systems: {{small: {{start: {{system: redis}}}}, big: {{start: {{system: redis}}}}}}\n{TAIL}"
    assert {each.store for each in loaded(tmp_path, text).experiment.systems.values()} == {"redis"}


def test_everything_about_servers_may_be_varied(tmp_path: Path) -> None:
    text = """
systems:
  a:
    store: "null"
    start: {system: cassandra, nodes: "{nodes}", settings: {heap: "{heap}"}}
    table: {replication_factor: "{nodes}"}
vary: {nodes: [1, 3], heap: [1G, 2G]}
workload: {file: WORKLOADS/workloada, properties: {table: mine}}
"""
    found = servers(tmp_path, text)
    assert [each.how for each in found] == [
        StartedSystems((StartRequest("cassandra", nodes, {"heap": heap}),), keep=False)
        for nodes in (1, 3)
        for heap in ("1G", "2G")
    ]
    assert [each.options for each in found] == [{"replication_factor": each} for each in ("1", "1", "3", "3")]
    assert {each.table for each in found} == {"mine"}
    keys = [each.load_key for each in planned(tmp_path, text).variants]
    assert len(set(keys)) == 4


@pytest.mark.parametrize(
    ("start", "below"),
    [
        ("nodes: 3", StartRequest("hdfs", 3, {})),
        ("nodes: 3, over: {nodes: 1, settings: {replication: 1}}", StartRequest("hdfs", 1, {"replication": "1"})),
        ("nodes: 1, over: {}", StartRequest("hdfs", 3, {})),
        ("nodes: 1, settings: {mode: distributed}", StartRequest("hdfs", 3, {})),
        ("nodes: 1", None),
        ("nodes: 3, settings: {hbase.rootdir: 'hdfs://elsewhere/hbase'}", None),
    ],
)
def test_hbase_is_started_with_the_hdfs_it_needs(tmp_path: Path, start: str, below: StartRequest | None) -> None:
    (found,) = servers(tmp_path, f'systems: {{a: {{store: "null", start: {{system: hbase, {start}}}}}}}\n')
    assert isinstance(found.how, StartedSystems)
    assert found.how.system.system == "hbase"
    if below is not None:
        assert found.how.system.nodes > 1 or found.how.system.settings["mode"] == "distributed"
    assert found.how.systems[:-1] == (() if below is None else (below,))


def test_settings_with_dots_in_their_names_are_accepted(tmp_path: Path) -> None:
    text = 'systems: {a: {store: "null", start: {system: hbase, settings: {hbase.wal.dir: "file:///x"}}}}\n'
    (found,) = servers(tmp_path, text, "systems.a.start.settings.hbase.wal.dir=file:///y", "systems.a.table.family=cf")
    assert isinstance(found.how, StartedSystems)
    assert found.how.system.settings == {"hbase.wal.dir": "file:///y"}
    assert found.options == {"family": "cf"}
    (short,) = servers(tmp_path, 'systems: {a: {store: "null"}}\n', "systems.a.start=redis")
    assert short.how == StartedSystems((StartRequest("redis", 1, {}),), keep=False)


def test_system_may_share_its_name_with_open_mappings(tmp_path: Path) -> None:
    found = loaded(
        tmp_path, "systems: {settings: {store: lmdb}, table: {store: lmdb}}\n" + TAIL, "systems.table.store=redb"
    )
    assert found.experiment.systems["table"].store == "redb"


def test_attached_servers_are_read(tmp_path: Path) -> None:
    text = """
systems:
  a:
    store: "null"
    attach: {hosts: ["{where}.1", "{where}.2"], port: 7, status: "ssh {host} test {where} {table}"}
    fresh: none
vary: {where: [x]}
"""
    (found,) = servers(tmp_path, text)
    assert found.how == Attached(("x.1", "x.2"), 7, "ssh {host} test x {table}", "", "", "")
    assert found.fresh == "none"
    assert found.how.store_properties("redis") == {"redis.host": "x.1,x.2", "redis.port": "7"}
    assert found.how.store_properties("null") == {}


def test_loads_adding_to_earlier_data_are_a_warning(tmp_path: Path) -> None:
    text = f'systems: {{a: {{store: "null", attach: {{hosts: [h]}}}}}}\n{TAIL}'
    assert warnings(tmp_path, text) == ["every load adds to the data that earlier trials left"]
    assert warnings(tmp_path, text.replace("hosts: [h]}", "hosts: [h]}, fresh: none")) == []
    assert warnings(tmp_path, text.replace("[h]", "[h], fresh: empty")) == []


@pytest.mark.parametrize("name", list(registry.SYSTEMS))
def test_fresh_defaults_to_a_table_if_supported(tmp_path: Path, name: str) -> None:
    (found,) = servers(tmp_path, f'systems: {{a: {{store: "null", start: {name}}}}}\n')
    assert found.fresh == "table"


@pytest.mark.parametrize(
    ("reuse", "workload", "keys"),
    [
        ("copy", "WORKLOADS/workloadc", []),
        ("copy", READING, []),
        ("copy", "WORKLOADS/workloada", ["updateproportion"]),
        ("copy", "WORKLOADS/workloadd", ["insertproportion"]),
        ("copy", "WORKLOADS/workloadf", ["readmodifywriteproportion"]),
        ("shared", "WORKLOADS/workloada", []),
    ],
)
def test_server_data_are_reused_only_unchanged_or_shared(
    tmp_path: Path, reuse: str, workload: str, keys: list[str]
) -> None:
    found = mistakes(
        tmp_path, f"systems: {{redis: {{start: redis}}}}\nworkload: {workload}\nload: {{reuse: {reuse}}}\n"
    )
    assert found == [
        f"the data of redis are on servers and cannot be copied, and the workload changes them ({key})" for key in keys
    ]


def test_data_on_servers_are_reused_without_copies(tmp_path: Path) -> None:
    again = f"systems: {{redis: {{start: redis}}}}\n{READS}load: {{reuse: copy}}\n"
    anew = planned(tmp_path, again.replace("load: {reuse: copy}\n", ""))
    assert estimate_space(planned(tmp_path, again)) == estimate_space(anew)
    assert "copied" not in describe_plan(planned(tmp_path, again))
    assert "copied" in describe_plan(planned(tmp_path, again.replace("{redis: {start: redis}}", "[lmdb]")))


def test_data_in_files_are_not_shared(tmp_path: Path) -> None:
    found = mistakes(tmp_path, f"systems: [lmdb]\n{READS}load: {{reuse: shared}}\n")
    assert found == ["lmdb keeps its data in files, and each trial has its own"]


def test_resolved_file_is_equal_and_omits_absent_servers(
    tmp_path: Path,
) -> None:
    text = """
systems:
  plain: {store: lmdb}
  hbase: {store: "null", start: {system: hbase, nodes: 3}, table: {family: cf, splits: 200}}
  mine: {store: "null", attach: {hosts: [h], fresh: empty}}
"""
    found = loaded(tmp_path, text + TAIL)
    document = yaml.safe_load(found.text_with_defaults)["systems"]
    assert list(document["plain"]) == ["store", "properties", "hooks"]
    assert document["hbase"]["start"]["over"] == {"nodes": "3", "settings": {}}
    assert document["hbase"]["fresh"] == "table"
    again = load_experiment(experiment(tmp_path, found.text_with_defaults))
    assert again.text_with_defaults == found.text_with_defaults
    assert plan_experiment(again.experiment).variants == plan_experiment(found.experiment).variants


COUNTED = """
systems:
  one: {store: "null", start: {system: redis, settings: {maxmemory: "{size}"}}}
  two: {store: "null", start: {system: hbase, nodes: 3, settings: {heap: "{size}"}}}
  none: {store: lmdb}
vary: {size: [1g, 2g]}
repeats: 6
"""


def test_starts_are_counted_in_trial_order(tmp_path: Path) -> None:
    found = planned(tmp_path, COUNTED)
    expected: list[str] = []
    up: list[tuple[str, str]] = []
    for block in found.plan_blocks():
        for trial in block:
            system, size = str(trial.variant.config["system"]), str(trial.variant.config["size"])
            wanted = {"one": [("redis", size)], "two": [("hdfs", ""), ("hbase", size)], "none": []}[system]
            # HDFS stays up if the next trial needs it.
            expected += [name for name, size in wanted if (name, size) not in up]
            up = wanted
    assert [each.system for each in list_starts(found, 6)] == expected
    low, high = estimate_seconds(found)
    without_low, without_high = estimate_seconds(planned(tmp_path, re.sub(r"start: .*", "properties: {}}", COUNTED)))
    assert low > without_low
    assert high > without_high + 120 * expected.count("hbase")
    output = describe_plan(found)
    assert f"servers    hdfs, 3 nodes, started {expected.count('hdfs')} times" in output
    assert "servers    redis, 1 node, maxmemory=1g, started " in output


def test_fresh_systems_are_started_for_every_trial(tmp_path: Path) -> None:
    text = 'systems: {a: {store: "null", start: redis, fresh: system}}\nrepeats: 7\n'
    assert len(list_starts(planned(tmp_path, text), 7)) == 7
    assert len(list_starts(planned(tmp_path, text.replace(", fresh: system", "")), 7)) == 1
    assert "servers    redis, 1 node, started once" in describe_plan(
        planned(tmp_path, text.replace("fresh: system", ""))
    )


def test_the_guides_experiments_are_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        text = block.replace("../workloads", str(WORKLOADS))
        assert mistakes(tmp_path, text) == []


@pytest.mark.parametrize(
    ("started", "guarantees"),
    [
        ("{system: redis, settings: {appendfsync: '{fsync}'}}", ("system", "storage", "durability")),
        ("{system: cassandra, nodes: 3}", ("storage",)),
        ("{system: redis, settings: {maxmemory: '{fsync}'}}", ("system", "storage")),
    ],
)
def test_facts_set_by_a_dimension_are_recorded(tmp_path: Path, started: str, guarantees: tuple[str, ...]) -> None:
    text = f'systems: {{a: {{store: "null", start: {started}}}}}\nvary: {{fsync: [always, "no"]}}\n'
    found = loaded(tmp_path, text + 'hooks: {before: ["true {fsync}"]}\n' + TAIL.replace("\n\n", "\n"))
    assert (found.experiment.compare.by, found.experiment.compare.promises) == ("fsync", ())
    assert found.question_for_judge().guarantees == {"fsync": guarantees}


def test_systems_with_different_guarantees_are_a_warning(tmp_path: Path) -> None:
    text = """
systems:
  a: {store: redis, start: {system: redis, settings: {appendonly: "yes"}}}
  b: {store: redis, start: {system: redis, settings: {appendonly: "no"}}}
"""
    message = "the systems differ in appendonly, so their durability may differ"
    assert warnings(tmp_path, text + TAIL) == [f"{message}: if they do, the judge will refuse to rank them"]
    assert warnings(tmp_path, text + "compare: {promises: [durability]}\n" + TAIL) == []
    assert warnings(tmp_path, text.replace('"no"', '"yes"') + TAIL) == []
    for same in ("true", '"on"'):
        assert warnings(tmp_path, text.replace('"no"', same) + TAIL) == [], "one word, written otherwise"
