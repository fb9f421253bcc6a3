"""A system in an experiment file: its store, its servers, and the commands before and after its trials."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loadstone.experiment.model.values import Boolean, Count, FilePart, Fresh, Property, Size, Text

# Systems that store their data on another system.
OVER = {"hbase": "hdfs"}
# The keys of `attach` that are commands.
ATTACH_COMMANDS = ("status", "restart", "kill", "fresh", "stop", "pause", "resume", "cut", "uncut", "verify")
# The commands that each fault needs: to inject it, to lift it, and to verify its effect.
ATTACH_FAULTS = {
    "kill": ("kill", "restart", "verify"),
    "stop": ("stop", "restart", "verify"),
    "restart": ("stop", "restart", "verify"),
    "pause": ("pause", "resume", "verify"),
    "cut": ("cut", "uncut", "verify"),
}


class Hooks(FilePart):
    """Shell commands before and after each trial. If one fails, the trial fails."""

    before: tuple[Text, ...] = Field(default=(), examples=[["sync; echo 3 > /proc/sys/vm/drop_caches"]])
    """Commands to run before the store is opened."""

    after: tuple[Text, ...] = Field(default=(), examples=[["cp {directory}/LOG ."]])
    """Commands to run after the trial, even if it failed."""


class Over(FilePart):
    """The system on which this system stores its data."""

    nodes: Property | None = Field(default=None, examples=[3])
    """Number of nodes. Default: the default of the system."""

    settings: dict[str, Property] = Field(default={}, examples=[{"replication": 3}])
    """Settings, as for `loadstone systems up --set`."""


class Start(FilePart):
    """Servers that the lab starts and stops. A string is short for `system`."""

    system: Text = Field(default="", examples=["redis"])
    """A system that `loadstone systems` lists. Default: the system of the store."""

    nodes: Property | None = Field(default=None, examples=[3])
    """Number of nodes. Default: the default of the system."""

    settings: dict[str, Property] = Field(default={}, examples=[{"heap": "2g"}])
    """Settings, as for `loadstone systems up --set`."""

    over: Over | None = Field(default=None, examples=[{"nodes": 3}])
    """The system on which this system stores its data: `hdfs` for `hbase`. Default: used with several HBase nodes and
    no `hbase.rootdir`."""

    file_system: Size | None = Field(default=None, examples=["1GB"])
    """Size of a file system (ext4 on a loop device) for each node, which `power` and `full` require. Requires root."""

    isolate: Literal["network"] | None = Field(default=None, examples=["network"])
    """`network`: a network namespace for each node, connected by a bridge, which `cut` requires. Requires root."""

    keep: Boolean = False
    """Leave the servers running at the end of the run."""

    before: tuple[Text, ...] = Field(default=(), examples=[["mount /mnt/bench"]])
    """Commands to run before the servers start, for example to mount their storage. If one fails, the trial fails."""

    after: tuple[Text, ...] = Field(default=(), examples=[["umount /mnt/bench"]])
    """Commands to run after the servers have stopped and their data has been deleted; with `keep`, not at the
    end of the run."""


class Attach(FilePart):
    """Servers that you run yourself. Commands are run for each `{host}`."""

    hosts: tuple[Text, ...] = Field(default=(), examples=[["10.0.0.1", "10.0.0.2"]])
    """Addresses of the servers; at least one."""

    port: Count | None = Field(default=None, examples=[9042])
    """Port of the servers. Default: the default port of the store."""

    status: Text = Field(default="", examples=["ssh {host} systemctl is-active cassandra"])
    """Exits with 0 if the server works. The command runs before and after each trial."""

    restart: Text = Field(default="", examples=["ssh {host} sudo systemctl restart cassandra"])
    """Restarts a server whose `status` failed before a trial."""

    kill: Text = Field(default="", examples=["ssh {host} sudo pkill -9 -f CassandraDaemon"])
    """Kills a server: the fault `kill`."""

    stop: Text = Field(default="", examples=["ssh {host} sudo systemctl stop cassandra"])
    """Stops a server in an orderly way: the faults `stop` and `restart`."""

    pause: Text = Field(default="", examples=["ssh {host} sudo systemctl freeze cassandra"])
    """Pauses a server: the fault `pause`."""

    resume: Text = Field(default="", examples=["ssh {host} sudo systemctl thaw cassandra"])
    """Resumes a paused server. Must also succeed if the server is not paused."""

    cut: Text = Field(default="", examples=["ssh {host} sudo nft -f /root/cut.nft"])
    """Cuts a server off the network: the fault `cut`."""

    uncut: Text = Field(default="", examples=["ssh {host} sudo nft delete table inet cut"])
    """Reconnects a server that was cut off. Must also succeed if the server is connected."""

    verify: Text = Field(default="", examples=["ssh {host} systemctl is-active cassandra"])
    """Exits with 0 if no fault affects the server, and otherwise with another status. Required for every
    fault."""

    fresh: Text = Field(default="", examples=["redis-cli -h {host} flushall"])
    """Empties the table `{table}`. The command runs once, for the first host."""


class SystemKeys(FilePart):
    """The connection to a system."""

    store: Text = Field(default="", examples=["rocksdb"])
    """The load generator's driver. Default: the driver with the system's name, else the driver for `start.system`."""

    properties: dict[str, Property] = Field(default={}, examples=[{"rocksdb.version": "10.10.1"}])
    """The store's properties."""

    hooks: Hooks = Field(default=Hooks(), examples=[{"before": ["echo {directory}"]}])
    """Hooks for this system's trials: `before` runs after the experiment's `before`, and `after` runs before the
    experiment's `after`."""

    start: Start | None = Field(default=None, description=str(Start.__doc__), examples=[{"system": "redis"}])
    attach: Attach | None = Field(default=None, description=str(Attach.__doc__), examples=[{"hosts": ["10.0.0.1"]}])
    fresh: Fresh | None = Field(default=None, examples=["table"])
    """The starting point of each load: new servers (`system`), a new table on running servers (`table`), or existing
    data (`none`). Default: `table` where supported, else `system`; `none` for `attach` without `fresh`."""

    table: dict[str, Property] = Field(default={}, examples=[{"family": "cf", "splits": 200}])
    """Options of a fresh table."""
