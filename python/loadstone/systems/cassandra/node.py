"""The configuration files of a Cassandra node, cassandra.yaml and logback.xml, and its command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from loadstone.results import lines
from loadstone.systems.base import jvm, tls
from loadstone.systems.base.files import program
from loadstone.systems.base.files.maven import class_path
from loadstone.systems.base.plan import read_choice, read_whole_number
from loadstone.systems.base.system import Place, Server, SystemPlan, SystemsError

# The release lines that run on Java 17. In the cassandra.yaml of 4.0, times have different names and no units
# (CASSANDRA-15234).
RELEASES = ("4.0", "4.1", "5.0")
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Cassandra's default period for each way of syncing the commit log; a batch is synced immediately.
PERIODS = {"periodic": "10000ms", "batch": "", "group": "1000ms"}
AUTHENTICATORS = ("AllowAllAuthenticator", "PasswordAuthenticator")
AUTHORIZERS = ("AllowAllAuthorizer", "CassandraAuthorizer")
# The prefix of settings that are copied: `yaml.concurrent_writes` sets `concurrent_writes` in cassandra.yaml.
OTHER = "yaml."
KEYSTORE_PASSWORD = "loadstone"

# The options in Cassandra's jvm-server.options and jvm17-server.options, except the heap dump, which could fill a disk.
OPTIONS = """
-ea -da:net.openhft...
-XX:+UseThreadPriorities -XX:+ExitOnOutOfMemoryError -Xss256k -XX:+AlwaysPreTouch -XX:+UseNUMA -XX:+PerfDisableSharedMem
-XX:+UseG1GC -XX:+ParallelRefProcEnabled -XX:MaxTenuringThreshold=1 -XX:G1HeapRegionSize=16m
-XX:G1RSetUpdatingPauseTimePercent=5 -XX:MaxGCPauseMillis=300 -XX:InitiatingHeapOccupancyPercent=70
"""
# The JDK internals that 4.1 and 5.0 access: the lists in their options for Java 11 and 17, and the parts of java.util
# that jamm measures.
MODULES = {
    "exports": """
        java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/java.lang.ref java.base/sun.nio.ch
        java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server
        java.sql/java.sql jdk.attach/sun.tools.attach jdk.compiler/com.sun.tools.javac.file jdk.unsupported/sun.misc
    """,
    "opens": """
        java.base/java.io java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.nio
        java.base/java.util java.base/java.util.concurrent java.base/java.util.concurrent.atomic
        java.base/jdk.internal.loader java.base/jdk.internal.math java.base/jdk.internal.module
        java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/jdk.internal.util.jar java.base/sun.nio.ch
        jdk.compiler/com.sun.tools.javac jdk.management/com.sun.management.internal
    """,
}

LOGBACK = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"""


def module_options() -> list[str]:
    """The options that open the JDK to Cassandra and to its tools."""
    return [f"--add-{way}={package}=ALL-UNNAMED" for way, packages in MODULES.items() for package in packages.split()]


def server_name(node: int) -> str:
    """The name of a node's server; nodes are numbered from 1."""
    return f"cassandra-{node}"


def node_host(plan: SystemPlan, node: int) -> str:
    """The address of a node: its host's, or a separate loopback address, so that all nodes can use the same ports."""
    if plan.addresses:
        return plan.addresses[node - 1]
    return f"{plan.network or '127.0.0'}.{node}"


def port_setting(plan: SystemPlan, setting: str) -> int:
    """The value of a setting that is a port."""
    return read_whole_number(plan, setting, least=1)


def read_sync(plan: SystemPlan, setting: str = "commitlog_sync") -> str:
    """How the commit log is synced. Raises SystemsError for an invalid value."""
    return read_choice(plan, setting, tuple(PERIODS))


def heap_size(plan: SystemPlan, setting: str = "heap") -> str:
    """The size of a node's heap."""
    text = plan.settings[setting]
    if not re.fullmatch(r"[1-9]\d*[MmGg]", text):
        raise SystemsError(f'heap must be a size, got "{text}"', "set heap to a size such as 512M or 1G")
    return text


def ring_tokens(plan: SystemPlan) -> list[str]:
    """The token of each node in the ring, evenly spaced over Murmur3's 64 bits.

    Nodes that start together and draw random tokens can draw the same token; one of them then leaves the ring silently,
    although it still answers.
    """
    return [str(-(2**63) + node * 2**64 // plan.nodes) for node in range(plan.nodes)]


def release_line(plan: SystemPlan) -> str:
    """The release line, such as `4.0` for 4.0.19."""
    return plan.settings["version"].rpartition(".")[0]


def use_old_names(written: Mapping[str, Any]) -> dict[str, Any]:
    """Converts settings to the form of 4.0: `read_request_timeout: 5s` becomes `read_request_timeout_in_ms: 5000`."""
    renamed = {}
    for setting, value in written.items():
        time = re.fullmatch(r"(\d+)(ms|s|m|h|d)", str(value))
        if time and setting.endswith(("_timeout", "_period", "_window")):
            renamed[f"{setting}_in_ms"] = int(time[1]) * UNITS_MS[time[2]]
        else:
            renamed[setting] = value
    return renamed


def fetch_jars(plan: SystemPlan) -> list[Path]:
    """Cassandra's jars, which are downloaded if missing."""
    version = plan.settings["version"]
    if release_line(plan) not in RELEASES:
        raise SystemsError(
            f'version cannot be "{version}"', f"use a release of {', '.join(RELEASES)}: --set version=5.0.9"
        )
    return class_path(f"cassandra-{version}", [f"org.apache.cassandra:cassandra-all:{version}"])


def node_settings(place: Place, plan: SystemPlan, node: int) -> dict[str, Any]:
    """A node's cassandra.yaml: Cassandra's defaults, except for the settings below."""
    home = place.data / server_name(node)
    sync = read_sync(plan)
    authenticator = read_choice(plan, "authenticator", AUTHENTICATORS)
    authorizer = read_choice(plan, "authorizer", AUTHORIZERS)
    if authorizer != AUTHORIZERS[0] and authenticator == AUTHENTICATORS[0]:
        raise SystemsError(f"{authorizer} requires users", f"set authenticator to {AUTHENTICATORS[1]}")
    storage_port = port_setting(plan, "storage_port")
    seeds = ",".join(f"{node_host(plan, node)}:{storage_port}" for node in range(1, plan.nodes + 1))
    written: dict[str, Any] = {
        "cluster_name": "loadstone",
        "num_tokens": 1,
        "initial_token": ring_tokens(plan)[node - 1],
        "auto_bootstrap": False,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "SimpleSnitch",
        # All nodes are seeds: a node that is not a seed exits if it starts before the seeds, or alone after a crash.
        "seed_provider": [
            {"class_name": "org.apache.cassandra.locator.SimpleSeedProvider", "parameters": [{"seeds": seeds}]}
        ],
        "listen_address": node_host(plan, node),
        "rpc_address": node_host(plan, node),
        "storage_port": storage_port,
        "native_transport_port": port_setting(plan, "port"),
        "data_file_directories": [str(home / "data")],
        "commitlog_sync": sync,
        "authenticator": authenticator,
        "authorizer": authorizer,
        "read_request_timeout": plan.settings["read_request_timeout"],
        "write_request_timeout": plan.settings["write_request_timeout"],
        # Otherwise, a dropped table would remain on disk, and every trial with a fresh table drops a table.
        "auto_snapshot": False,
    }
    for directory in ("commitlog", "saved_caches", "hints", "cdc_raw"):
        written[f"{directory}_directory"] = str(home / directory)
    if period := commitlog_period(plan):
        written["commitlog_sync_group_window" if sync == "group" else "commitlog_sync_period"] = period
    if tls.is_requested(plan):
        written["client_encryption_options"] = encryption_settings(place, plan)
    if release_line(plan) == "4.0":
        written = use_old_names(written)
    extra = extra_settings(plan)
    if both := sorted(written.keys() & extra):
        # Some of these settings keep the servers on loopback addresses, and their data where `down` finds it.
        raise SystemsError(f"{OTHER}{both[0]} cannot be set", "use the named settings of cassandra: see --help")
    return {**written, **extra}


def encryption_settings(place: Place, plan: SystemPlan) -> dict[str, Any]:
    """The settings that encrypt clients' connections; the port also accepts unencrypted connections, such as the lab's.

    PEM files are supported since 4.1 (CASSANDRA-17031). The keystore contains a PKCS#8 key, then its certificate.
    """
    files = tls.tls_directory(place)
    common = {"enabled": True, "optional": True, "require_client_auth": False}
    if release_line(plan) == "4.0":
        # Nodes do not verify clients, so the keystore can also serve as the store of trusted certificates.
        keystore = {"keystore": str(files / "node.p12"), "keystore_password": KEYSTORE_PASSWORD, "store_type": "PKCS12"}
        return {**common, **keystore, "truststore": keystore["keystore"], "truststore_password": KEYSTORE_PASSWORD}
    return {
        **common,
        "ssl_context_factory": {
            "class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory",
            "parameters": {},
        },
        "keystore": str(files / "node.pem"),
        "truststore": str(files / "ca.pem"),
    }


def write_keystore(place: Place, plan: SystemPlan) -> None:
    """Writes the keystore that all nodes share. Raises LoadstoneError."""
    hosts = [node_host(plan, node) for node in range(1, plan.nodes + 1)]
    if release_line(plan) == "4.0":
        write_pkcs12(tls.tls_directory(place), hosts)
        return
    files = tls.ensure_certificates(place, hosts)
    text = (files / "server.key").read_bytes() + (files / "server.pem").read_bytes()
    lines.replace_file(files / "node.pem", text, 0o600)


def write_pkcs12(files: Path, hosts: Sequence[str]) -> None:
    """Creates a PKCS#12 keystore, unless it exists; clients trust its self-signed certificate as their CA."""
    if (files / "ca.pem").exists():
        return
    files.mkdir(parents=True, exist_ok=True)
    keystore = files / "node.p12"
    keystore.unlink(missing_ok=True)
    names = ",".join(["dns:localhost", *(f"ip:{host}" for host in hosts)])
    # The password protects nothing, because cassandra.yaml contains it, so only the owner may read the keystore.
    access = ["-alias", "node", "-keystore", str(keystore), "-storetype", "PKCS12", "-storepass", KEYSTORE_PASSWORD]
    create = ["-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-dname", "CN=cassandra", "-validity", "3650"]
    export = ["-exportcert", "-rfc", "-file", str(files / "ca.pem")]
    keytool = str(jvm.find_java().with_name("keytool"))
    for command in ([*create, "-ext", f"san={names}"], export):
        program.run_program([keytool, *command, *access], "keytool", "install a JDK, which contains keytool")
        keystore.chmod(0o600)


def commitlog_period(plan: SystemPlan) -> str:
    """The interval between syncs of the commit log; empty if each write waits for a sync."""
    sync, period = plan.settings["commitlog_sync"], plan.settings["commitlog_sync_period"]
    if sync == "batch" and period:
        raise SystemsError("commitlog_sync=batch has no period", "omit commitlog_sync_period")
    return period or PERIODS[sync]


def extra_settings(plan: SystemPlan) -> Mapping[str, Any]:
    """The settings that are copied to cassandra.yaml, without their prefix."""
    settings = {}
    for setting, text in plan.settings.items():
        if setting.startswith(OTHER):
            try:
                settings[setting.removeprefix(OTHER)] = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise SystemsError(f'{setting} is not YAML: "{text}"', "quote it as in cassandra.yaml") from error
    return settings


def prepare_node(place: Place, plan: SystemPlan, node: int) -> Server:
    """Writes a node's files and returns its server."""
    home = place.data / server_name(node)
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    if tls.is_requested(plan):
        write_keystore(place, plan)
    place.logs.mkdir(parents=True, exist_ok=True)
    configuration, logback = home / "cassandra.yaml", home / "logback.xml"
    configuration.write_text(yaml.safe_dump(node_settings(place, plan, node), sort_keys=False))
    logback.write_text(LOGBACK)
    class_path = fetch_jars(plan)
    agent = next(jar for jar in class_path if jar.name.startswith("jamm-"))
    jmx_port = port_setting(plan, "jmx_port") + node
    return jvm.jvm_server(
        place,
        server_name(node),
        [
            (node_host(plan, node), port_setting(plan, "port")),
            (node_host(plan, node), port_setting(plan, "storage_port")),
            ("127.0.0.1", jmx_port),
        ],
        heap_size(plan),
        class_path,
        "org.apache.cassandra.service.CassandraDaemon",
        options=[f"-javaagent:{agent}", *OPTIONS.split(), *module_options()],
        properties={
            "cassandra.config": configuration.as_uri(),
            "cassandra.storagedir": str(home),
            "cassandra.logdir": str(place.logs),
            "logback.configurationFile": logback.as_uri(),
            # Otherwise, Cassandra closes its standard output, and with it the log, as soon as it has started.
            "cassandra-foreground": "yes",
            # Native libraries are unpacked here, and remain here if the server is killed.
            "java.io.tmpdir": str(home / "tmp"),
            "jna.tmpdir": str(home / "tmp"),
            "java.net.preferIPv4Stack": "true",
            "jdk.attach.allowAttachSelf": "true",
            "io.netty.tryReflectionSetAccessible": "true",
            "io.netty.allocator.useCacheForAllThreads": "true",
            "io.netty.allocator.maxOrder": "11",
            # JMX listens on 127.0.0.1 only.
            "cassandra.jmx.local.port": str(jmx_port),
            # Skips the delays that a cluster on many hosts needs at its start; `missing_readiness` checks the ring.
            "cassandra.skip_wait_for_gossip_to_settle": "0",
            "cassandra.ring_delay_ms": "2000",
            "cassandra.superuser_setup_delay_ms": "100",
            # With a replica on every node, users can log in while a node is down, and the error of a failed read at
            # the consistency level ALL contains the number of nodes that are alive.
            "cassandra.system_auth.default_rf": str(plan.nodes),
            "cassandra.system_distributed.default_rf": str(plan.nodes),
        },
        # A node drains its commit log before it exits; a node that takes longer than this is hanging.
        patience_s=60.0,
    )
