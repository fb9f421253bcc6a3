"""Programs that must be there: to run Java, to fetch servers, to build."""

from __future__ import annotations

from collections.abc import Sequence

from loadstone.doctor.check import Check, Seen, State
from loadstone.doctor.machine import Machine

JDK_MAJOR = 17
RUST = "curl -sSf https://sh.rustup.rs | sh"


def jdk(machine: Machine, _: int) -> Seen:
    """Cassandra, HBase, HDFS and the JVM store run in Java; the JVM store's host is compiled."""
    missing = [name for name in ("java", "javac") if name not in machine.programs]
    fix = install(machine, f"openjdk-{JDK_MAJOR}-jdk-headless", f"java-{JDK_MAJOR}-openjdk-devel")
    if machine.java_home:
        # It is asked before PATH, so the new one would not be seen.
        fix += "   # then unset JAVA_HOME, or let it name that JDK"
    if missing:
        return Seen("fail", f"no {' and no '.join(missing)}", fix)
    majors = {name: machine.programs[name].major for name in ("java", "javac")}
    found = ", ".join(f"{name} {'of unknown version' if major is None else major}" for name, major in majors.items())
    if any(major is not None and major < JDK_MAJOR for major in majors.values()):
        return Seen("fail", found, fix)
    if None in majors.values():
        return Seen("warn", found, f"{machine.programs['java'].path} -version   # {JDK_MAJOR} or later will do")
    return Seen("ok", found)


def maven(machine: Machine, _: int) -> Seen:
    """Servers and RocksDB come from Maven Central."""
    return programs(machine, ("mvn",), "fail", install(machine, "maven", "maven"))


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
    fix = install(machine, "gcc libc6-dev", "gcc glibc-devel") if "cargo" in machine.programs else RUST
    return programs(machine, ("gcc", "cargo"), "warn", fix)


def install(machine: Machine, debian: str, fedora: str) -> str:
    """The command that installs packages, by their names in either family of distributions."""
    if "dnf" in machine.programs and "apt-get" not in machine.programs:
        return f"sudo dnf install {fedora}"
    return f"sudo apt-get install {debian}"


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
