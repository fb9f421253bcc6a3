"""The command `loadstone`. The front ends of older tools exec the engine at once; every other command is the lab's.

A front end starts as fast as Python does: this module imports what only some commands need where they need it.
"""

import sys

from loadstone import __version__
from loadstone.engine import program
from loadstone.errors import LoadstoneError

# The engine's subcommands that a user types; it parses their arguments itself.
ENGINE_COMMANDS = {
    "ycsb": "YCSB's command line: loadstone ycsb load rocksdb -P workloads/workloada -p rocksdb.dir=data;"
    " with --search clients, how much it holds",
    "dfsio": "TestDFSIO's command line: loadstone dfsio -write -nrFiles 4 -fileSize 128MB file:///mnt/data",
    "teragen": "rows to sort, as Hadoop's TeraGen makes them: loadstone teragen ROWS OUT",
    "terasort": "sort them: loadstone terasort IN OUT",
    "teravalidate": "look whether they are sorted, and sum them up: loadstone teravalidate OUT",
    "trial": "one trial: its spec on standard input, its events on standard output",
}
# The lab's, each a module of `loadstone.commands` (of the same name, where Python allows it).
LAB_COMMANDS = {
    "run": "run an experiment: loadstone run experiments/quickstart.yaml",
    "fio": "fio's command line: loadstone fio JOBFILE, with our verdict and report",
    "list": "the results there are",
    "show": "a run's results as tables",
    "compare": "runs of different times, or files of other tools, against the first",
    "check": "whether results can be trusted, and why not",
    "report": "write report.html and report.md anew",
    "import": "results of YCSB, cassandra-stress, TestDFSIO, fio and others",
    "export": "the table of values as CSV or Parquet",
    "doctor": "whether this machine is fit to measure on, and what to do about it",
    "systems": "servers on this machine: loadstone systems up cassandra --nodes 3",
}
MODULES = {"import": "importing"}


def main() -> int:
    """Runs the command in `sys.argv` and returns the exit status: 0, 1 for a failed run, 2 for bad usage."""
    try:
        return run(sys.argv[1:])
    except LoadstoneError as error:
        print(error, file=sys.stderr)
        return 1


def run(arguments: list[str]) -> int:
    """Runs one command line, without the program's name."""
    if not arguments:
        return bad_usage("a command is missing", "`loadstone --help` lists the commands")
    command, rest = arguments[0], arguments[1:]
    if command == "ycsb" and any(word == "--search" or word.startswith("--search=") for word in rest):
        # Many trials, so it is the lab's.
        return run_command("search", rest)
    if command in ENGINE_COMMANDS:
        if any(word.startswith("hbase") for word in rest[1:4]):
            from loadstone.systems import provide

            provide.for_command(rest)
        if command == "ycsb" and "load" in rest:
            from loadstone.systems import provide

            provide.table(rest)
        program.replace_process(arguments)
    if command in LAB_COMMANDS:
        return run_command(command, rest)
    if command in ("-h", "--help", "help"):
        print(usage())
        return 0
    if command in ("-V", "--version"):
        print(f"loadstone {__version__}")
        return 0
    return unknown(command)


def run_command(command: str, arguments: list[str]) -> int:
    """Runs one of the lab's commands, importing only what it needs."""
    import importlib

    module = importlib.import_module(f"loadstone.commands.{MODULES.get(command, command)}")
    status: int = module.main(arguments)
    return status


def unknown(command: str) -> int:
    """Says that there is no such command or option, and which one was probably meant."""
    from loadstone.format.suggestion import did_you_mean

    kind, known = ("option", ["--help", "--version"]) if command.startswith("-") else ("command", [*commands()])
    advice = did_you_mean(command, known)
    return bad_usage(f'unknown {kind} "{command}"', f"{advice}`loadstone --help` lists the {kind}s")


def bad_usage(message: str, hint: str) -> int:
    """Reports a command line that makes no sense; returns the exit status for that."""
    print(LoadstoneError(message, hint), file=sys.stderr)
    return 2


def commands() -> dict[str, str]:
    """Every command and what it does."""
    return {**ENGINE_COMMANDS, **LAB_COMMANDS}


def usage() -> str:
    """The help text, without its last line end."""
    listed = "\n".join(f"  {name:<13}{what}" for name, what in commands().items())
    return f"""\
Loadstone: which data store, configuration or size holds my load, by how much, and can I trust the answer?

usage: loadstone <command> [arguments]

commands:
{listed}

options:
  -h, --help     this text
  -V, --version  the version

environment:
  {program.VARIABLE}  the engine to run instead of the one installed"""
