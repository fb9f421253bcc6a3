"""TeraSort on a real HDFS, compared with Hadoop's: each accepts the other's output."""

from __future__ import annotations

import http.client
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from conftest import ROOT
from hadoop_support import hdfs_ports
from loadstone.systems.base.files import maven
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.hdfs.system import OPENED
from tera_support import HANGS_SECONDS, tera

VERSION = "3.4.2"
ROWS = 20_000


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSystem]:
    """One data node with blocks of a megabyte."""
    running = RunningSystem("hdfs", tmp_path_factory.mktemp("systems"))
    try:
        running.up(1, hdfs_ports(1) | {"replication": "1", "blocksize": "1m"})
        yield running
    finally:
        running.down()


class Hadoop:
    """Hadoop's examples, run in a JVM on this machine."""

    def __init__(self, running: RunningSystem, home: Path) -> None:
        names = (
            "hadoop-mapreduce-examples",
            "hadoop-mapreduce-client-jobclient",
            "hadoop-common",
            "hadoop-hdfs-client",
        )
        jars = maven.class_path("terasort", [f"org.apache.hadoop:{name}:{VERSION}" for name in names])
        path, services = os.pathsep.join(map(str, jars)), home / "classes/META-INF/services"
        services.mkdir(parents=True)
        (services / "org.apache.hadoop.mapreduce.protocol.ClientProtocolProvider").write_text("LocalMaps\n")
        source = ROOT / "tests/java/LocalMaps.java"
        subprocess.run(["javac", "-proc:none", "-cp", path, "-d", home / "classes", source], check=True)
        self.classes = os.pathsep.join([running.store_properties()["hadoop.conf"], str(home / "classes"), path])
        self.home = home
        self.uri = running.store_properties()["fs.defaultFS"]

    def __call__(self, example: str, *arguments: str | Path) -> None:
        """Runs an example; it must succeed."""
        main = f"org.apache.hadoop.examples.terasort.{example}"
        options = [f"-Dhadoop.tmp.dir={self.home}", "-Dmapreduce.framework.name=local"]
        line = ["java", "-Xmx512m", *OPENED, "-cp", self.classes, main, *options, *map(str, arguments)]
        done = subprocess.run(line, cwd=self.home, capture_output=True, text=True, timeout=HANGS_SECONDS)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def hadoop(hdfs: RunningSystem, tmp_path_factory: pytest.TempPathFactory) -> Hadoop:
    return Hadoop(hdfs, tmp_path_factory.mktemp("hadoop"))


def read(running: RunningSystem, path: str) -> bytes:
    """The content of a file in HDFS."""
    address, target = f"127.0.0.1:{running.plan.settings['http.port']}", f"/webhdfs/v1{path}?op=OPEN&user.name=tester"
    for _ in range(2):
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("GET", target)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if response.status != 307:
            assert response.status == 200, body
            return body
        where = urlsplit(response.headers["Location"])
        address, target = where.netloc, f"{where.path}?{where.query}"
    raise AssertionError("sent on twice")


def read_rows(running: RunningSystem, directory: str, kind: str, parts: int) -> list[bytes]:
    return [read(running, f"{directory}/part-{kind}-{part:05}") for part in range(parts)]


def sort_rows(rows: Sequence[bytes]) -> bytes:
    everything = b"".join(rows)
    return b"".join(sorted(everything[at : at + 100] for at in range(0, len(everything), 100)))


def test_each_accepts_what_the_other_wrote(program: Path, hdfs: RunningSystem, hadoop: Hadoop) -> None:
    uri = hadoop.uri
    for parts in (2, 7):
        # Hadoop's local runner has one map, whatever its settings (LocalClientProtocolProvider); so has its TeraGen.
        maps = ["-Dmapreduce.framework.name=local-maps", f"-Dmapreduce.job.maps={parts}"]
        hadoop("TeraGen", *maps, str(ROWS), f"{uri}/hadoop/{parts}")
        rows = read_rows(hdfs, f"/hadoop/{parts}", "m", parts)
        ran = tera(program, "teragen", f"-Dmapreduce.job.maps={parts}", str(ROWS), f"{uri}/loadstone/{parts}")
        assert read_rows(hdfs, f"/loadstone/{parts}", "m", parts) == rows
    checksum = ran.checksum
    # Hadoop validates Loadstone's sorts of Hadoop's rows, in memory and external.
    for name, options in (("memory", ["--memory", "1GiB"]), ("little", ["--memory", "128MiB"])):
        out = f"/sorted-{name}"
        command = ["terasort", *options, "--parts", "3", f"{uri}/hadoop/2", f"{uri}{out}"]
        assert tera(program, *command).checksum == checksum
        assert b"".join(read_rows(hdfs, out, "r", 3)) == sort_rows(rows)
        hadoop("TeraValidate", f"{uri}{out}", f"{uri}/report{out}")
        assert read(hdfs, f"/report{out}/part-r-00000") == f"checksum\t{checksum}\n".encode()
    # Loadstone validates Hadoop's sort of Loadstone's rows, and reports in Hadoop's format.
    hadoop("TeraSort", "-Dmapreduce.job.reduces=2", f"{uri}/loadstone/7", f"{uri}/hadoop-sorted")
    ran = tera(program, "teravalidate", f"{uri}/hadoop-sorted", f"{uri}/our-report")
    assert (ran.checksum, ran.err) == (checksum, "")
    assert read(hdfs, "/our-report/part-r-00000") == f"checksum\t{checksum}\n".encode()


def test_an_external_sort_between_disk_and_hdfs(
    program: Path, hdfs: RunningSystem, hadoop: Hadoop, tmp_path: Path
) -> None:
    """A million rows of a local disk, sorted on HDFS with little memory."""
    tera(program, "teragen", "1m", tmp_path / "in")
    ran = tera(program, "terasort", "--memory", "128MiB", "--parts", "2", tmp_path / "in", f"{hadoop.uri}/from-disk")
    assert (ran.checksum, ran.stages) == ("7a27e2d0d55de", ["prepare", "sample", "sort", "merge", "commit"])
    assert ran.memory_bytes_max < 128 << 20
    tera(program, "terasort", f"{hadoop.uri}/from-disk", tmp_path / "back")
    assert tera(program, "teravalidate", tmp_path / "back").checksum == "7a27e2d0d55de"


def test_missing_input_or_existing_output_is_one_message(program: Path, hadoop: Hadoop, tmp_path: Path) -> None:
    tera(program, "teragen", "10", f"{hadoop.uri}/ten")
    stderr = tera(program, "teragen", "10", f"{hadoop.uri}/ten", code=2).err
    assert stderr.startswith("error: output directory /ten already exists\nhint: ")
    stderr = tera(program, "terasort", f"{hadoop.uri}/none", f"{hadoop.uri}/out", code=2).err
    assert stderr.startswith("error: there is no directory /none\nhint: ")
