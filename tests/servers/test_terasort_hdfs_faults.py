"""Sorts on a real HDFS that are killed, that start simultaneously, and that lose a data node."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hadoop_support import hdfs_ports
from killed_at import TRACEABLE, kill_at
from loadstone.systems.base.running_system import RunningSystem
from tera_support import HANGS_SECONDS, ROW_BYTES, Ran, start_together, tera

# Few rows for quick jobs, and many rows for a failure of a data node during the sort.
FEW, MANY = "20000", "1500000"
SINGLE_THREAD = ["--threads", "1", "--memory", "128MiB", "--parts", "2"]
TWO_COPIES = {"teragen": "dfs.replication=2", "terasort": "mapreduce.terasort.output.replication=2"}
DIES = "data-node-2"


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSystem]:
    """Three data nodes, whose failures are detected within seconds, with blocks of a megabyte."""
    running = RunningSystem("hdfs", tmp_path_factory.mktemp("systems"))
    soon = {"dfs.namenode.heartbeat.recheck-interval": "1000", "dfs.heartbeat.interval": "1"}
    storage = {"data.dir": str(tmp_path_factory.mktemp("storage")), "replication": "2", "blocksize": "1m"}
    try:
        running.up(3, hdfs_ports(3) | storage | soon)
        yield running
    finally:
        running.down()


@pytest.fixture(scope="module")
def uri(hdfs: RunningSystem) -> str:
    return hdfs.store_properties()["fs.defaultFS"]


def list_directory(hdfs: RunningSystem, path: str) -> dict[str, int]:
    """The names in a directory of HDFS with their bytes; empty if the directory is missing."""
    port, until = int(hdfs.plan.settings["http.port"]), time.monotonic() + 120
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", f"/webhdfs/v1{path}?op=LISTSTATUS&user.name=root")
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException):
            # On a busy machine, the name node may not respond in time.
            assert time.monotonic() < until
            continue
        finally:
            connection.close()
        assert response.status in (200, 404), body
        entries = json.loads(body)["FileStatuses"]["FileStatus"] if response.status == 200 else []
        return {entry["pathSuffix"]: entry["length"] for entry in entries}


@pytest.fixture(scope="module")
def inputs(program: Path, uri: str) -> dict[str, str]:
    """Inputs with three copies, which survive the failure of a data node, and their checksums.

    The small input is also present sorted.
    """
    entries = {}
    for rows in (FEW, MANY):
        entries[rows] = tera(
            program, "teragen", "-Ddfs.replication=3", "--parts", "2", rows, f"{uri}/in/{rows}"
        ).checksum
    tera(program, "terasort", *SINGLE_THREAD, f"{uri}/in/{FEW}", f"{uri}/in/sorted")
    return entries


@pytest.mark.skipif(not TRACEABLE, reason="system calls are counted by their numbers on x86-64")
@pytest.mark.parametrize(
    "job", ["terasort", *(pytest.param(job, marks=pytest.mark.soak) for job in ("teragen", "teravalidate"))]
)
def test_killed_job_restarts_cleanly(
    program: Path, hdfs: RunningSystem, uri: str, inputs: dict[str, str], job: str
) -> None:
    place = f"/killed-{job}"
    out = f"{uri}{place}/out"
    arguments = {
        "teragen": ["teragen", *SINGLE_THREAD, FEW, out],
        "terasort": ["terasort", *SINGLE_THREAD, f"{uri}/in/{FEW}", out],
        "teravalidate": ["teravalidate", *SINGLE_THREAD, f"{uri}/in/sorted", out],
    }[job]
    calls = "sendto,sendmsg,writev"
    killed, count = kill_at(0, calls, [program, *arguments])
    assert not killed
    assert [*list_directory(hdfs, place)] == ["out"]
    # The kills are spread from the first call to about the last, because the number of calls varies slightly between
    # runs.
    for n in range(1, count, max(count // 16, 1)):
        # Each run has a separate output, because a complete output is not written again.
        arguments[-1] = f"{uri}{place}/{n}/out"
        killed, _ = kill_at(n, calls, [program, *arguments])
        there = list_directory(hdfs, f"{place}/{n}")
        if "out" in there:
            assert "_SUCCESS" in list_directory(hdfs, f"{place}/{n}/out")
            tera(program, *arguments, code=2)
        else:
            assert killed
            assert tera(program, *arguments).checksum == inputs[FEW]
        assert [*list_directory(hdfs, f"{place}/{n}")] == ["out"], n


def test_of_jobs_started_together_one_writes_the_output(
    program: Path, hdfs: RunningSystem, uri: str, inputs: dict[str, str]
) -> None:
    refused = 0
    for n in range(5):
        out = f"/together/{n}/out"
        ended = start_together(program, [["terasort", *SINGLE_THREAD, f"{uri}/in/{FEW}", f"{uri}{out}"]] * 4)
        assert sorted(run.code for run in ended).count(0) == 1, ended
        for run in ended:
            if run.code:
                error, hint = run.err.splitlines()
                assert f"is writing {out}" in error or f"output directory {out} already exists" in error
                assert hint.startswith("hint: ")
                refused += "is writing" in error
        assert [*list_directory(hdfs, f"/together/{n}")] == ["out"]
        assert tera(program, "teravalidate", f"{uri}{out}").checksum == inputs[FEW]
    assert refused, "they never ran simultaneously"


def kill_data_node(program: Path, hdfs: RunningSystem, arguments: Sequence[str], out: str, retained: str) -> Ran:
    """Runs a job, and kills a data node once a part of the output has a block, or a run exists."""
    command, *rest = arguments
    line = [str(program), command, "-D", TWO_COPIES[command], *rest]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    parent, name = out.rsplit("/", 1)
    try:
        until = time.monotonic() + HANGS_SECONDS
        scratch = f"{parent}/.{name}.loadstone"
        growing, begins = (f"{scratch}/output", "part-") if retained == "output" else (scratch, "run-")
        while not any(length for file, length in list_directory(hdfs, growing).items() if file.startswith(begins)):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
        hdfs.kill(DIES)
        assert process.poll() is None, "it ended before the kill of the data node"
        output = process.communicate(timeout=HANGS_SECONDS)
    finally:
        process.kill()
        process.wait()
    return Ran(process.returncode, *output)


@pytest.fixture
def restore_data_node(hdfs: RunningSystem) -> Iterator[None]:
    """Restarts the data node and waits for it."""
    yield
    hdfs.up(3, hdfs.plan.settings)
    until = time.monotonic() + 120
    while hdfs.read_figures()["data_nodes.live"] != 3:
        assert time.monotonic() < until
        time.sleep(0.5)


OPTIONS = ["--threads", "2", "--parts", "2", "--memory"]


@pytest.mark.usefixtures("restore_data_node")
@pytest.mark.parametrize(
    ("command", "memory", "retained"),
    [
        ("terasort", "128MiB", "output"),
        ("terasort", "128MiB", "run"),
        pytest.param("teragen", "256MiB", "output", marks=pytest.mark.soak),
        pytest.param("terasort", "1GiB", "output", marks=pytest.mark.soak),
    ],
)
def test_job_with_two_copies_survives_a_data_node(
    program: Path, hdfs: RunningSystem, uri: str, inputs: dict[str, str], command: str, memory: str, retained: str
) -> None:
    out = f"/lives-{command}-{memory}-{retained}/out"
    source = MANY if command == "teragen" else f"{uri}/in/{MANY}"
    ran = kill_data_node(
        program, hdfs, [command, *OPTIONS, memory, "--run-copies", "2", source, f"{uri}{out}"], out, retained
    )
    assert (ran.code, ran.err, ran.checksum) == (0, "", inputs[MANY])
    assert [*list_directory(hdfs, out.rsplit("/", 1)[0])] == ["out"]
    there = list_directory(hdfs, out)
    assert sum(there.values()) == int(MANY) * ROW_BYTES
    assert len(there) == 3
    assert "_SUCCESS" in there
    # TeraGen's rows are complete and correct, though not sorted.
    validated = tera(program, "teravalidate", f"{uri}{out}", code=1 if command == "teragen" else 0)
    assert validated.checksum == inputs[MANY]
    assert "differs from the row" not in validated.err


@pytest.mark.usefixtures("restore_data_node")
def test_lost_only_copy_leaves_all_rows_or_none(
    program: Path, hdfs: RunningSystem, uri: str, inputs: dict[str, str]
) -> None:
    out = "/lost/out"
    ran = kill_data_node(
        program, hdfs, ["terasort", *OPTIONS, "128MiB", f"{uri}/in/{MANY}", f"{uri}{out}"], out, "output"
    )
    if ran.code == 0:
        # The data node had no unread run.
        assert (ran.err, ran.checksum) == ("", inputs[MANY])
        assert tera(program, "teravalidate", f"{uri}{out}").checksum == inputs[MANY]
        assert [*list_directory(hdfs, "/lost")] == ["out"]
    else:
        error, hint = ran.err.splitlines()
        assert re.match(r'error: terasort failed in the stage "[a-z ]+": cannot read /lost/.*/run-', error), ran.err
        assert "DatanodeInfo" not in error
        assert "--run-copies" in hint
        assert list_directory(hdfs, "/lost") == {}
