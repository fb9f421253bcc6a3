"""What an experiment file says of a system: which store, which servers, what runs around its trials."""

from __future__ import annotations

from pydantic import Field

from loadstone.experiment.values import Count, Fresh, Part, Property, Text, Truth

# The keys of `attach` that are commands.
ATTACH_COMMANDS = ("status", "restart", "kill", "fresh")


class Hooks(Part):
    """Shell commands around each trial. The first that fails ends the trial as failed."""

    before: tuple[Text, ...] = Field(
        default=(),
        description="Commands before the store is opened, in their order.",
        examples=[["sync; echo 3 > /proc/sys/vm/drop_caches"]],
    )
    after: tuple[Text, ...] = Field(
        default=(),
        description="Commands after the trial, also after one that failed.",
        examples=[["cp {directory}/LOG ."]],
    )


class Over(Part):
    """The servers that those of the system work on."""

    nodes: Property | None = Field(
        default=None, description="How many nodes. Default: that system's own number.", examples=[3]
    )
    settings: dict[str, Property] = Field(
        default={},
        description="What `loadstone systems up` takes as `--set` for it.",
        examples=[{"replication": 3}],
    )


class Start(Part):
    """Servers that the lab starts, and takes down at the end. A text alone is its `system`."""

    system: Text = Field(
        default="", description="One of `loadstone systems`. Default: the store's own.", examples=["redis"]
    )
    nodes: Property | None = Field(
        default=None, description="How many nodes. Default: the system's own number.", examples=[3]
    )
    settings: dict[str, Property] = Field(
        default={},
        description="What `loadstone systems up` takes as `--set`.",
        examples=[{"heap": "2g"}],
    )
    over: Over | None = Field(
        default=None,
        description="The system below, `hdfs` for `hbase`, which is started with it. Default: with more than one"
        " node of HBase, and no `hbase.rootdir` among its settings.",
        examples=[{"nodes": 3}],
    )
    keep: Truth = Field(default=False, description="Leave the servers up at the end of the run.")


class Attach(Part):
    """Servers of your own. A command is run for each host, with `{host}` for its name."""

    hosts: tuple[Text, ...] = Field(
        default=(), description="Where they are; at least one.", examples=[["10.0.0.1", "10.0.0.2"]]
    )
    port: Count | None = Field(default=None, description="Their port. Default: the store's own.", examples=[9042])
    status: Text = Field(
        default="",
        description="Exit status 0 where the server works; asked before and after each trial.",
        examples=["ssh {host} systemctl is-active cassandra"],
    )
    restart: Text = Field(
        default="",
        description="Starts a server again that `status` found dead before a trial.",
        examples=["ssh {host} sudo systemctl restart cassandra"],
    )
    kill: Text = Field(
        default="",
        description="Ends a server at once, for faults. No trial does so by itself.",
        examples=["ssh {host} sudo pkill -9 -f CassandraDaemon"],
    )
    fresh: Text = Field(
        default="",
        description="Makes the table `{table}` anew, without records; run once, with the first host as `{host}`.",
        examples=["redis-cli -h {host} flushall"],
    )


class System(Part):
    """How a system is reached."""

    store: Text = Field(
        default="", description="The engine's driver for it. Default: the system's own name.", examples=["rocksdb"]
    )
    properties: dict[str, Property] = Field(
        default={},
        description="The store's properties by their known names.",
        examples=[{"rocksdb.version": "10.10.1"}],
    )
    hooks: Hooks = Field(
        default=Hooks(),
        description="Commands for this system's trials only, inside of the experiment's own.",
        examples=[{"before": ["echo {directory}"]}],
    )
    start: Start | None = Field(default=None, description=str(Start.__doc__), examples=[{"system": "redis"}])
    attach: Attach | None = Field(default=None, description=str(Attach.__doc__), examples=[{"hosts": ["10.0.0.1"]}])
    fresh: Fresh | None = Field(
        default=None,
        description="What each load begins with: `system`, new servers without data; `table`, a new table on the"
        " servers that are up; `none`, what is there. Default: `table` where the system can, else `system`; `none`"
        " for servers of your own that have no command `fresh`.",
        examples=["table"],
    )
    table: dict[str, Property] = Field(
        default={},
        description="How a fresh table is made: options of the system's own.",
        examples=[{"family": "cf", "splits": 200}],
    )
