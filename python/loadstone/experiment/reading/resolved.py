"""The resolved document: an experiment as a file in which nothing is left to a default."""

from __future__ import annotations

from typing import Any

import yaml

from loadstone.engine.describe import description
from loadstone.experiment.model.experiment import KIND_OF_KEY, Experiment
from loadstone.experiment.reading.words import resolved as meaning
from loadstone.experiment.reading.words import twofold

# Keys of a system that mean nothing where it has no servers.
OF_SERVERS = ("start", "attach", "fresh", "table")
HEAD = "# The experiment as it was run, with every default spelled out.\n"


class Dumper(yaml.SafeDumper):
    """Writes what `loadstone.experiment.reading.words` reads: a word that could be something else is quoted."""

    def ignore_aliases(self, data: Any) -> bool:
        """Equal parts are written twice rather than named."""
        return True


def represent_text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """A text, in double quotes unless it is plainly one."""
    plain = text and twofold(text) is None and meaning(text) == text and text[0].isalpha()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if plain else '"')


Dumper.add_representer(str, represent_text)


def document(experiment: Experiment) -> dict[str, Any]:
    """The experiment as plain values, as they stand in a file."""
    found = experiment.model_dump(mode="json")
    for system in found["systems"].values():
        for key in OF_SERVERS:
            if not system[key]:
                del system[key]
        hide(system)
        for servers in (system.get("start"), (system.get("start") or {}).get("over")):
            hide(servers or {})
    for path, workload in experiment.each_workload.items():
        # Without the keys of other kinds, and their defaults.
        given = {key: found_at(found, path)[key] for key in found_at(found, path) if KIND_OF_KEY[key] in workload.kinds}
        hide(given)
        found_at(found, path[:-1])[path[-1]] = given
    del found["workload" if experiment.workloads else "workloads"]
    hide(found["load"])
    # What is searched over has no value of its own.
    del found["find" if experiment.find is None else experiment.find.over]
    return found


def found_at(document: Any, path: tuple[str | int, ...]) -> Any:
    """What stands at a path."""
    return found_at(document[path[0]], path[1:]) if path else document


def hide(part: dict[str, Any]) -> None:
    """Passwords are not kept with results."""
    for key in {"properties", "settings"} & part.keys():
        part[key] = description().without_secrets(part[key])


def text(experiment: Experiment) -> str:
    """The resolved document as YAML; read again, it is an equal experiment."""
    return HEAD + yaml.dump(
        document(experiment), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None
    )


def same(before: str, after: str) -> list[str]:
    """The keys in which two resolved documents differ, as dotted paths, in the order of the file."""
    return list(differences(yaml.load(before, Reading), yaml.load(after, Reading), ""))


class Reading(yaml.BaseLoader):
    """Reads every word as a text: `1` and `"1"` are told apart by nothing that a trial would notice."""


def differences(before: Any, after: Any, path: str) -> list[str]:
    """The paths of what differs; a dictionary is looked into."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [] if before == after else [path or "everything"]
    found = []
    for key in dict.fromkeys([*before, *after]):
        inner = f"{path}.{key}" if path else str(key)
        if key not in before or key not in after:
            found.append(inner)
        else:
            found += differences(before[key], after[key], inner)
    return found
