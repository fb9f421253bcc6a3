"""Cassandra's `nodetool`, for data and operations that CQL lacks: `status`, `compactionstats`, `flush`."""

from __future__ import annotations

import subprocess

from loadstone.systems.base.jvm import java_command
from loadstone.systems.base.system import Place, SystemPlan, SystemsError
from loadstone.systems.cassandra.node import fetch_jars, module_options, port_setting, server_name


def nodetool(place: Place, plan: SystemPlan, node: int, *arguments: str, within_s: float = 120.0) -> str:
    """The output of a nodetool command on a running node. Raises SystemsError if the command fails or times out."""
    home = place.data / server_name(node)
    # nodetool writes its history below the home directory, and reads the node's configuration.
    directory = home / "nodetool"
    directory.mkdir(parents=True, exist_ok=True)
    argv = java_command(
        "128M",
        None,
        fetch_jars(plan),
        "org.apache.cassandra.tools.NodeTool",
        options=["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *module_options()],
        properties={
            "user.home": str(directory),
            "java.io.tmpdir": str(home / "tmp"),
            "cassandra.config": (home / "cassandra.yaml").as_uri(),
            "cassandra.storagedir": str(directory),
            "cassandra.logdir": str(directory),
            "logback.configurationFile": (home / "logback.xml").as_uri(),
            # Cassandra's launcher sets this: without it, JDKs since 8u332 and 17.0.3 refuse the node's JMX address.
            "com.sun.jndi.rmiURLParsing": "legacy",
        },
        arguments=["-h", "127.0.0.1", "-p", str(port_setting(plan, "jmx_port") + node), *arguments],
    )
    command = f"nodetool {' '.join(arguments)}"
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=within_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise SystemsError(
            f"{command} takes longer than {within_s:g} s", f"see the log of {server_name(node)}"
        ) from error
    if done.returncode != 0:
        lines = (done.stderr + done.stdout).strip().splitlines() or ["no output"]
        raise SystemsError(
            f"{command} fails at {server_name(node)}: {lines[-1]}", f"see the log of {server_name(node)}"
        )
    return done.stdout
