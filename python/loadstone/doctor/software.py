"""Programs that must be there: to run Java, to fetch servers, to build."""

from __future__ import annotations

from collections.abc import Sequence

from loadstone.doctor.check import Check, Seen, State
from loadstone.doctor.machine import Machine

JDK_MAJOR = 17
JDK = f"sudo apt-get install openjdk-{JDK_MAJOR}-jdk-headless"
RUST = "curl -sSf https://sh.rustup.rs | sh"


def jdk(machine: Machine, _: int) -> Seen:
    """Cassandra, HBase, HDFS and the JVM store run in Java; the JVM store's host is compiled."""
    missing = [name for name in ("java", "javac") if name not in machine.programs]
    if missing:
        return Seen("fail", f"no {' and no '.join(missing)}", JDK)
    majors = {name: machine.programs[name].major for name in ("java", "javac")}
    found = ", ".join(f"{name} {'of unknown version' if major is None else major}" for name, major in majors.items())
    if any(major is not None and major < JDK_MAJOR for major in majors.values()):
        return Seen("fail", found, JDK)
    if None in majors.values():
        return Seen("warn", found, f"{machine.programs['java'].path} -version   # {JDK_MAJOR} or later will do")
    return Seen("ok", found)


def maven(machine: Machine, _: int) -> Seen:
    """Servers and RocksDB come from Maven Central."""
    return programs(machine, ("mvn",), "fail", "sudo apt-get install maven")


def packages(machine: Machine, _: int) -> Seen:
    """Redis and PostgreSQL come as Debian packages."""
    return programs(
        machine,
        ("apt-get", "dpkg-deb"),
        "warn",
        "sudo dnf install redis postgresql-server   # then attach these in the experiment",
    )


def building(machine: Machine, _: int) -> Seen:
    """The engine is built here."""
    fix = "sudo apt-get install gcc libc6-dev" if "cargo" in machine.programs else RUST
    return programs(machine, ("gcc", "cargo"), "warn", fix)


def programs(machine: Machine, names: Sequence[str], state: State, fix: str) -> Seen:
    """All of some programs."""
    missing = [name for name in names if name not in machine.programs]
    if missing:
        return Seen(state, f"no {' and no '.join(missing)}", fix)
    return Seen("ok", ", ".join(machine.programs[name].path for name in names))


CHECKS = (
    Check(
        "JDK",
        f"`java` and `javac` of version {JDK_MAJOR} or later",
        "Cassandra, HBase, HDFS and every Java client run in it",
        jdk,
    ),
    Check("Maven", "`mvn`", "it fetches the servers, and RocksDB", maven),
    Check("packages", "`apt-get` and `dpkg-deb`", "they fetch and unpack Redis and PostgreSQL", packages),
    Check("building", "`gcc` and `cargo`", "they build the engine; one that is installed does without", building),
)
