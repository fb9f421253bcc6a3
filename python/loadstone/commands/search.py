"""`loadstone ycsb run STORE … --search clients` searches for a store's maximum load, with YCSB's command line.

The arguments are translated into an experiment with `find`, which is run, judged and reported as with `loadstone run`.
"""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from loadstone import workloads
from loadstone.commands import run
from loadstone.commands.parser import UsageError, guard_command
from loadstone.engine.describe import describe_engine
from loadstone.engine.trial import EngineError, Spec
from loadstone.errors import LoadstoneError
from loadstone.experiment.file import Loaded, load_command
from loadstone.experiment.mistake import Location, Mistake
from loadstone.experiment.model.template import escape_braces
from loadstone.experiment.model.ycsb_properties import KEYS, OF_A_COMMAND
from loadstone.results.folder import ROOT
from loadstone.workloads.front_end import spec_of
from loadstone.workloads.properties import read

COMMAND = "ycsb --search"
SECONDS, WARMUP_SECONDS = "5", 1.0
# The options of the search itself, with placeholders for their values.
VALUES = {
    "--search": ("clients|rate", "the load to increase: the clients of a closed loop, or the rate"),
    "--search-from": ("N", "the first load (default: 1 client, or 1000 operations per second)"),
    "--search-to": ("N", "the last load (default: 1024 clients, or 1000000 operations per second)"),
    "--such-that": ("OBJECTIVE", "find the highest load that meets this objective ('p99 < 10ms') instead of the knee"),
    "--search-seconds": ("S", f"the length of each trial's window (default: maxexecutiontime, else {SECONDS})"),
    "--results": ("DIR", "the directory of result folders (default: results)"),
}
FLAGS = {
    "--resume": "continue the latest search with the same arguments",
    "--dry-run": "show the plan and its duration; run nothing",
    "--no-report": "do not write a report at the end",
    "--share-host": "allow another run on this host at the same time",
}
HINT = "see `loadstone ycsb run STORE --search clients --help` for the options"
# Options that set a property.
AS_PROPERTY = {"-threads": "threadcount", "-target": "target"}
# Options of a store in a JVM, and the properties into which the engine translates them.
HOSTED = {"-db": "jvm.class", "-cp": "jvm.classpath", "-jvm-args": "jvm.args"}
# YCSB's options that take a value. Labels and the status line (`-s`) are ignored.
WITH_VALUE = {"-P", "-p", "-l", "-label", *AS_PROPERTY, *HOSTED}


@dataclass
class SearchCommand:
    """A parsed command line; `arguments` contains YCSB's arguments."""

    arguments: list[str]
    options: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    # The properties set by -p and by the options in AS_PROPERTY.
    properties: dict[str, str] = field(default_factory=dict)


@guard_command
def main(arguments: list[str]) -> int:
    """Runs a search. The exit status is 1 if the search has no answer, 130 after Ctrl-C."""
    line = parse_line(arguments)
    if "--help" in line.arguments or "-h" in line.arguments:
        print(usage_text())
        return 0
    workloads.register()
    translated = translate_line(line)
    loaded = line_experiment(line, translated)
    flags = {flag[2:].replace("-", "_"): flag in line.options for flag in FLAGS}
    options = Namespace(results=Path(line.options.get("--results", ROOT)), retry_failed=False, **flags)
    if not options.dry_run:
        make_table(translated)
    return run.carry_out(loaded, results_name(line), options)


def make_table(spec: Spec) -> None:
    """Creates a missing table on servers that the lab started. On other servers, the trials fail with a hint."""
    from loadstone.systems import prerequisites

    try:
        if message := prerequisites.prepare_spec(spec):
            print(message, file=sys.stderr)
    except LoadstoneError as error:
        print(f"warning: the table was not created: {error.args[0]}; {error.hint}", file=sys.stderr)


def parse_line(arguments: Sequence[str]) -> SearchCommand:
    """Parses a command line. Raises UsageError."""
    line, rest = SearchCommand([]), iter(arguments)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in FLAGS and not equals:
            line.options[option] = "yes"
            continue
        if not equals and option in {*VALUES, *WITH_VALUE}:
            if (following := next(rest, None)) is None:
                raise UsageError(f"{word} needs a value", HINT)
            value = following
        if option in VALUES:
            line.options[option] = value
            continue
        line.arguments += [word, value] if word in WITH_VALUE else [word]
        if word == "-P":
            line.files.append(value)
        elif word == "-p" or word in AS_PROPERTY:
            key, _, text = value.partition("=") if word == "-p" else (AS_PROPERTY[word], "", value)
            line.properties[key] = text
        elif word.startswith("-") and word not in {"-h", "--help", "-strict", "-s", *WITH_VALUE}:
            hint = "omit it, or write an experiment file with `find`"
            raise UsageError(f"{word} cannot be combined with --search", hint)
    return line


def translate_line(line: SearchCommand) -> Spec:
    """The engine's translation of YCSB's arguments. Raises LoadstoneError with the engine's message."""
    over = line.options.get("--search")
    if over not in ("clients", "rate"):
        raise UsageError(f'--search must be clients or rate, got "{over}"', HINT)
    if line.arguments[:1] != ["run"]:
        raise UsageError("a search needs `ycsb run`", "write `ycsb run`: the search loads the records itself")
    if not line.files:
        raise UsageError("a search needs a workload file", "name one: -P workloads/workloada")
    try:
        # The engine requires a limit on the run; the search sets a different limit later.
        (translated,) = spec_of("ycsb", [*line.arguments, "-p", "maxexecutiontime=1"])
    except EngineError as error:
        if error.status != UsageError.exit_status:
            raise
        raise UsageError(str(error.args[0]), error.hint) from error
    return translated


def line_experiment(line: SearchCommand, spec: Spec) -> Loaded:
    """The experiment for a command line. Raises ExperimentError."""
    loaded = load_command(line_document(line, spec), COMMAND)
    return replace(loaded, warnings=(*loaded.warnings, *data_warning(spec["store"]["name"])))


def data_warning(store: str) -> Iterator[Mistake]:
    """Yields a warning if the store has servers: a search changes the servers' data, which is not copied."""
    if describe_engine().is_networked(store):
        message = f"the search loads its records into an existing table of {store}, and every trial changes it"
        hint = "use servers and a table whose data you do not need, and empty the table first"
        yield Mistake(Location(0, COMMAND), message, hint)


def line_document(line: SearchCommand, spec: Spec) -> dict[str, Any]:
    """The experiment in the form of an experiment file."""
    store, over = spec["store"]["name"], line.options["--search"]
    first, *later_files = map(Path, line.files)
    above = {key: text for file in later_files for key, text in read(file).items()} | line.properties
    every = {**read(first), **above}
    if over == "clients" and every.get("target", "0") != "0":
        hint = "omit the target, or use --search rate"
        raise UsageError("--search clients is a closed loop, but a target is set", hint)
    known = describe_engine()
    patterns = {*known.store_properties(store)} - known.directories
    own = {key: text for key, text in every.items() if belongs_to_store(key, patterns)}
    translated = spec["store"]["properties"]
    own |= {key: translated[key] for key in HOSTED.values() if key in patterns and key in translated}
    # As in YCSB, properties of other stores are ignored.
    foreign = {key for key in every if "." in key and key.partition(".")[0] in known.stores and key not in own}
    excluded = {*KEYS, *OF_A_COMMAND, *known.directories, *own, *(foreign - {*known.properties})}
    system: dict[str, Any] = {"properties": {key: escape_braces(text) for key, text in own.items()}}
    if known.is_networked(store):
        system["attach"] = take_address(store, system["properties"])
    seconds = window_length(line.options.get("--search-seconds") or every.get("maxexecutiontime", "0"))
    keys: dict[str, Any] = {
        "question": f"How much load can {store} sustain on {first.name}?",
        "systems": {store: system},
        "workload": {
            "file": escape_braces(line.files[0]),
            "properties": {key: escape_braces(text) for key, text in above.items() if key not in excluded},
        },
        "durability": spec["store"]["durability"],
        "find": find_keys(line.options),
        "measure": {
            "warmup": float(every.get("warmuptime") or WARMUP_SECONDS),
            "duration": f"{seconds}s",
            "verify": every.get("dataintegrity", "false") == "true",
        },
        # Records are loaded once; where possible, trials work on copies.
        "load": {"reuse": "shared" if known.is_networked(store) else "copy"},
    }
    if over == "rate":
        keys |= {"clients": spec["clients"], "arrival": every.get("arrival", "uniform")}
    return keys


def window_length(seconds: str) -> str:
    """The length of a trial's window, s. Raises UsageError for a length with a unit: `5m` would become `5ms`."""
    if not re.fullmatch(r"\d+(\.\d+)?", seconds, re.ASCII):
        raise UsageError(f'a window must be a number of seconds, got "{seconds}"', "write --search-seconds 5")
    return seconds if float(seconds) else SECONDS


def belongs_to_store(key: str, patterns: Set[str]) -> bool:
    """Whether a property belongs to a store; a binding (`*`) receives all properties except the workload's."""
    return key in patterns or (
        key not in describe_engine().properties and any(fnmatchcase(key, pattern) for pattern in patterns)
    )


def take_address(store: str, properties: dict[str, str]) -> dict[str, Any]:
    """Removes the servers' address from the store's properties, and returns the value of the key `attach`."""
    host, port = describe_engine().address_properties(store) or ("", "")
    attach: dict[str, Any] = {"hosts": (properties.pop(host, "") or "127.0.0.1").split(",")}
    if text := properties.pop(port, ""):
        attach["port"] = int(text) if text.isdigit() else text
    return attach


def find_keys(options: Mapping[str, str]) -> dict[str, Any]:
    """The content of the key `find`; validation rejects bounds that are not numbers."""
    keys: dict[str, Any] = {"over": options["--search"]}
    for key, option in (("from", "--search-from"), ("to", "--search-to")):
        if option in options:
            text = options[option].replace(",", "").replace("_", "")
            keys[key] = int(text) if text.isdigit() else text
    if "--such-that" in options:
        keys["such_that"] = options["--such-that"]
    return keys


def results_name(line: SearchCommand) -> str:
    """The name of the results: a search that is started again finds its earlier results under the same name."""
    return f"ycsb-{line.arguments[1]}-{Path(line.files[0]).name}-{line.options['--search']}"


def usage_text() -> str:
    """The help text."""
    rows = [*((f"{option} {value}", what) for option, (value, what) in VALUES.items()), *FLAGS.items()]
    listed = "\n".join(f"  {option:<26}{what}" for option, what in rows)
    return f"""\
usage: loadstone ycsb run STORE -P FILE [YCSB's options] --search clients|rate [options]

Searches for the load at which a store saturates: the knee, or, with --such-that, the highest load that meets
an objective. The search loads the records; its trials are kept in a result folder.

options:
{listed}

In a search over the rate, -threads is the number of clients. `loadstone ycsb --help` lists YCSB's options."""
