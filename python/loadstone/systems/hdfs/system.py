"""HDFS, with a name node and its data nodes, all on 127.0.0.1."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone.observe.device import file_system_of
from loadstone.systems.base import jvm, outside_directories
from loadstone.systems.base.files import maven
from loadstone.systems.base.plan import read_positive, read_whole_number
from loadstone.systems.base.system import Place, Server, Setting, System, SystemPlan, SystemsError
from loadstone.systems.hdfs import hadoop

HOST = "127.0.0.1"
NAME_NODE = "name-node"
# Packages that Java 17 closes, but that Hadoop 3.4 accesses.
OPENED = jvm.open_packages("java.lang java.nio sun.nio.ch")
# The distance between the first ports of consecutive data nodes. Each node has three ports: data, HTTP, IPC.
PORTS_EACH = 10
FORMAT_S = 120
# The maximum wait of a trial for the removal of blocks. Data nodes receive the order with their heartbeats, once a
# second.
EMPTY_S = 30.0
# The removal is complete once the number of blocks has been constant for this time.
FORGOTTEN_S = 1.0
REMOVE_S = 60.0
# The servers' standard output and error serve as their log.
LOG4J = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""


class Hdfs(System):
    """The Hadoop distributed file system, without YARN."""

    name = "hdfs"
    title = "HDFS 3.4: a name node and data nodes"
    nodes = (3, 1, 2, 4, 5, 6, 7, 8, 9)
    settings = (
        Setting("version", "3.4.2", "the version of Hadoop"),
        Setting("replication", "3", "the default number of copies of a block", read_positive),
        Setting("blocksize", "128m", "the default size of a block"),
        Setting("heap", "256m", "the heap size of each server"),
        Setting(
            "data.dir", "", "other directories for blocks, separated by commas: one for all data nodes, or one for each"
        ),
        Setting("port", "9820", "the port of the name node for clients", read_positive),
        Setting("http.port", "9870", "the port of the name node for JMX and WebHDFS", read_positive),
        Setting(
            "data.port",
            "9910",
            f"the first of three consecutive ports of the first data node; each further data node adds {PORTS_EACH}",
            read_positive,
        ),
        Setting("dfs.*", "", "any other property of hdfs-site.xml"),
    )

    def server_stages(self, place: Place, plan: SystemPlan) -> Sequence[Sequence[Server]]:
        """The name node, then the data nodes. A name node without an image is formatted first."""
        sites = {f"data-node-{number}": data_node_site(place, plan, number) for number in range(1, plan.nodes + 1)}
        conf = configuration_directory(place)
        jars = class_path(self.server_version(plan))
        write_configuration(conf, name_node_site(place, plan), plan)
        name_node = self._plan_server(place, plan, NAME_NODE, conf, jars)
        format_once(place, conf, jars)
        data_nodes = []
        for name, site in sites.items():
            own = place.data / name / "conf"
            write_configuration(own, site, plan)
            data_nodes.append(self._plan_server(place, plan, name, own, jars))
        return [[name_node], data_nodes]

    def _plan_server(self, place: Place, plan: SystemPlan, name: str, conf: Path, jars: Sequence[Path]) -> Server:
        number = number_of(name)
        main = "namenode.NameNode" if number is None else "datanode.DataNode"
        return jvm.jvm_server(
            place,
            name,
            [(HOST, port) for port in server_ports(plan, number)],
            plan.settings["heap"],
            [conf, *jars],
            f"org.apache.hadoop.hdfs.server.{main}",
            # Heaps this small are collected in milliseconds, whereas G1's threads would use two more processors.
            options=["-XX:+UseSerialGC", *OPENED],
            properties={"java.net.preferIPv4Stack": "true"},
        )

    def missing_readiness(self, place: Place, plan: SystemPlan, servers: Sequence[Server]) -> str | None:
        """Checks that the name node answers, and that each data node has registered and safe mode is off."""
        for server in servers:
            number = number_of(server.name)
            if number is not None and not is_registered(server_ports(plan, number)[1]):
                return f"{server.name} has not registered"
        state = name_node_bean(plan, "FSNamesystemState")
        if state is None:
            return "the name node does not answer"
        data_nodes = [server for server in servers if server.name != NAME_NODE]
        if not data_nodes:
            # Once there are blocks, a name node without data nodes stays in safe mode.
            return None
        if state["NumLiveDataNodes"] < len(data_nodes):
            return f"{state['NumLiveDataNodes']} of {len(data_nodes)} data nodes are live"
        return None if state["FSState"] == "Operational" else "the name node is in safe mode"

    def store_properties(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The file system's URI and the directory with its site files."""
        return {
            "fs.defaultFS": f"hdfs://{HOST}:{plan.settings['port']}",
            "hadoop.conf": str(configuration_directory(place)),
        }

    def data_directories(self, place: Place, plan: SystemPlan) -> Sequence[Path]:
        """The directories of the data nodes. The name node's directory is omitted, because little is written to it."""
        return [data_directory(place, plan, number) for number in range(1, plan.nodes + 1)]

    def read_facts(self, place: Place, plan: SystemPlan) -> Mapping[str, str | int | float]:
        """The replication and size of a block, the heap, and the file systems that store the blocks."""
        systems = {file_system_of(data_directory(place, plan, number)) for number in range(1, plan.nodes + 1)}
        return {
            **read_block_facts(plan),
            "heap": plan.settings["heap"],
            "data.file_system": ", ".join(sorted(systems)),
        }

    def create_table(
        self, place: Place, plan: SystemPlan, table: str, options: Mapping[str, str], *, replace: bool
    ) -> bool:
        """Removes the directory with this name, and waits until the data nodes have removed its blocks."""
        # A late removal could remove data that the load has just written.
        if hadoop.remove_directory(HOST, server_ports(plan, None)[1], f"/{table}", "loadstone", REMOVE_S) is None:
            raise SystemsError(
                "hdfs cannot be emptied: its name node does not answer", "see `loadstone systems status hdfs`"
            )
        # The name node removes blocks in a separate thread, before data nodes remove their copies. If no removal is
        # pending, the removal may not have begun yet.
        until, blocks, since = time.monotonic() + EMPTY_S, None, time.monotonic()
        while time.monotonic() < until:
            state = name_node_bean(plan, "FSNamesystemState")
            if state is None:
                break
            if state.get("PendingDeletionBlocks") or state["BlocksTotal"] != blocks:
                blocks, since = state["BlocksTotal"], time.monotonic()
            elif time.monotonic() - since >= FORGOTTEN_S:
                break
            time.sleep(0.2)
        return True

    def read_figures(self, place: Place, plan: SystemPlan) -> Mapping[str, float]:
        """The number of data nodes by state, the number of blocks, the bytes used, and the heap of each server."""
        figures: dict[str, float] = {}
        # This bean is always current, whereas the beans of Hadoop's metrics are up to ten seconds old.
        if state := name_node_bean(plan, "FSNamesystemState"):
            figures |= {
                "data_nodes.live": state["NumLiveDataNodes"],
                "data_nodes.dead": state["NumDeadDataNodes"],
                "blocks": state["BlocksTotal"],
                "blocks.under_replicated": state["UnderReplicatedBlocks"],
                "used_bytes": state["CapacityUsed"],
            }
        for number in (None, *range(1, plan.nodes + 1)):
            name = NAME_NODE if number is None else f"data-node-{number}"
            heap = hadoop.heap_bytes(HOST, server_ports(plan, number)[1])
            if heap is not None:
                figures[f"{name}.heap_bytes"] = heap
        return figures

    def clear_outside(self, place: Place) -> None:
        """Removes the blocks outside the data directory."""
        for site in place.data.glob("data-node-*/conf/hdfs-site.xml"):
            blocks = hadoop.local_path(hadoop.read_site(site)["dfs.datanode.data.dir"])
            if blocks.parent.name == outside_directories.outside_label(place):
                shutil.rmtree(blocks.parent, ignore_errors=True)


def class_path(version: str) -> list[Path]:
    """The jars of Hadoop's servers."""
    group = "org.apache.hadoop"
    return maven.class_path(
        "hdfs",
        [
            f"{group}:hadoop-common:{version}",
            f"{group}:hadoop-hdfs:{version}",
            f"{group}:hadoop-hdfs-client:{version}",
            # The servers do not start without their web applications, which only this jar on Maven Central contains.
            f"{group}:hadoop-hdfs:{version}:jar:tests",
        ],
    )


def configuration_directory(place: Place) -> Path:
    """The directory with the site files of the name node and of clients."""
    return place.data / "conf"


def number_of(name: str) -> int | None:
    """The number of a data node; None for the name node."""
    return None if name == NAME_NODE else int(name.rpartition("-")[2])


def server_ports(plan: SystemPlan, number: int | None) -> tuple[int, ...]:
    """The ports of a server: for clients, for HTTP, and, on a data node, for IPC."""
    if number is None:
        return read_whole_number(plan, "port", 1), read_whole_number(plan, "http.port", 1)
    first = read_whole_number(plan, "data.port", 1) + PORTS_EACH * (number - 1)
    return first, first + 1, first + 2


def outside_bases(plan: SystemPlan) -> list[Path]:
    """The directories that the user named for blocks."""
    named = [word.strip() for word in plan.settings["data.dir"].split(",")]
    return [Path(word).expanduser().absolute() for word in named if word]


def data_directory(place: Place, plan: SystemPlan, number: int) -> Path:
    """The directory of a data node's blocks."""
    name, bases = f"data-node-{number}", outside_bases(plan)
    if not bases:
        return place.data / name / "blocks"
    if len(bases) not in (1, plan.nodes):
        raise SystemsError(
            f"data.dir names {len(bases)} directories for {plan.nodes} data nodes",
            "name one directory for all data nodes, or one for each node",
        )
    return bases[0 if len(bases) == 1 else number - 1] / outside_directories.outside_label(place) / name


def extra_properties(plan: SystemPlan, named: Mapping[str, str]) -> dict[str, str]:
    """The properties without a named setting. Raises SystemsError for a property that has a named setting, because
    results record that setting."""
    properties = {name: value for name, value in plan.settings.items() if name.startswith("dfs.")}
    if duplicates := sorted(properties.keys() & named.keys()):
        hint = "use the settings in `loadstone systems up hdfs --help`"
        raise SystemsError(f"{duplicates[0]} has a named setting", hint)
    return properties


def name_node_site(place: Place, plan: SystemPlan) -> dict[str, str]:
    """The properties for the name node and clients."""
    port, http = server_ports(plan, None)
    named = {
        "dfs.namenode.rpc-address": f"{HOST}:{port}",
        "dfs.namenode.http-address": f"{HOST}:{http}",
        "dfs.replication": plan.settings["replication"],
        "dfs.blocksize": plan.settings["blocksize"],
    }
    return {
        "dfs.namenode.name.dir": (place.data / NAME_NODE / "image").as_uri(),
        # Blocks are available as soon as data nodes have reported them, without waiting for further data nodes.
        "dfs.namenode.safemode.extension": "0",
        # Every user may write.
        "dfs.permissions.enabled": "false",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        # A dead data node is detected after 14 s. The default is ten minutes, which is longer than most trials.
        "dfs.heartbeat.interval": "1",
        "dfs.namenode.heartbeat.recheck-interval": "2000",
        # With as many data nodes as copies, a lost node cannot be replaced, and appends would fail.
        "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
        **named,
        **extra_properties(plan, named),
    }


def data_node_site(place: Place, plan: SystemPlan, number: int) -> dict[str, str]:
    """The name node's properties, and this data node's addresses and block directory."""
    data, http, ipc = server_ports(plan, number)
    named = {
        # The path is not escaped: unlike the name node, data nodes do not decode escapes.
        "dfs.datanode.data.dir": f"file://{data_directory(place, plan, number)}",
        "dfs.datanode.address": f"{HOST}:{data}",
        "dfs.datanode.http.address": f"{HOST}:{http}",
        "dfs.datanode.ipc.address": f"{HOST}:{ipc}",
    }
    return {**name_node_site(place, plan), **extra_properties(plan, named), **named}


def write_configuration(conf: Path, site: Mapping[str, str], plan: SystemPlan) -> None:
    """Writes a configuration directory."""
    core = {
        "fs.defaultFS": f"hdfs://{HOST}:{plan.settings['port']}",
        "hadoop.tmp.dir": str(conf.parent / "tmp"),
        "hadoop.security.authentication": "simple",
    }
    hadoop.write_site(conf / "core-site.xml", core)
    hadoop.write_site(conf / "hdfs-site.xml", site)
    hadoop.write_text(conf / "log4j.properties", LOG4J)


def format_once(place: Place, conf: Path, jars: Sequence[Path]) -> None:
    """Creates the name node's first image, unless it has one. Raises SystemsError."""
    done = place.data / NAME_NODE / "formatted"
    if done.exists():
        return
    arguments = ["-format", "-nonInteractive", "-force"]
    main = "org.apache.hadoop.hdfs.server.namenode.NameNode"
    argv = jvm.java_command("128m", None, [conf, *jars], main, options=OPENED, arguments=arguments)
    place.logs.mkdir(parents=True, exist_ok=True)
    log = place.logs / f"{NAME_NODE}.format.log"
    with log.open("wb") as output:
        try:
            ended = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=FORMAT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise SystemsError(f"the name node was not formatted within {FORMAT_S:g} s", f"see {log}") from error
    if ended.returncode != 0:
        raise SystemsError(f"the name node could not be formatted (exit status {ended.returncode})", f"see {log}")
    done.parent.mkdir(parents=True, exist_ok=True)
    done.touch()


def name_node_bean(plan: SystemPlan, name: str) -> Mapping[str, Any] | None:
    """A bean of the name node."""
    return hadoop.read_bean(HOST, server_ports(plan, None)[1], f"Hadoop:service=NameNode,name={name}")


def read_block_facts(plan: SystemPlan) -> Mapping[str, int | str]:
    """The number of copies and the size of a block, as the name node reports them, or why they are unknown."""
    facts: dict[str, int | str] = {}
    for fact, name in (("replication", "dfs.replication"), ("blocksize", "dfs.blocksize")):
        reply = hadoop.send_request("GET", HOST, server_ports(plan, None)[1], f"/conf?name={name}")
        value = str((reply or {}).get("property", {}).get("value", ""))
        if not value:
            facts[f"{fact}_unknown"] = f"the name node does not report {name}"
        else:
            facts[fact] = int(value) if value.isdecimal() else value
    return facts


def is_registered(http: int) -> bool:
    """Whether a data node reports that it has registered with its name node.

    The name node's count is not enough: it still includes a data node that was just killed.
    """
    bean = hadoop.read_bean(HOST, http, "Hadoop:service=DataNode,name=DataNodeInfo")
    # While a data node starts, its bean has no attributes. An actor runs once the node has completed its handshake.
    actors = json.loads(bean.get("BPServiceActorInfo") or "[]") if bean else []
    return any(actor["ActorState"] == "RUNNING" for actor in actors)
