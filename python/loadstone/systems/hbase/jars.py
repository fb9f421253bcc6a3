"""HBase's jars, for its servers and for a client."""

from __future__ import annotations

from pathlib import Path

from loadstone.systems.base.files.maven import class_path

GROUP = "org.apache.hbase"
LOG4J_VERSION = "2.17.2"
SLF4J_VERSION = "1.7.36"
# Hadoop includes a different SLF4J binding; with two bindings, the choice between them is arbitrary.
HADOOP_LOGGING = ("org.slf4j:slf4j-reload4j", "ch.qos.reload4j:reload4j")


def server_class_path(version: str) -> list[Path]:
    """The jars of ZooKeeper, the master and the region servers, whose logging is configured in `log4j2.properties`."""
    log4j = [
        f"org.apache.logging.log4j:{name}:{LOG4J_VERSION}"
        for name in ("log4j-slf4j-impl", "log4j-core", "log4j-1.2-api")
    ]
    modules = [f"{GROUP}:{name}:{version}" for name in ("hbase-server", "hbase-client", "hbase-zookeeper")]
    return class_path("hbase", [*modules, *log4j], HADOOP_LOGGING)


def client_class_path(version: str) -> list[Path]:
    """The jars of a client, which does not log."""
    return class_path(
        "hbase-client", [f"{GROUP}:hbase-client:{version}", f"org.slf4j:slf4j-nop:{SLF4J_VERSION}"], HADOOP_LOGGING
    )
