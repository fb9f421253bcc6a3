"""Gets specs from the engine's front ends for files, and defines where the files are."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engine import program
from loadstone.engine.trial import Spec, failure
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.experiment.plan.plan import Variant

# The directory of trials' files on HDFS.
ROOT = "loadstone"


def spec_of(command: str, arguments: Sequence[str]) -> list[Spec]:
    """The specs that a front end translates its arguments to. Raises LoadstoneError with the engine's message."""
    done = subprocess.run(
        [program.find(), command, *arguments, "--print-spec"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise failure(done.returncode, done.stderr.splitlines())
    try:
        specs = [json.loads(line) for line in done.stdout.splitlines() if line]
        return [{"warmup_seconds": 0.0, **spec, "store": {"properties": {}, **spec["store"]}} for spec in specs]
    except ValueError as error:
        hint = "use the loadstone and loadstone-engine of one installation"
        raise LoadstoneError("the engine printed no spec", hint) from error


def location(variant: Variant, directory: Path, name: str) -> str:
    """The URI of a variant's files: below a trial's directory, or on its HDFS."""
    if variant.store != "hdfs":
        return f"file://{directory / name}"
    base = variant.store_properties.get("fs.defaultFS", "hdfs://127.0.0.1:9820").rstrip("/")
    return f"{base}/{ROOT}/{name}"


def settings(variant: Variant) -> dict[str, str]:
    """A variant's settings for the HDFS client, except for the address of the name node."""
    return {
        name: text for name, text in variant.store_properties.items() if name not in ("fs.defaultFS", "hadoop.conf")
    }
