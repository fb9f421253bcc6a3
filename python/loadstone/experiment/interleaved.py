"""Creates an experiment file with two or more builds, so that their trials are interleaved."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import yaml

from loadstone.experiment.reading.resolved import Dumper
from loadstone.format import units
from loadstone.results.result_set import ResultSet
from loadstone.statistics.estimate import REPEATS_MIN

OLD, NEW = "old", "new"
# The expected types of the parts that are combined; a damaged file may have other types.
SHAPES: dict[str, type] = {"systems": dict, "vary": dict, "repeats": dict, "compare": dict}
# Keys in which the experiments of two builds may differ.
FREE = ("question", "systems", "seed", "compare", "expect", "directory", "timeout", "pilot")
HEAD = "# This experiment can decide whether the expectations are met: it interleaves the trials of all builds.\n"
EQUAL = "# Two files describe the same system: set the key that selects the build, such as a version or hosts.\n"


def deciding_experiment(sides: Sequence[Sequence[ResultSet]], expected: Sequence[str], builds: Sequence[object]) -> str:
    """The experiment as YAML, or commands if the experiments of the sides cannot be combined.

    `builds` are the names of the sides.
    """
    old, *rest = (read_experiment(side[0].experiment) for side in sides)
    if not all(is_combinable(old, new) for new in rest):
        is_imported = not any(side[0].experiment for side in sides)
        return comparison_commands(list(map(str, builds)), expected, is_imported)
    names = [OLD, *([NEW] if len(rest) == 1 else [f"{NEW}-{number}" for number in range(1, len(rest) + 1)])]
    builds = [next(iter(part["systems"].values())) for part in (old, *rest)]
    systems = dict(zip(names, builds, strict=True))
    vary = old.get("vary") or {}
    matrix = {key: values for key, values in (vary.get("matrix") or {}).items() if key != "system"}
    document = {key: part for key, part in old.items() if key not in FREE or key in ("directory", "timeout", "pilot")}
    document |= {
        "question": "Does the new build meet its expectations?",
        "systems": systems,
        "vary": {"matrix": {"system": names, **matrix}, **({"zip": vary["zip"]} if vary.get("zip") else {})},
        "repeats": increase_repeats(old.get("repeats") or {}),
        "compare": {**(old.get("compare") or {}), "by": "system", "baseline": OLD},
        "expect": list(expected),
    }
    note = EQUAL if any(build in builds[:number] for number, build in enumerate(builds)) else ""
    return (
        HEAD + note + yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None)
    )


def read_experiment(text: str) -> dict[str, Any]:
    """A recorded experiment; empty if it is missing or damaged."""
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    parts = {key: document.get(key) for key in SHAPES}
    is_sound = all(part is None or isinstance(part, SHAPES[key]) for key, part in parts.items())
    matrix = (parts["vary"] or {}).get("matrix") if is_sound else None
    bounds = [(parts["repeats"] or {}).get(key) for key in ("at_least", "at_most")] if is_sound else []
    is_sound = is_sound and (matrix is None or isinstance(matrix, dict))
    return document if is_sound and all(bound is None or isinstance(bound, int) for bound in bounds) else {}


def increase_repeats(repeats: dict[str, Any]) -> dict[str, Any]:
    """Raises the number of repeats to the minimum for a claim."""
    at_least = max(repeats.get("at_least") or REPEATS_MIN, REPEATS_MIN)
    at_most = repeats.get("at_most")
    return {**repeats, "at_least": at_least, **({} if at_most is None else {"at_most": max(at_most, at_least)})}


def is_combinable(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether two experiments have a single system each, and differ only in FREE keys and in their repeats."""
    if not old or not new or "find" in old or any(len(part.get("systems") or {}) != 1 for part in (old, new)):
        return False
    vary = old.get("vary") or {}
    if vary.get("include") or vary.get("exclude") or "{system}" in yaml.safe_dump(old):
        return False
    rest = [{key: part for key, part in document.items() if key not in (*FREE, "repeats")} for document in (old, new)]
    for part in rest:
        # Even a single system may be a dimension.
        part["vary"] = {
            key: value for key, value in ((part.get("vary") or {}).get("matrix") or {}).items() if key != "system"
        }
    return bool(rest[0] == rest[1])


def comparison_commands(builds: Sequence[str], expected: Sequence[str], is_imported: bool) -> str:
    """The commands that measure builds whose experiments cannot be combined; other tools write one log per run."""
    numbers = range(1, REPEATS_MIN + 1)
    sides = ["OLD", "NEW"] if len(builds) == 2 else ["OLD", *(f"NEW-{number}-" for number in range(1, len(builds)))]
    suffix = ".log" if is_imported else ""
    names = [",".join(f"{side}{number}{suffix}" for number in numbers) for side in sides]
    expect = " ".join(f"--expect {shlex.quote(text)}" for text in expected)
    titles = [side.rstrip("-") for side in sides]
    runs = "".join(f"loadstone run {title}.yaml; " for title in titles)
    steps = (
        f"run {units.join_names(titles)} alternately, and keep the log of each run"
        if is_imported
        else f"for n in {' '.join(map(str, numbers))}; do {runs}done"
    )
    return (
        f"# Six alternating runs of {units.join_names(builds)} can decide whether the expectations are met:\n"
        f"#     {steps}\n"
        f"#     loadstone compare {' '.join(names)} {expect}"
    )
