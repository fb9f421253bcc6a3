"""`loadstone systems`: servers on this machine, started, looked at, hurt and ended."""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence

from loadstone.commands.parser import Parser, UsageError, guarded
from loadstone.format.suggestion import did_you_mean
from loadstone.systems import registry
from loadstone.systems.base.running import Running, ServerState, all_running
from loadstone.systems.base.starting import last_lines
from loadstone.systems.base.system import Process, SystemsError

# Systems with verbs of their own: `loadstone systems hbase regions`.
OWN = {"hbase": "loadstone.commands.systems_hbase"}


@guarded
def main(arguments: list[str]) -> int:
    """Runs one verb; exit status 0 if it has done it, for `status` only if every server is up."""
    if not arguments:
        raise UsageError("a verb is missing", "`loadstone systems --help` lists them")
    verb, rest = arguments[0], arguments[1:]
    if verb in ("-h", "--help"):
        print(usage())
        return 0
    if verb in OWN:
        status: int = importlib.import_module(OWN[verb]).main(rest)
        return status
    if verb not in VERBS:
        raise UsageError(
            f'there is no verb "{verb}"', f"{did_you_mean(verb, VERBS)}`loadstone systems --help` lists what there is"
        )
    return VERBS[verb][1](parser_of(verb, rest).parse_args(rest))


def up(options: Namespace) -> int:
    """Starts a system and prints its servers."""
    running = named(options)
    running.up(options.nodes, settings(options), say)
    return show([running])


def down(options: Namespace) -> int:
    """Ends a system."""
    running = named(options)
    if not running.down(options.keep_data, say):
        say(f"{running.name} is not up")
    return 0


def status(options: Namespace) -> int:
    """Prints a line for each server."""
    found = [named(options)] if options.name else all_running()
    if not found:
        say("no system is up")
    return show(found)


def logs(options: Namespace) -> int:
    """Prints the end of each log."""
    running = named(options)
    paths = running.log_paths()
    wanted = server(options)
    chosen = [path for path in paths if wanted in (None, path.name.partition(".")[0])]
    if wanted and not chosen:
        names = sorted({path.name.partition(".")[0] for path in paths})
        raise UsageError(
            f'{running.name} has no log of a server "{wanted}"', f"it has logs of {', '.join(names) or 'none'}"
        )
    for path in chosen:
        print(f"==> {path} <==")
        for line in last_lines(path, options.lines):
            print(line)
    if not chosen:
        say(f"{running.name} has no logs in {running.place.logs}")
    return 0


def signalled(options: Namespace) -> int:
    """Kills servers, pauses them, or lets paused ones go on."""
    getattr(named(options), options.verb)(server(options))
    return 0


def restart(options: Namespace) -> int:
    """Restarts servers and prints all."""
    running = named(options)
    running.restart(server(options), say)
    return show([running])


def properties(options: Namespace) -> int:
    """Prints what a store needs, as a file of properties has it."""
    for name, value in sorted(named(options).properties().items()):
        print(f"{name}={value}")
    return 0


def fresh(options: Namespace) -> int:
    """Makes a table anew."""
    named(options).fresh(options.table, settings(options))
    return 0


VERBS: dict[str, tuple[str, Callable[[Namespace], int]]] = {
    "up": ("start a system, or those of its servers that have died", up),
    "down": ("end it and remove its data; its logs are kept", down),
    "status": ("print `NAME state HOST:PORT pid` for each server, of all systems if none is named", status),
    "logs": ("print where its logs are, and their last lines", logs),
    "kill": ("kill a server as a crash would (SIGKILL), or all of them", signalled),
    "pause": ("stop a server's clock (SIGSTOP): it keeps its connections and answers nothing", signalled),
    "resume": ("let paused servers go on", signalled),
    "restart": ("end a server and start it again over its data, or all of them", restart),
    "properties": ("print what a store needs to reach it, as lines of name=value", properties),
    "fresh": ("drop a store's table and make it anew", fresh),
}


def parser_of(verb: str, arguments: Sequence[str]) -> Parser:
    """The command line of a verb."""
    what = VERBS[verb][0]
    # Only who asks for help has every system imported.
    asked = verb == "up" and not {"-h", "--help"}.isdisjoint(arguments)
    epilog = settings_text([name for name in registry.SYSTEMS if name in arguments]) if asked else ""
    parser = Parser(f"systems {verb}", f"{what[0].upper()}{what[1:]}.", epilog)
    parser.set_defaults(verb=verb)
    many = "?" if verb == "status" else None
    parser.add_argument("name", metavar="NAME", nargs=many, help=", ".join(registry.SYSTEMS))
    if verb in ("logs", "kill", "pause", "resume", "restart"):
        parser.add_argument("server", metavar="SERVER", nargs="?", help="one of its servers, as `status` names it")
    if verb == "up":
        parser.add_argument("--nodes", metavar="N", type=int, help="how many nodes")
        parser.add_argument("--set", metavar="K=V", action="append", default=[], help="a setting; may be repeated")
    if verb == "down":
        parser.add_argument("--keep-data", action="store_true", help="`up` with the same settings goes on with them")
    if verb == "logs":
        parser.add_argument("--lines", metavar="N", type=int, default=10, help="of each log (default: %(default)s)")
    if verb == "fresh":
        parser.add_argument("table", metavar="TABLE", nargs="?", default="usertable", help="default: %(default)s")
        parser.add_argument("--set", metavar="K=V", action="append", default=[], help="an option of the system's")
    return parser


def usage() -> str:
    """The help text."""
    verbs = "\n".join(f"  {verb:<12}{what}" for verb, (what, _) in VERBS.items())
    systems = "\n".join(f"  {name:<12}{registry.system(name).title}" for name in registry.SYSTEMS)
    return f"""\
Servers on this machine: real processes, on loopback only.

usage: loadstone systems VERB NAME [SERVER] [options]

verbs:
{verbs}

systems:
{systems}

`loadstone systems up NAME --help` lists its settings, `loadstone systems hbase --help` what HBase has beside these.
State and logs are below $LOADSTONE_SYSTEMS (default ~/.local/state/loadstone/systems), files that were fetched below
$LOADSTONE_CACHE (default ~/.cache/loadstone)."""


def settings_text(names: Sequence[str]) -> str:
    """The settings of these systems and their defaults; of every system if none is named."""
    lines = []
    for name in names or registry.SYSTEMS:
        kind = registry.system(name)
        nodes = ", ".join(str(count) for count in kind.nodes)
        lines += [f"{kind.title}; nodes: {nodes}"]
        lines += [f"  {f'{each.name}={each.default}':<44}{each.meaning}" for each in kind.settings]
    return "\n".join(lines)


def named(options: Namespace) -> Running:
    """The system of a command line."""
    if options.name not in registry.SYSTEMS:
        # Says which there are.
        try:
            registry.system(options.name)
        except SystemsError as error:
            raise UsageError(str(error.args[0]), error.hint) from None
    return Running(options.name)


def server(options: Namespace) -> str | None:
    """The server of a command line; `status` puts its system before it where that is not in its name."""
    name: str | None = options.server
    return name.removeprefix(f"{options.name}/") if name else None


def settings(options: Namespace) -> dict[str, str]:
    """What `--set` gave."""
    found = {}
    for text in options.set:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f'--set takes NAME=VALUE, got "{text}"', "write --set port=7000")
        found[name] = value
    return found


def show(systems: Iterable[Running]) -> int:
    """Prints each server; 1 if one is not up."""
    states = []
    for running in systems:
        try:
            lines = running.status()
        except SystemsError as error:
            # The others can be told.
            say(str(error))
            states.append(ServerState.DEAD)
            continue
        if not lines:
            say(f"{running.name} is not up")
            states.append(ServerState.DEAD)
        for process, its in lines:
            print(f"{title(running.name, process)} {its} {process.address} {process.pid}")
            states.append(its)
    return int(any(its != ServerState.UP for its in states))


def title(system: str, process: Process) -> str:
    """A server's name, which tells its system."""
    return process.name if process.name.startswith(system) else f"{system}/{process.name}"


def say(line: str) -> None:
    """Talk goes to standard error."""
    print(line, file=sys.stderr, flush=True)
