"""What an experiment file says of a system: which store, which servers, what runs around its trials."""

from __future__ import annotations

from pydantic import Field

from loadstone.experiment.model.values import Count, Fresh, Part, Property, Text, Truth

# Systems that work on another one.
OVER = {"hbase": "hdfs"}
# The keys of `attach` that are commands.
ATTACH_COMMANDS = ("status", "restart", "kill", "fresh")


class Hooks(Part):
    """Shell commands around each trial. One that fails fails the trial."""

    before: tuple[Text, ...] = Field(default=(), examples=[["sync; echo 3 > /proc/sys/vm/drop_caches"]])
    """Before the store is opened."""

    after: tuple[Text, ...] = Field(default=(), examples=[["cp {directory}/LOG ."]])
    """After the trial, failed or not."""


class Over(Part):
    """The system below."""

    nodes: Property | None = Field(default=None, examples=[3])
    """Number of nodes. Default: the system's."""

    settings: dict[str, Property] = Field(default={}, examples=[{"replication": 3}])
    """Its `--set` of `loadstone systems up`."""


class Start(Part):
    """Servers that the lab starts and stops. A string is the `system`."""

    system: Text = Field(default="", examples=["redis"])
    """One of `loadstone systems`. Default: the store's."""

    nodes: Property | None = Field(default=None, examples=[3])
    """Number of nodes. Default: the system's."""

    settings: dict[str, Property] = Field(default={}, examples=[{"heap": "2g"}])
    """Its `--set` of `loadstone systems up`."""

    over: Over | None = Field(default=None, examples=[{"nodes": 3}])
    """The system below: `hdfs` for `hbase`. Default: with several nodes of HBase and no `hbase.rootdir`."""

    keep: Truth = False
    """Leave the servers up at the end."""

    before: tuple[Text, ...] = Field(default=(), examples=[["mount /mnt/bench"]])
    """Commands before the servers are started, such as those that make and mount their storage. One that fails fails
    the trial."""

    after: tuple[Text, ...] = Field(default=(), examples=[["umount /mnt/bench"]])
    """Commands after they have ended, and their data are gone; not with `keep` at the end."""


class Attach(Part):
    """Servers of your own. Commands run for each `{host}`."""

    hosts: tuple[Text, ...] = Field(default=(), examples=[["10.0.0.1", "10.0.0.2"]])
    """At least one."""

    port: Count | None = Field(default=None, examples=[9042])
    """Their port. Default: the store's."""

    status: Text = Field(default="", examples=["ssh {host} systemctl is-active cassandra"])
    """Exit status 0 if the server works; run before and after each trial."""

    restart: Text = Field(default="", examples=["ssh {host} sudo systemctl restart cassandra"])
    """Restarts a server that `status` found dead before a trial."""

    kill: Text = Field(default="", examples=["ssh {host} sudo pkill -9 -f CassandraDaemon"])
    """Kills a server. No trial does so by itself."""

    fresh: Text = Field(default="", examples=["redis-cli -h {host} flushall"])
    """Empties the table `{table}`; run once, on the first host."""


class System(Part):
    """How a system is reached."""

    store: Text = Field(default="", examples=["rocksdb"])
    """The engine's driver. Default: the system's name."""

    properties: dict[str, Property] = Field(default={}, examples=[{"rocksdb.version": "10.10.1"}])
    """The store's properties."""

    hooks: Hooks = Field(default=Hooks(), examples=[{"before": ["echo {directory}"]}])
    """For this system's trials, inside the experiment's own."""

    start: Start | None = Field(default=None, description=str(Start.__doc__), examples=[{"system": "redis"}])
    attach: Attach | None = Field(default=None, description=str(Attach.__doc__), examples=[{"hosts": ["10.0.0.1"]}])
    fresh: Fresh | None = Field(default=None, examples=["table"])
    """What each load begins with: new servers (`system`), a new table on running servers (`table`), or what is there
    (`none`). Default: `table` where supported, else `system`; `none` for `attach` without `fresh`."""

    table: dict[str, Property] = Field(default={}, examples=[{"family": "cf", "splits": 200}])
    """Options of a fresh table."""
