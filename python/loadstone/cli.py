"""The command `loadstone`. The front ends of older tools exec the engine; the lab handles all other commands.

Modules that only some commands need are imported inside functions, so that every command starts fast.
"""

import os
import sys

from loadstone import __version__
from loadstone.engine import program
from loadstone.errors import LoadstoneError

# The engine's subcommands for users; the engine parses their arguments.
ENGINE_COMMANDS = {
    "ycsb": "YCSB's command line: loadstone ycsb load rocksdb -P workloads/workloada -p rocksdb.dir=data;"
    " with --search clients, find the maximum load",
    "dfsio": "TestDFSIO's command line: loadstone dfsio -write -nrFiles 4 -fileSize 128MB file:///mnt/data",
    "cassandra-stress": "the command line of cassandra-stress: loadstone cassandra-stress write n=1M -node 127.0.0.1",
    "teragen": "generate rows as Hadoop's TeraGen does: loadstone teragen ROWS OUT",
    "terasort": "sort rows as Hadoop's TeraSort does: loadstone terasort IN OUT",
    "teravalidate": "check that rows are sorted, and compute their checksum: loadstone teravalidate OUT",
    "ledger": "read back a run's writes, and list missing acknowledged writes",
    "describe": "print stores, properties, workload kinds and front ends as JSON",
    "trial": "run one trial: read its spec from standard input, and write its events to standard output",
}
# The lab's commands. Each is a module of `loadstone.commands`, with the same name if Python allows it.
LAB_COMMANDS = {
    "example": "print an experiment file to start from: loadstone example embedded-stores > my.yaml",
    "run": "run an experiment: loadstone run my.yaml",
    "time": "time commands against each other: loadstone time 'COMMAND A' 'COMMAND B'",
    "fio": "fio's command line, with Loadstone's verdict and a report: loadstone fio JOBFILE",
    "list": "list results",
    "show": "show a run's results as tables",
    "compare": "compare later runs, or files from other tools, with the first",
    "history": "show figures by version and commit over all results of one question",
    "check": "check whether results can be trusted; if not, state why",
    "serve": "show results in the browser, and a running experiment second by second",
    "report": "regenerate report.html and report.md",
    "import": "import results of YCSB, cassandra-stress, TestDFSIO, fio and others",
    "export": "export figures as CSV or Parquet, or the whole folder as one .zip file",
    "doctor": "check whether this machine is fit for measuring, and print commands that fix problems",
    "completion": "print a completion script for bash, zsh or fish, or the man page: loadstone completion bash",
    "fleet": "list the hosts of a Ray cluster: loadstone fleet status",
    "systems": "start and stop servers on this machine: loadstone systems up cassandra --nodes 3",
}
MODULES = {"import": "import_results"}


def main() -> int:
    """Runs the command in `sys.argv` and returns its exit status, such as 0, 1 for a failure and 2 for bad usage."""
    # Commands in an experiment can use `loadstone` even if its virtual environment is not activated.
    installed = (os.path.dirname(os.path.abspath(path)) for path in (sys.argv[0], sys.executable) if os.sep in path)
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *installed])
    try:
        return run(sys.argv[1:])
    except LoadstoneError as error:
        print_error(error)
        return 1


def run(arguments: list[str]) -> int:
    """Runs a command line, given without the program's name."""
    if not arguments:
        return report_bad_usage("a command is missing", "`loadstone --help` lists the commands")
    command, rest = arguments[0], arguments[1:]
    if command == "ycsb" and any(word == "--search" or word.startswith("--search=") for word in rest):
        # A search runs many trials, so the lab handles it.
        return run_command("search", rest)
    if command in ENGINE_COMMANDS:
        if any(word.startswith("hbase") for word in rest[1:4]):
            from loadstone.systems import prerequisites

            prerequisites.for_command(rest)
        if command == "ycsb" and "load" in rest:
            from loadstone.systems import prerequisites

            prerequisites.provide_table(rest)
        if command == "cassandra-stress":
            from loadstone.systems import prerequisites

            prerequisites.name_gc_logs()
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
    """Runs one of the lab's commands, importing only its module."""
    import importlib

    if command == "completion":
        from loadstone.commands import completion

        catalogue = completion.CommandCatalogue(commands(), ENGINE_COMMANDS, usage(), run_command)
        return completion.create_main(catalogue)(arguments)
    module = importlib.import_module(f"loadstone.commands.{MODULES.get(command, command)}")
    status: int = module.main(arguments)
    return status


def unknown(command: str) -> int:
    """Reports an unknown command or option, with the most similar name."""
    from loadstone.format.suggestion import did_you_mean

    kind, known = ("option", ["--help", "--version"]) if command.startswith("-") else ("command", [*commands()])
    advice = did_you_mean(command, known)
    return report_bad_usage(f'unknown {kind} "{command}"', f"{advice}`loadstone --help` lists the {kind}s")


def report_bad_usage(message: str, hint: str) -> int:
    """Reports an invalid command line, and returns its exit status."""
    print_error(LoadstoneError(message, hint))
    return 2


def print_error(error: LoadstoneError) -> None:
    """Prints an error without control characters."""
    # The front ends of the engine start without these modules.
    from loadstone.format.wording import replace_controls

    print(replace_controls(str(error)), file=sys.stderr)


def commands() -> dict[str, str]:
    """Every command and its description."""
    return {**ENGINE_COMMANDS, **LAB_COMMANDS}


def usage() -> str:
    """The help text, without a trailing newline."""
    listed = "\n".join(f"  {name:<17}{what}" for name, what in commands().items())
    return f"""\
Loadstone: which data store, configuration or size handles my load, by how much, and can I trust the answer?

usage: loadstone <command> [arguments]

commands:
{listed}

options:
  -h, --help     this text
  -V, --version  the version

environment:
  {program.VARIABLE}  the program to run instead of the installed loadstone-engine
  LOADSTONE_DOCS    the docs site that reports and messages link to: an address, or the output of `make site`"""
