"""`loadstone systems` starts, inspects, kills, pauses and stops servers on this machine."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Sequence

from loadstone.commands.parser import CommandParser, UsageError, guard_command
from loadstone.format.suggestion import did_you_mean
from loadstone.observe.listeners import list_listeners
from loadstone.systems import registry
from loadstone.systems.base.running_system import AT, RunningSystem, ServerState, all_running
from loadstone.systems.base.startup import last_lines
from loadstone.systems.base.system import ServerProcess, SystemsError


@guard_command
def main(arguments: list[str]) -> int:
    """Runs one verb. The exit status is 0 on success; for verbs that list servers, only if every server is up."""
    if arguments[:1] == ["hbase"]:
        from loadstone.commands import systems_hbase

        return systems_hbase.main(arguments[1:])
    if (verb := verb_of("systems", "there is", VERBS, usage_text, arguments)) is None:
        return 0
    return VERBS[verb][1](parser_of(verb, arguments[1:]).parse_args(arguments[1:])) or 0


def verb_of(
    command: str, there_is: str, verbs: Collection[str], usage: Callable[[], str], arguments: list[str]
) -> str | None:
    """The verb in a command line; None if the command line requests help, which is then printed. Raises UsageError."""
    listed = f"`loadstone {command} --help` lists"
    if not arguments:
        raise UsageError("a verb is missing", f"add one: {listed} them")
    verb = arguments[0]
    if verb in ("-h", "--help"):
        print(usage())
        return None
    if verb not in verbs:
        raise UsageError(f'{there_is} no verb "{verb}"', f"{did_you_mean(verb, verbs)}{listed} the verbs")
    return verb


def start_system(options: Namespace) -> int:
    """Starts a system and prints its servers."""
    running = select_system(options)
    flags = [flag for flag in ("tls", "cluster") if getattr(options, flag)]
    requested = parse_settings(options) | dict.fromkeys(flags, "yes")
    if AT in running.name and "port" not in requested:
        requested |= choose_port(running)
    running.up(options.nodes, requested, print_line)
    return show_servers([running])


def choose_port(running: RunningSystem) -> dict[str, str]:
    """The port of a named instance: its current port, otherwise the first free port after the default."""
    default = next((setting.default for setting in running.system.settings if setting.name == "port"), None)
    if default is None:
        return {}
    if running.load_state is not None:
        return {"port": running.load_state.plan.settings["port"]}
    used = {listener.port for listener in list_listeners()}
    return {"port": str(next(port for port in range(int(default) + 1, 65536) if port not in used))}


def stop_system(options: Namespace) -> None:
    """Stops a system."""
    running = select_system(options)
    if not running.down(options.keep_data, print_line):
        print_line(f"{running.name} is not up")


def show_status(options: Namespace) -> int:
    """Prints a line for each server."""
    systems = [select_system(options)] if options.name else all_running()
    if not systems:
        print_line("no system is up")
    return show_servers(systems)


def show_logs(options: Namespace) -> None:
    """Prints the end of each log."""
    running = select_system(options)
    paths = running.log_paths()
    name = select_server(options)
    chosen = [path for path in paths if name in (None, path.name.partition(".")[0])]
    if name and not chosen:
        names = sorted({path.name.partition(".")[0] for path in paths})
        raise UsageError(
            f'{running.name} has no log for a server "{name}"',
            f"the servers with logs are: {', '.join(names) or 'none'}",
        )
    for path in chosen:
        print(f"==> {path} <==")
        for line in last_lines(path, options.lines):
            print(line)
    if not chosen:
        print_line(f"{running.name} has no logs in {running.place.logs}")


def signal_servers(options: Namespace) -> None:
    """Kills, pauses or resumes servers."""
    getattr(select_system(options), options.verb)(select_server(options))


def restart_servers(options: Namespace) -> int:
    """Restarts servers and prints all servers of the system."""
    running = select_system(options)
    running.restart(select_server(options), print_line)
    return show_servers([running])


def show_properties(options: Namespace) -> None:
    """Prints the properties that a store needs to reach a system, in the format of a properties file."""
    for name, value in sorted(select_system(options).store_properties().items()):
        print(f"{name}={value}")


def recreate_table(options: Namespace) -> None:
    """Recreates a table."""
    select_system(options).recreate_table(options.table, parse_settings(options))


VERBS: dict[str, tuple[str, Callable[[Namespace], int | None]]] = {
    "up": ("start a system, or only its servers that have exited", start_system),
    "down": ("stop a system and delete its data; its logs are kept", stop_system),
    "status": ("print `NAME state HOST:PORT pid` for each server of a system, or of all systems", show_status),
    "logs": ("print the paths and the last lines of a system's logs", show_logs),
    "kill": ("kill a server, or all of them, as a crash would (SIGKILL)", signal_servers),
    "pause": ("suspend a server (SIGSTOP): it keeps its connections but does not answer", signal_servers),
    "resume": ("resume suspended servers", signal_servers),
    "restart": ("restart a server, or all of them, without deleting their data", restart_servers),
    "properties": (
        "print the properties that a store needs to reach the system, as lines of name=value",
        show_properties,
    ),
    "fresh": ("drop a store's table and create it again", recreate_table),
}


def parser_of(verb: str, arguments: Sequence[str]) -> CommandParser:
    """The parser for the arguments of a verb."""
    what = VERBS[verb][0]
    # The systems are imported only if their settings are needed.
    help_asked = verb == "up" and not {"-h", "--help"}.isdisjoint(arguments)
    epilog = settings_text([name for name in registry.SYSTEMS if name in arguments]) if help_asked else ""
    parser = CommandParser(f"systems {verb}", f"{what[0].upper()}{what[1:]}.", epilog, setting_hints(verb, arguments))
    parser.set_defaults(verb=verb)
    many = "?" if verb == "status" else None
    parser.add_argument("name", metavar="NAME", nargs=many, help=", ".join(registry.SYSTEMS))
    parser.add_argument(
        "--name", metavar="INSTANCE", dest="instance", help="one of several instances; the same as NAME@INSTANCE"
    )
    if verb in ("logs", "kill", "pause", "resume", "restart"):
        parser.add_argument("server", metavar="SERVER", nargs="?", help="a server of the system, as named in `status`")
    if verb == "up":
        parser.add_argument("--nodes", metavar="N", type=int, help="number of nodes")
        parser.add_argument("--set", metavar="K=V", action="append", default=[], help="a setting; may be repeated")
        parser.add_argument("--tls", action="store_true", help="encrypt clients' connections: short for --set tls=yes")
        parser.add_argument("--cluster", action="store_true", help="a Redis Cluster: short for --set cluster=yes")
    if verb == "down":
        parser.add_argument("--keep-data", action="store_true", help="keep the data for an `up` with the same settings")
    if verb == "logs":
        parser.add_argument("--lines", metavar="N", type=int, default=10, help="lines per log (default: %(default)s)")
    if verb == "fresh":
        parser.add_argument("table", metavar="TABLE", nargs="?", default="usertable", help="default: %(default)s")
        parser.add_argument("--set", metavar="K=V", action="append", default=[], help="a table option; may be repeated")
    return parser


def setting_hints(verb: str, arguments: Sequence[str]) -> dict[str, str]:
    """Hints for settings of a system that are written as options, such as `up redis --port 7000`."""
    name = next((word for word in arguments if not word.startswith("-")), "").partition(AT)[0]
    if verb != "up" or name not in registry.SYSTEMS or not any(word.startswith("--") for word in arguments):
        return {}
    names = [setting.name for setting in registry.load_system(name).settings]
    return {setting: f"{setting} is a setting of {name}: use --set {setting}={{value}}" for setting in names}


def usage_text() -> str:
    """The help text."""
    verbs = "\n".join(f"  {verb:<12}{what}" for verb, (what, _) in VERBS.items())
    systems = "\n".join(f"  {name:<12}{registry.load_system(name).title}" for name in registry.SYSTEMS)
    return f"""\
Start and manage servers on this machine: real processes, on loopback addresses only.

usage: loadstone systems VERB NAME [SERVER] [options]

verbs:
{verbs}
  hbase       manage tables and regions of HBase

systems:
{systems}

`loadstone systems up NAME --help` lists a system's settings.
State and logs are below $LOADSTONE_SYSTEMS (default ~/.local/state/loadstone/systems), downloaded files below
$LOADSTONE_CACHE (default ~/.cache/loadstone)."""


def settings_text(names: Sequence[str]) -> str:
    """The settings of these systems, or of all systems, with their defaults."""
    lines = []
    for name in names or registry.SYSTEMS:
        kind = registry.load_system(name)
        nodes = ", ".join(str(count) for count in kind.nodes)
        lines += [f"{kind.title}; nodes: {nodes}"]
        lines += [f"  {f'{setting.name}={setting.default}':<44}{setting.meaning}" for setting in kind.settings]
    return "\n".join(lines)


def select_system(options: Namespace) -> RunningSystem:
    """The system that the command line names."""
    try:
        return RunningSystem(f"{options.name}{AT}{options.instance}" if options.instance else options.name)
    except SystemsError as error:
        raise UsageError(str(error.args[0]), error.hint) from None


def select_server(options: Namespace) -> str | None:
    """The name of the selected server, without the prefix that `status` may add."""
    name: str | None = options.server
    return name.rpartition("/")[2] if name else None


def parse_settings(options: Namespace) -> dict[str, str]:
    """The settings in the `--set` options. Raises UsageError."""
    settings = {}
    for text in options.set:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f'--set takes NAME=VALUE, got "{text}"', "write --set port=7000")
        settings[name] = value
    return settings


def show_servers(systems: Iterable[RunningSystem]) -> int:
    """Prints each server; returns 1 if any server is not up, otherwise 0."""
    states = []
    for running in systems:
        try:
            lines = running.status()
        except SystemsError as error:
            # The remaining systems are still shown.
            print_line(str(error))
            states.append(ServerState.DEAD)
            continue
        if not lines:
            print_line(f"{running.name} is not up")
            states.append(ServerState.DEAD)
        for process, state in lines:
            print(f"{server_title(running.name, process)} {state} {process.address} {process.pid}")
            states.append(state)
    return int(any(state != ServerState.UP for state in states))


def server_title(system: str, process: ServerProcess) -> str:
    """A server's name, prefixed with the system's name unless this prefix is present."""
    return process.name if process.name.startswith(system) else f"{system}/{process.name}"


def print_line(line: str) -> None:
    """Prints a line on standard error."""
    print(line, file=sys.stderr, flush=True)
