"""Builds the command line of a server in a JVM, and reads the number and duration of its garbage collections."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from loadstone.observe.server_usage import file_size
from loadstone.systems.base.activity import read_tail
from loadstone.systems.base.system import Place, Server, SystemsError

# The oldest version on which Cassandra 5, HBase 2.6 and Hadoop 3.4 all run.
OLDEST = 17
HINT = f"install Java {OLDEST} or newer (apt-get install openjdk-{OLDEST}-jre-headless), or set JAVA_HOME"

# `[12.5s][info][gc] GC(7) Pause Young (Normal) (G1 Evacuation Pause) 24M->1M(64M) 0.998ms`. Finer log levels also
# write a similar line without a time at its end when a pause starts.
PAUSE = re.compile(rb"\bGC\(\d+\) Pause [^\n]* (\d+)\.(\d{3})ms\r?$")
# The wall-clock time at which the line of a pause was written: `[2026-11-28T17:00:00.123+0000]`.
WRITTEN = re.compile(rb"^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4})\]")
# The heap in use before and after a pause, and the size of the heap: `24M->1M(64M)`.
LEFT = re.compile(rb"GC\(\d+\) Pause [^\n]* \d+M->(\d+)M\(\d+M\) [\d.]+ms\n")
# Enough bytes at the end of a log to contain at least one line of a pause.
TAIL_BYTES = 1 << 16


class Collections(NamedTuple):
    """The pauses in a collector's log."""

    # The number of pauses, not of cycles: a concurrent cycle of G1 stops the program more than once.
    pauses: int
    # The total pause time in nanoseconds; the log has a resolution of microseconds.
    pause_ns: int
    # The number of bytes of the log read so far, which is `since` for the next call.
    offset: int


def java_command(
    heap: str,
    gc_log: Path | None,
    class_path: Sequence[Path],
    main: str,
    *,
    options: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
) -> list[str]:
    """The command that runs a class. `heap` (such as `1G`) is allocated in full at the start, as is usual for servers.

    Class path entries are directories, jars or `lib/*`. Raises SystemsError if no Java that is recent enough is found.
    """
    argv = [str(find_java()), f"-Xms{heap}", f"-Xmx{heap}"]
    if gc_log is not None:
        # The log is a single file: with several, a reader that continues at an offset would miss rotated lines.
        # The path is quoted, because a colon would end it.
        argv.append(f'-Xlog:gc:file="{gc_log}":time,uptime,level,tags:filecount=0')
    argv += options
    argv += [f"-D{name}={value}" for name, value in (properties or {}).items()]
    return [*argv, "-cp", os.pathsep.join(map(str, class_path)), main, *arguments]


def jvm_server(
    place: Place,
    name: str,
    addresses: Sequence[tuple[str, int]],
    heap: str,
    class_path: Sequence[Path],
    main: str,
    *,
    patience_s: float = 30.0,
    **more: Any,
) -> Server:
    """A server in a JVM, with a directory of the same name in the system's data and a log of its garbage collections.

    It listens on `addresses`, of which the first is for clients; `more` contains further arguments of `java_command`.
    """
    gc_log, directory = place.logs / f"{name}.gc.log", place.data / name
    argv = java_command(heap, gc_log, class_path, main, **more)
    (host, port), *further = addresses
    return Server(name, argv, host, port, directory=directory, patience_s=patience_s, gc_log=gc_log, ports=further)


def open_packages(packages: str) -> list[str]:
    """The options that open these packages of java.base to all modules."""
    return [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in packages.split()]


def find_java() -> Path:
    """The `java` in JAVA_HOME if that is set, otherwise on PATH. Raises SystemsError if it is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if path is None:
        raise SystemsError(f"no java in JAVA_HOME={home}" if home else "java is not installed", HINT)
    release = java_version(path)
    if release < OLDEST:
        raise SystemsError(f"{path} is Java {release}, but {OLDEST} or newer is needed", HINT)
    return Path(path)


@functools.cache
def java_version(program: str) -> int:
    """The feature release of a `java`, such as 17. Raises SystemsError if it does not run."""
    try:
        result = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SystemsError(f"{program} does not run: {error}", HINT) from error
    # Up to version 8, the format was `1.8.0_412`. JAVA_TOOL_OPTIONS adds a line before the version.
    match = re.search(r'version "(?:1\.)?(\d+)', result.stderr + result.stdout)
    if match is None:
        raise SystemsError(f"{program} does not print its version", HINT)
    return int(match[1])


def java_build(program: Path) -> str:
    """The build of a `java`, from the installation's `release` file: `17.0.15+6 (Debian)`; empty without that file."""
    try:
        text = (program.resolve().parent.parent / "release").read_text(errors="replace")
    except OSError:
        return ""
    properties = dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))
    exact = properties.get("JAVA_RUNTIME_VERSION") or properties.get("JAVA_VERSION", "")
    return f"{exact} ({maker})" if exact and (maker := properties.get("IMPLEMENTOR")) else exact


def process_release(pid: int) -> str:
    """The build of the JVM that a process runs; empty if the process is not a JVM or has exited."""
    try:
        return java_build(Path(os.readlink(f"/proc/{pid}/exe")))
    except OSError:
        return ""


def read_collections(gc_log: Path, since: int = 0) -> Collections:
    """The pauses written to a log after byte `since`; none while there is no log.

    The log must have been enabled by `java_command`. It is truncated when its server restarts, so a log shorter than
    `since` is read from the start.
    """
    length = file_size(gc_log)
    since = since if since <= length else 0
    text = read_tail(gc_log, length, since)
    # The last line may be incomplete: the next call reads it.
    whole = text[: text.rfind(b"\n") + 1]
    pauses = [match for line in whole.splitlines() if (match := PAUSE.search(line))]
    spent_ns = sum(int(match[1]) * 1_000_000 + int(match[2]) * 1_000 for match in pauses)
    return Collections(len(pauses), spent_ns, since + len(whole))


def list_pauses(gc_log: Path) -> Iterator[tuple[int, int]]:
    """The end of each pause in a log, ns since the epoch, and its length, ns; empty without a log."""
    for line in read_tail(gc_log, file_size(gc_log)).splitlines():
        if (pause := PAUSE.search(line)) and (written := WRITTEN.search(line)):
            at = datetime.strptime(written[1].decode(), "%Y-%m-%dT%H:%M:%S.%f%z")
            yield round(at.timestamp() * 1000) * 1_000_000, int(pause[1]) * 1_000_000 + int(pause[2]) * 1_000


def live_heap_bytes(gc_log: Path) -> int | None:
    """The heap in use after the last collection in a log; None before the first collection."""
    matches = LEFT.findall(read_tail(gc_log, TAIL_BYTES))
    return int(matches[-1]) << 20 if matches else None
