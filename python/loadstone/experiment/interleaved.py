"""Creates an experiment file with two builds, so that their trials are interleaved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from loadstone.experiment.reading.resolved import Dumper
from loadstone.results.result_set import ResultSet
from loadstone.statistics.estimate import REPEATS_MIN

OLD, NEW = "old", "new"
# Keys in which the experiments of two builds may differ.
FREE = ("question", "systems", "seed", "compare", "expect", "directory", "timeout", "pilot")
HEAD = "# This experiment can decide whether the expectations are met: it interleaves the trials of both builds.\n"
EQUAL = "# Both files describe the same system: set the key that selects the build, such as a version or hosts.\n"


def deciding_experiment(sides: Sequence[Sequence[ResultSet]], expected: Sequence[str]) -> str:
    """The experiment as YAML, or commands if the experiments of two results cannot be combined."""
    old, new = (yaml.safe_load(side[0].experiment or "{}") for side in sides[:2])
    if not is_combinable(old, new):
        return comparison_commands(*(side[0].name for side in sides[:2]))
    systems = {name: next(iter(part["systems"].values())) for name, part in ((OLD, old), (NEW, new))}
    vary = old.get("vary") or {}
    matrix = {key: values for key, values in (vary.get("matrix") or {}).items() if key != "system"}
    document = {key: part for key, part in old.items() if key not in FREE or key in ("directory", "timeout", "pilot")}
    document |= {
        "question": "Does the new build meet its expectations?",
        "systems": systems,
        "vary": {"matrix": {"system": [OLD, NEW], **matrix}, **({"zip": vary["zip"]} if vary.get("zip") else {})},
        "repeats": {**(old.get("repeats") or {}), "at_least": max(count_repeats(old), REPEATS_MIN)},
        "compare": {**(old.get("compare") or {}), "by": "system", "baseline": OLD},
        "expect": list(expected),
    }
    note = EQUAL if systems[OLD] == systems[NEW] else ""
    return (
        HEAD + note + yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None)
    )


def count_repeats(document: dict[str, Any]) -> int:
    """The minimum number of repeats in a resolved experiment."""
    return int((document.get("repeats") or {}).get("at_least") or REPEATS_MIN)


def is_combinable(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether two experiments differ only in their single system."""
    if not old or not new or "find" in old or any(len(part.get("systems") or {}) != 1 for part in (old, new)):
        return False
    vary = old.get("vary") or {}
    if vary.get("include") or vary.get("exclude") or "{system}" in yaml.safe_dump(old):
        return False
    rest = [{key: part for key, part in document.items() if key not in (*FREE, "repeats")} for document in (old, new)]
    for part in rest:
        # Even if there is only one system, it may be a dimension.
        part["vary"] = {
            key: value for key, value in ((part.get("vary") or {}).get("matrix") or {}).items() if key != "system"
        }
    return bool(rest[0] == rest[1])


def comparison_commands(old: str, new: str) -> str:
    """The commands that measure two builds whose experiments cannot be combined."""
    numbers = range(1, REPEATS_MIN + 1)
    names = [",".join(f"{side}{number}" for number in numbers) for side in ("OLD", "NEW")]
    return (
        f"# Six alternating runs of {old} and {new} can decide whether the expectations are met:\n"
        f"#     for n in {' '.join(map(str, numbers))}; do loadstone run OLD.yaml; loadstone run NEW.yaml; done\n"
        f"#     loadstone compare {' '.join(names)} --expect …"
    )
