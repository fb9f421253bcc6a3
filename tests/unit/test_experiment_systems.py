"""Systems with servers in an experiment file: short and long forms, defaults, and the resulting plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from experiment_support import ROOT, WORKLOADS, experiment, load_text, mistakes, warnings
from loadstone.engine.describe import describe_engine
from loadstone.experiment.file import load_experiment
from loadstone.experiment.plan.description import describe_plan
from loadstone.experiment.plan.forecast import estimate_seconds, estimate_space, list_starts, start_seconds
from loadstone.experiment.plan.plan import Plan, plan_experiment
from loadstone.experiment.plan.required_servers import Attached, StartedSystems, StartRequest, VariantServers
from loadstone.runner.server_pool import with_expected_address
from loadstone.systems import registry

TAIL = "workload: WORKLOADS/workloada\n"
GUIDE = ROOT / "docs/guides/measuring-servers.md"
READS = "workload: {file: WORKLOADS/workloadc}\n"
READING = "{file: WORKLOADS/workloada, properties: {updateproportion: 0, readproportion: 1}}"


def make_plan(directory: Path, text: str, *settings: str) -> Plan:
    """The plan of an experiment."""
    return plan_experiment(load_text(directory, text if "workload:" in text else text + TAIL, *settings).experiment)


def servers(directory: Path, text: str, *settings: str) -> list[VariantServers]:
    """The servers of each variant that has any."""
    return [
        variant.servers for variant in make_plan(directory, text, *settings).variants if variant.servers is not None
    ]


def test_a_string_is_the_system_with_its_defaults(tmp_path: Path) -> None:
    for text in ("start: redis", "start: {system: redis}", "start: {system: redis, nodes: 1}"):
        (plans,) = servers(tmp_path, f'systems: {{a: {{store: "null", {text}}}}}\n')
        assert plans == VariantServers(
            StartedSystems((StartRequest("redis", 1, {}),), keep=False), "table", "usertable", {}
        )


def test_a_stores_own_system_need_not_be_named(tmp_path: Path) -> None:
    (plans,) = servers(tmp_path, "systems: {redis: {start: {keep: true}}}\n")
    assert plans.how == StartedSystems((StartRequest("redis", 1, {}),), keep=True)


def test_system_of_any_name_uses_its_started_store(tmp_path: Path) -> None:
    text = f"systems: {{small: {{start: {{system: redis}}}}, big: {{start: {{system: redis}}}}}}\n{TAIL}"
    assert {system.store for system in load_text(tmp_path, text).experiment.systems.values()} == {"redis"}


def test_store_gets_no_other_stores_properties(tmp_path: Path) -> None:
    for store, prefix in (("postgres", "db."), ("postgrenosql", "postgrenosql.")):
        (variant,) = make_plan(tmp_path, f"systems: {{a: {{store: {store}, start: postgres}}}}\n").variants
        properties = with_expected_address(variant).store_properties
        assert {prefix + "url", prefix + "user", "db.driver"} < properties.keys()
        known = describe_engine().store_properties(store)
        assert properties.keys() <= {*known}, store


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
    plans = servers(tmp_path, text)
    assert [variant.how for variant in plans] == [
        StartedSystems((StartRequest("cassandra", nodes, {"heap": heap}),), keep=False)
        for nodes in (1, 3)
        for heap in ("1G", "2G")
    ]
    assert [variant.options for variant in plans] == [
        {"replication_factor": variant} for variant in ("1", "1", "3", "3")
    ]
    assert {variant.table for variant in plans} == {"mine"}
    keys = [variant.load_key for variant in make_plan(tmp_path, text).variants]
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
    (plans,) = servers(tmp_path, f'systems: {{a: {{store: "null", start: {{system: hbase, {start}}}}}}}\n')
    assert isinstance(plans.how, StartedSystems)
    assert plans.how.system.system == "hbase"
    if below is not None:
        assert plans.how.system.nodes > 1 or plans.how.system.settings["mode"] == "distributed"
    assert plans.how.systems[:-1] == (() if below is None else (below,))


def test_settings_with_dots_in_their_names_are_accepted(tmp_path: Path) -> None:
    text = 'systems: {a: {store: "null", start: {system: hbase, settings: {hbase.wal.dir: "file:///x"}}}}\n'
    (plans,) = servers(tmp_path, text, "systems.a.start.settings.hbase.wal.dir=file:///y", "systems.a.table.family=cf")
    assert isinstance(plans.how, StartedSystems)
    assert plans.how.system.settings == {"hbase.wal.dir": "file:///y"}
    assert plans.options == {"family": "cf"}
    (short,) = servers(tmp_path, 'systems: {a: {store: "null"}}\n', "systems.a.start=redis")
    assert short.how == StartedSystems((StartRequest("redis", 1, {}),), keep=False)


def test_system_may_share_its_name_with_open_mappings(tmp_path: Path) -> None:
    loaded = load_text(
        tmp_path, "systems: {settings: {store: lmdb}, table: {store: lmdb}}\n" + TAIL, "systems.table.store=redb"
    )
    assert loaded.experiment.systems["table"].store == "redb"


def test_attached_servers_are_read(tmp_path: Path) -> None:
    text = """
systems:
  a:
    store: "null"
    attach: {hosts: ["{where}.1", "{where}.2"], port: 7, status: "ssh {host} test {where} {table}"}
    fresh: none
vary: {where: [x]}
"""
    (plans,) = servers(tmp_path, text)
    assert plans.how == Attached(("x.1", "x.2"), 7, "ssh {host} test x {table}", "", "", "")
    assert plans.fresh == "none"
    assert plans.how.store_properties("redis") == {"redis.host": "x.1,x.2", "redis.port": "7"}
    assert plans.how.store_properties("null") == {}


def test_loads_adding_to_earlier_data_are_a_warning(tmp_path: Path) -> None:
    text = f'systems: {{a: {{store: "null", attach: {{hosts: [h]}}}}}}\n{TAIL}'
    assert warnings(tmp_path, text) == ["every load adds to the data of earlier trials"]
    assert warnings(tmp_path, text.replace("hosts: [h]}", "hosts: [h]}, fresh: none")) == []
    assert warnings(tmp_path, text.replace("[h]", "[h], fresh: empty")) == []


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ('system: redis, nodes: 2, settings: {cluster: "yes"}', "redis with 2 nodes cannot have cluster=yes"),
        (
            'system: redis, nodes: "{nodes}", settings: {min-replicas-to-write: 1}',
            "min-replicas-to-write=1, but there are 0 replicas: every write would be refused",
        ),
        (
            'system: redis, nodes: 3, settings: {cluster: "yes", min-replicas-to-write: 1}',
            "min-replicas-to-write=1, but there are 0 replicas: every write would be refused",
        ),
        (
            """system: postgres, nodes: 2, settings: {synchronous_standby_names: '"standby-1", "standby-2"'}""",
            'synchronous_standby_names contains "standby-2", which is not a standby',
        ),
        (
            'system: postgres, nodes: "{nodes}", settings: {synchronous_standby_names: ANY 3 (*)}',
            "synchronous_standby_names requires 3 standbys",
        ),
        (
            'system: postgres, nodes: 2, settings: {synchronous_standby_names: "ANY 1"}',
            'synchronous_standby_names cannot be "ANY 1"',
        ),
        (
            'system: postgres, nodes: 2, settings: {conf.synchronous_standby_names: "*"}',
            "conf.synchronous_standby_names cannot be set: Loadstone sets it",
        ),
        ('system: redis, nodes: "{nodes}", settings: {cluster: "yes"}', "redis with 1 node cannot have cluster=yes"),
        ('system: redis, nodes: 2, settings: {tls: "yes"}', "tls cannot be combined with several nodes"),
        ("system: redis, settings: {appendfsync: sometimes}", 'appendfsync cannot be "sometimes"'),
        ("system: redis, settings: {port: high}", 'port must be a whole number of at least 1, got "high"'),
        ("system: postgres, settings: {fsync: never}", 'fsync must be yes or no, got "never"'),
        ("system: postgres, settings: {user: postgres}", "user cannot be postgres, which the server reserves"),
        ("system: cassandra, settings: {heap: much}", 'heap must be a size, got "much"'),
        ("system: cassandra, settings: {commitlog_sync: daily}", 'commitlog_sync cannot be "daily"'),
        ("system: hbase, nodes: 3, settings: {mode: standalone}", "a standalone HBase has one node, not 3"),
        ('system: hdfs, settings: {replication: "0"}', 'replication must be a whole number of at least 1, got "0"'),
    ],
)
def test_settings_that_no_start_accepts_are_mistakes(tmp_path: Path, start: str, message: str) -> None:
    text = f'systems: {{a: {{store: "null", start: {{{start}}}}}}}\nvary: {{nodes: [3, 1]}}\n{TAIL}'
    text = text if "{nodes}" in text else text.replace("vary: {nodes: [3, 1]}\n", "")
    assert mistakes(tmp_path, text) == [message]


def test_invalid_settings_are_reported_together(tmp_path: Path) -> None:
    settings = "{appendfsync: sometimes, prot: 7, port: '{port}', maxclients: '9'}"
    text = f'systems: {{a: {{store: "null", start: {{system: redis, settings: {settings}}}}}}}\n'
    text += "vary: {port: [1, x]}\n"
    assert mistakes(tmp_path, text + TAIL) == [
        'redis has no setting "prot"',
        'port must be a whole number of at least 1, got "x"',
        'appendfsync cannot be "sometimes"',
    ]


@pytest.mark.parametrize("name", list(registry.SYSTEMS))
def test_fresh_defaults_to_a_table_if_supported(tmp_path: Path, name: str) -> None:
    (plans,) = servers(tmp_path, f'systems: {{a: {{store: "null", start: {name}}}}}\n')
    assert plans.fresh == "table"


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
    messages = mistakes(
        tmp_path, f"systems: {{redis: {{start: redis}}}}\nworkload: {workload}\nload: {{reuse: {reuse}}}\n"
    )
    assert messages == [
        f"the data of redis is on servers and cannot be copied, but the workload changes it ({key})" for key in keys
    ]


def test_data_on_servers_are_reused_without_copies(tmp_path: Path) -> None:
    again = f"systems: {{redis: {{start: redis}}}}\n{READS}load: {{reuse: copy}}\n"
    anew = make_plan(tmp_path, again.replace("load: {reuse: copy}\n", ""))
    assert estimate_space(make_plan(tmp_path, again)) == estimate_space(anew)
    assert "copied" not in describe_plan(make_plan(tmp_path, again))
    assert "copied" in describe_plan(make_plan(tmp_path, again.replace("{redis: {start: redis}}", "[lmdb]")))


def test_data_in_files_are_not_shared(tmp_path: Path) -> None:
    messages = mistakes(tmp_path, f"systems: [lmdb]\n{READS}load: {{reuse: shared}}\n")
    reason = "it keeps its data in files, and each trial has separate files"
    assert messages == [f"`reuse: shared` is not possible with lmdb: {reason}"]


def test_resolved_file_is_equal_and_omits_absent_servers(
    tmp_path: Path,
) -> None:
    text = """
systems:
  plain: {store: lmdb}
  hbase: {store: "null", start: {system: hbase, nodes: 3}, table: {family: cf, splits: 200}}
  mine: {store: "null", attach: {hosts: [h], fresh: empty}}
"""
    loaded = load_text(tmp_path, text + TAIL)
    document = yaml.safe_load(loaded.text_with_defaults)["systems"]
    assert list(document["plain"]) == ["store", "properties", "hooks"]
    assert document["hbase"]["start"]["over"] == {"nodes": "3", "settings": {}}
    assert document["hbase"]["fresh"] == "table"
    again = load_experiment(experiment(tmp_path, loaded.text_with_defaults))
    assert again.text_with_defaults == loaded.text_with_defaults
    assert plan_experiment(again.experiment).variants == plan_experiment(loaded.experiment).variants


COUNTED = """
systems:
  one: {store: "null", start: {system: redis, settings: {maxmemory: "{size}"}}}
  two: {store: "null", start: {system: hbase, nodes: 3, settings: {heap: "{size}"}}}
  none: {store: lmdb}
vary: {size: [1g, 2g]}
repeats: 6
"""


def test_starts_are_counted_in_trial_order(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, COUNTED)
    expected: list[str] = []
    up: list[tuple[str, str]] = []
    for block in plan.plan_blocks():
        for trial in block:
            system, size = str(trial.variant.config["system"]), str(trial.variant.config["size"])
            required = {"one": [("redis", size)], "two": [("hdfs", ""), ("hbase", size)], "none": []}[system]
            # HDFS stays up if the next trial needs it.
            expected += [name for name, size in required if (name, size) not in up]
            up = required
    assert [start.system for start in list_starts(plan, 6)] == expected
    low, high = estimate_seconds(plan)
    without_low, without_high = estimate_seconds(make_plan(tmp_path, re.sub(r"start: .*", "properties: {}}", COUNTED)))
    assert low > without_low
    assert high > without_high + 120 * expected.count("hbase")
    output = describe_plan(plan)
    assert f"servers    hdfs, 3 nodes, started {expected.count('hdfs')} times" in output
    assert "servers    redis, 1 node, maxmemory=1g, started " in output


def test_searches_with_equal_servers_share_a_start(tmp_path: Path) -> None:
    nodes = ", ".join(f'n{n}: {{store: "null", start: {{system: hdfs, nodes: {n}}}}}' for n in (1, 3))
    text = f"""systems: {{{nodes}}}
vary: {{size: [1, 2, 3]}}
find: {{max: throughput, such_that: errors < 1%, over: rate, from: 100, to: 200}}
measure: {{warmup: 1s, duration: 2s}}
repeats: 6
"""
    plan = make_plan(tmp_path, text)
    assert [start.nodes for start in list_starts(plan, 6)] == [1, 3]
    assert "order      random within each repeat, seed 1; 2 groups of searches" in describe_plan(plan)


@pytest.mark.parametrize(("length", "is_known"), [("", False), ("measure: {duration: 5s}", True)])
def test_unknown_length_of_commands_is_stated(tmp_path: Path, length: str, is_known: bool) -> None:
    text = f"systems: {{a: {{}}}}\nworkload: {{command: {{run: 'sleep {{duration}}'}}}}\nrepeats: 6\n{length}\n"
    plan = make_plan(tmp_path, text if is_known else text.replace("{duration}", "5"))
    assert (" plus work of unknown length, if a system" in describe_plan(plan)) is not is_known


def test_fresh_systems_are_started_for_every_trial(tmp_path: Path) -> None:
    text = 'systems: {a: {store: "null", start: redis, fresh: system}}\nrepeats: 7\n'
    assert len(list_starts(make_plan(tmp_path, text), 7)) == 7
    assert len(list_starts(make_plan(tmp_path, text.replace(", fresh: system", "")), 7)) == 1
    assert "servers    redis, 1 node, started once" in describe_plan(
        make_plan(tmp_path, text.replace("fresh: system", ""))
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
    loaded = load_text(tmp_path, text + 'hooks: {before: ["true {fsync}"]}\n' + TAIL.replace("\n\n", "\n"))
    assert (loaded.experiment.compare.by, loaded.experiment.compare.promises) == ("fsync", ())
    assert loaded.question_for_judge().guarantees == {"fsync": guarantees}


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
        assert warnings(tmp_path, text.replace('"no"', same) + TAIL) == [], "another spelling of the same value"


def test_start_estimate_is_read_from_system() -> None:
    for name in registry.SYSTEMS:
        estimate = registry.estimate_start(name)
        assert estimate == registry.load_system(name).start_estimate
        assert start_seconds(name, 0) <= estimate.usual_s <= start_seconds(name, 1)
    assert registry.estimate_start("postgrenosql") == registry.estimate_start("postgres")
    assert registry.estimate_start("mongodb").usual_s == 45.0
