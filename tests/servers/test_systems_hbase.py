"""HBase on real servers: one JVM with its logs elsewhere, then two region servers over HDFS with a failure."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hadoop_support import hbase_ports, hdfs_ports, listening, states
from loadstone.systems.base import process
from loadstone.systems.base.plan import plan_of
from loadstone.systems.base.running_system import RunningSystem, ServerState
from loadstone.systems.base.system import Place, SystemsError
from loadstone.systems.hbase import file_system, site
from loadstone.systems.hbase.jars import client_class_path, server_class_path
from loadstone.systems.hbase.system import HBase, plan_server
from loadstone.systems.hbase.tables import Tables, split_keys
from loadstone.systems.hdfs import hadoop
from systems_support import free_port, systems

MEGABYTE = 1 << 20
SMALL = {"heap": "512m"}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory for write-ahead logs, whose name contains a space."""
    return tmp_path_factory.mktemp("fast storage")


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory, logs: Path) -> Iterator[RunningSystem]:
    running = RunningSystem("hbase", tmp_path_factory.mktemp("all systems"))
    settings = {"hbase.wal.dir": f"file://{logs}", "hbase.regionserver.handler.count": "7"}
    try:
        running.up(1, hbase_ports(1) | SMALL | settings)
        yield running
    finally:
        running.down()


def tables_of(running: RunningSystem) -> Tables:
    return Tables(Path(running.store_properties()["hbase.conf"]), running.server_version())


def test_it_serves_on_loopback_only(standalone: RunningSystem) -> None:
    assert states(standalone) == {"standalone": ServerState.UP}
    assert all(address.is_loopback for address in listening(standalone))
    figures = standalone.read_figures()
    assert (figures["regions.hbase:meta"], figures["standalone.regions.hbase:meta"]) == (1, 1)
    assert figures["standalone.heap_bytes"] > MEGABYTE
    # The server computes this figure every five seconds.
    until = time.monotonic() + 60
    while not standalone.read_figures()["standalone.memstore_bytes"]:
        assert time.monotonic() < until
        time.sleep(0.5)


def test_logs_are_where_they_were_asked_to_be(standalone: RunningSystem, logs: Path) -> None:
    written = [path for path in logs.glob("*/WALs/*/*") if path.is_file() and not path.name.endswith(".crc")]
    assert written
    assert not [*standalone.place.data.glob("root/WALs/*/*")]
    facts = standalone.read_facts()
    assert facts["mode"] == "standalone"
    assert "replication" not in facts
    assert [*standalone.data_directories()] == [standalone.place.data / "root", written[0].parents[2]]
    assert facts["wal.dir"] == f"file://{written[0].parents[2]}"
    assert str(facts["wal.file_system"]).endswith(" (local)")


def test_a_table_with_splits_through_the_command_line(standalone: RunningSystem) -> None:
    root = standalone.place.root.parent
    create = ("hbase", "create-table", "usertable", "cf")
    assert systems(root, *create, "--splits", "20").stdout == "usertable 21 regions\n"
    again = systems(root, *create, code=1)
    assert again.stderr == "error: table usertable already exists\nhint: use --recreate to drop it first\n"
    port = standalone.plan.settings["hbase.regionserver.port"]
    assert systems(root, "hbase", "regions", "usertable").stdout == f"usertable 127.0.0.1:{port} 21\n"
    assert systems(root, *create, "--recreate").stdout == "usertable 1 regions\n"
    systems(root, "hbase", "drop-table", "usertable")
    missing = systems(root, "hbase", "regions", "usertable", code=1)
    assert missing.stderr.startswith("error: HBase has no table usertable\n")


def test_a_fresh_table_has_what_was_asked(standalone: RunningSystem) -> None:
    for splits, regions in (("3", 4), ("0", 1)):
        standalone.recreate_table("fresh", {"family": "family", "splits": splits, "compression": "gz"})
        figures = standalone.read_figures()
        assert (figures["regions.fresh"], figures["standalone.regions.fresh"]) == (regions, regions)
    tables = tables_of(standalone)
    assert tables.has_table("fresh")
    assert tables.drop_table("fresh")
    assert not tables.drop_table("fresh")


def test_what_hbase_refuses_is_reported(standalone: RunningSystem) -> None:
    with pytest.raises(SystemsError, match=r"HBase refused to create x: No enum constant .*ZIP"):
        tables_of(standalone).create_table("x", {"family": "cf", "compression": "zip"})
    with pytest.raises(SystemsError, match="no column family for x"):
        standalone.recreate_table("x", {})
    with pytest.raises(SystemsError, match='no option "split"'):
        standalone.recreate_table("x", {"family": "cf", "split": "3"})
    with pytest.raises(SystemsError, match='splits must be a whole number of at least 0, got "many"'):
        standalone.recreate_table("x", {"family": "cf", "splits": "many"})


def test_any_client_finds_it_by_the_class_path(standalone: RunningSystem) -> None:
    """Uses the class of HBase that prints the client's configuration."""
    class_path = systems(standalone.place.root.parent, "hbase", "class-path").stdout.strip()
    argv = ["java", "-cp", class_path, "org.apache.hadoop.hbase.HBaseConfiguration"]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    site = hadoop.read_site(Path(standalone.store_properties()["hbase.conf"]) / "hbase-site.xml")
    assert site["hbase.regionserver.handler.count"] == "7"
    for name in ("hbase.zookeeper.property.clientPort", "hbase.regionserver.handler.count", "hbase.wal.dir"):
        assert f"<name>{name}</name><value>{site[name]}</value>" in printed


def test_down_leaves_nothing_but_logs(standalone: RunningSystem, logs: Path) -> None:
    """The last test of this server."""
    assert [*logs.iterdir()]
    standalone.down()
    assert process.find_marked(standalone.place.root) == []
    assert not standalone.place.data.exists()
    assert [*logs.iterdir()] == []
    assert {path.name for path in standalone.log_paths()} == {"standalone.log", "standalone.gc.log"}


def test_two_region_servers_over_hdfs(tmp_path: Path) -> None:
    hdfs, hbase = RunningSystem("hdfs", tmp_path), RunningSystem("hbase", tmp_path)
    servers = ["zookeeper", "master", "region-server-1", "region-server-2"]
    try:
        hdfs.up(1, hdfs_ports(1) | {"replication": "1"})
        hbase.up(2, hbase_ports(2) | SMALL | {"dfs.replication": "1"})
        assert states(hbase) == dict.fromkeys(servers, ServerState.UP)
        assert all(address.is_loopback for address in listening(hbase))
        base = hdfs.store_properties()["fs.defaultFS"]
        facts = hbase.read_facts()
        assert (facts["mode"], facts["wal.file_system"]) == ("distributed", "hdfs")
        # A client's setting overrides the name node's.
        assert facts["replication"] == 1
        assert hbase.data_directories() == []
        assert [path.is_dir() for path in hdfs.data_directories()] == [True]
        assert str(facts["wal.dir"]).startswith(f"{base}/loadstone-hbase-")
        # HBase checks that HDFS can sync the log, and this HDFS can.
        site = hadoop.read_site(Path(hbase.store_properties()["hbase.conf"]) / "hbase-site.xml")
        assert site["hbase.unsafe.stream.capability.enforce"] == "true"

        hbase.recreate_table("usertable", {"family": "cf", "splits": "9", "durability": "fsync_wal"})
        figures = hbase.read_figures()
        assert figures["regions.usertable"] == 10
        region_counts = [figures[f"{name}.regions.usertable"] for name in servers[2:]]
        assert sum(region_counts) == 10
        assert min(region_counts) >= 3

        hbase.kill("region-server-2")
        assert states(hbase)["region-server-2"] == ServerState.DEAD
        hbase.restart("region-server-2")
        assert states(hbase) == dict.fromkeys(servers, ServerState.UP)
        # The killed server's regions are open again on some server.
        serving = tables_of(hbase).read_serving()
        assert (len(serving.servers), serving.waiting) == (2, 0)
        assert hbase.read_figures()["regions.usertable"] == 10

        # The owner file makes this HBase the owner of HDFS, so `down` also stops HDFS.
        file_system.owner_file(hbase.place).touch()
        hbase.down()
        assert hdfs.status() == []
        assert not hbase.place.data.exists()
    finally:
        hbase.down()
        hdfs.down()


def test_splits_are_those_of_the_reports() -> None:
    """In HBase's shell: (1..n_splits).map {|i| "user#{1000+i*(9999-1000)/n_splits}"}."""
    assert split_keys(4) == ["user3249", "user5499", "user7749", "user9999"]
    assert split_keys(0) == []
    assert (len({*split_keys(200)}), split_keys(200)[0], split_keys(200)[-1]) == (200, "user1044", "user9999")
    assert len({*split_keys(8999)}) == 8999
    for many in (-1, 9000):
        with pytest.raises(SystemsError, match=f"splits must be between 0 and 8999, got {many}"):
            split_keys(many)


def test_modes() -> None:
    system = HBase()
    assert site.deployment_mode(plan_of(system, 1, {})) == "standalone"
    assert site.deployment_mode(plan_of(system, 2, {})) == "distributed"
    assert site.deployment_mode(plan_of(system, 1, {"mode": "distributed"})) == "distributed"
    with pytest.raises(SystemsError, match="a standalone HBase has one node, not 3"):
        site.deployment_mode(plan_of(system, 3, {"mode": "standalone"}))
    with pytest.raises(SystemsError, match='mode cannot be "distribute"'):
        site.deployment_mode(plan_of(system, 3, {"mode": "distribute"}))


def test_ports() -> None:
    place = Place(Path("/systems/hbase"), Path("/cache"))

    def list_ports(name: str, **settings: str) -> list[tuple[str, int]]:
        result = plan_server(
            place, plan_of(HBase(), 2, {f"hbase.{key}": value for key, value in settings.items()}), name, []
        )
        return [(result.host, result.port), *result.ports]

    assert list_ports("region-server-2") == [("127.0.0.2", 16020), ("127.0.0.2", 16030)]
    assert list_ports("master", **{"master.port": "7"}) == [("127.0.0.1", 7), ("127.0.0.1", 16010)]
    with pytest.raises(SystemsError, match='port must be a whole number of at least 1, got "-1"'):
        list_ports("master", **{"master.port": "-1"})


ENFORCE = "hbase.unsafe.stream.capability.enforce"


def test_directories_get_a_unique_name_below_the_users(tmp_path: Path) -> None:
    system, place = HBase(), Place(tmp_path / "hbase", tmp_path / "cache")
    below = {"fs.defaultFS": "hdfs://127.0.0.1:9820", "hadoop.conf": "/nowhere"}
    root, wal = site.root_directories(place, plan_of(system, 2, {}), below)
    assert root == wal
    assert root.startswith("hdfs://127.0.0.1:9820/loadstone-hbase-")
    mixed = site.root_directories(place, plan_of(system, 2, {"hbase.wal.dir": "file:///fast/"}), below)
    assert mixed == (root, f"file:///fast/{root.rpartition('/')[2]}")
    enforced = [
        site.site_properties(place, plan_of(system, 2, {}), directories)[ENFORCE]
        for directories in ((root, wal), mixed)
    ]
    assert enforced == ["true", "false"]
    with pytest.raises(SystemsError, match=r'hbase\.wal\.dir must be a URI, got "fast"'):
        site.root_directories(place, plan_of(system, 2, {"hbase.wal.dir": "fast"}), below)


def test_class_paths_have_one_logger_each() -> None:
    servers, client = server_class_path("2.6.1-hadoop3"), client_class_path("2.6.1-hadoop3")
    assert len(client) < len(servers)
    for jars, binding in ((servers, "log4j-slf4j-impl"), (client, "slf4j-nop")):
        names = [path.name for path in jars]
        assert [name for name in names if "slf4j" in name and "api" not in name and binding not in name] == []
        assert len([name for name in names if name.startswith(binding)]) == 1
        assert not [name for name in names if "reload4j" in name]


def test_no_hbase_there(tmp_path: Path) -> None:
    port = free_port()
    site = {"hbase.zookeeper.quorum": "127.0.0.1", "hbase.zookeeper.property.clientPort": str(port)}
    hadoop.write_site(tmp_path / "hbase-site.xml", site)
    arguments = ("hbase", "regions", "--conf", str(tmp_path))
    assert "HBase" in systems(tmp_path, *arguments, code=1).stderr
    nowhere = systems(tmp_path, "hbase", "regions", code=1)
    assert nowhere.stderr == "error: hbase is not up\nhint: `loadstone systems up hbase` starts it\n"
