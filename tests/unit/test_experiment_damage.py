"""Any damaged experiment file is either read or refused; it never causes a crash."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiment_support import EXAMPLES, WORKLOADS
from loadstone.experiment.file import ExperimentError, load_experiment
from loadstone.experiment.plan.description import describe_plan
from loadstone.experiment.plan.plan import plan_experiment

SNIPPETS = (
    "{",
    "}",
    "[",
    "]",
    ":",
    "\n",
    "  ",
    "- ",
    "no",
    "1e6",
    '"',
    "'",
    "&a ",
    "*a",
    "~",
    "{x}",
    "\t",
    "5%",
    ",",
    "é",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    3,
    1.5,
    1e300,
    "",
    "a",
    "{letter}",
    "{",
    "5s",
    "system",
    [],
    [1, 1],
    ["a", None, [2]],
    {},
    {"a": None},
    {"system": ["lmdb"]},
    {"matrix": {}, "x": 1},
)


def outcome(path: Path, text: str) -> bool:
    """Whether an experiment file with this text is refused with an ExperimentError."""
    path.write_text(text)
    try:
        experiment = load_experiment(path).experiment
    except ExperimentError as error:
        output = str(error)
    else:
        output = describe_plan(plan_experiment(experiment))
    return output.startswith("error: ")


def test_inserted_or_deleted_characters_never_cause_a_crash(tmp_path: Path) -> None:
    draw = random.Random(1)
    base = EXAMPLES[1].replace("../workloads", str(WORKLOADS))
    refused = 0
    for _ in range(300):
        characters = list(base)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(characters))
            characters[at : at + draw.randint(0, 9)] = draw.choice(SNIPPETS)
        refused += outcome(tmp_path / "damaged.yaml", "".join(characters))
    assert 200 < refused < 300


def test_values_of_another_type_never_cause_a_crash(tmp_path: Path) -> None:
    draw = random.Random(2)
    base = yaml.safe_load(EXAMPLES[1].replace("../workloads", str(WORKLOADS)))
    refused = 0
    for _ in range(400):
        document = copy.deepcopy(base)
        for _ in range(draw.randint(1, 3)):
            holder, key = draw.choice(list(places(document)))
            holder[key] = copy.deepcopy(draw.choice(VALUES))
        # JSON is YAML, but numbers with an exponent are strings in YAML 1.1 and therefore refused.
        refused += outcome(tmp_path / "damaged.yaml", json.dumps(document))
    assert 250 < refused < 400


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every container in a document, paired with each of its keys."""
    keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in places(node[key])]


def test_nested_aliases_are_refused_immediately(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(ExperimentError, match="the file has more than 100,000 values"):
        load_experiment(path)
