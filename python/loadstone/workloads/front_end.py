"""Gets specs from the engine's front ends, and defines the location of files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engine import program
from loadstone.engine.trial import EngineError, Spec, engine_error
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.experiment.plan.plan import Variant

# The directory of the trials' files on HDFS.
ROOT = "loadstone"
# The properties with the address of the name node.
ADDRESS = ("fs.defaultFS", "hadoop.conf")


def spec_of(command: str, arguments: Sequence[str], stdin: str = "") -> list[Spec]:
    """The specs into which a front end translates its arguments. Raises EngineError with the engine's message."""
    done = subprocess.run(
        [program.find_engine(), command, *arguments, "--print-spec"], input=stdin, capture_output=True, text=True
    )
    if done.returncode:
        log = done.stderr.splitlines()
        if done.stdout and not any(line.startswith("error: ") for line in log):
            # cassandra-stress prints its errors on standard output, before its usage or after a group's usage.
            lines = [line for line in done.stdout.splitlines() if line and not line.startswith((" ", "---"))]
            message = lines[-1] if lines[0].startswith("Usage") else lines[0]
            hints = [line.removeprefix("hint: ") for line in log if line.startswith("hint: ")]
            raise EngineError(
                message, (*hints, f"`loadstone {command} help` describes the options")[0], done.returncode
            )
        # The exception has the last error. A profile may have several.
        errors = [at for at, line in enumerate(log) if line.startswith("error: ")]
        print("".join(f"{line}\n" for line in log[: max(errors, default=0)]), end="", file=sys.stderr)
        raise engine_error(done.returncode, log)
    for line in done.stderr.splitlines():
        report_warning(line)
    try:
        specs = [json.loads(line) for line in done.stdout.splitlines() if line]
        if not specs:
            raise ValueError("no line")
        return [{"warmup_seconds": 0.0, **spec, "store": {"properties": {}, **spec["store"]}} for spec in specs]
    except ValueError as error:
        hint = "use loadstone and loadstone-engine from the same installation"
        raise LoadstoneError("the load generator printed no spec", hint) from error


@cache
def report_warning(line: str) -> None:
    """Prints each warning once, although the front end runs for every trial."""
    # The lab uses the schema of a read command to load the data, so this warning would be wrong.
    if line.startswith("warning: ") and not line.startswith("warning: -schema is ignored"):
        print(line, file=sys.stderr)


def location(variant: Variant, directory: Path, name: str) -> str:
    """The URI of a variant's files: below a trial's directory, or on its HDFS."""
    if variant.store != "hdfs":
        return f"file://{directory / name}"
    base = variant.store_properties.get("fs.defaultFS", "hdfs://127.0.0.1:9820").rstrip("/")
    return f"{base}/{ROOT}/{name}"


def client_options(variant: Variant, own: Mapping[str, int | None]) -> list[str]:
    """Options of the HDFS client: `own` and the variant's properties, except for the address of the name node."""
    if variant.store != "hdfs":
        return []
    options = {name: text for name, text in variant.store_properties.items() if name not in ADDRESS}
    options |= {name: str(value) for name, value in own.items() if value is not None}
    return [word for name, text in options.items() for word in ("-D", f"{name}={text}")]


def stores() -> Collection[str]:
    """The stores in which files can be written and read."""
    return ("file", "hdfs")
