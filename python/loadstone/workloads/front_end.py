"""The engine's front ends for files, as the lab asks them for specs, and where files are."""

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

# Below it is what trials write on HDFS.
ROOT = "loadstone"


def spec_of(command: str, words: Sequence[str]) -> list[Spec]:
    """The specs that a front end makes of its arguments. Raises LoadstoneError with the engine's message."""
    done = subprocess.run(
        [program.find(), command, *words, "--print-spec"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise failure(done.returncode, done.stderr.splitlines())
    try:
        specs = [json.loads(line) for line in done.stdout.splitlines() if line]
        return [{"warmup_seconds": 0.0, **spec, "store": {"properties": {}, **spec["store"]}} for spec in specs]
    except ValueError as error:
        hint = "use the loadstone and loadstone-engine of one installation"
        raise LoadstoneError("the engine printed no spec", hint) from error


def place(variant: Variant, directory: Path, name: str) -> str:
    """Where a variant's files are: below a trial's directory, or on the HDFS that its servers are."""
    if variant.store != "hdfs":
        return f"file://{directory / name}"
    base = variant.store_properties.get("fs.defaultFS", "hdfs://127.0.0.1:9820").rstrip("/")
    return f"{base}/{ROOT}/{name}"


def settings(variant: Variant) -> dict[str, str]:
    """The settings of a variant for the client of HDFS, those that lead to its name node aside."""
    return {
        name: text for name, text in variant.store_properties.items() if name not in ("fs.defaultFS", "hadoop.conf")
    }
