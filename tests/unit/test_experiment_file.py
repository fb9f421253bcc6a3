"""Reading an experiment file: forms, layers, defaults, warnings, and the resolved document."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiment_support import ROOT, experiment, load_text, mistakes, warnings
from loadstone.engine.document import read_document
from loadstone.experiment.file import ExperimentError, change_question, list_changed_keys, load_experiment
from loadstone.experiment.plan.description import describe_plan
from loadstone.experiment.plan.plan import plan_experiment
from loadstone.results.result_set import Question

MINIMAL = "systems: [rocksdb, lmdb]\nworkload: WORKLOADS/workloada\n"
LETTERS = "systems: [rocksdb, lmdb]\nworkload: WORKLOADS/workload{letter}\nvary: {letter: [a, c]}\n"


def test_two_keys_are_enough(tmp_path: Path) -> None:
    definition = load_text(tmp_path, MINIMAL).experiment
    assert {name: system.store for name, system in definition.systems.items()} == {"rocksdb": "rocksdb", "lmdb": "lmdb"}
    assert definition.vary.matrix == {"system": ("rocksdb", "lmdb")}
    assert (definition.compare.by, definition.compare.baseline) == ("system", "rocksdb")
    assert (definition.repeats.at_least, definition.repeats.at_most) == (6, 6)
    assert (definition.measure.duration, definition.durability, definition.clients, definition.seed) == (
        10.0,
        "os",
        1,
        1,
    )


def test_a_single_system_need_not_be_varied(tmp_path: Path) -> None:
    loaded = load_text(
        tmp_path, "systems: {mine: {store: redb}}\nworkload: WORKLOADS/workloada\nvary: {clients: [1, 2]}\n"
    )
    assert loaded.experiment.vary.matrix == {"system": ("mine",), "clients": (1, 2)}
    assert (loaded.experiment.compare.by, loaded.experiment.compare.baseline) == ("clients", 1)


def test_at_most_defaults_to_three_times_at_least(tmp_path: Path) -> None:
    repeats = load_text(tmp_path, MINIMAL, "repeats.until=5%").experiment.repeats
    assert (repeats.at_least, repeats.at_most, repeats.until) == (6, 18, 0.05)
    assert load_text(tmp_path, MINIMAL, "repeats=8").experiment.repeats.at_most == 8


def test_until_may_name_figures(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, MINIMAL, "repeats.until={throughput: 5%, read.p99: 0.1}")
    assert loaded.experiment.repeats.until == {"throughput": 0.05, "read.p99": 0.1}
    again = load_text(tmp_path, loaded.text_with_defaults).experiment
    assert again.repeats.until == loaded.experiment.repeats.until
    assert read_document(Question, asdict(again.question_for_judge())).until == again.repeats.until
    text = describe_plan(plan_experiment(again))
    assert "until the interval is at most 5% of throughput, 10% of read.p99" in text


@pytest.mark.parametrize(
    ("until", "mistake"),
    [
        ("{}", "repeats.until names no figure"),
        ("{read.p98: 5%}", "the percentile p98 is not recorded"),
        ("{throughput: 5}", "repeats.until must be above 0 and below 100%, got 5"),
    ],
)
def test_a_wrong_until_is_one_mistake(tmp_path: Path, until: str, mistake: str) -> None:
    assert mistakes(tmp_path, MINIMAL + f"repeats: {{until: {until}}}\n") == [mistake]


def test_unknown_figure_without_operation_is_named(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, MINIMAL + "compare: {metrics: [throughput, outage, p99latency]}\n")
    assert [warning.message for warning in loaded.warnings] == [
        'the figure "p99latency" is unknown; if no trial has it, it is not compared'
    ]


@pytest.mark.parametrize("rate", ["3000 ops", "3k", "3,000 qps"])
def test_rate_in_another_unit_is_written_in_digits(tmp_path: Path, rate: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        load_text(tmp_path, MINIMAL + f"rate: {rate}\n")
    assert [mistake.hint for mistake in caught.value.mistakes] == ["write 3000"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("rate: {stages: [{for: 1s, rate: 5}]}\n", 'did you mean "at"? The keys are for, at, to, from'),
        ("workload: {file: WORKLOADS/workloada, clients: 5}\n", "did you mean `clients` at the top of the file?"),
    ],
)
def test_misplaced_key_has_useful_hint(tmp_path: Path, text: str, hint: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        load_text(
            tmp_path, "systems: [redb]\n" + ("" if "workload" in text else "workload: WORKLOADS/workloada\n") + text
        )
    assert [mistake.hint for mistake in caught.value.mistakes] == [hint]


def test_null_without_quotes_is_named(tmp_path: Path) -> None:
    text = "systems: [redb, null]\nworkload: WORKLOADS/workloada\n"
    assert mistakes(tmp_path, text) == ["systems[2] is the value `null`, not a name"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("5s", 5.0), ("2m", 120.0), ("1h", 3600.0), ("1m30s", 90.0), ("7", 7.0), ("0.25", 0.25)],
)
def test_durations_are_read_with_and_without_units(tmp_path: Path, text: str, seconds: float) -> None:
    assert load_text(tmp_path, MINIMAL, f"measure.duration={text}").experiment.measure.duration == seconds


def test_the_question_reaches_the_judge(tmp_path: Path) -> None:
    text = MINIMAL + (
        "question: Which?\nclaims: device\nchecks: {littles-law: {low: 0.8}}\nmeasure: {verify: true}\n"
        "repeats: {at_least: 6, at_most: 9, until: 5%}\ncompare: {baseline: lmdb, metrics: [read.p99]}\n"
    )
    assert load_text(tmp_path, text).experiment.question_for_judge() == Question(
        text="Which?",
        by="system",
        baseline="lmdb",
        metrics=("read.p99",),
        at_least=6,
        at_most=9,
        until=0.05,
        claims="device",
        verify=True,
        checks={"littles-law": {"low": 0.8}},
    )


def test_setting_overrides_scale_and_scale_the_file(tmp_path: Path) -> None:
    text = MINIMAL + "clients: 1\nseed: 1\nmeasure: {duration: 1s}\nscales: {big: {clients: 2, seed: 2}}\n"
    definition = load_text(tmp_path, text, "seed=3", scale="big").experiment
    assert (definition.measure.duration, definition.clients, definition.seed) == (1.0, 2, 3)
    assert load_text(tmp_path, text).experiment.clients == 1


def test_layers_merge_mappings_and_replace_lists(tmp_path: Path) -> None:
    text = LETTERS + "rate: 10\nhooks: {before: [one, two]}\ncompare: {metrics: [throughput]}\n"
    definition = load_text(
        tmp_path, text, "vary.clients=[1,2]", "rate=", "hooks.before=[three]", "workload.properties.recordcount=7"
    ).experiment
    assert definition.vary.matrix == {"system": ("rocksdb", "lmdb"), "letter": ("a", "c"), "clients": (1, 2)}
    assert definition.rate is None
    assert definition.hooks.before == ("three",)
    assert definition.workload.properties == {"recordcount": "7"}
    assert definition.compare.metrics == ("throughput",)


def test_a_duration_in_a_layer_replaces_operations_below(tmp_path: Path) -> None:
    text = MINIMAL + "measure: {operations: 1000}\n"
    measure = load_text(tmp_path, text, "measure.duration=2s").experiment.measure
    assert (measure.duration, measure.operations) == (2.0, None)


def test_a_number_of_repeats_can_be_added_to(tmp_path: Path) -> None:
    repeats = load_text(tmp_path, MINIMAL + "repeats: 8\n", "repeats.at_most=9", "repeats.until=3%").experiment.repeats
    assert (repeats.at_least, repeats.at_most, repeats.until) == (8, 9, 0.03)


def test_a_setting_can_name_keys_that_contain_dots(tmp_path: Path) -> None:
    text = "systems: {rocksdb-10.1: {store: rocksdb}}\nworkload: WORKLOADS/workloada\n"
    definition = load_text(
        tmp_path,
        text,
        "systems.rocksdb-10.1.properties.rocksdb.version=10.10",
        "workload.properties.zipfian.theta={theta.low}".replace("={", '="{') + '"',
        "vary.theta.low=[0.5,0.9]",
    ).experiment
    assert definition.systems["rocksdb-10.1"].properties == {"rocksdb.version": "10.10"}
    assert definition.workload.properties == {"zipfian.theta": "{theta.low}"}
    assert definition.vary.matrix["theta.low"] == (0.5, 0.9)


def test_vary_accepts_long_and_short_forms(tmp_path: Path) -> None:
    text = MINIMAL + "vary: {matrix: {clients: [1, 2]}, exclude: [{clients: 2}]}\n"
    assert load_text(tmp_path, text, "vary.clients=[2,3]").experiment.vary.matrix["clients"] == (2, 3)
    assert load_text(tmp_path, text, "vary.matrix.clients=[2,3]").experiment.vary.matrix["clients"] == (2, 3)


def test_anchors_and_merge_keys_are_read(tmp_path: Path) -> None:
    text = """
systems:
  old: &rocksdb {store: rocksdb, properties: {rocksdb.version: 7.10.2}}
  new: {<<: *rocksdb, properties: {rocksdb.version: 10.10.1}}
workload: WORKLOADS/workloada
"""
    systems = load_text(tmp_path, text).experiment.systems
    assert [(system.store, system.properties["rocksdb.version"]) for system in systems.values()] == [
        ("rocksdb", "7.10.2"),
        ("rocksdb", "10.10.1"),
    ]


def test_a_property_keeps_its_text_as_written(tmp_path: Path) -> None:
    text = MINIMAL + "vary: {system: [rocksdb]}\n"
    settings = ["workload.properties.readallfields=true", "systems.rocksdb.properties.rocksdb.version=10.10"]
    definition = load_text(tmp_path, text, *settings).experiment
    assert definition.workload.properties["readallfields"] == "true"
    assert definition.systems["rocksdb"].properties["rocksdb.version"] == "10.10"


@pytest.mark.parametrize(
    ("more", "warning"),
    [
        ("vary: {copy: [1, 2]}", "nothing uses the dimension copy"),
        ("vary: {include: [{system: lmdb, copy: 1}, {system: lmdb, copy: 2}]}", "nothing uses the dimension copy"),
        ("vary: {clients: [1, 2]}\nclients: 3", "`clients` has no effect with vary.clients"),
        (
            "vary: {operations: [1, 2]}\nmeasure: {operations: 3}",
            "`measure.operations` has no effect with vary.operations",
        ),
        ("arrival: poisson", "arrival has no effect in a closed loop"),
        ("repeats: {at_least: 6, at_most: 9}", "repeats.at_most has no effect without `until`"),
        ("repeats: 3", "3 repeats are too few for any claim"),
        ("vary: {system: [lmdb]}\ncompare: {by: system}", "system has one value, so there is nothing to compare"),
        ("timeout: 3s", "timeout is 3s, but warm-up and window alone take 30s"),
    ],
)
def test_probable_mistakes_are_warnings(tmp_path: Path, more: str, warning: str) -> None:
    assert warnings(tmp_path, MINIMAL + more) == [warning]


def test_unknown_ycsb_property_is_a_warning_with_suggestion(tmp_path: Path) -> None:
    (warning,) = load_text(tmp_path, MINIMAL, "workload.properties.recordcuont=5").warnings
    assert warning.message == "YCSB has no property recordcuont"
    assert warning.hint.startswith('did you mean "recordcount"?')
    assert "--set workload.properties.recordcuont=5" in str(warning)


def test_a_correct_file_has_no_warnings(tmp_path: Path) -> None:
    assert warnings(tmp_path, LETTERS) == []


def test_missing_file_is_reported_with_a_similar_name(tmp_path: Path) -> None:
    path = experiment(tmp_path, MINIMAL)
    with pytest.raises(ExperimentError, match=r"cannot read the experiment: No such file") as caught:
        load_experiment(path.with_name("experimnt.yaml"))
    assert caught.value.hint == f"name a YAML file; did you mean {path}?"


def test_unselected_scale_is_validated(tmp_path: Path) -> None:
    text = MINIMAL + "scales: {full: {vary: {system: [hse]}}, odd: {clients: many}}\n"
    assert mistakes(tmp_path, text) == [
        'there is no system "hse"',
        'clients must be a whole number of at least 1, got "many"',
    ]


def test_workload_files_are_relative_to_file_or_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    file = load_text(tmp_path, MINIMAL.replace("WORKLOADS", "workloads")).experiment.workload.file
    assert file == f"{ROOT}/workloads/workloada"
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads/workloada").write_text("recordcount=1\n")
    file = load_text(tmp_path, MINIMAL.replace("WORKLOADS", "workloads")).experiment.workload.file
    assert file == f"{tmp_path}/workloads/workloada"


def test_braces_in_a_directorys_name_are_literal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "{odd}"
    here.mkdir()
    (here / "workloada").write_text("recordcount=1\n")
    loaded = load_text(here, "systems: [lmdb]\nworkload: workload{letter}\nvary: {letter: [a]}\n")
    assert load_text(tmp_path, loaded.text_with_defaults).experiment == loaded.experiment


def draw_experiment(seed: int) -> str:
    """A random valid experiment."""
    draw = random.Random(seed)
    texts = ["a", "true", "1e6", "7.10", "010", "no", "x: y", "- z", "#", "{{", "ü", "'", '"', "null", "", " b", "\n"]
    systems = {
        name: {"store": draw.choice(["rocksdb", "lmdb", "redb"])} for name in draw.sample(["r", "s.1", "t-2"], 2)
    }
    document: dict[str, Any] = {
        "question": draw.choice(texts),
        "systems": systems,
        "workload": {
            "file": f"{ROOT}/workloads/workload{{letter}}",
            "properties": {"table": draw.choice(texts), "recordcount": draw.randint(1, 9), "fieldnameprefix": "{w}"},
        },
        "vary": {
            "matrix": {"letter": draw.sample("abcdef", 2), "w": draw.sample([*texts[:10], 1, 2.5, False], 2)},
            "zip": {"clients": [1, 2], "rate": [draw.random() + 0.1, 1e20]},
        },
        "measure": draw.choice(
            [{"duration": draw.random() + 1e-5}, {"operations": 10, "warmup": 0}, {"duration": "1h1ms", "verify": True}]
        ),
        "repeats": draw.choice(
            [
                6,
                {"until": draw.random() * 0.9 + 0.01},
                {"at_least": 6, "at_most": 8, "until": "7%"},
                {"until": {"throughput": "5%", "read.p99": draw.random() * 0.9 + 0.01}},
            ]
        ),
        "timeout": draw.choice([None, "1d", 12345.678]),
        "hooks": {"before": [draw.choice(texts).replace("{{", "") + "{system}"]},
        "directory": "data/{letter}",
    }
    return yaml.dump(document, Dumper=Quoting, sort_keys=False, allow_unicode=True)


class Quoting(yaml.SafeDumper):
    """Quotes every string."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, '"'))


@pytest.mark.parametrize("seed", range(40))
def test_the_resolved_document_is_an_equal_experiment(tmp_path: Path, seed: int) -> None:
    first = load_text(tmp_path, draw_experiment(seed))
    again = load_text(tmp_path, first.text_with_defaults)
    assert again.experiment == first.experiment
    assert again.text_with_defaults == first.text_with_defaults


def test_another_compared_dimension_has_guarantees_of_its_own() -> None:
    of_wal = Question(by="wal", promises=("durability",))
    assert change_question(of_wal, ["compare.matters=2%"]).promises == ("durability",)
    assert change_question(of_wal, ["compare.by=wal"]).promises == ("durability",)
    assert change_question(of_wal, ["compare.by=system"]).promises == ()
    stated = ["compare.by=system", "compare.promises=[durability]"]
    assert change_question(of_wal, stated).promises == ("durability",)


def test_changed_keys_of_an_experiment_are_listed(tmp_path: Path) -> None:
    first = load_text(tmp_path, LETTERS).text_with_defaults
    settings = ["vary.letter=[a,b]", "measure.duration=2s", "workload.properties.recordcount=5"]
    assert list_changed_keys(first, first) == []
    assert list_changed_keys(first, load_text(tmp_path, LETTERS, *settings).text_with_defaults) == [
        "workload.properties.recordcount",
        "vary.matrix.letter",
        "measure.duration",
    ]
