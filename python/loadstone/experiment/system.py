"""What an experiment file says of a system: which store, which servers, what runs around its trials."""

from __future__ import annotations

from pydantic import Field

from loadstone.experiment.values import Count, Fresh, Part, Property, Text, Truth

# The keys of `attach` that are commands.
ATTACH_COMMANDS = ("status", "restart", "kill", "fresh")


class Hooks(Part):
    """Shell commands around each trial. One that fails fails the trial."""

    before: tuple[Text, ...] = Field(
        default=(),
        description="Before the store is opened.",
        examples=[["sync; echo 3 > /proc/sys/vm/drop_caches"]],
    )
    after: tuple[Text, ...] = Field(
        default=(),
        description="After the trial, failed or not.",
        examples=[["cp {directory}/LOG ."]],
    )


class Over(Part):
    """The system below."""

    nodes: Property | None = Field(default=None, description="Number of nodes. Default: the system's.", examples=[3])
    settings: dict[str, Property] = Field(
        default={},
        description="Its `--set` of `loadstone systems up`.",
        examples=[{"replication": 3}],
    )


class Start(Part):
    """Servers that the lab starts and stops. A string is the `system`."""

    system: Text = Field(
        default="", description="One of `loadstone systems`. Default: the store's.", examples=["redis"]
    )
    nodes: Property | None = Field(default=None, description="Number of nodes. Default: the system's.", examples=[3])
    settings: dict[str, Property] = Field(
        default={},
        description="Its `--set` of `loadstone systems up`.",
        examples=[{"heap": "2g"}],
    )
    over: Over | None = Field(
        default=None,
        description="The system below: `hdfs` for `hbase`. Default: with several nodes of HBase and no"
        " `hbase.rootdir`.",
        examples=[{"nodes": 3}],
    )
    keep: Truth = Field(default=False, description="Leave the servers up at the end.")


class Attach(Part):
    """Servers of your own. Commands run for each `{host}`."""

    hosts: tuple[Text, ...] = Field(default=(), description="At least one.", examples=[["10.0.0.1", "10.0.0.2"]])
    port: Count | None = Field(default=None, description="Their port. Default: the store's.", examples=[9042])
    status: Text = Field(
        default="",
        description="Exit status 0 if the server works; run before and after each trial.",
        examples=["ssh {host} systemctl is-active cassandra"],
    )
    restart: Text = Field(
        default="",
        description="Restarts a server that `status` found dead before a trial.",
        examples=["ssh {host} sudo systemctl restart cassandra"],
    )
    kill: Text = Field(
        default="",
        description="Kills a server. No trial does so by itself.",
        examples=["ssh {host} sudo pkill -9 -f CassandraDaemon"],
    )
    fresh: Text = Field(
        default="",
        description="Empties the table `{table}`; run once, on the first host.",
        examples=["redis-cli -h {host} flushall"],
    )


class System(Part):
    """How a system is reached."""

    store: Text = Field(
        default="", description="The engine's driver. Default: the system's name.", examples=["rocksdb"]
    )
    properties: dict[str, Property] = Field(
        default={},
        description="The store's properties.",
        examples=[{"rocksdb.version": "10.10.1"}],
    )
    hooks: Hooks = Field(
        default=Hooks(),
        description="For this system's trials, inside the experiment's own.",
        examples=[{"before": ["echo {directory}"]}],
    )
    start: Start | None = Field(default=None, description=str(Start.__doc__), examples=[{"system": "redis"}])
    attach: Attach | None = Field(default=None, description=str(Attach.__doc__), examples=[{"hosts": ["10.0.0.1"]}])
    fresh: Fresh | None = Field(
        default=None,
        description="What each load begins with: new servers (`system`), a new table on running servers (`table`), or"
        " what is there (`none`). Default: `table` where supported, else `system`; `none` for `attach` without"
        " `fresh`.",
        examples=["table"],
    )
    table: dict[str, Property] = Field(
        default={},
        description="Options of a fresh table.",
        examples=[{"family": "cf", "splits": 200}],
    )
