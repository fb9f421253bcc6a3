"""Manages HBase's tables through its administration client, with the Java program in the folder `java`.

The first call starts a JVM, which takes two to three seconds; later calls use the same JVM.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.systems.base import jvm
from loadstone.systems.base.files import cache, program
from loadstone.systems.base.java_helper import Resident, ResidentError, SilentError
from loadstone.systems.base.plan import read_whole_number, table_plan
from loadstone.systems.base.system import SystemsError
from loadstone.systems.hbase import jars

CLASS = "HBaseTables"
SOURCE = Path(__file__).parent / "java" / f"{CLASS}.java"
# The options of a table; the family has no default.
OPTIONS = {"family": "", "splits": "0", "compression": "NONE", "durability": "USE_DEFAULT"}
# The program is too small to benefit from the JVM's second compiler.
JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
ANSWER_S = 60.0
SERVING_S = 30.0
# Tables with thousands of regions take a long time.
CREATE_S = 600.0
# YCSB's formula spreads keys from user1000 to user9999; further split keys would be duplicates.
FIRST, LAST = 1000, 9999
ADMINISTRATION = Resident()


@dataclass(frozen=True)
class RegionServer:
    """The regions of one region server; `name` is the name that HBase uses, `127.0.0.2,16020,1795283777136`."""

    name: str
    heap_bytes: int
    memstore_bytes: int
    # The number of regions by table, including HBase's system tables (`hbase:meta`).
    tables: Mapping[str, int]

    @property
    def address(self) -> str:
        """The host and port: `127.0.0.2:16020`."""
        host, port, _ = self.name.split(",")
        return f"{host}:{port}"

    @property
    def regions(self) -> int:
        """The total number of regions."""
        return sum(self.tables.values())


@dataclass(frozen=True)
class Serving:
    """The live region servers, and the number of regions that are waiting to be opened."""

    servers: Sequence[str]
    waiting: int


def split_keys(splits: int) -> list[str]:
    """The keys at which YCSB's `user…` keys are split; there is one more region than keys. Raises SystemsError."""
    if not 0 <= splits <= LAST - FIRST:
        raise SystemsError(f"splits must be between 0 and {LAST - FIRST}, got {splits}", "200 splits are usual")
    return [f"user{FIRST + i * (LAST - FIRST) // splits}" for i in range(1, splits + 1)]


class Tables:
    """The tables of the HBase to which a configuration directory points."""

    def __init__(self, conf: Path, version: str) -> None:
        """`version` is the version of the client, which may differ from the server's."""
        self.conf = conf
        self.version = version

    def create_table(self, table: str, options: Mapping[str, str], *, recreate: bool = False) -> int:
        """Creates a table with one column family and returns its number of regions. Raises SystemsError.

        `recreate` first drops an existing table. Compression and durability take HBase's names.
        """
        chosen = table_plan("hbase", options, OPTIONS)
        family, _, compression, durability = chosen.settings.values()
        if not family:
            raise SystemsError(f"hbase: no column family for {table}", f"a table has the options {', '.join(OPTIONS)}")
        keys = split_keys(read_whole_number(chosen, "splits"))
        arguments = [table, family, "recreate" if recreate else "keep", compression.upper(), durability.upper()]
        return int(self._run_command("create", *arguments, *keys, timeout_s=CREATE_S))

    def drop_table(self, table: str) -> bool:
        """Drops a table; returns whether it existed. Raises SystemsError."""
        return bool(self._run_command("drop", table, timeout_s=CREATE_S))

    def has_table(self, table: str) -> bool:
        """Whether a table exists. Raises SystemsError."""
        return bool(self._run_command("exists", table))

    def region_servers(self) -> list[RegionServer]:
        """The current regions of every live region server. Raises SystemsError."""
        return [RegionServer(name, **fields) for name, fields in self._run_command("regions").items()]

    def read_serving(self) -> Serving:
        """Reads the live servers and unopened regions from HBase's system tables. Raises SystemsError."""
        counts = self._run_command("serves", timeout_s=SERVING_S)
        return Serving(counts["servers"], counts["waiting"])

    def _run_command(self, *request: str, timeout_s: float = ANSWER_S) -> Any:
        client = jars.client_class_path(self.version)
        argv = jvm.java_command("128m", None, [self.conf, compile_program(client), *client], CLASS, options=JVM_OPTIONS)
        try:
            reply = ADMINISTRATION.ask_program(argv, "\t".join(request), timeout_s)
        except SilentError:
            raise SystemsError(
                f"HBase did not answer within {timeout_s:.0f} s ({self.conf})", "see `loadstone systems status hbase`"
            ) from None
        except ResidentError as error:
            raise refusal_error(str(error), request) from None
        answer, _, text = reply.partition(" ")
        if answer != "yes":
            raise refusal_error(text, request)
        return json.loads(text)


def refusal_error(error: str, request: Sequence[str]) -> SystemsError:
    """Converts an error from HBase to a SystemsError."""
    kind, _, message = error.partition(": ")
    if kind == "TableExistsException":
        return SystemsError(f"table {request[1]} already exists", "use --recreate to drop it first")
    if kind == "IllegalArgumentException":
        return SystemsError(
            f"HBase refused to {request[0]} {request[1]}: {message}", "use names and options that HBase supports"
        )
    return SystemsError(f"HBase refused to {' '.join(request[:2])}: {error}", "see `loadstone systems logs hbase`")


def compile_program(jars: Sequence[Path]) -> Path:
    """The directory with the Java program's class, which is compiled once. Raises SystemsError.

    Running the source file directly would compile it at each start, which takes two seconds.
    """
    identity = "\n".join([SOURCE.read_text(), *map(str, jars)])
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return cache.fill_entry(cache.cache_root() / "classes" / f"{CLASS}-{digest}", lambda draft: run_javac(jars, draft))


def run_javac(jars: Sequence[Path], directory: Path) -> None:
    """Compiles the Java program into a directory. Raises SystemsError."""
    # The `java` on PATH is a link, often into a runtime without a compiler.
    near = jvm.find_java().resolve().with_name("javac")
    compiler = str(near) if near.exists() else shutil.which("javac")
    if compiler is None:
        raise SystemsError("javac is not installed", "run apt-get install openjdk-17-jdk-headless, or set JAVA_HOME")
    argv = [compiler, "-nowarn", "-proc:none", "-cp", ":".join(map(str, jars)), "-d", str(directory), str(SOURCE)]
    program.run_program(argv, f"{SOURCE.name} does not compile", "use another version of HBase's client")
