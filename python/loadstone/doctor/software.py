"""Checks of required programs: Java, Maven for fetching Java servers, and fio for its workloads."""

from __future__ import annotations

from loadstone.doctor.check import Check, CheckResult, Machine

JDK_MAJOR = 17


def check_jdk(machine: Machine, _: int) -> CheckResult:
    """Cassandra, HBase, HDFS and the JVM store need Java; the JVM store's host program is compiled with javac."""
    missing = [name for name in ("java", "javac") if name not in machine.programs]
    fix = install_command(machine, f"openjdk-{JDK_MAJOR}-jdk-headless", f"java-{JDK_MAJOR}-openjdk-devel")
    if machine.java_home:
        # JAVA_HOME takes precedence over PATH, so the new JDK would not be found.
        fix += "   # then unset JAVA_HOME, or set it to that JDK"
    if missing:
        return CheckResult("fail", f"no {' and no '.join(missing)}", fix)
    majors = {name: machine.programs[name].major for name in ("java", "javac")}
    text = ", ".join(f"{name} {'of unknown version' if major is None else major}" for name, major in majors.items())
    if any(major is not None and major < JDK_MAJOR for major in majors.values()):
        return CheckResult("fail", text, fix)
    if None in majors.values():
        return CheckResult("warn", text, f"{machine.programs['java'].path} -version   # {JDK_MAJOR} or later is needed")
    return CheckResult("ok", text)


def check_maven(machine: Machine, _: int) -> CheckResult:
    """Java servers and RocksDB come from Maven Central."""
    if "mvn" not in machine.programs:
        return CheckResult("fail", "no mvn", install_command(machine, "maven", "maven"))
    return CheckResult("ok", machine.programs["mvn"].path)


def check_fio(machine: Machine, _: int) -> CheckResult:
    """Workloads of the kind `fio` are run by fio itself."""
    if "fio" not in machine.programs:
        return CheckResult("warn", "no fio", install_command(machine, "fio", "fio"))
    return CheckResult("ok", machine.programs["fio"].path)


def install_command(machine: Machine, debian: str, fedora: str) -> str:
    """The command that installs a package, whose name differs between the families of distributions."""
    if "dnf" in machine.programs and "apt-get" not in machine.programs:
        return f"sudo dnf install {fedora}"
    return f"sudo apt-get install {debian}"


CHECKS = (
    Check(
        "JDK",
        f"`java` and `javac` of version {JDK_MAJOR} or later",
        "Cassandra, HBase, HDFS and every Java client need it",
        check_jdk,
    ),
    Check("Maven", "`mvn`", "it downloads the servers and RocksDB", check_maven),
    Check("fio", "`fio`", "`loadstone fio` and workloads of the kind `fio` run it", check_fio),
)
