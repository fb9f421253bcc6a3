"""What an experiment file says of a system: which store, which servers, what runs around its trials."""

from __future__ import annotations

from pydantic import Field

from loadstone.experiment.model.values import Count, Fresh, Part, Property, Text, Truth

# Systems that work on another one.
OVER = {"hbase": "hdfs"}
# The keys of `attach` that are commands.
ATTACH_COMMANDS = ("status", "restart", "kill", "fresh")


class Hooks(Part):
    """Shell commands around each trial. The first that fails ends the trial as failed."""

    before: tuple[Text, ...] = Field(default=(), examples=[["sync; echo 3 > /proc/sys/vm/drop_caches"]])
    """Commands before the store is opened, in their order."""

    after: tuple[Text, ...] = Field(default=(), examples=[["cp {directory}/LOG ."]])
    """Commands after the trial, also after one that failed."""


class Over(Part):
    """The servers that those of the system work on."""

    nodes: Property | None = Field(default=None, examples=[3])
    """How many nodes. Default: that system's own number."""

    settings: dict[str, Property] = Field(default={}, examples=[{"replication": 3}])
    """What `loadstone systems up` takes as `--set` for it."""


class Start(Part):
    """Servers that the lab starts, and takes down at the end. A text alone is its `system`."""

    system: Text = Field(default="", examples=["redis"])
    """One of `loadstone systems`. Default: the store's own."""

    nodes: Property | None = Field(default=None, examples=[3])
    """How many nodes. Default: the system's own number."""

    settings: dict[str, Property] = Field(default={}, examples=[{"heap": "2g"}])
    """What `loadstone systems up` takes as `--set`."""

    over: Over | None = Field(default=None, examples=[{"nodes": 3}])
    """The system below, `hdfs` for `hbase`, which is started with it. Default: with more than one node of HBase, and no
    `hbase.rootdir` among its settings."""

    keep: Truth = False
    """Leave the servers up at the end of the run."""


class Attach(Part):
    """Servers of your own. A command is run for each host, with `{host}` for its name."""

    hosts: tuple[Text, ...] = Field(default=(), examples=[["10.0.0.1", "10.0.0.2"]])
    """Where they are; at least one."""

    port: Count | None = Field(default=None, examples=[9042])
    """Their port. Default: the store's own."""

    status: Text = Field(default="", examples=["ssh {host} systemctl is-active cassandra"])
    """Exit status 0 where the server works; asked before and after each trial."""

    restart: Text = Field(default="", examples=["ssh {host} sudo systemctl restart cassandra"])
    """Starts a server again that `status` found dead before a trial."""

    kill: Text = Field(default="", examples=["ssh {host} sudo pkill -9 -f CassandraDaemon"])
    """Ends a server at once, for faults. No trial does so by itself."""

    fresh: Text = Field(default="", examples=["redis-cli -h {host} flushall"])
    """Makes the table `{table}` anew, without records; run once, with the first host as `{host}`."""


class System(Part):
    """How a system is reached."""

    store: Text = Field(default="", examples=["rocksdb"])
    """The engine's driver for it. Default: the system's own name."""

    properties: dict[str, Property] = Field(default={}, examples=[{"rocksdb.version": "10.10.1"}])
    """The store's properties by their known names."""

    hooks: Hooks = Field(default=Hooks(), examples=[{"before": ["echo {directory}"]}])
    """Commands for this system's trials only, inside of the experiment's own."""

    start: Start | None = Field(default=None, description=str(Start.__doc__), examples=[{"system": "redis"}])
    attach: Attach | None = Field(default=None, description=str(Attach.__doc__), examples=[{"hosts": ["10.0.0.1"]}])
    fresh: Fresh | None = Field(default=None, examples=["table"])
    """What each load begins with: `system`, new servers without data; `table`, a new table on the servers that are up;
    `none`, what is there. Default: `table` where the system can, else `system`; `none` for servers of your own that
    have no command `fresh`."""

    table: dict[str, Property] = Field(default={}, examples=[{"family": "cf", "splits": 200}])
    """How a fresh table is made: options of the system's own."""
