"""Runs an observed command, the program that does the work of a trial."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadstone.engine import secrets
from loadstone.engine.trial import EngineError, Spec
from loadstone.experiment.kind import SHARED, CommandContext, CommandUse, Ended, ObservedCommand
from loadstone.experiment.model.template import environment_names
from loadstone.fleet.command import CommandError, Launcher
from loadstone.fleet.interface import Fleet, Observations
from loadstone.format import units
from loadstone.observe.watch import Watch
from loadstone.results.trial_result import Scalar
from loadstone.runner.phase import deadline
from loadstone.runner.progress import Display, PhaseProgress

POLL_SECONDS = 1.0
# The number of bytes read from the end of an output, and the number of characters that a message quotes.
TAIL_BYTES, TAIL_CHARS = 1000, 200
NOT_FOUND = 127
# The status of a pipeline whose writer was killed because its reader, such as `head`, had exited.
CLOSED_PIPE = 128 + signal.SIGPIPE
# The number of bytes kept at each end of a larger output.
RETAINED_BYTES = 16 << 20
# The largest output, in bytes: without a limit, a command could fill the disk.
OUTPUT_MAX = 4 << 30
# The names of the outputs among the files that another host returns.
OUTPUTS = ("stdout", "stderr")
# The measuring interval for commands on other hosts; the hosts' clocks must agree to within a tenth of this interval.
INTERVAL_MS = 1000
CUT = b"\n[... loadstone: %d bytes were omitted here ...]\n"


def run(
    phase: ObservedCommand, context: CommandContext, display: Display, watch: Watch | None, timeout: float
) -> Ended:
    """Runs a command in the data directory; its output goes to `<name>.stdout` and `<name>.stderr` of the trial.

    All the command's processes are killed when it exits, or if this function raises an error. Raises CommandError if
    the command cannot be started or takes more than `timeout` seconds.
    """
    with Launcher() as process:
        return run_by(process, phase, context, display, watch, timeout)


def run_by(
    process: Launcher,
    phase: ObservedCommand,
    context: CommandContext,
    display: Display,
    watch: Watch | None,
    timeout: float,
    output: Path | None = None,
) -> Ended:
    """Like `run`, with a launcher that serves several commands; `output` redirects the standard output."""
    files = context.files.absolute()
    arguments = list(phase.arguments(context))
    stdout, stderr = output or files / f"{phase.name}.stdout", files / f"{phase.name}.stderr"
    if shutil.which(arguments[0]) is None:
        raise CommandError(f"cannot run {arguments[0]}: it is not installed", "see `loadstone doctor`", NOT_FOUND)
    progress = PhaseProgress(phase.name, None, phase.seconds, 0.0)
    display.begin(progress)
    for path in (stdout, stderr):
        path.write_bytes(b"")
    process.start(arguments, context.directory, context.variables, stdout, stderr)
    progress.start()
    deadline = time.monotonic() + timeout
    while (ended := process.wait(min(POLL_SECONDS, max(deadline - time.monotonic(), 0)))) is None:
        outputs = [path for path in (stdout, stderr) if path.is_file()]
        if time.monotonic() >= deadline:
            end_command(process, outputs)
            hint = "set a longer `timeout` in the experiment, or give the command less work"
            raise CommandError(f"{phase.name} did not finish within {timeout:g} s", hint, -signal.SIGKILL)
        if any(path.stat().st_size > OUTPUT_MAX for path in outputs):
            end_command(process, outputs)
            message = f"{phase.name} printed more than {units.format_size(OUTPUT_MAX)} and was stopped"
            raise CommandError(message, "have it print less, or redirect its output to /dev/null", 1)
        if watch is not None:
            watch.take_sample()
        display.update()
    return Ended(ended[0], stdout, stderr, ended[1], context)


@dataclass(frozen=True)
class HostsEnded:
    """The result of a command on each host, keyed by the host's name, and the observations of the hosts."""

    hosts: Mapping[str, Ended]
    observations: Observations


def run_on_hosts(
    phase: ObservedCommand,
    context: CommandContext,
    fleet: Fleet,
    placement: str,
    hosts: int,
    display: Display,
    watch: Watch | None,
    timeout: float,
) -> HostsEnded:
    """Runs a command once on each of the first `hosts` hosts of a placement; all start at the same instant.

    The command runs in a new directory, named after `context.directory` and the host. Its output goes to a folder with
    the host's name in the trial's folder. Raises an EngineError that names the host if a command fails, and stops the
    remaining commands.
    """
    names = fleet.hosts(placement)[:hosts]
    contexts = [host_context(context, name, number, len(names)) for number, name in enumerate(names)]
    progress = PhaseProgress(phase.name, None, phase.seconds, 0.0)
    display.begin(progress)

    def take_sample() -> None:
        if watch is not None:
            watch.take_sample()
        display.update()

    errors: list[EngineError] = []
    specs = [command_spec(phase, own) for own in contexts]
    with (
        fleet.launch(specs, lambda *_: None, placement) as running,
        deadline(timeout, phase.name, "command", running) as explain_error,
    ):
        progress.start()
        try:
            errors += [event for _, event in running.events(take_sample) if isinstance(event, EngineError)]
        except EngineError as error:
            raise explain_error(error) from None
        observations = running.observations()
    ends = {names[part]: store_output(phase, contexts[part], end) for part, end in sorted(observations.exits.items())}
    for name, ended in ends.items():
        if ended.status:
            raise failure(f"host {name}: {phase.name}", ended)
    if errors:
        raise explain_error(errors[0])
    return HostsEnded(ends, observations)


def host_context(context: CommandContext, host: str, number: int, count: int) -> CommandContext:
    """The context of a command on one host, with its share of the load."""
    files, base = context.files / host, Path(f"{context.directory}-{host}")
    files.mkdir(exist_ok=True)
    shares = {name: share_of_total(total, number, count) for name, total in context.names.items() if name in SHARED}
    own: dict[str, Scalar] = {"directory": str(base / "data"), "results": str(base / "results")}
    own |= {"host_index": number, "host_count": count}
    return replace(
        context, files=files, directory=base / "data", names={**context.names, **shares, **own}, is_remote=True
    )


def share_of_total(total: Scalar, number: int, count: int) -> Scalar:
    """A host's share of the clients, the rate or the operations; a whole number is divided into whole shares, as for
    engines."""
    if isinstance(total, int):
        return total // count + (number < total % count)
    return float(total) / count


def command_spec(phase: ObservedCommand, context: CommandContext) -> Spec:
    """The spec sent to a host's agent: the command, and the trial files named in the command's arguments."""
    arguments, results = list(phase.arguments(context)), Path(str(context.names["results"]))
    files = [Path(text) for text in arguments if Path(text).parent == context.files]
    variables = [name for text in arguments for name in environment_names(text)]
    argv = [str(results / Path(text).name) if Path(text) in files else text for text in arguments]
    return {
        "command": {
            "argv": argv,
            "environment": dict(context.environment),
            # The lab's environment variables that the command names, for hosts that do not define them.
            "defaults": {name: os.environ[name] for name in variables if name in os.environ},
            "files": {path.name: path.read_text() for path in files},
            "place": str(phase.place(context.directory) or context.directory),
            "version": list(phase.version(context)) if phase.role == "measure" else [],
        },
        "directory": str(context.directory.parent),
        "is_last": phase.role == "measure",
        "interval_ms": INTERVAL_MS,
        "wait_for_start": True,
    }


def store_output(phase: ObservedCommand, context: CommandContext, end: Mapping[str, Any]) -> Ended:
    """Writes the files that a host returned for a command to the host's folder in the trial's folder."""
    for name, encoded in end["files"].items():
        path = context.files / Path(name).name
        path = path.with_name(f"{phase.name}.{name}") if name in OUTPUTS else path
        path.write_bytes(base64.b64decode(encoded))
    stdout, stderr = (context.files / f"{phase.name}.{name}" for name in OUTPUTS)
    use = CommandUse(**{**end["use"], "survivors": tuple(end["use"]["survivors"])})
    return Ended(end["status"], stdout, stderr, use, context, end["version"])


def end_command(process: Launcher, outputs: Iterable[Path]) -> None:
    """Terminates a running command, and shortens large outputs."""
    process.end()
    for path in outputs:
        cut_output(path)


def cut_output(path: Path) -> int:
    """Cuts the middle out of an output larger than twice RETAINED_BYTES; returns the number of omitted bytes."""
    size = path.stat().st_size
    if size <= 2 * RETAINED_BYTES:
        return 0
    omitted = size - 2 * RETAINED_BYTES
    with path.open("r+b") as file:
        file.seek(-RETAINED_BYTES, os.SEEK_END)
        tail = file.read()
        file.seek(RETAINED_BYTES)
        file.write(CUT % omitted + tail)
        file.truncate()
    return omitted


def failure(name: str, ended: Ended, message: str = "", hint: str = "") -> CommandError:
    """The error for a command that failed, with the end of its output."""
    how = f"was killed by signal {-ended.status}" if ended.status < 0 else f"exited with status {ended.status}"
    text = f"{name} {how}" if ended.status or not message else name
    text += f": {message}" if message else ""
    tails = [tail(path) for path in (ended.stderr, ended.stdout) if path.is_file()]
    silent = "it printed nothing" if ended.stdout.is_file() else "run it by hand: it printed no error"
    if ended.status == CLOSED_PIPE and not hint:
        hint = "the reader of a pipe exited before its writer, which SIGPIPE killed; write `(writer || true) | reader`"
    output = next((f"the end of its output: {text}" for text in tails if text), silent)
    return CommandError(text, f"{hint}; {output}" if hint else output, ended.status or 1)


def tail(path: Path) -> str:
    """The end of an output, as one line."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - TAIL_BYTES, 0))
        text = secrets.hide_secrets(file.read().decode(errors="replace"))
    printable = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(printable.split())[-TAIL_CHARS:]
