"""HDFS on real servers: a name node and three data nodes, with the failure of a data node."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest

from hadoop_support import hdfs_ports, listening, states
from loadstone.systems.base import process
from loadstone.systems.base.plan import plan_of
from loadstone.systems.base.running_system import RunningSystem, ServerState
from loadstone.systems.base.system import Place, SystemsError
from loadstone.systems.hbase import file_system
from loadstone.systems.hdfs import hadoop
from loadstone.systems.hdfs.system import Hdfs

SERVERS = ["name-node", "data-node-1", "data-node-2", "data-node-3"]
MEGABYTE = 1 << 20
# Other tests may use the processors.
PATIENT_S = 120.0
Answer = TypeVar("Answer")


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fast storage")


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory, storage: Path) -> Iterator[RunningSystem]:
    """Three data nodes on separate storage, with two copies of each 1 MB block."""
    running = RunningSystem("hdfs", tmp_path_factory.mktemp("all systems"))
    settings = {"replication": "2", "blocksize": "1m", "data.dir": str(storage), "dfs.namenode.handler.count": "7"}
    try:
        running.up(3, hdfs_ports(3) | settings)
        yield running
    finally:
        running.down()


def web_hdfs(running: RunningSystem, method: str, path: str, query: str, body: bytes | None = None) -> bytes:
    """A request to the name node and the data node to which it redirects."""
    address, target = f"127.0.0.1:{running.plan.settings['http.port']}", f"/webhdfs/v1{path}?user.name=tester&{query}"
    for step in range(2):
        connection = http.client.HTTPConnection(address, timeout=60)
        # The name node accepts no data.
        connection.request(method, target, body if step else None)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        if response.status == 403 and b"EOFException" in content:
            # A data node detects a broken connection to a former name node at its next use.
            raise ConnectionResetError(content)
        if response.status != 307:
            assert response.status in (200, 201), content
            return content
        where = urlsplit(response.headers["Location"])
        address, target = where.netloc, f"{where.path}?{where.query}"
    raise AssertionError("sent on twice")


def patiently(ask: Callable[[], Answer]) -> Answer:
    """Retries until requests no longer go to a stopped server."""
    until = time.monotonic() + PATIENT_S
    while True:
        try:
            return ask()
        except (ConnectionRefusedError, ConnectionResetError):
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def write(running: RunningSystem, path: str, body: bytes) -> dict[str, Any]:
    """Writes a file, checks its content, and returns its status."""
    patiently(lambda: web_hdfs(running, "PUT", path, "op=CREATE&overwrite=true", body))
    assert patiently(lambda: web_hdfs(running, "GET", path, "op=OPEN")) == body
    status: dict[str, Any] = json.loads(web_hdfs(running, "GET", path, "op=GETFILESTATUS"))["FileStatus"]
    return status


def blocks(storage: Path) -> list[str]:
    """The data node of each copy of a block, sorted by name."""
    return sorted(path.relative_to(storage).parts[1] for path in storage.rglob("blk_*") if path.suffix != ".meta")


def test_all_serve_on_loopback_only(hdfs: RunningSystem) -> None:
    assert states(hdfs) == dict.fromkeys(SERVERS, ServerState.UP)
    assert all(address.is_loopback for address in listening(hdfs))
    figures = hdfs.read_figures()
    assert (figures["data_nodes.live"], figures["data_nodes.dead"]) == (3, 0)
    assert all(figures[f"{name}.heap_bytes"] > MEGABYTE for name in SERVERS)


def test_files_have_replication_and_block_size_of_settings(hdfs: RunningSystem, storage: Path) -> None:
    before = blocks(storage)
    status = write(hdfs, "/two-blocks", bytes(range(256)) * (MEGABYTE // 256 + 1))
    assert (status["replication"], status["blockSize"]) == (2, MEGABYTE)
    block_sizes = blocks(storage)
    assert len(block_sizes) - len(before) == 4
    assert {*block_sizes} <= {*SERVERS[1:]}
    assert hdfs.read_figures()["blocks"] >= 2


def test_properties_and_facts(hdfs: RunningSystem) -> None:
    properties, port = hdfs.store_properties(), hdfs.plan.settings["port"]
    site = hadoop.read_site(Path(properties["hadoop.conf"]) / "hdfs-site.xml")
    assert properties["fs.defaultFS"] == f"hdfs://127.0.0.1:{port}"
    assert (site["dfs.namenode.rpc-address"], site["dfs.namenode.handler.count"]) == (f"127.0.0.1:{port}", "7")
    facts = hdfs.read_facts()
    assert (facts["replication"], facts["blocksize"], hdfs.server_version()) == (2, "1m", "3.4.2")
    assert facts["data.file_system"]


def test_killed_data_node_is_detected_and_restarted(hdfs: RunningSystem) -> None:
    hdfs.kill("data-node-2")
    assert states(hdfs)["data-node-2"] == ServerState.DEAD
    until = time.monotonic() + PATIENT_S
    while hdfs.read_figures()["data_nodes.live"] != 2:
        assert time.monotonic() < until
        time.sleep(0.5)
    # The name node counts data nodes by their last heartbeat, and redirects clients after its next check has detected
    # the failure.
    assert write(hdfs, "/while-one-is-dead", b"x" * 1000)["length"] == 1000
    hdfs.up(3, hdfs.plan.settings)
    assert states(hdfs) == dict.fromkeys(SERVERS, ServerState.UP)
    assert hdfs.read_figures()["data_nodes.live"] == 3


def test_recently_killed_data_node_is_not_ready(hdfs: RunningSystem) -> None:
    hdfs.kill("data-node-3")
    # The name node has not detected the failure yet.
    assert hdfs.read_figures()["data_nodes.live"] == 3
    missing = hdfs.system.missing_readiness(hdfs.place, hdfs.plan, hdfs.system.server_stages(hdfs.place, hdfs.plan)[1])
    assert missing == "data-node-3 has not registered"
    hdfs.restart("data-node-3")
    assert states(hdfs) == dict.fromkeys(SERVERS, ServerState.UP)


def test_a_restarted_name_node_has_its_files_still(hdfs: RunningSystem) -> None:
    write(hdfs, "/kept", b"kept")
    hdfs.restart("name-node")
    until = time.monotonic() + PATIENT_S
    while (
        hdfs.system.missing_readiness(hdfs.place, hdfs.plan, hdfs.system.server_stages(hdfs.place, hdfs.plan)[1])
        is not None
    ):
        assert time.monotonic() < until
        time.sleep(0.5)
    assert patiently(lambda: web_hdfs(hdfs, "GET", "/kept", "op=OPEN")) == b"kept"


def test_what_hbase_left_is_removed_and_nothing_else(hdfs: RunningSystem) -> None:
    conf = Path(hdfs.store_properties()["hadoop.conf"])
    for path in ("/loadstone-hbase-1/WALs/a", "/loadstone-hbase-2/WALs/a"):
        write(hdfs, path, b"a")
    base = hdfs.store_properties()["fs.defaultFS"]
    file_system.remove_directory(f"{base}/loadstone-hbase-1", conf)
    # The path is on another name node, so the directory of this name node must remain.
    file_system.remove_directory("hdfs://127.0.0.1:1/loadstone-hbase-2", conf)
    listed = json.loads(web_hdfs(hdfs, "GET", "/", "op=LISTSTATUS"))["FileStatuses"]["FileStatus"]
    names = {entry["pathSuffix"] for entry in listed}
    assert "loadstone-hbase-1" not in names
    assert "loadstone-hbase-2" in names


def test_down_leaves_nothing_but_logs(tmp_path: Path) -> None:
    storages = [tmp_path / "slow", tmp_path / "fast"]
    running = RunningSystem("hdfs", tmp_path / "systems")
    ports = hdfs_ports(2)
    try:
        running.up(2, ports | {"data.dir": f"{storages[0]}, {storages[1]}"})
        for number, storage in enumerate(storages, 1):
            assert [path.name for path in storage.glob("*/*")] == [f"data-node-{number}"]
    finally:
        running.down()
    assert process.find_marked(running.place.root) == []
    assert not running.place.data.exists()
    assert [path for storage in storages for path in storage.iterdir()] == []
    assert {"name-node.log", "data-node-1.log", "data-node-1.gc.log"} <= {path.name for path in running.log_paths()}


def test_settings_that_make_no_sense(tmp_path: Path) -> None:
    system, place = Hdfs(), Place(tmp_path / "hdfs", tmp_path / "cache")
    with pytest.raises(SystemsError, match="names 2 directories for 3 data nodes"):
        system.server_stages(place, plan_of(system, 3, {"data.dir": "/a,/b"}))
    with pytest.raises(SystemsError, match='replication must be a whole number of at least 1, got "two"'):
        system.server_stages(place, plan_of(system, 3, {"replication": "two"}))
    # Otherwise the results would state a wrong replication.
    with pytest.raises(SystemsError, match=r"dfs\.replication has a named setting"):
        system.server_stages(place, plan_of(system, 3, {"dfs.replication": "1"}))
    with pytest.raises(SystemsError, match=r'has no setting "df\.replication"'):
        plan_of(system, 3, {"df.replication": "2"})


def test_without_a_server_there_is_no_answer() -> None:
    assert hadoop.read_bean("127.0.0.1", 1, "java.lang:type=Memory") is None
    assert Hdfs().missing_readiness(
        Place(Path("/nowhere"), Path("/nowhere")), plan_of(Hdfs(), 3, {"http.port": "1"}), []
    ) == ("the name node does not answer")


def test_site_files_hold_any_text(tmp_path: Path) -> None:
    properties = {"a.b": "<&> ünï", "empty": "", "path": "/a b/c"}
    hadoop.write_site(tmp_path / "conf/x-site.xml", properties)
    assert hadoop.read_site(tmp_path / "conf/x-site.xml") == properties
    assert [path.name for path in (tmp_path / "conf").iterdir()] == ["x-site.xml"]
