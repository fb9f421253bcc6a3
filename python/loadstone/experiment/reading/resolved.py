"""The resolved document: an experiment as a file with all defaults."""

from __future__ import annotations

from typing import Any

import yaml

from loadstone.engine import secrets
from loadstone.engine.describe import describe_engine
from loadstone.experiment.model.experiment import KIND_OF_KEY, Experiment
from loadstone.experiment.reading.scalars import explain_ambiguity
from loadstone.experiment.reading.scalars import resolve_scalar as meaning

# Keys of a system that apply only to servers.
OF_SERVERS = ("start", "attach", "fresh", "table")
HEAD = "# The experiment as it was run, with every default spelled out.\n"


class Dumper(yaml.SafeDumper):
    """Writes documents for `loadstone.experiment.reading.scalars`: ambiguous scalars are quoted."""

    def ignore_aliases(self, data: Any) -> bool:
        """Makes the dumper write equal parts twice instead of using anchors."""
        return True


def represent_text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """A string, in double quotes unless its unquoted form can only be a string."""
    plain = text and explain_ambiguity(text) is None and meaning(text) == text and text[0].isalpha()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if plain else '"')


Dumper.add_representer(str, represent_text)


def resolve_document(experiment: Experiment) -> dict[str, Any]:
    """The experiment as plain values, as in a file."""
    plain = experiment.model_dump(mode="json")
    for system in plain["systems"].values():
        for key in OF_SERVERS:
            if not system[key]:
                del system[key]
    for path, workload in experiment.all_workloads.items():
        # Omits the keys of other kinds.
        above: Any = plain if path == ("workload",) else plain["workloads"]
        above[path[-1]] = {key: value for key, value in above[path[-1]].items() if KIND_OF_KEY[key] in workload.kinds}
    del plain["workload" if experiment.workloads else "workloads"]
    if not experiment.expect:
        # Runs of earlier versions lack the key, but must be resumable.
        del plain["expect"]
    hide_secrets(plain)
    # The load of a search has no fixed value.
    del plain["find" if experiment.find is None else experiment.find.over]
    return plain


def hide_secrets(part: dict[str, Any]) -> None:
    """Masks passwords, which must not be stored with results."""
    for key, value in part.items():
        if isinstance(value, dict):
            hide_secrets(value)
            if key in ("properties", "settings"):
                safe = describe_engine().hide_secrets(value)
                part[key] = {
                    name: secrets.hide_secrets(text) if isinstance(text, str) else text for name, text in safe.items()
                }


def resolve_text(experiment: Experiment) -> str:
    """The resolved document as YAML, from which `load_experiment` reads an equal experiment."""
    return HEAD + yaml.dump(
        resolve_document(experiment),
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=120,
        default_flow_style=None,
    )


def list_changed_keys(before: str, after: str) -> list[str]:
    """The keys in which two resolved documents differ, as dotted paths, in the order of the file."""
    return list(list_differences(yaml.load(before, StringLoader), yaml.load(after, StringLoader), ""))


class StringLoader(yaml.BaseLoader):
    """Reads every scalar as a string: for a trial, `1` and `"1"` are the same."""


def list_differences(before: Any, after: Any, path: str) -> list[str]:
    """The paths of values that differ; dictionaries are compared key by key."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [] if before == after else [path or "everything"]
    paths = []
    for key in dict.fromkeys([*before, *after]):
        inner = f"{path}.{key}" if path else str(key)
        if key not in before or key not in after:
            paths.append(inner)
        else:
            paths += list_differences(before[key], after[key], inner)
    return paths
