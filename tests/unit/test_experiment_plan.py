"""The plan of an experiment: its variants, their order, the forecast and the description."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from pathlib import Path

import pytest

from experiment_support import FIXTURES, ROOT, load_text, snapshot
from loadstone.experiment.file import load_experiment
from loadstone.experiment.kind import Data
from loadstone.experiment.plan import order
from loadstone.experiment.plan.description import describe_plan
from loadstone.experiment.plan.forecast import estimate_seconds, estimate_space
from loadstone.experiment.plan.plan import Plan, Variant, plan_experiment
from loadstone.format.units import rough_span
from loadstone.workloads.ycsb import run_spec

TWO = "systems: [rocksdb, lmdb]\nworkload: WORKLOADS/workload{letter}\nvary: {letter: [a, c]}\nrepeats: 6\n"


def make_plan(directory: Path, text: str, *settings: str) -> Plan:
    """The plan of an experiment with this text."""
    return plan_experiment(load_text(directory, text, *settings).experiment)


def configs(plan: Plan) -> list[tuple[object, ...]]:
    """The values of each variant."""
    return [tuple(variant.config.values()) for variant in plan.variants]


def single_variant(directory: Path, text: str) -> Variant:
    """The one variant of an experiment."""
    (variant,) = make_plan(directory, text).variants
    return variant


def test_variants_are_all_combinations_in_file_order(tmp_path: Path) -> None:
    assert configs(make_plan(tmp_path, TWO)) == [("rocksdb", "a"), ("rocksdb", "c"), ("lmdb", "a"), ("lmdb", "c")]


def test_zip_pairs_exclude_removes_and_include_adds(tmp_path: Path) -> None:
    text = """
systems: [rocksdb, lmdb]
workload: WORKLOADS/workload{letter}
vary:
  matrix: {letter: [a, c], system: [rocksdb, lmdb]}
  zip: {clients: [1, 2], rate: [10, 20]}
  exclude: [{letter: c, clients: 1}, {system: lmdb, letter: a}]
  include: [{rate: 5, clients: 9, system: lmdb, letter: d}]
"""
    plan = make_plan(tmp_path, text)
    assert configs(plan) == [
        ("a", "rocksdb", 1, 10),
        ("a", "rocksdb", 2, 20),
        ("c", "rocksdb", 2, 20),
        ("c", "lmdb", 2, 20),
        ("d", "lmdb", 9, 5),
    ]
    assert [(variant.clients, variant.rate) for variant in plan.variants] == [
        (1, 10),
        (2, 20),
        (2, 20),
        (2, 20),
        (9, 5),
    ]
    assert list(plan.variants[-1].config) == ["letter", "system", "clients", "rate"]


def test_include_alone_makes_a_plan(tmp_path: Path) -> None:
    text = TWO.replace("{letter: [a, c]}", "{include: [{system: lmdb, letter: a}, {system: rocksdb, letter: c}]}")
    assert configs(make_plan(tmp_path, text)) == [("lmdb", "a"), ("rocksdb", "c")]


def test_a_variant_has_all_its_values_filled_in(tmp_path: Path) -> None:
    text = """
systems:
  mine:
    store: rocksdb
    properties: {rocksdb.version: "{version}"}
    hooks: {before: ["inner {system}"], after: ["inner {results}"]}
workload: {file: "WORKLOADS/workload{letter}", properties: {recordcount: 7, fieldlength: "{bytes}"}}
clients: 3
rate: 100
arrival: poisson
durability: device
measure: {verify: true}
vary: {version: ["7.10"], letter: [c], bytes: [10], quoted: ["{x}"]}
hooks: {before: ["outer {quoted} {trial} {{}}"], after: ["outer {store} {clients} {rate}"]}
directory: /data/{version}
"""
    variant = single_variant(tmp_path, text)
    assert variant.config == {"system": "mine", "version": "7.10", "letter": "c", "bytes": 10, "quoted": "{x}"}
    assert (variant.system, variant.store, variant.store_properties) == ("mine", "rocksdb", {"rocksdb.version": "7.10"})
    assert variant.kind == "ycsb"
    assert variant.work.file == str(ROOT / "workloads/workloadc")
    assert variant.work.properties == {"recordcount": "7", "fieldlength": "10", "dataintegrity": "true"}
    assert variant.data == Data(7, 100)
    assert (variant.clients, variant.rate, variant.arrival, variant.durability) == (3, 100.0, "poisson", "device")
    assert variant.directory == Path("/data/7.10")
    names = {"trial": "0000-mine-r1", "results": "/r"}
    assert variant.commands_before(names) == ["outer {x} 0000-mine-r1 {}", "inner mine"]
    assert variant.commands_after(names) == ["inner /r", "outer rocksdb 3 100"]


@pytest.mark.parametrize(
    ("varied", "keys"),
    [
        ("clients: [1, 2]", 1),
        ("rate: [10, 20]", 1),
        ("letter: [a, b, c, d, f]", 1),
        ("mix: [0.5, 0.95]", 1),
        ("copy: [1, 2]", 1),
        ("durability: [os, device]", 2),
        ("bytes: [10, 20]", 2),
        ("version: [1.0, 2.0]", 2),
        ("place: [ssd, disk]", 2),
        ("volume: [plain, replicated]", 2),
    ],
)
def test_variants_share_data_unless_their_settings_differ(tmp_path: Path, varied: str, keys: int) -> None:
    used = varied.partition(":")[0]
    letter = "{letter}" if used == "letter" else "a"
    text = f"""
systems: {{rocksdb: {{properties: {{rocksdb.version: "{{version}}"}}}}}}
workload:
  file: WORKLOADS/workload{letter}
  properties: {{fieldlength: "{{bytes}}", readproportion: "{{mix}}"}}
directory: /data/{{place}}
hooks: {{before: ["make {{volume}}"]}}
"""
    for name, value in (("version", "1"), ("bytes", "10"), ("mix", "0.5"), ("place", "ssd"), ("volume", "plain")):
        if name != used:
            text = text.replace(f"{{{name}}}", value)
    plan = make_plan(tmp_path, f"{text}vary: {{{varied}}}\n")
    assert len(plan.variants) > 1
    assert len({variant.load_key for variant in plan.variants}) == keys


def test_blocks_hold_every_variant_under_unique_trial_names(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, TWO)
    blocks = list(plan.plan_blocks())
    assert len(blocks) == 6
    everything = [tuple(variant.config.items()) for variant in plan.variants]
    for repeat, block in enumerate(blocks, 1):
        assert Counter(tuple(trial.variant.config.items()) for trial in block) == Counter(everything)
        assert {trial.repeat for trial in block} == {repeat}
    trials = [trial for block in blocks for trial in block]
    assert [trial.order for trial in trials] == list(range(24))
    assert len({trial.trial for trial in trials}) == 24
    assert trials[0].trial == "0000-" + "-".join(map(str, trials[0].variant.config.values())) + "-r1"


def test_the_order_is_reproducible(tmp_path: Path) -> None:
    names = [trial.trial for block in make_plan(tmp_path, TWO).plan_blocks() for trial in block]
    assert names[:4] == ["0000-lmdb-a-r1", "0001-rocksdb-c-r1", "0002-rocksdb-a-r1", "0003-lmdb-c-r1"]
    assert names == [trial.trial for block in make_plan(tmp_path, TWO).plan_blocks() for trial in block]
    assert names != [trial.trial for block in make_plan(tmp_path, TWO, "seed=2").plan_blocks() for trial in block]
    reordered = TWO.replace("[rocksdb, lmdb]", "[lmdb, rocksdb]").replace("[a, c]", "[c, a]")
    assert names == [trial.trial for block in make_plan(tmp_path, reordered).plan_blocks() for trial in block]


def test_all_orders_of_variants_are_equally_likely() -> None:
    counts = Counter(tuple(order.draw_order(["a", "b", "c"], seed, 1)) for seed in range(6000))
    expected = 1000
    assert set(counts) == set(itertools.permutations(range(3)))
    # Chi-square with 5 degrees of freedom exceeds 20.5 with a probability of 0.1 %.
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 20.5


def test_seeds_keep_their_values() -> None:
    # A resumed run must repeat the operations of its earlier trials.
    assert (order.trial_seed(7, 1), order.trial_seed(7, 2)) == (7_000_022, 7_000_023)
    assert (order.load_seed(-1), order.trial_seed(-1, 3)) == (2**64 - 1, 2**64 - 1_000_000)


@pytest.mark.parametrize(
    ("config", "slug"),
    [
        ({"system": "lmdb", "letter": "a"}, "lmdb-a"),
        ({"system": "RocksDB 10.1", "clients": 2, "cached": True}, "rocksdb-10.1-clients2-cachedtrue"),
        ({"path": "/dev/../sda1", "version": "7.10"}, "dev-..-sda1-version7.10"),
        ({"word": "größer"}, "gr-er"),
        ({"word": "…"}, "trial"),
        ({"word": "x" * 200}, "x" * 60),
        ({"word": "x" * 45, "records": 1000000}, "x" * 45 + "-records1000000"),
        ({"word": "x" * 46, "records": 1000000}, "x" * 46),
    ],
)
def test_a_trials_name_is_a_safe_file_name(config: dict[str, str | int], slug: str) -> None:
    assert order.variant_slug(config, list(config)) == slug


def test_forecast_of_time_and_space_follows_the_plan(tmp_path: Path) -> None:
    base = TWO + "measure: {warmup: 1s, duration: 9s}\n"
    low, high = estimate_seconds(make_plan(tmp_path, base))
    assert 220 < low < high < 440
    assert estimate_seconds(make_plan(tmp_path, base, "repeats={at_least: 6, until: 5%}"))[1] == pytest.approx(3 * high)
    more = make_plan(tmp_path, base, "workload.properties.recordcount=10000000")
    assert estimate_seconds(more)[1] > 24 * 10e9 / 50e6
    assert estimate_space(more) > 40e9
    copied = make_plan(tmp_path, base, "workload.properties.recordcount=10000000", "load.reuse=copy")
    assert estimate_seconds(copied)[1] < estimate_seconds(more)[1] / 2
    assert estimate_space(copied) > estimate_space(more)


def test_variants_may_differ_in_their_operations(tmp_path: Path, engine_variable: None) -> None:
    text = "systems: [lmdb]\nworkload: WORKLOADS/workload{letter}\nrepeats: 6\n"
    text += "vary: {zip: {letter: [a, c], operations: [1000, 20000000]}}\n"
    plan = make_plan(tmp_path, text)
    measure = plan.experiment.measure
    assert measure.duration is None
    untils = [run_spec(variant, measure, tmp_path, 1)["until"] for variant in plan.variants]
    assert untils == [{"operations": 1000}, {"operations": 20_000_000}]
    assert "measure 1,000 or 20,000,000 operations" in describe_plan(plan)
    assert estimate_seconds(plan)[1] > 6 * 20e6 / 20_000


def test_sort_rows_are_not_forecast_as_single_operations(tmp_path: Path) -> None:
    text = """
systems: {hdfs: {store: hdfs, start: {system: hdfs, nodes: 3}}}
workload: {sort: {rows: 100000000}}
clients: 4
repeats: 6
"""
    # In each of six repeats, 10 GB are transferred six times at 50 MB/s.
    assert estimate_seconds(make_plan(tmp_path, text))[1] < 6 * 6 * 10e9 / 50e6 + 6 * 200


def test_named_settings_fill_templates(tmp_path: Path) -> None:
    text = """
systems: {redis: {start: redis, properties: {redis.timeout: "{pause}", redis.port: "{port}"}}}
workload: WORKLOADS/workloada
vary:
  matrix: {clients: [1, 2]}
  named:
    setting:
      short: {pause: 1, port: 7}
      long: {pause: 20, port: 8}
  exclude: [{setting: long, clients: 2}]
repeats: 6
"""
    named = make_plan(tmp_path, text)
    assert [(dict(variant.config), variant.store_properties["redis.timeout"]) for variant in named.variants] == [
        ({"system": "redis", "clients": 1, "setting": "short"}, "1"),
        ({"system": "redis", "clients": 1, "setting": "long"}, "20"),
        ({"system": "redis", "clients": 2, "setting": "short"}, "1"),
    ]
    assert {variant.store_properties["redis.port"] for variant in named.variants} == {"7", "8"}


def test_the_load_can_have_other_clients_and_properties(tmp_path: Path) -> None:
    text = """
systems: {redis: {start: redis, properties: {redis.timeout: "900", redis.port: "7"}}}
workload: WORKLOADS/workloada
vary: {clients: [2, 4], pause: [100, 200]}
repeats: 6
load: {clients: 32, properties: {redis.timeout: "{pause}"}}
"""
    plan = make_plan(tmp_path, text)
    assert [variant.clients for variant in plan.variants] == [2, 2, 4, 4]
    assert {variant.loading.clients for variant in plan.variants} == {32}
    loading = [variant.loading.store_properties for variant in plan.variants]
    assert loading == [{"redis.port": "7", "redis.timeout": text} for text in ("100", "200", "100", "200")]
    assert {variant.store_properties["redis.timeout"] for variant in plan.variants} == {"900"}
    # The loading settings are part of the data's identity.
    assert len({variant.load_key for variant in plan.variants}) == 2
    (bare,) = make_plan(tmp_path, "systems: [lmdb]\nworkload: WORKLOADS/workloada\nclients: 3\nrepeats: 6\n").variants
    assert bare.loading == bare


def test_forecast_includes_the_pilot_and_its_warm_up(tmp_path: Path) -> None:
    text = 'systems: {a: {store: "null"}}\nworkload: WORKLOADS/workloada\nrepeats: 6\n'
    low, high = estimate_seconds(make_plan(tmp_path, text + "measure: {duration: 100s}\n"))
    without_low, without_high = estimate_seconds(make_plan(tmp_path, text + "measure: {duration: 100s, warmup: 0}\n"))
    # The pilot's trial takes 1.5 + 2 windows; the warm-up of each remaining trial takes up to 1.5 windows.
    assert low - without_low == pytest.approx(350, abs=5)
    assert high - without_high == pytest.approx(350 + 6 * 150, abs=10)


def test_the_forecast_includes_network_response_times(tmp_path: Path) -> None:
    text = "systems: {redis: {start: redis}}\nworkload: WORKLOADS/workloada\nclients: 4\nrepeats: 6\n"
    text += "measure: {operations: 1000000}\n"
    low, high = estimate_seconds(make_plan(tmp_path, text))
    trials = 6
    assert trials * 1e6 / (4 / 0.1e-3) < low < high / 50
    assert high > trials * 1e6 / (4 / 10e-3)
    many_low, many_high = estimate_seconds(make_plan(tmp_path, text, "clients=400"))
    assert many_low < low
    assert many_high < high / 10


def test_buffered_writes_are_forecast_without_response_times(tmp_path: Path) -> None:
    text = "systems: {hbase: {start: hbase}}\nworkload: WORKLOADS/workloada\nclients: 4\nrepeats: 6\n"
    text += "measure: {operations: 10}\n"
    many = "workload.properties.recordcount=10000000"
    low, high = estimate_seconds(make_plan(tmp_path, text, many))
    assert high > 6 * 1e7 / (4 / 10e-3)
    for buffered in ("load.properties.clientbuffering=true", "workload.properties.clientbuffering=TRUE"):
        soon_low, soon_high = estimate_seconds(make_plan(tmp_path, text, many, buffered))
        assert soon_low < low / 2
        assert soon_high < high / 20


def test_forecasts_use_units_of_their_magnitude() -> None:
    assert rough_span(121, 124) == "about 2 min"
    assert rough_span(120, 300) == "2 to 5 min"
    assert rough_span(480, 46_800) == "8 min to 13 h"
    assert rough_span(0.2, 1.4) == "0.2 to 1 s"


def test_the_plans_of_shipped_experiments_are_as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plans = []
    for file, scale in (("quickstart", None), ("hse-vs-rocksdb", "small"), ("hse-vs-rocksdb", "full")):
        loaded = load_experiment(f"experiments/{file}.yaml", scale, ["directory=/data"])
        plans.append(
            f"# {file} {scale or ''}\n\n{describe_plan(plan_experiment(loaded.experiment), loaded.warnings)}\n"
        )
    text = "\n".join(plans)
    assert text == snapshot(FIXTURES / "plans.txt", text)


def test_shipped_comparison_accepts_any_two_engines() -> None:
    path = ROOT / "experiments/hse-vs-rocksdb.yaml"
    for settings in (["vary.system=[rocksdb,hse]"], ["systems.redb={}", "vary.system=[redb,lmdb]"]):
        loaded = load_experiment(path, "small", settings)
        assert {variant.system for variant in plan_experiment(loaded.experiment).variants} == set(
            settings[-1][13:-1].split(",")
        )
        assert loaded.warnings == ()


def test_warnings_follow_the_plan(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, TWO, "repeats=2")
    output = describe_plan(plan_experiment(loaded.experiment), loaded.warnings)
    assert output.endswith(f"warning: 2 repeats are too few for any claim (--set repeats=2)\n{HINT}")


HINT = "hint: use at least 6"


def test_ten_thousand_trials_are_planned_one_by_one(tmp_path: Path) -> None:
    text = TWO.replace("vary: {letter: [a, c]}", f"vary: {{letter: [a, c], n: {list(range(250))}}}")
    plan = make_plan(tmp_path, text, "repeats=10")
    assert (len(plan.variants), plan.trials_least) == (1000, 10_000)
    trials = [entry.trial for block in plan.plan_blocks() for entry in block]
    assert len(set(trials)) == 10_000
    assert all(os.sep not in trial and len(trial) < 100 for trial in trials)


def test_plan_names_metrics_of_the_mix_only(tmp_path: Path) -> None:
    text = "systems: [redb, lmdb]\nworkload: WORKLOADS/workloada\nrate: 3000\nvary: {system: [redb, lmdb]}\n"
    compared = "compared   system, with redb: read.p99, update.p99, read.p50, update.p50, throughput"
    assert compared in describe_plan(make_plan(tmp_path, text)).splitlines()
