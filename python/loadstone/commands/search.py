"""`loadstone ycsb run STORE … --search clients`: how much load a store holds, from YCSB's own command line.

Its arguments become an experiment with `find`, in memory; running, judging and reporting are those of `loadstone run`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from loadstone import workloads
from loadstone.commands import run
from loadstone.commands.parser import UsageError, guarded
from loadstone.engine import program
from loadstone.engine.describe import description
from loadstone.engine.trial import Spec, failure
from loadstone.errors import LoadstoneError
from loadstone.experiment.file import ExperimentError, Loaded
from loadstone.experiment.mistake import Mistake, Place
from loadstone.experiment.model.template import escape
from loadstone.experiment.model.ycsb_properties import KEYS, OF_A_COMMAND
from loadstone.experiment.reading import resolved
from loadstone.experiment.reading.short_forms import expand
from loadstone.experiment.reading.tree import Table, read_value
from loadstone.experiment.validation.examination import examine
from loadstone.results.folder import ROOT
from loadstone.workloads.properties import read

SECONDS, WARMUP_SECONDS = "5", 1.0
# The search's own options, with what stands for their values in the help.
VALUES = {
    "--search": ("clients|rate", "what is raised: clients in a closed loop, or the rate"),
    "--search-from": ("N", "the first load (1 client, 1000 a second)"),
    "--search-to": ("N", "the last load (1024 clients, 1000000 a second)"),
    "--such-that": ("OBJECTIVE", "find the highest load that meets it ('p99 < 10ms'); without it, find the knee"),
    "--search-seconds": ("S", f"length of each trial's window (maxexecutiontime, else {SECONDS})"),
    "--results": ("DIR", "where result folders are (results)"),
}
FLAGS = {
    "--resume": "continue the latest search by the same arguments",
    "--dry-run": "show the plan and how long it takes; run nothing",
    "--no-report": "write no report at the end",
    "--share-host": "run beside another run on this host",
}
HINT = "`loadstone ycsb run STORE --search clients --help` shows the options"
# Options of YCSB that say what is printed; the search prints its own.
PRINTED = {"-s": 0, "-l": 1, "-label": 1}
# Those that stand for a property.
STAND_FOR = {"-threads": "threadcount", "-target": "target"}
# Those of a store in a JVM, and the properties that the engine makes of them.
HOSTED = {"-db": "jvm.class", "-cp": "jvm.classpath", "-jvm-args": "jvm.args"}


@dataclass
class Line:
    """A command line, taken apart."""

    words: list[str]
    options: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    # Those of -p and of what stands for one.
    properties: dict[str, str] = field(default_factory=dict)


@guarded
def main(arguments: list[str]) -> int:
    """Searches; exit status 1 if there is no answer, 130 after Ctrl-C."""
    line = parsed(arguments)
    if "--help" in line.words or "-h" in line.words:
        print(usage())
        return 0
    workloads.register()
    made = spec(line)
    loaded = experiment(line, made)
    chosen = {flag[2:].replace("-", "_"): flag in line.options for flag in FLAGS}
    options = Namespace(results=Path(line.options.get("--results", ROOT)), retry_failed=False, **chosen)
    if not options.dry_run:
        make_table(made)
    return run.carry_out(loaded, name(line), options)


def make_table(spec: Spec) -> None:
    """Makes the table on servers of ours where it is missing; each trial says how to make it elsewhere."""
    from loadstone.systems import provide

    try:
        if told := provide.made_for_spec(spec):
            print(told, file=sys.stderr)
    except LoadstoneError as error:
        print(f"warning: the table was not made: {error.args[0]}; {error.hint}", file=sys.stderr)


def parsed(arguments: Sequence[str]) -> Line:
    """Takes a command line apart. Raises UsageError."""
    line = Line([])
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        if option in FLAGS and not equals:
            line.options[option] = "yes"
        elif option in VALUES:
            line.options[option] = value if equals else following(word, rest)
        else:
            line.words.append(word)
            if word in ("-P", "-p", *STAND_FOR, *HOSTED, *PRINTED):
                take(line, word, rest)
            elif word.startswith("-") and word not in ("-h", "--help", "-strict"):
                hint = "write an experiment file with `find` for what needs it, or leave it out"
                raise UsageError(f"{word} cannot be combined with --search", hint)
    return line


def take(line: Line, word: str, rest: list[str]) -> None:
    """Takes what an option of YCSB's says."""
    if PRINTED.get(word) == 0:
        return
    value = following(word, rest)
    line.words.append(value)
    if word == "-P":
        line.files.append(value)
    elif word == "-p":
        key, _, text = value.partition("=")
        line.properties[key] = text
    elif word in STAND_FOR:
        line.properties[STAND_FOR[word]] = value


def following(word: str, rest: list[str]) -> str:
    """The value of an option. Raises UsageError when there is none."""
    if not rest:
        raise UsageError(f"{word} needs a value", HINT)
    return rest.pop(0)


def spec(line: Line) -> Spec:
    """What the engine makes of YCSB's arguments. Raises LoadstoneError with its own words about them."""
    over = line.options.get("--search")
    if over not in ("clients", "rate"):
        raise UsageError(f'--search must be clients or rate, got "{over}"', HINT)
    if line.words[:1] != ["run"]:
        raise UsageError("a search needs `ycsb run`", "the records are loaded by the search itself")
    if not line.files:
        raise UsageError("a search needs a workload file", "name one: -P workloads/workloada")
    # It wants to hear of an end, which is the search's to say.
    command = [program.find(), "ycsb", *line.words, "--print-spec", "-p", "maxexecutiontime=1"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        error = failure(done.returncode, done.stderr.splitlines())
        raise UsageError(str(error.args[0]), error.hint) if done.returncode == UsageError.exit_status else error
    found: Spec = json.loads(done.stdout)
    return found


def experiment(line: Line, spec: Spec) -> Loaded:
    """The experiment of a command line. Raises ExperimentError with what is wrong with it."""
    place = Place(0, "ycsb --search")
    tree, mistakes = read_value(json.dumps(document(line, spec)), place)
    assert isinstance(tree, Table), "a document is a mapping"
    examined = examine(expand(tree), (Path(),))
    if found := [*mistakes, *examined.mistakes]:
        raise ExperimentError(found)
    warnings = (*examined.warnings, *changes(spec["store"]["name"], place))
    return Loaded(examined.experiment, warnings, resolved.text(examined.experiment))


def changes(store: str, place: Place) -> Iterator[Mistake]:
    """What a search does to servers, which no copy spares it."""
    if description().networked(store):
        message = f"the search loads its records into the table that {store} has there, and every trial changes it"
        yield Mistake(place, message, "name servers and a table that you can lose, and empty the table first")


def document(line: Line, spec: Spec) -> dict[str, Any]:
    """The experiment as a file would have it."""
    store, over = spec["store"]["name"], line.options["--search"]
    first, *others = line.files
    above = {key: text for file in others for key, text in read(Path(file)).items()} | line.properties
    every = {**read(Path(first)), **above}
    if over == "clients" and every.get("target", "0") != "0":
        raise UsageError("--search clients is a closed loop, and there is a target", "leave it out, or --search rate")
    known = description()
    theirs = {*known.own(store)} - known.directories
    own = {key: text for key, text in every.items() if belongs(key, theirs)}
    made = spec["store"]["properties"]
    own |= {key: made[key] for key in HOSTED.values() if key in theirs and key in made}
    # As in YCSB, what another store reads does not matter to this one.
    foreign = {key for key in every if "." in key and key.partition(".")[0] in known.stores and key not in own}
    apart = {*KEYS, *OF_A_COMMAND, *known.directories, *own, *(foreign - {*known.properties})}
    system: dict[str, Any] = {"properties": {key: escape(text) for key, text in own.items()}}
    if known.networked(store):
        system["attach"] = attached(store, system["properties"])
    seconds = window(line.options.get("--search-seconds") or every.get("maxexecutiontime", "0"))
    found: dict[str, Any] = {
        "question": f"How much load does {store} hold on {Path(first).name}?",
        "systems": {store: system},
        "workload": {
            "file": escape(first),
            "properties": {key: escape(text) for key, text in above.items() if key not in apart},
        },
        "durability": spec["store"]["durability"],
        "find": find(line.options),
        "measure": {
            "warmup": float(every.get("warmuptime") or WARMUP_SECONDS),
            "duration": f"{seconds}s",
            "verify": every.get("dataintegrity", "false") == "true",
        },
        # Records are loaded once, and a trial leaves nothing to the next where that can be helped.
        "load": {"reuse": "shared" if known.networked(store) else "copy"},
    }
    if over == "rate":
        found |= {"clients": spec["clients"], "arrival": every.get("arrival", "uniform")}
    return found


def window(seconds: str) -> str:
    """How long a trial measures, in seconds. Raises UsageError: `5m` would be five milliseconds."""
    if not re.fullmatch(r"\d+(\.\d+)?", seconds, re.ASCII):
        raise UsageError(f'a window must be a number of seconds, got "{seconds}"', "--search-seconds 5")
    return seconds if float(seconds) else SECONDS


def belongs(key: str, theirs: Set[str]) -> bool:
    """Whether a property is a store's own; a binding (`*`) gets all that the workload does not know."""
    return key in theirs or (key not in description().properties and any(fnmatchcase(key, each) for each in theirs))


def attached(store: str, properties: dict[str, str]) -> dict[str, Any]:
    """Where the servers are: what the store's own properties say, which then need not say it."""
    host, port = description().address(store) or ("", "")
    found: dict[str, Any] = {"hosts": (properties.pop(host, "") or "127.0.0.1").split(",")}
    if given := properties.pop(port, ""):
        found["port"] = int(given) if given.isdigit() else given
    return found


def find(options: Mapping[str, str]) -> dict[str, Any]:
    """What is searched for; bounds that are not numbers are left for the examination to refuse."""
    found: dict[str, Any] = {"over": options["--search"]}
    for key, option in (("from", "--search-from"), ("to", "--search-to")):
        if option in options:
            text = options[option].replace(",", "").replace("_", "")
            found[key] = int(text) if text.isdigit() else text
    if "--such-that" in options:
        found["such_that"] = options["--such-that"]
    return found


def name(line: Line) -> str:
    """What its results are called: the same for the same search."""
    return f"ycsb-{line.words[1]}-{Path(line.files[0]).name}-{line.options['--search']}"


def usage() -> str:
    """The help."""
    rows = [(f"{option} {value}", what) for option, (value, what) in VALUES.items()]
    rows += list(FLAGS.items())
    listed = "\n".join(f"  {option:<26}{what}" for option, what in rows)
    return f"""\
usage: loadstone ycsb run STORE -P FILE [YCSB's options] --search clients|rate [options]

Searches for the load at which a store saturates: the knee, or with --such-that the highest load that meets an
objective. Records are loaded by the search; each probe is a trial in a result folder.

options:
{listed}

-threads is the number of clients of a search over the rate. `loadstone ycsb --help` has YCSB's own options."""
