"""DFSIO on a real HDFS: compared with Hadoop's TestDFSIO, and while a data node fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dfsio_support import MEGABYTE, DfsioResult, blocks, dfsio
from hadoop_support import hdfs_ports
from loadstone.observe.sockets import Sockets, list_inodes
from loadstone.systems.base.files import maven
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.hdfs import hadoop

# The default version of the lab's HDFS.
HADOOP = "3.4.2"
OPENED = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "sun.nio.ch", "java.nio")]


DATA_NODE = "Hadoop:service=DataNode,name=DataNodeActivity-*"


@dataclass(frozen=True)
class Cluster:
    """An HDFS of three data nodes, and Hadoop's own tools for it."""

    running: RunningSystem
    jars: str
    # The storage of the data nodes, which no other test uses.
    storage: Path

    @property
    def uri(self) -> str:
        return self.running.store_properties()["fs.defaultFS"]

    def hadoop(self, main: str, *arguments: str, **run: str) -> str:
        """Runs a main class of Hadoop."""
        conf = self.running.store_properties()["hadoop.conf"]
        java = ["java", "-Xmx512m", "-Djava.net.preferIPv4Stack=true", *OPENED, "-cp", f"{conf}:{self.jars}", main]
        done = subprocess.run([*java, *arguments], capture_output=True, text=True, timeout=300, **run)  # type: ignore[call-overload]
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def syncs(self) -> int:
        """The number of syncs by the data nodes; their beans are up to ten seconds old."""
        first = int(self.running.plan.settings["data.port"])
        beans = [hadoop.read_bean("127.0.0.1", first + 10 * node + 1, DATA_NODE) for node in range(3)]
        return sum(bean["FsyncCount"] for bean in beans if bean)

    def test_dfsio(self, home: Path, *arguments: str) -> None:
        """Runs Hadoop's TestDFSIO with as many map tasks at a time as files."""
        own = ["-Dtest.build.data=/bench", "-Dmapreduce.local.map.tasks.maximum=2", "-Dmapreduce.framework.name=local"]
        self.hadoop("org.apache.hadoop.fs.TestDFSIO", *own, *arguments, cwd=str(home))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    group = "org.apache.hadoop"
    jars = maven.class_path(
        "testdfsio",
        [
            f"{group}:hadoop-common:{HADOOP}",
            f"{group}:hadoop-hdfs-client:{HADOOP}",
            f"{group}:hadoop-hdfs:{HADOOP}",
            f"{group}:hadoop-hdfs:{HADOOP}:jar:tests",
            f"{group}:hadoop-mapreduce-client-jobclient:{HADOOP}",
            f"{group}:hadoop-mapreduce-client-common:{HADOOP}",
            f"{group}:hadoop-mapreduce-client-jobclient:{HADOOP}:jar:tests",
            "junit:junit:4.13.2",
        ],
    )
    # MapReduce finds no files below a directory whose name contains a space.
    running = RunningSystem("hdfs", tmp_path_factory.mktemp("systems"))
    storage = tmp_path_factory.mktemp("storage")
    # The name node detects a failed node after seconds instead of ten minutes.
    soon = {"dfs.namenode.heartbeat.recheck-interval": "1000", "dfs.heartbeat.interval": "1"}
    try:
        running.up(3, hdfs_ports(3) | {"data.dir": str(storage), "replication": "3", "blocksize": "1m"} | soon)
        yield Cluster(running, os.pathsep.join(map(str, jars)), storage)
    finally:
        running.down()


def stat(cluster: Cluster, path: str) -> dict[str, object]:
    port = int(cluster.running.plan.settings["http.port"])
    reply, until = None, time.monotonic() + 120
    # On a busy machine, the start of a name node may exceed the time limit of one attempt.
    while reply is None:
        assert time.monotonic() < until
        reply = hadoop.send_request("GET", "127.0.0.1", port, f"/webhdfs/v1{path}?op=GETFILESTATUS")
    status: dict[str, object] = reply["FileStatus"]
    return status


def test_files_have_the_asked_replication_and_block_size(program: Path, tmp_path: Path, cluster: Cluster) -> None:
    options = "-D dfs.replication=2 -Ddfs.blocksize=2m"
    result = dfsio(program, tmp_path, f"-write -nrFiles 2 -fileSize 5MB {options}", f"{cluster.uri}/loadstone")
    assert result.code == 0, result.err
    status = stat(cluster, "/loadstone/io_data/test_io_1")
    assert (status["replication"], status["blockSize"], status["length"]) == (2, 2 * MEGABYTE, 5 * MEGABYTE)
    checked = cluster.hadoop("org.apache.hadoop.hdfs.tools.DFSck", "/loadstone", "-files", "-blocks")
    assert "is HEALTHY" in checked
    assert "3 block(s)" in checked
    result = dfsio(program, tmp_path, "-read -nrFiles 2 -fileSize 5MB", f"{cluster.uri}/loadstone")
    assert (result.code, result.count_steps("VERIFY")) == (0, result.count_steps("READ")), result.err


def test_hadoop_reads_ours_and_we_read_hadoops(program: Path, tmp_path: Path, cluster: Cluster) -> None:
    hadoops, own_log = tmp_path / "hadoop.log", tmp_path / "loadstone.log"
    size = ["-nrFiles", "2", "-size", "3MB"]
    cluster.test_dfsio(tmp_path, "-write", *size, "-resFile", str(hadoops))
    result = dfsio(program, tmp_path, "-read", *size, "-resFile", own_log, f"{cluster.uri}/bench")
    assert (result.code, result.engine_figure("files not compared")) == (0, "2, 0"), result.err
    result = dfsio(program, tmp_path, "-write", *size, "-resFile", own_log, f"{cluster.uri}/bench")
    assert result.code == 0, result.err
    cluster.test_dfsio(tmp_path, "-read", *size, "-resFile", str(hadoops))
    hadoop_blocks, own = blocks(hadoops.read_text()), blocks(own_log.read_text())
    assert [block["test"] for block in hadoop_blocks] == ["write", "read"]
    assert [block["test"] for block in own] == ["read", "write"]
    for block in (*hadoop_blocks, *own):
        assert list(block) == list(hadoop_blocks[0])
        assert (block["Number of files"], block["Total MBytes processed"]) == ("2", "6")


@pytest.fixture(scope="module")
def files_with_damage(program: Path, tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> str:
    """Three files, one with a flipped bit, one truncated; replaced through HDFS, so HDFS's checksums match."""
    home, size = tmp_path_factory.mktemp("damaged"), "-write -nrFiles 3 -fileSize 1MB --seed 7"
    for place in (f"{cluster.uri}/damaged", str(home)):
        assert dfsio(program, home, size, place).code == 0
    flipped, short = (home / f"io_data/test_io_{number}" for number in range(2))
    content = bytearray(flipped.read_bytes())
    content[700_003] ^= 4
    flipped.write_bytes(content)
    os.truncate(short, 600_000)
    cluster.hadoop("org.apache.hadoop.fs.FsShell", "-put", "-f", str(flipped), str(short), "/damaged/io_data")
    return f"{cluster.uri}/damaged"


def test_incorrect_and_missing_bytes_are_named_by_offset(program: Path, tmp_path: Path, files_with_damage: str) -> None:
    result = dfsio(program, tmp_path, "-read -nrFiles 3 -fileSize 1MB", files_with_damage)
    assert (result.code, result.engine_figure("files done")) == (1, "1, 2, 0, 0"), result.err
    assert "/damaged/io_data/test_io_0 at byte 700003: found" in result.err
    assert "cannot read /damaged/io_data/test_io_1 at byte 600000: the file ends there" in result.err
    assert not blocks(result.out)


def test_damaged_block_is_named_by_file_and_offset(program: Path, tmp_path: Path, cluster: Cluster) -> None:
    """The damaged bytes do not match HDFS's checksums: the client refuses them, and there is no other copy."""
    # No other test has blocks of this size: HDFS may copy another test's block at any time.
    place, size = f"{cluster.uri}/block", "-nrFiles 2 -fileSize 987654B"
    assert dfsio(program, tmp_path, f"-write {size} -D dfs.replication=1", place).code == 0
    (values, _) = sorted(path for path in cluster.storage.rglob("blk_*") if path.stat().st_size == 987_654)
    with values.open("r+b") as file:
        file.seek(700_003)
        byte = file.read(1)[0]
        file.seek(700_003)
        file.write(bytes([byte ^ 4]))
    result = dfsio(program, tmp_path, f"-read {size}", place)
    assert (result.code, result.engine_figure("files done")) == (1, "1, 1, 0, 0"), result.err
    match = re.search(
        r"READ failed with UNEXPECTED_STATE: cannot read /block/io_data/test_io_[01] at byte (\d+): ", result.err
    )
    assert match, result.err
    # Checksums are sent with packets of 64 KiB.
    assert 700_003 - (64 << 10) < int(match[1]) <= 700_003
    assert "ChecksumError" in result.err


@pytest.mark.parametrize(
    ("sync", "flushed", "synced"), [("none", 0, 0), ("flush", 2, 0), ("close", 0, 2), ("buffer", 0, 10)]
)
def test_a_write_is_flushed_or_synced_as_asked(
    program: Path, tmp_path: Path, cluster: Cluster, sync: str, flushed: int, synced: int
) -> None:
    place, size = f"{cluster.uri}/synced", "-nrFiles 2 -fileSize 2100001B -bufferSize 500001"
    before = cluster.syncs()
    result = dfsio(program, tmp_path, f"-write {size} --sync {sync}", place)
    # Three blocks of each file, on three data nodes; the client's sync reaches one block.
    expected, until = before + (2 * 3 * 3 if synced else 0), time.monotonic() + 60
    while cluster.syncs() < expected:
        assert time.monotonic() < until
        time.sleep(0.5)
    assert (result.code, result.count_steps("FLUSH"), result.count_steps("SYNC")) == (0, flushed, synced), result.err
    result = dfsio(program, tmp_path, f"-read {size}", place)
    assert (result.code, result.count_steps("VERIFY")) == (0, result.count_steps("READ")), result.err


def test_many_small_files_are_written_and_read(program: Path, tmp_path: Path, cluster: Cluster) -> None:
    place, size = f"{cluster.uri}/small", "-nrFiles 500 -fileSize 4KB -bufferSize 4096 --clients 64"
    for test in (f"-write {size} -D dfs.replication=1", f"-read {size}"):
        result = dfsio(program, tmp_path, test, place)
        assert (result.code, result.engine_figure("files done")) == (0, "500, 0, 0, 0"), result.err
    assert result.count_steps("VERIFY") == result.count_steps("READ") == 500
    assert dfsio(program, tmp_path, "-clean", place).code == 0


def test_compressed_files_are_exchanged_with_hadoop(program: Path, tmp_path: Path, cluster: Cluster) -> None:
    command = ["-nrFiles", "2", "-size", "3MB", "-compression", "org.apache.hadoop.io.compress.GzipCodec"]
    cluster.test_dfsio(tmp_path, "-write", *command, "-resFile", str(tmp_path / "hadoop.log"))
    result = dfsio(program, tmp_path, "-read", *command, f"{cluster.uri}/bench")
    assert (result.code, result.engine_figure("files not compared")) == (0, "2, 0"), result.err
    assert dfsio(program, tmp_path, "-write --compressible", *command, f"{cluster.uri}/bench").code == 0
    result = dfsio(program, tmp_path, "-read", *command, f"{cluster.uri}/bench")
    assert (result.code, result.count_steps("VERIFY")) == (0, result.count_steps("READ")), result.err
    cluster.test_dfsio(tmp_path, "-read", *command, "-resFile", str(tmp_path / "hadoop.log"))
    read = blocks((tmp_path / "hadoop.log").read_text())[-1]
    assert (read["test"], read["Total MBytes processed"]) == ("read", "6")


def test_append_continues_and_random_reads_are_compared(program: Path, tmp_path: Path, cluster: Cluster) -> None:
    place = f"{cluster.uri}/appended"
    assert dfsio(program, tmp_path, "-write -fileSize 1500001B", place).code == 0
    result = dfsio(program, tmp_path, "-append -fileSize 1500001B --sync close", place)
    assert result.code == 0, result.err
    assert "a sync of an append reaches only the block" in result.err
    for order in ("", "-random -bufferSize 65536", "-backward", "-skip"):
        result = dfsio(program, tmp_path, f"-read -fileSize 3000002B {order}", place)
        assert (result.code, result.count_steps("VERIFY")) == (0, result.count_steps("READ")), result.err


def test_segments_write_what_the_whole_writes(program: Path, tmp_path: Path, cluster: Cluster) -> None:
    place = f"{cluster.uri}/segments"
    line = "-write -nrFiles 3 -fileSize 300000B --seed 5 --print-spec"
    spec = json.loads(dfsio(program, tmp_path, line, place).out)
    for k in range(2):
        done = subprocess.run(
            [program, "trial"],
            input=json.dumps(spec | {"segment": {"k": k, "n": 2}, "clients": 2}) + "\n",
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert json.loads(done.stdout.splitlines()[-1])["files"]["done"] == 2 - k
    result = dfsio(program, tmp_path, "-read -nrFiles 3 -fileSize 300000B", place)
    assert (result.code, result.engine_figure("files done")) == (0, "3, 0, 0, 0"), result.err


def count_carried_bytes(pid: int, sockets: Sockets) -> int:
    """The bytes transferred by a process's connections."""
    own = set(list_inodes(pid))
    return sum(
        connection.received + connection.sent for connection in sockets.list_connections() if connection.inode in own
    )


def kill_data_node(
    running: RunningSystem,
    number: int,
    program: Path,
    home: Path,
    line: str,
    place: str,
    then: Callable[[subprocess.Popen[str]], object] = id,
) -> DfsioResult:
    """Runs a test and kills a data node during it. The test is paused for the kill, with most bytes remaining."""
    command = [str(program), "dfsio", *line.split(), place]
    test = subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    sockets, until = Sockets(), time.monotonic() + 120
    try:
        while count_carried_bytes(test.pid, sockets) < 8 * MEGABYTE:
            assert test.poll() is None, "the test ended before the kill"
            assert time.monotonic() < until
        test.send_signal(signal.SIGSTOP)
        assert test.poll() is None, "the test ended before the kill"
        carried = count_carried_bytes(test.pid, sockets)
        running.kill(f"data-node-{number}")
        test.send_signal(signal.SIGCONT)
        then(test)
        out, err = test.communicate(timeout=300)
    finally:
        sockets.close()
        test.kill()
    assert carried < 200 * MEGABYTE, "few bytes remained"
    return DfsioResult(test.returncode, out, err)


def count_failures(result: DfsioResult) -> tuple[int, int]:
    """The counts of failed attempts to use a data node and of repeated requests, as stated in a warning."""
    match = re.search(
        r"^warning: (\d+) attempts to use a data node failed, and (\d+) requests", result.err, re.MULTILINE
    )
    return (int(match[1]), int(match[2])) if match else (0, 0)


def restore_data_node(cluster: Cluster) -> None:
    """Restarts the data node and waits for it."""
    cluster.running.up(3, cluster.running.plan.settings)
    until = time.monotonic() + 120
    while cluster.running.read_figures()["data_nodes.live"] != 3:
        assert time.monotonic() < until
        time.sleep(0.5)


def test_killed_data_node_loses_no_written_files(program: Path, tmp_path: Path, cluster: Cluster) -> None:
    place, size = f"{cluster.uri}/killed-write", "-nrFiles 4 -fileSize 64MB"
    line = f"-write {size} -D dfs.replication=3 -D dfs.blocksize=64m"
    try:
        result = kill_data_node(cluster.running, 2, program, tmp_path, line, place)
        assert (result.code, result.engine_figure("files done")) == (0, "4, 0, 0, 0"), result.err
        assert count_failures(result)[0] >= 1, result.err
        result = dfsio(program, tmp_path, f"-read {size}", place)
        assert (result.code, result.engine_figure("files done")) == (0, "4, 0, 0, 0"), result.err
    finally:
        restore_data_node(cluster)


def test_killed_data_node_is_read_around(program: Path, tmp_path: Path, cluster: Cluster) -> None:
    place, size = f"{cluster.uri}/killed-read", "-nrFiles 4 -fileSize 64MB"
    assert dfsio(program, tmp_path, f"-write {size} -D dfs.replication=3 -D dfs.blocksize=16m", place).code == 0
    try:
        result = kill_data_node(cluster.running, 2, program, tmp_path, f"-read {size}", place)
        assert (result.code, result.engine_figure("files done")) == (0, "4, 0, 0, 0"), result.err
        assert result.count_steps("VERIFY") == result.count_steps("READ")
        # Twelve more blocks of other files may be read from the failed node.
        assert count_failures(result)[0] >= 1, result.err
    finally:
        restore_data_node(cluster)


@pytest.fixture(scope="module")
def single_copy_hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSystem]:
    """An HDFS with a single data node that reports its blocks late."""
    running = RunningSystem("hdfs", tmp_path_factory.mktemp("one-copy"))
    storage = tmp_path_factory.mktemp("blocks")
    late = {"blocksize": "1m", "replication": "1", "dfs.blockreport.incremental.intervalMsec": "1500"}
    try:
        running.up(1, hdfs_ports(1) | {"data.dir": str(storage)} | late)
        yield running
    finally:
        running.down()


def test_late_block_reports_are_awaited(program: Path, tmp_path: Path, single_copy_hdfs: RunningSystem) -> None:
    """The name node refuses a file's third block until the first is reported, which takes long on a busy host."""
    place, size = f"{single_copy_hdfs.store_properties()['fs.defaultFS']}/late", "-nrFiles 2 -fileSize 4MB"
    for arguments in (f"-write {size}", f"-read {size}"):
        result = dfsio(program, tmp_path, arguments, place)
        assert (result.code, result.engine_figure("files done")) == (0, "2, 0, 0, 0"), result.err


def test_read_waits_for_the_only_data_node(program: Path, tmp_path: Path, single_copy_hdfs: RunningSystem) -> None:
    """After all data nodes of a block have failed, Hadoop's client requests the block's location three more times."""
    place, size = f"{single_copy_hdfs.store_properties()['fs.defaultFS']}/away", "-nrFiles 2 -fileSize 128MB"
    assert dfsio(program, tmp_path, f"-write {size} -D dfs.blocksize=128m", place).code == 0

    def restart_data_node(test: subprocess.Popen[str]) -> None:
        # The restart follows the first of the three waits, so that nothing is read for whole seconds.
        time.sleep(3)
        # The waits, 18 s in total, may be shorter than the start of a JVM on a busy host. The test is therefore paused
        # during the start; at most one wait can end while it is paused.
        test.send_signal(signal.SIGSTOP)
        single_copy_hdfs.up(1, single_copy_hdfs.plan.settings)
        test.send_signal(signal.SIGCONT)

    result = kill_data_node(single_copy_hdfs, 1, program, tmp_path, f"-read {size}", place, restart_data_node)
    assert (result.code, result.engine_figure("files done")) == (0, "2, 0, 0, 0"), result.err
    assert count_failures(result)[1] >= 2, result.err
    assert result.engine_figure("mb/sec (2^20) in a second, lowest and median").startswith("0.00 at ")
    assert re.search(
        r"^warning: throughput was below half of its m.* mb/sec \(2\^20\) for \d+ s, first at", result.err, re.MULTILINE
    )


def test_missing_name_node_is_named(program: Path, tmp_path: Path) -> None:
    result = dfsio(program, tmp_path, "-read", "hdfs://127.0.0.1:1/x")
    assert result.code == 1
    assert "cannot reach hdfs://127.0.0.1:1: Connection refused" in result.err
    assert result.err.splitlines()[-1].startswith("hint: ")
