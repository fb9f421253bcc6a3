"""HBase's site file, which the servers and their clients read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from loadstone.observe.device import file_system_of
from loadstone.systems.base import outside_directories
from loadstone.systems.base.plan import read_choice
from loadstone.systems.base.system import Place, SystemPlan, SystemsError
from loadstone.systems.hdfs import hadoop

# The servers' standard output and error serve as their log.
LOG4J2 = """\
status = warn
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p [%t] %c{2}: %m%n
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
"""
# With the default period, beans would be up to ten seconds old.
METRICS2 = "*.period=1\n"
# The files from which region servers read the settings of HDFS.
HDFS_FILES = ("core-site.xml", "hdfs-site.xml")
STANDALONE, DISTRIBUTED = "standalone", "distributed"
# The address of the master, which is part of HBase's server names. Region server k listens
# on 127.0.0.k.
MASTER_HOST = "127.0.0.1"
URI = re.compile(r"[a-z][a-z0-9+.-]*:/.*")
# Properties with these prefixes are copied to the site files unchanged.
SITE = ("hbase.", "dfs.")
# These properties are exceptions, because Loadstone sets them itself.
OWN = ("hbase.rootdir", "hbase.wal.dir")


def deployment_mode(plan: SystemPlan) -> str:
    """`standalone`, with everything in one JVM, or `distributed`. Raises SystemsError."""
    mode = read_choice(plan, "mode", ("auto", STANDALONE, DISTRIBUTED))
    if mode == "auto":
        return STANDALONE if plan.nodes == 1 else DISTRIBUTED
    if mode == STANDALONE and plan.nodes > 1:
        raise SystemsError(
            f"a standalone HBase has one node, not {plan.nodes}", f"set mode to {DISTRIBUTED}, or use one node"
        )
    return mode


def region_host(number: int) -> str:
    """The address on which a region server listens."""
    return f"127.0.0.{number}"


def root_directories(place: Place, plan: SystemPlan, below: Mapping[str, str]) -> tuple[str, str]:
    """The URIs of the directories for HBase's files and for write-ahead logs. Raises SystemsError.

    Directories in storage that the user named get a generated name. `below` contains the properties of Loadstone's
    HDFS; it is empty if there is none.
    """
    own = (
        f"{below['fs.defaultFS']}/{outside_directories.outside_label(place)}"
        if below
        else f"file://{place.data / 'root'}"
    )
    root = directory_setting(place, plan, "hbase.rootdir") or own
    return root, directory_setting(place, plan, "hbase.wal.dir") or root


def directory_setting(place: Place, plan: SystemPlan, setting: str) -> str | None:
    """The URI of Loadstone's subdirectory in the directory that a setting names; None if the setting is empty. Raises
    SystemsError."""
    base = plan.settings[setting]
    if not base:
        return None
    if not URI.fullmatch(base):
        hint = f"write file://{Path(base).absolute()}, or hdfs://HOST:PORT/DIRECTORY"
        raise SystemsError(f'{setting} must be a URI, got "{base}"', hint)
    return f"{base.rstrip('/')}/{outside_directories.outside_label(place)}"


def is_local(uri: str) -> bool:
    """Whether a directory is on a local file system."""
    return urlsplit(uri).scheme == "file"


def file_system(uri: str) -> str:
    """The file system of a directory, as recorded in results: `hdfs`, `ext4 (local)`."""
    return f"{file_system_of(hadoop.local_path(uri))} (local)" if is_local(uri) else urlsplit(uri).scheme


def site_properties(place: Place, plan: SystemPlan, where: tuple[str, str], number: int = 1) -> dict[str, str]:
    """The properties for all servers and clients, and for the region server with this number."""
    return {
        "hbase.cluster.distributed": str(deployment_mode(plan) == DISTRIBUTED).lower(),
        "hbase.rootdir": where[0],
        "hbase.wal.dir": where[1],
        "hbase.tmp.dir": str(place.data / "tmp"),
        # HBase refuses file systems that cannot guarantee flushes, and Hadoop's local file system cannot.
        "hbase.unsafe.stream.capability.enforce": str(not any(map(is_local, where))).lower(),
        "hbase.zookeeper.quorum": MASTER_HOST,
        "hbase.zookeeper.property.clientPortAddress": MASTER_HOST,
        "hbase.zookeeper.property.dataDir": str(place.data / "zookeeper"),
        # There is no limit, because each of ten thousand clients may have a connection.
        "hbase.zookeeper.property.maxClientCnxns": "0",
        # A dead region server is detected after 10 s. The default is 90 s, which is longer than most trials.
        "zookeeper.session.timeout": "10000",
        # In a single JVM, no other server could detect a failure, but after a pause of 10 s, the JVM would shut itself
        # down, because its sessions would have expired.
        "zookeeper.session.timeout.localHBaseCluster": "40000",
        "hbase.zookeeper.property.tickTime": "2000",
        "hbase.unsafe.regionserver.hostname": region_host(number),
        "hbase.regionserver.ipc.address": region_host(number),
        "hbase.regionserver.info.bindAddress": region_host(number),
        "hbase.master.hostname": MASTER_HOST,
        "hbase.master.ipc.address": MASTER_HOST,
        "hbase.master.info.bindAddress": MASTER_HOST,
        **{name: plan.settings[name] for name in plan.settings if name.startswith(SITE) and name not in OWN},
    }


def write_configuration(conf: Path, properties: Mapping[str, str], below: Mapping[str, str]) -> None:
    """Writes a configuration directory, including the site files of the underlying HDFS."""
    hadoop.write_site(conf / "hbase-site.xml", properties)
    hadoop.write_text(conf / "log4j2.properties", LOG4J2)
    hadoop.write_text(conf / "hadoop-metrics2-hbase.properties", METRICS2)
    for name in HDFS_FILES if below else ():
        hadoop.write_site(conf / name, hadoop.read_site(Path(below["hadoop.conf"]) / name))
