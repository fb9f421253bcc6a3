"""`loadstone demo`: RocksDB and LMDB under YCSB's workload A, on this machine, in under a minute."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

from loadstone import side_by_side, units
from loadstone.errors import LoadstoneError
from loadstone.event import Interval, Ready, Summary
from loadstone.host import Bystander
from loadstone.progress import Display, Phase, display
from loadstone.side_by_side import Column, Measured
from loadstone.trial import EngineError, Spec, Trial

STORES = {"rocksdb": "RocksDB", "lmdb": "LMDB"}
CLIENTS = 2
FIELDS, FIELD_BYTES = 10, 100
RECORD_BYTES = FIELDS * FIELD_BYTES
# Both stores get the same operations in the same order.
SEED = 1
# RocksDB holds old and new files while it compacts, beside its logs: 740 MB was the most for 200,000 records.
SPACE_PER_RECORD, SPACE_BESIDE = 4 * RECORD_BYTES, 200_000_000
TABLE_WIDTH = 80
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Shorter intervals at either end tell nothing about a second.
SECOND_NS_MIN = 500_000_000


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    seconds: float
    records: int
    directory: Path
    json: bool

    @property
    def warmup_seconds(self) -> float:
        """A fifth of the time measured, before it."""
        return self.seconds / 5


def main(arguments: list[str]) -> int:
    """Runs the demo; returns the exit status."""
    try:
        options = parse(arguments)
    except LoadstoneError as error:
        print(error, file=sys.stderr)
        return 2
    for each in ENDING:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, leave)
    try:
        return demo(options)
    except KeyboardInterrupt:
        print("interrupted: the engine is stopped, its data removed", file=sys.stderr)
        return 130
    except LoadstoneError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, EngineError) and error.status == 2 else 1


def leave(number: int, _: FrameType | None) -> NoReturn:
    """Unwinds to `main`. What is left to do is to tidy up, which takes seconds and is not to be interrupted again."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


class Parser(argparse.ArgumentParser):
    """A parser whose errors look like all others."""

    def error(self, message: str) -> NoReturn:
        """Raises what is wrong."""
        raise LoadstoneError(message, "`loadstone demo --help` lists the options")


def parse(arguments: list[str]) -> Options:
    """Reads the command line. Raises LoadstoneError when it makes no sense."""
    parser = Parser(
        prog="loadstone demo",
        description="Load and run YCSB's workload A on RocksDB and on LMDB, and show both side by side.",
        allow_abbrev=False,
    )
    parser.add_argument("--seconds", metavar="N", default="10", help="measured time of each run (default: %(default)s)")
    parser.add_argument("--records", metavar="N", default="200000", help="records of 1 kB (default: %(default)s)")
    parser.add_argument(
        "--directory",
        metavar="DIR",
        default=default_directory(),
        help="where the data is while it is needed (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as one JSON document")
    given = parser.parse_args(arguments)
    return Options(
        seconds=number("--seconds", given.seconds, 1, 86_400),
        records=int(number("--records", given.records, 1, 10**10, whole=True)),
        directory=Path(given.directory),
        json=given.json,
    )


def number(option: str, text: str, least: int, most: int, *, whole: bool = False) -> float:
    """Reads a number within bounds. Raises LoadstoneError."""
    try:
        value: float = int(text) if whole else float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise LoadstoneError(
            f'{option} must be {kind} from {least:,} to {most:,}, got "{text}"',
            "`loadstone demo --help` lists the options",
        )
    return value


def default_directory() -> str:
    """TMPDIR if set, else /var/tmp: unlike /tmp it is on a device nearly everywhere (FHS 3.0, 5.15)."""
    return "/var/tmp" if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK) else tempfile.gettempdir()


def demo(options: Options) -> int:
    """Measures and prints. Returns 0, or 1 when operations failed."""
    check_space(options)
    talk = Console(stderr=True)
    file_system = file_system_of(options.directory)
    about = f"RocksDB and LMDB, YCSB workload A, data in {options.directory} ({file_system})"
    talk.print(about, highlight=False, markup=False, soft_wrap=True)
    with display(talk) as shown:
        columns = [measure_store(store, options, shown) for store in STORES]
    if talk.is_terminal:
        talk.print()
    if options.json:
        print(json.dumps(side_by_side.document(columns, file_system)))
    else:
        show(columns, options, file_system)
    return int(any(column.load.errors or column.run.errors for column in columns))


def check_space(options: Options) -> None:
    """Raises LoadstoneError when the directory is none or its device too full."""
    needed = options.records * SPACE_PER_RECORD + SPACE_BESIDE
    try:
        free = shutil.disk_usage(options.directory).free
    except OSError as error:
        raise LoadstoneError(
            f"cannot use {options.directory}: {error.strerror}", "name a directory that is there with --directory"
        ) from error
    if not options.directory.is_dir() or not os.access(options.directory, os.W_OK | os.X_OK):
        raise LoadstoneError(f"{options.directory} is no directory that you may write to", "name one with --directory")
    if free < needed:
        raise LoadstoneError(
            f"{options.directory} has {units.size(free)} free, {units.count(options.records)} records need up to"
            f" {units.size(needed)}",
            "make room, name another device's directory with --directory, or take fewer --records",
        )


def file_system_of(directory: Path) -> str:
    """The type of the file system that holds a directory, `unknown` where /proc does not tell."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    # Spaces in a mount point are written as \040; the last of the same mount point lies on top.
    at = {mount[1].encode().decode("unicode_escape"): mount[2] for mount in mounts}
    path = directory.resolve()
    return next((at[str(each)] for each in (path, *path.parents) if str(each) in at), "unknown")


def measure_store(store: str, options: Options, shown: Display) -> Column:
    """Loads a store and runs on it, in a directory of its own that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="loadstone-demo-", dir=options.directory) as directory:
        load = measure(trial_spec(store, "load", options, directory), f"{STORES[store]} load", shown)
        run = measure(trial_spec(store, "run", options, directory), f"{STORES[store]} run", shown)
    return Column(STORES[store], load, run)


def measure(spec: Spec, name: str, shown: Display) -> Measured:
    """Runs one trial and shows it. Raises LoadstoneError when it doesn't come to its end."""
    phase = Phase(name, spec["until"].get("operations"), spec["until"].get("seconds"), spec["warmup_seconds"])
    rates = []
    shown.begin(phase)
    with Trial(spec) as trial:
        bystander = Bystander(trial.pid)
        for event in trial.events():
            match event:
                case Ready():
                    phase.start()
                    bystander.look()
                case Interval():
                    phase.take(event)
                    bystander.look()
                    if event.length_ns >= SECOND_NS_MIN:
                        rates.append(phase.rates[-1])
                case Summary():
                    phase.finish(event)
            shown.update()
    result = trial.record.result()
    if result.summary.end != "done":
        raise LoadstoneError(
            f"{name} ended early: {result.summary.reason or result.summary.end}",
            "the words are the store's; `df` and `ulimit -a` show what often lies behind them",
        )
    return Measured(trial.spec, result, tuple(rates), bystander.others)


def trial_spec(store: str, phase: str, options: Options, directory: str) -> Spec:
    """A trial of YCSB's workload A (workloads/workloada)."""
    loads = phase == "load"
    return {
        "spec": 1,
        "store": {"name": store, "properties": {f"{store}.dir": f"{directory}/{store}"}, "durability": "os"},
        "phase": phase,
        "workload": {
            "type": "core",
            "table": "usertable",
            "records": options.records,
            "insert_start": 0,
            "insert_count": options.records,
            "field_count": FIELDS,
            "field_name_prefix": "field",
            "field_length": {"distribution": "constant", "bytes": FIELD_BYTES},
            "read_all_fields": True,
            "write_all_fields": False,
            "integrity": False,
            "mix": {"read": 0.5, "update": 0.5, "insert": 0, "scan": 0, "read_modify_write": 0, "delete": 0},
            "keys": {"distribution": "zipfian"},
            "insert_order": "hashed",
            "zero_padding": 1,
            "scan_length": {"distribution": "constant", "bytes": 1},
            "operations": None,
            "insert_lag": 2 * CLIENTS,
        },
        "clients": CLIENTS,
        "pace": {"mode": "closed"},
        "until": {"operations": options.records} if loads else {"seconds": options.seconds},
        "warmup_seconds": 0 if loads else options.warmup_seconds,
        "seed": SEED,
        "sinks": [{"sink": "hdr_ns"}],
        "interval_ms": 1000,
        # A run on a store that still compacts what was loaded would be charged for it.
        "settle": loads,
    }


def show(columns: Sequence[Column], options: Options, file_system: str) -> None:
    """Prints the table, what to know about it, and what to do next."""
    page = Console(highlight=False)
    title = (
        f"YCSB workload A: {units.count(options.records)} records of 1 kB, {CLIENTS} clients,"
        f" closed loop, {options.seconds:g} s"
    )
    page.print(side_by_side.table(columns, title, file_system, min(page.width, TABLE_WIDTH)))
    for line in side_by_side.remarks(columns):
        page.print(line, soft_wrap=True)
    page.print(f"\n[bold]{side_by_side.NO_CLAIM}.[/] Run it again and see what moves.\n", soft_wrap=True)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    larger = math.ceil(1.5 * memory / RECORD_BYTES / 1e6) * 1_000_000
    steps = [
        ("longer", f"loadstone demo --seconds {6 * options.seconds:g}", ""),
        ("more data", f"loadstone demo --records {larger}", f"  [dim]beyond the memory of {units.size(memory)}[/]"),
        ("your load", "loadstone ycsb load lmdb -p lmdb.dir=data -p recordcount=1000", ""),
    ]
    for i, (what, command, why) in enumerate(steps, 1):
        page.print(f"  {i}. {what:<9}  [cyan]{command}[/]{why}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
