"""Java starts with the built command line, and the pauses read from its log agree with the JVM's own counters."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from loadstone.systems.base.jvm import (
    Collections,
    java_build,
    java_command,
    java_version,
    live_heap_bytes,
    process_release,
    read_collections,
)
from loadstone.systems.base.system import SystemsError

# Creates garbage, then prints its arguments and the JVM's number of collections.
PROBE = """
import java.lang.management.*;
public class Probe {
  static byte[] last;
  public static void main(String[] arguments) {
    for (int i = 0; i < 400_000; i++) last = new byte[1024];
    System.gc();
    long count = 0;
    for (GarbageCollectorMXBean one : ManagementFactory.getGarbageCollectorMXBeans()) count += one.getCollectionCount();
    System.out.println(count + " " + Runtime.getRuntime().maxMemory() + " " + System.getProperty("greeting")
        + " " + String.join(",", arguments));
  }
}
"""


def ran(command: list[str]) -> str:
    """A command's standard output."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("collector", ["Serial", "Parallel", "G1"])
def test_java_agrees_with_its_log(tmp_path: Path, collector: str) -> None:
    source = tmp_path / "Probe.java"
    source.write_text(PROBE)
    # In -Xlog, a colon ends a file name unless the name is quoted.
    log = tmp_path / "a:b" / "gc.log"
    log.parent.mkdir()
    options, properties = [f"-XX:+Use{collector}GC"], {"greeting": "hello there"}
    arguments = java_command(
        "64M", log, [tmp_path], str(source), options=options, properties=properties, arguments=["x", "y z"]
    )
    count, _, output = ran(arguments).strip().split(" ", 2)
    collections = read_collections(log)
    assert output == "hello there x,y z"
    assert collections.pauses == int(count) > 1
    assert collections.pause_ns > 0
    assert collections.offset == log.stat().st_size
    assert read_collections(log, collections.offset) == Collections(0, 0, collections.offset)


def test_java_takes_the_heap_whole() -> None:
    assert java_command("512M", None, [Path("a.jar"), Path("lib/*")], "Main")[1:] == [
        "-Xms512M",
        "-Xmx512M",
        "-cp",
        "a.jar:lib/*",
        "Main",
    ]


LINES = (
    "[2026-11-21T17:50:02.571+0000][0.004s][info][gc] Using G1\n",
    "[2026-11-21T17:50:02.626+0000][0.039s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause)"
    " 24M->3M(64M) 1.641ms\n",
    "[2026-11-21T17:50:02.638+0000][0.051s][info][gc] GC(1) Concurrent Mark Cycle 812.998ms\n",
    "[2026-11-21T17:50:02.638+0000][0.051s][info][gc] GC(1) Pause Remark 38M->38M(64M) 0.359ms\n",
    "[2026-11-21T17:50:02.704+0000][0.118s][info][gc] GC(2) Pause Full (System.gc()) 30M->4M(24M) 14.000ms\n",
)


def test_only_pauses_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "gc.log"
    log.write_text("".join(LINES))
    assert read_collections(log) == Collections(3, 16_000_000, len("".join(LINES)))
    assert live_heap_bytes(log) == 4 << 20


def test_partial_line_is_deferred_to_the_next_sample(tmp_path: Path) -> None:
    log = tmp_path / "gc.log"
    log.write_text("".join(LINES)[:-8])
    first = read_collections(log)
    assert (first.pauses, first.offset) == (2, len("".join(LINES[:-1])))
    assert live_heap_bytes(log) == 38 << 20
    log.write_text("".join(LINES))
    assert read_collections(log, first.offset) == Collections(1, 14_000_000, len("".join(LINES)))


def test_a_truncated_log_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "gc.log"
    log.write_text("".join(LINES[:2]))
    assert read_collections(log, since=10_000).pauses == 1


def test_no_log_is_no_pause(tmp_path: Path) -> None:
    assert read_collections(tmp_path / "none") == Collections(0, 0, 0)
    assert live_heap_bytes(tmp_path / "none") is None


def program(home: Path, says: str) -> None:
    """A `java` that reports this version."""
    file = home / "bin/java"
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    file.chmod(0o755)


@pytest.mark.parametrize(("says", "release"), [("version 1.8.0_412", None), ('openjdk version "11.0.2"', 11)])
def test_an_old_java_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, release: int | None
) -> None:
    program(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SystemsError, match=f"is Java {release}, but 17" if release else "does not print") as caught:
        java_command("1G", None, [], "Main")
    assert "JAVA_HOME" in caught.value.hint


def test_the_version_of_java_8_is_8(tmp_path: Path) -> None:
    program(tmp_path, 'java version "1.8.0_412"')
    assert java_version(str(tmp_path / "bin/java")) == 8


def test_no_java_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    with pytest.raises(SystemsError, match="not installed") as caught:
        java_command("1G", None, [], "Main")
    assert "apt-get install openjdk" in caught.value.hint


def test_exact_release_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").touch(mode=0o755)
    (tmp_path / "release").write_text(
        'IMPLEMENTOR="Debian"\nJAVA_RUNTIME_VERSION="17.0.15+6"\nJAVA_VERSION="17.0.15"\n'
    )
    assert java_build(tmp_path / "bin/java") == "17.0.15+6 (Debian)"
    (tmp_path / "release").unlink()
    assert java_build(tmp_path / "bin/java") == ""


def test_process_has_the_release_of_its_java(tmp_path: Path) -> None:
    source = tmp_path / "Wait.java"
    source.write_text(
        "public class Wait { public static void main(String[] a) throws Exception { System.in.read(); } }"
    )
    at = java_command("64m", None, [], "")[0]
    with subprocess.Popen([at, source], stdin=subprocess.PIPE) as waiting:
        assert process_release(waiting.pid) == java_build(Path(at)) != ""
        waiting.communicate(b"x")
    assert process_release(os.getpid()) == ""
    assert process_release(waiting.pid) == ""
