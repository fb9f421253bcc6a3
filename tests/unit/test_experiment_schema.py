"""Generated files that must agree with the model and the engine: schema, reference page, known names."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from experiment_support import EXAMPLES, PAGE, ROOT, WORKLOADS, load_text
from loadstone.engine.describe import describe_engine
from loadstone.experiment.file import ExperimentError, load_experiment
from loadstone.experiment.kind import KINDS
from loadstone.experiment.model import reference, schema
from loadstone.experiment.model import ycsb_properties as known
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.model.values import flow_yaml
from loadstone.experiment.model.vary import LONG
from loadstone.experiment.reading.model_errors import all_paths
from loadstone.statistics.estimate import REPEATS_MIN
from loadstone.systems import registry

EXPERIMENTS = sorted(path.relative_to(ROOT / "experiments").as_posix() for path in ROOT.glob("experiments/**/*.yaml"))
IN_FOLDERS = [name for name in EXPERIMENTS if "/" in name]
# Intended warnings of shipped experiments.
INTENDED_WARNINGS = {"same-vs-same.yaml": ["nothing uses the dimension copy"]}
# Experiments whose original test was a closed loop, with their expected warnings.
CLOSED = {
    name: ["in a closed loop, a stall counts once per client, so there is no outage in seconds"]
    for name in ("cassandra-hydra-ha.yaml", "cassandra-stalled-node.yaml")
}
MINIMAL = "systems: [rocksdb, lmdb]\nworkload: WORKLOADS/workloada\n"
# Keys about servers, each with the keys that it requires.
SERVERS: dict[str, dict[str, Any]] = {
    "start": {"start": {"system": "hbase"}},
    "attach": {"attach": {"hosts": ["10.0.0.1"], "status": "true"}},
    "fresh": {},
    "table": {},
}
VALIDATOR = Draft202012Validator(schema.experiment_schema())


def complaints(document: Any) -> list[str]:
    """The schema's errors for a document."""
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(document)]


def test_generated_files_are_checked_in_as_generated() -> None:
    assert reference.regenerate_page(PAGE) == PAGE, "run make docs"
    assert (ROOT / schema.SCHEMA).read_text() == schema.render_schema(), "run make docs"


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="no markers for the generated keys"):
        reference.regenerate_page("# The experiment file\n")


def test_writing_generated_files_needs_a_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / schema.SCHEMA).parent.mkdir(parents=True)
    (tmp_path / schema.PAGE).write_text(PAGE.replace("`question`", ""))
    assert schema.main([str(tmp_path)]) == 0
    assert (tmp_path / schema.PAGE).read_text() == PAGE
    assert (tmp_path / schema.SCHEMA).read_text() == schema.render_schema()
    assert schema.main([str(tmp_path / "none")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_the_schema_is_valid_and_describes_every_key() -> None:
    Draft202012Validator.check_schema(schema.experiment_schema())
    document = schema.experiment_schema()
    for part in (document, *(document["$defs"][model.__name__] for _, model in reference.list_parts())):
        for key, description in part["properties"].items():
            assert description.get("description") or "$ref" in description, key


# Scales for short trial runs; warnings about them are expected.
LOOKS = {
    ("cassandra-failure.yaml", "small"),
    ("cassandra-failure.yaml", "node"),
    ("cassandra-failure.yaml", "threads"),
    ("cassandra-hydra-ha.yaml", "small"),
    ("cassandra-replay-hydra.yaml", "small"),
    ("cassandra-scale.yaml", "small"),
    ("cassandra-stalled-node.yaml", "small"),
    ("hbase-failure.yaml", "small"),
    ("hdfs-replication.yaml", "small"),
    ("postgres-failure.yaml", "small"),
    ("redis-failure.yaml", "small"),
    ("redis-failure.yaml", "kill"),
    ("cassandra-hydra-ha.yaml", "on-nodes"),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_shipped_experiments_are_valid_in_every_scale(name: str) -> None:
    path = ROOT / "experiments" / name
    name = path.name
    # PyYAML reads `on` as true (YAML 1.1).
    document = yaml.safe_load(re.sub(r"\bon:", '"on":', path.read_text()))
    assert complaints(document) == []
    assert "small" in document["scales"]
    for scale in (None, *document["scales"]):
        loaded = load_experiment(path, scale)
        few = (name, scale) in LOOKS
        least = loaded.experiment.repeats.at_least
        no_claim = [f"{least} {'repeat is' if least == 1 else 'repeats are'} too few for any claim"]
        expected = [*CLOSED.get(name, []), *INTENDED_WARNINGS.get(name, no_claim if few else [])]
        assert [warning.message for warning in loaded.warnings] == expected
        assert loaded.experiment.question
        # A search may repeat each load fewer than REPEATS_MIN times.
        assert (least < REPEATS_MIN and not loaded.experiment.find) == few
        assert complaints(yaml.safe_load(loaded.text_with_defaults)) == []


@pytest.mark.parametrize("name", IN_FOLDERS)
def test_former_path_is_still_read(name: str) -> None:
    path = ROOT / "experiments" / name
    assert load_experiment(path.parents[1] / path.name).experiment == load_experiment(path).experiment


def test_file_at_former_path_wins(tmp_path: Path) -> None:
    text = "systems: [lmdb]\nquestion: {}\nworkload: {{properties: {{recordcount: 100}}}}\n"
    (tmp_path / "more").mkdir()
    (tmp_path / "more/a.yaml").write_text(text.format("moved"))
    assert load_experiment(tmp_path / "a.yaml").experiment.question == "moved"
    (tmp_path / "a.yaml").write_text(text.format("mine"))
    assert load_experiment(tmp_path / "a.yaml").experiment.question == "mine"


def test_index_lists_every_experiment() -> None:
    page = (ROOT / "experiments/README.md").read_text()
    links = re.findall(r"\]\(([\w/-]+\.yaml)\)", page)
    assert sorted(links) == EXPERIMENTS
    # The experiments outside subfolders come first.
    assert [name for name in links if "/" not in name] == links[: len(links) - len(IN_FOLDERS)]


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_on_the_page_are_valid(tmp_path: Path, text: str) -> None:
    assert complaints(yaml.safe_load(text)) == []
    assert load_text(tmp_path, text.replace("../workloads", "WORKLOADS")).warnings == ()


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize(
    ("title", "key"),
    [("", key) for key in Experiment.model_fields]
    + [(title, key) for title, model in reference.list_parts() for key in model.model_fields],
)
def test_the_example_of_a_key_is_valid(tmp_path: Path, title: str, key: str) -> None:
    model = dict(reference.list_parts()).get(title, Experiment)
    path = [*title.replace("NAME", "rocksdb").split("."), key] if title else [key]
    base: dict[str, Any] = {"systems": {"rocksdb": {}, "lmdb": {}}, "workload": {"file": f"{WORKLOADS}/workloada"}}
    if path[0] == "systems" and {*path} & SERVERS.keys():
        path[1] = "served"
        keys = SERVERS["attach" if "attach" in path else "start"]
        base["systems"]["served"] = {"store": "null", **({} if key in ("start", "attach") else keys)}
    if path[0] == "fleet":
        base |= {"systems": {"served": {"store": "null"}}, "clients": 4}
        if key not in ("on", "engines"):
            base |= {"fleet": {"on": "ray"}}
    if (path[0] == "workload" and path[-1] in KINDS) or (len(path) > 2 and path[1] in KINDS):
        # A workload kind, with its required keys.
        kind = KINDS[path[1]]
        fields = kind.keys.model_fields
        needed = {name: (field.examples or [])[0] for name, field in fields.items() if field.is_required()}
        base |= {"systems": {"only": {"store": next(iter(kind.stores()))}}, "workload": {path[1]: needed}}
    if title == "workload.statements.columns.NAME":
        path[-2] = "city"
    if title == "workload.statements.statements.NAME":
        base["workload"]["statements"]["statements"] = {"rocksdb": {"cql": "SELECT * FROM users WHERE id = ?"}}
    if path == ["workloads"]:
        del base["workload"]
    if path[0] == "faults":
        base |= {
            "systems": {"cassandra": {"start": {"nodes": 3, "file_system": "1GB"}}},
            "measure": {"warmup": 1, "duration": 300},
        }
        if len(path) > 1:
            base["faults"] = [{"do": "kill", "at": {"from": "80s"}, "lift": {"from": "20s"}}]
    if path[:2] == ["rate", "stages"]:
        base["rate"] = {"stages": [{"for": "1s"} if key == "at" else {"for": "1s", "to": 5}]}
    for example in model.model_fields[key].examples or []:
        value = flow_yaml(example).replace("../workloads", str(WORKLOADS)).replace("workload{letter}", "workloada")
        document = copy.deepcopy(base)
        holder = document
        for word in path[:-1]:
            below: Any = holder.setdefault(word, {})
            holder = below[0] if isinstance(below, list) else below
        holder[path[-1]] = yaml.safe_load(value)
        assert complaints(document) == []
        if key in ("include", "exclude"):
            document["vary"]["matrix"] = {"system": ["rocksdb", "lmdb"], "letter": ["a", "c"]}
        assert load_text(tmp_path, json.dumps(document)).experiment


@pytest.mark.parametrize(
    "text",
    [
        "clients: 0",
        "clients: two",
        "colour: red",
        "measure: {duraton: 5s}",
        "measure: {duration: 5 sec}",
        "repeats: 0",
        "repeats: {until: 5}",
        "durability: disk",
        "vary: {system: []}",
        "vary: {matrix: {}, letter: [a]}",
        "vary: {letter: [[a]]}",
        "load: {reuse: true}",
        "rate: 0",
        "find: {over: threads}",
        "find: {max: latency}",
        "find: {from: 0}",
        "find: {such_that: [p99 < 10ms]}",
        "find: throughput",
        "hooks: {before: echo}",
        "systems: {a: {store: rockdb}}",
        "systems: [rockdb]",
        "scales: {small: {measure: {duraton: 5s}}}",
        "scales: {small: {measure: {duration: 5 sec}}}",
    ],
)
def test_schema_and_reader_reject_the_same_documents(tmp_path: Path, text: str) -> None:
    document = yaml.safe_load(MINIMAL.replace("WORKLOADS", str(WORKLOADS))) | yaml.safe_load(text)
    assert complaints(document)
    with pytest.raises(ExperimentError):
        load_text(tmp_path, json.dumps(document))


@pytest.mark.parametrize(
    "text",
    [
        "measure: {duration: 1m30s, warmup: 0}",
        "repeats: {at_least: 6, until: 0.05}",
        "repeats: 6",
        "systems: {lmdb: null}",
        "vary: {clients: 4}",
        "find: {}",
        "find: {max: throughput, such_that: p99 < 10ms, over: rate, from: 0.5, to: 1000}",
        "vary: {clients: [1, 2]}",
        "vary: {zip: {clients: [1, 2], rate: [1, 2.5]}}",
        "scales: {small: {workload: {properties: {recordcount: 1}}, repeats: 6, vary: {system: [lmdb]}}}",
        "scales: {bare: {question: null, workload: {properties: {recordcount: null}}, measure: {warmup: null}}}",
        "scales: {bare: {vary: {zip: {rate: null, clients: [1, 2]}}, find: null, repeats: null, hooks: null}}",
        "load: {reuse: false}",
    ],
)
def test_schema_and_reader_accept_the_same_documents(tmp_path: Path, text: str) -> None:
    document = yaml.safe_load(MINIMAL.replace("WORKLOADS", str(WORKLOADS))) | yaml.safe_load(text)
    assert complaints(document) == []
    assert load_text(tmp_path, json.dumps(document)).experiment


def test_lab_properties_exist_in_the_engine() -> None:
    for names in (
        known.KEYS,
        known.OF_A_COMMAND,
        known.OF_A_RUN,
        known.CHANGING_RATES,
        known.WHOLE_NUMBERS,
        known.SHARES,
    ):
        assert set(names) <= describe_engine().properties
    assert {*registry.SERVED_BY} <= {*describe_engine().stores}


def test_every_key_that_replaces_a_property_exists() -> None:
    for key in known.KEYS.values():
        assert key in all_paths(Experiment)


def test_dimensions_avoid_the_keys_of_vary() -> None:
    assert set(schema.experiment_schema()["$defs"]["Vary"]["properties"]) == set(LONG)
