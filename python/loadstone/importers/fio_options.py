"""fio's command line and the options of its jobs, as facts of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadstone.importers.command_line import find_command, split_command
from loadstone.importers.number import number_or_text
from loadstone.importers.run import ImportedRun

PROGRAM = "fio"
# Facts, and the options that state them.
FACTS = {"io_engine": "ioengine", "block_size": "bs", "direct": "direct", "mode": "rw", "size": "size"}
DEPTH = "iodepth"
NUMBERS = (DEPTH, "numjobs", "fsync", "fdatasync")
# The engines with at most one operation in flight, whatever the `iodepth` (flag FIO_SYNCIO in fio's engines/).
SYNCHRONOUS = (
    *("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice", "net", "netsplice", "cpuio", "falloc"),
    *("ftruncate", "filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete", "e4defrag"),
    *("dev-dax", "pmemblk", "libpmem", "http", "libhdfs", "mtd", "ime_psync", "ime_psyncv"),
)
# The name of the note on a job whose `iodepth` had no effect.
CAPPED = "depth-capped"
# Options that state locations, the form of the output, or the length of the run (the figure `runtime`).
NOT_OF_WORK = (
    "name",
    "filename",
    "directory",
    "group_reporting",
    "description",
    "runtime",
    "time_based",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "log_avg_msec",
    "status_interval",
    "output",
    "percentile_list",
)
# Options of fio itself, not of a job.
OF_FIO = (
    "output",
    "output_format",
    "minimal",
    "terse_version",
    "eta",
    "status_interval",
    "eta_newline",
    "eta_interval",
)
# Alternative names of options.
SYNONYMS = {"blocksize": "bs", "readwrite": "rw"}
# The arguments of a command without options: the names of job files.
COMMAND = r"\S+\.(?:fio|job|ini)(?:\s+\S+\.(?:fio|job|ini))*"


def parse_command(line: str) -> tuple[str, dict[str, dict[str, str]]] | None:
    """A command line of fio, and the options of each job that it defines; None if a line has no such command."""
    command = find_command(line, PROGRAM, 2, COMMAND)
    if command is None:
        return None
    # Options before the first name, or after `--name=global`, apply to the jobs that follow.
    shared: dict[str, str] = {}
    jobs: dict[str, dict[str, str]] = {}
    current = shared
    for word in join_values(split_command(command)[1:]):
        option, _, value = word.lstrip("-").partition("=")
        name = option.replace("-", "_")
        if name == "name":
            current = shared if value == "global" else jobs.setdefault(value, dict(shared))
        elif name not in OF_FIO:
            current[SYNONYMS.get(name, name)] = value
    return command, jobs


def join_values(arguments: Sequence[str]) -> Iterator[str]:
    """Yields the options in the arguments of a command: `--bs 4k` as `--bs=4k`."""
    for word, following in zip(arguments, [*arguments[1:], "-"], strict=True):
        if word.startswith("-"):
            yield word if "=" in word or following.startswith("-") else f"{word}={following}"


def join_directions(value: Any) -> str:
    """An option's value; if the values for reads, writes and trims are equal (`4k,4k`), only one of them."""
    values = set(str(value).split(","))
    return values.pop() if len(values) == 1 else str(value)


def add_options(run: ImportedRun, job: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Adds the options of a job, and fio's defaults, as facts; `options` includes the global options."""
    run.facts |= {fact: join_directions(options[option]) for fact, option in FACTS.items() if option in options}
    run.facts |= {option: int(options[option]) for option in NUMBERS if str(options.get(option, "")).isdigit()}
    if "job options" in job and not job.get("abridged"):
        # The defaults of fio(1), which a report omits from its list of options.
        direct = {} if "atomic" in options else {"direct": str(int(str(options.get("buffered", "1")) == "0"))}
        run.facts = {"iodepth": 1, "numjobs": 1, "fsync": 0, "fdatasync": 0, "work.sync": 0, **direct, **run.facts}
    if int(str(run.facts.get(DEPTH, 1))) > 1 and is_depth_capped(job, options):
        engine = f"I/O engine {options['ioengine']}" if "ioengine" in options else "default I/O engine"
        message = f"fio kept one operation in flight, not {run.facts[DEPTH]}: its {engine} is synchronous"
        run.add_note(CAPPED, message, "use an asynchronous engine, such as ioengine=io_uring or libaio")
        run.facts[DEPTH] = 1
    named = {"buffered", *FACTS.values(), *NUMBERS, *NOT_OF_WORK}
    run.facts |= {f"work.{name}": number_or_text(join_directions(options[name])) for name in sorted({*options} - named)
                  if not name.startswith("rate")}  # fmt: skip
    if isinstance(writes := run.facts.get("work.rwmixwrite"), int):
        run.facts |= {"work.rwmixread": 100 - writes}
        del run.facts["work.rwmixwrite"]
    rates = {name: options[name] for name in options if name == "rate" or name.startswith("rate_iops")}
    if rates:
        run.loop = "open"
        run.facts |= {name: join_directions(value) for name, value in rates.items()}


def is_depth_capped(job: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether the I/O engine, by default a synchronous one, ignored `iodepth`, so that one operation was in flight."""
    if options.get("io_submit_mode") == "offload":
        # Separate threads submit the operations, so even a synchronous engine can have several in flight.
        return False
    if "ioengine" in options:
        return str(options["ioengine"]) in SYNCHRONOUS
    # On Windows, the default engine is asynchronous.
    return float(job.get("iodepth_level", {}).get("1", 100)) >= 100
