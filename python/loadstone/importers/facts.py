"""Facts: information that logs do not contain, from `--fact` and from `FILE.facts.yaml` next to a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from loadstone.errors import LoadstoneError
from loadstone.importers import unit
from loadstone.importers.number import PLAIN, number_or_text
from loadstone.results.trial_result import Scalar

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
QUANTITY = re.compile(rf"({PLAIN.pattern})\s*([^\d\s].*)")
# The base unit of a fact's value, keyed by the end of the fact's name: `network_bps=10 Gbit/s`.
QUANTITIES = {"_bps": "B/s", "_bytes": "B", "_ns": "ns"}
SPELLED = {"B/s": "MB/s, MiB/s, Gbit/s", "B": "MB, GiB", "ns": "us, ms"}
EXAMPLE = "for example --fact clients=4"
PER_LINE = "write one fact per line: `clients: 4`"
SUFFIX = ".facts.yaml"


@dataclass(frozen=True)
class Facts:
    """The facts of one file: facts common to all its variants, and facts of individual variants."""

    common: Mapping[str, Scalar] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    path: Path | None = None


def parse_fact(text: str) -> tuple[str, Scalar]:
    """Parses `name=value`. Raises LoadstoneError if the text has another form."""
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals:
        raise LoadstoneError(f'a fact must be name=value, got "{text}"', EXAMPLE)
    if not NAME.fullmatch(name):
        rule = "a fact's name must start with a letter and contain only letters, digits and _ . -"
        raise LoadstoneError(f'{rule}, got "{name}"', EXAMPLE)
    if not value.strip():
        raise LoadstoneError(f'the fact "{name}" has no value', EXAMPLE)
    return name, parse_scalar(name, value.strip())


def parse_scalar(name: str, text: str) -> Scalar:
    """A fact's value: a number, true or false, a word, or a number with a unit if the fact's name implies a unit."""
    if text in ("true", "false"):
        return text == "true"
    required = next((base for end, base in QUANTITIES.items() if name.endswith(end)), None)
    number = number_or_text(text)
    if required is None or not isinstance(number, str):
        return number
    match = QUANTITY.fullmatch(text)
    base = unit.base_unit(match[4]) if match else None
    if match is None or base is None or base[1] != required:
        raise LoadstoneError(
            f'the fact "{name}" must be a number in {required}, got "{text}"',
            f"write it in {required}, or with a unit: {SPELLED[required]}",
        )
    return float(match[1]) * base[0]


def load_companion(path: Path) -> Facts:
    """Loads the facts for `bench.log` from `bench.log.facts.yaml` or `bench.facts.yaml`, if either file exists.

    Raises LoadstoneError if they are invalid.
    """
    if not path.name:
        # A folder such as `.`, which is not a log.
        return Facts()
    for companion in (path.with_name(path.name + SUFFIX), path.with_name(path.stem + SUFFIX)):
        if companion.is_file():
            return load_facts(companion)
    return Facts()


def load_facts(path: Path) -> Facts:
    """Reads a facts file. Raises LoadstoneError if it is invalid."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise LoadstoneError(f"not YAML: {error.problem} ({path.name}{line})", PER_LINE) from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise LoadstoneError(f"cannot read {path.name}: {error}", PER_LINE) from error
    facts = check_mapping(document if document is not None else {}, "", path)
    by_variant = facts.pop("variants", None)
    figures = facts.pop("json", None)
    if figures is not None:
        lines = [f"{name}={' '.join(map(str, part)) if isinstance(part, list) else part}"
                 for name, part in check_mapping(figures, "json", path).items()]  # fmt: skip
        facts["json"] = "\n".join(lines)
    variants = {} if by_variant is None else check_mapping(by_variant, "variants", path)
    return Facts(
        check_scalars(facts, "", path),
        {name: check_scalars(check_mapping(part, name, path), f"{name}: ", path) for name, part in variants.items()},
        path,
    )


def check_mapping(document: Any, name: str, path: Path) -> dict[str, Any]:
    """The document as a mapping with text keys, even if YAML reads 4 or true. Raises LoadstoneError for other types."""
    if not isinstance(document, dict):
        what = f'"{name}" must be' if name else "a facts file must be"
        raise LoadstoneError(f"{what} a mapping of names to values ({path.name})", PER_LINE)
    return {str(key): value for key, value in document.items()}


def check_scalars(facts: Mapping[str, Any], of: str, path: Path) -> dict[str, Scalar]:
    """The facts with their parsed values. Raises LoadstoneError if a value is not a number, a word, true or false."""
    scalars: dict[str, Scalar] = {}
    for name, value in facts.items():
        if isinstance(value, date):
            # YAML reads an unquoted time as a date and time.
            value = value.isoformat()
        if not isinstance(value, str | int | float | bool):
            kind = type(value).__name__
            raise LoadstoneError(
                f'{of}the fact "{name}" must be a number, a word, true or false, got {kind} ({path.name})',
                "write facts about a single variant below `variants:`, under the variant's name",
            )
        # YAML 1.1 reads 125e6 as a word.
        scalars[name] = parse_scalar(name, value) if isinstance(value, str) else value
    return scalars
