"""Command lines of YCSB, go-ycsb and Loadstone. They state the clients and the rate, which reports do not contain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import PurePath
from urllib.parse import parse_qsl

from loadstone.importers.command_line import BEFORE, ENDS, SECRET, command_fact, split_command
from loadstone.importers.number import number_or_text
from loadstone.importers.run import ImportedRun, mix_fact

# The shell command, the Java command that bin/ycsb echoes, and the client's first line.
STARTS = re.compile(
    rf"{BEFORE}(?P<program>(?:go-)?ycsb(?:\.sh|\.bat)?\s+(?P<phase>load|run)(?:\s+(?P<binding>\w[\w.-]*))?"
    rf"(?P<shell>\s+-.*|(?:\s*['\"]|\s+(?:{ENDS.pattern})).*|\s*)$)"
    r"|\bCommand line:(?P<echo>.*)"
    r"|\b(?:site|com\.yahoo)\.ycsb\.Client\s(?P<java>.*)"
)
# The facts that correspond to properties, if their names differ.
PROPERTIES = {
    **{"recordcount": "records", "requestdistribution": "distribution"},
    **{name: f"store.{name}" for name in ("hosts", "port")},
}
# A URL with parameters, such as MongoDB's write concern: mongodb://host:27017/ycsb?w=1&j=true.
URL = re.compile(r"([\w+:]+://[^?]*)\?(.+)")
# The prefixes of properties of the workload that have a dot in their names.
OF_WORKLOAD = ("exponential.", "zipfian.")
PROPORTION = "proportion"
# The default number and size of a record's fields (CoreWorkload.java).
FIELDS, FIELD_BYTES = 10, 100


@dataclass(frozen=True)
class YcsbCommand:
    """The settings in a command; None for a setting that it does not contain."""

    clients: int | None = None
    target: int | None = None
    phase: str | None = None
    binding: str | None = None
    # The properties, except clients, rate and possible secrets.
    properties: Mapping[str, str] = field(default_factory=dict)
    # The names of the files with further properties, in the order in which they are read.
    files: tuple[str, ...] = ()
    text: str = ""


def parse_command(line: str) -> YcsbCommand | None:
    """Finds a command line in a line of text; None if there is none."""
    if "ycsb" not in line and "Command line:" not in line:
        return None
    match = STARTS.search(line)
    if match is None:
        return None
    arguments = split_command(match["shell"] or match["echo"] or match["java"] or "")
    clients = target = None
    properties: dict[str, str] = {}
    files: list[str] = []
    phase = match["phase"] or next((word for word in arguments[:2] if word in ("load", "run")), None)
    # In YCSB, flags and properties share a map, so the last value counts. The property is `threadcount`, not `threads`.
    for word, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        name, _, value = following.partition("=")
        if word.lstrip("-") == "threads" or (word, name) == ("-p", "threadcount"):
            clients = parse_whole_number(value if word == "-p" else following)
        elif word.lstrip("-") == "target" or (word, name) == ("-p", "target"):
            target = parse_whole_number(value if word == "-p" else following)
        elif word in ("-load", "-t") and not phase:
            phase = "load" if word == "-load" else "run"
        elif word == "-p" and value and not SECRET.search(name):
            properties[name] = value
        elif word == "-P":
            files.append(PurePath(following).name)
        elif word == "-db":
            properties.setdefault("db", following)
    command = f"ycsb {match['echo'].strip()}" if match["echo"] else (match["program"] or match[0]).strip().rstrip("`")
    return YcsbCommand(clients or None, target, phase, match["binding"], properties, tuple(files), command)


def parse_whole_number(text: str) -> int | None:
    """`text` as a whole number; None if it is not a whole number."""
    return int(text) if text.isascii() and text.isdigit() else None


def add_facts(line: YcsbCommand, run: ImportedRun) -> None:
    """Adds the clients, the rate and other facts from a command line to an imported run."""
    run.clients = line.clients
    run.loop = "open" if line.target else "closed"
    run.facts |= {name: value for name in ("target", "phase", "binding") if (value := getattr(line, name))}
    run.facts["command"] = command_fact(line.text)
    run.facts["property_files"] = " + ".join(line.files) or "none"
    weights: dict[str, float] = {}
    for name, text in line.properties.items():
        if name.endswith(PROPORTION) and isinstance(number := number_or_text(text), int | float):
            weights[name.removesuffix(PROPORTION).replace("readmodifywrite", "read-modify-write")] = number
        else:
            # Most properties with a dot in their names belong to the binding.
            of_binding = "." in name and not name.startswith(OF_WORKLOAD)
            fact = PROPERTIES.get(name, f"store.{name}" if of_binding else name)
            address, parameters = match.groups() if (match := URL.fullmatch(text)) else (text, "")
            run.facts[fact] = number_or_text(address)
            run.facts |= {
                f"{fact}.{key}": number_or_text(value) for key, value in parse_qsl(parameters) if not SECRET.search(key)
            }
    if sum(weights.values()):
        run.facts["mix"] = mix_fact(weights)
    fields, length = (run.facts.get(name) for name in ("fieldcount", "fieldlength"))
    if fields is not None or length is not None:
        size = number_or_text(str(fields or FIELDS)), number_or_text(str(length or FIELD_BYTES))
        if all(isinstance(part, int) for part in size):
            run.facts["record_bytes"] = int(size[0]) * int(size[1])
