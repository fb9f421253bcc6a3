"""Facts by name: their labels, groups and consequences; the facts that a comparison needs, and the facts of a trial."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from loadstone.format import wording
from loadstone.judge.figures import COMPOSED, client_count, count_due_operations, count_operations, list_outcomes
from loadstone.judge.guarantees import POSTGRES
from loadstone.results.trial_result import LOGGED, Scalar, TrialResult

# The value of a fact that is unknown.
UNKNOWN = "unknown"
# Facts that are measured or assigned in each trial, so that they differ between repeats with the same settings.
VOLATILE = frozenset({"address", "checksum", "job_name", "jvm_compiling", "percentiles_of", "target"})
# Facts that state where a tool finds data or writes output; and its command line, whose options are separate facts.
PLACES = re.compile(r"(^|\.)(exportfile|label|hdrhistogram\.output\.path|[\w-]*(dir|directory|path|outputfile))$")
COMMAND_LINE = "store.command"
# The workload kind of each tool, unless it is the tool's name; figures of different kinds cannot be compared.
WORK_OF_TOOL = {"ycsb": "ycsb", "go-ycsb": "ycsb", "loadstone": "ycsb"}
# Facts that a store records only if they apply, each with the value that is assumed otherwise.
ABSENT = {name: {"pooler": "none"} for name in POSTGRES}
# The tools whose importers report the tool's version as `version`; for other tools, this is the system's version.
OWN_VERSION = frozenset({"fio", "pgbench", "sysbench"})
# The workload kind of Loadstone's trials, keyed by a fact that only this kind has.
WORK_OF_FACT = {"mix": "ycsb", "file_bytes": "dfsio", "row_bytes": "sort"}
# The workload kinds and tools whose work ends with the last file or row, so that its duration is the result.
FIXED_WORK = frozenset({"testdfsio", "dfsio", "sort", "hbase-pe"})
# The facts that a comparison needs from both sides, by workload kind.
NEEDED: dict[str, tuple[str, ...]] = {
    "ycsb": ("clients", "loop", "records", "record_bytes", "distribution", "window"),
    "cassandra-stress": ("clients", "loop", "records", "record_bytes", "distribution", "window"),
    "hbase-pe": ("clients", "rows", "value_bytes"),
    "fio": ("mode", "block_size", "iodepth", "direct"),
    "testdfsio": ("files", "bytes"),
    "dfsio": ("files", "file_bytes"),
    **dict.fromkeys(("terasort", "sort"), ("rows", "row_bytes")),
    "pgbench": ("clients", "loop", "script", "query_mode", "scale", "window"),
    "sysbench": ("clients", "loop", "test", "window"),
    "sysbench-oltp": ("clients", "loop", "records", "window"),
    "redis-benchmark": ("clients", "record_bytes", "pipeline", "keyspace"),
    "memtier": ("clients", "loop", "record_bytes", "records", "pipeline", "mix", "distribution", "window"),
    "hyperfine": (COMMAND_LINE,),
    "latte": ("clients", "loop", "workload", "window"),
    "scylla-bench": ("clients", "loop", "records", "record_bytes", "rows_per_request", "distribution", "window"),
    "cql-stress": ("clients", "loop", "records", "record_bytes", "distribution", "window"),
    # Only the commands themselves are compared.
    "command": (),
}
# The command of a trial, which states all of its work.
COMMAND = "work.run"
# The facts needed if the workload kind is unknown.
NEEDED_OTHERWISE = ("work", "clients", "loop", "records", "record_bytes", "mix", "distribution", "window")

# Options of YCSB's workloads that have no name in Loadstone's facts.
YCSB_OPTIONS = frozenset(
    {
        *("readallfields", "writeallfields", "fieldlengthdistribution", "minfieldlength", "fieldnameprefix"),
        *("insertorder", "insertstart", "insertcount", "zeropadding", "dataintegrity", "clientbuffering"),
        *("minscanlength", "maxscanlength", "scanlengthdistribution"),
        *("hotspotdatafraction", "hotspotopnfraction", "exponential.percentile", "exponential.frac", "zipfian.theta"),
    }
)
# YCSB's files with further properties; its log does not state their contents.
PROPERTY_FILES = "property_files"
DURABILITY = "durability"
# A stronger guarantee costs time, so if guarantees differ, the comparison measures the guarantee.
GUARANTEES = (DURABILITY, "replication", "replication_acknowledged", "consistency")
# If these facts differ, the figures measure different quantities.
ARITHMETIC = ("work", "loop", "rate", "latency")
# Readable names for facts whose identifiers are not clear enough.
NAMES = {
    "cpu_model": "processor",
    "cpus": "number of processors",
    "memory_bytes": "memory",
    "hosts": "number of hosts",
    "host_names": "hosts",
    "server_hosts": "hosts of the servers",
    "machines": "number of machines",
    "machines_shared": "machine shared by clients and servers",
    "data_nodes": "number of data nodes",
    "engine": "load generator's version",
    "version": "system's version",
    "tool_version": "tool's version",
    "hooks.before": "commands before each trial",
    "hooks.after": "commands after each trial",
    "system_version": "version of the servers",
    "server_version": "exact version of the servers",
    "jvm": "JVM",
    "server_jvm": "JVM of the servers",
    DURABILITY: DURABILITY,
    "replication_acknowledged": "replicas acknowledged",
    "mix": "operations",
    "record_bytes": "record size",
    "records": "number of records",
    "distribution": "distribution of requests",
    "window": "length of the window",
    "latency": "meaning of latency",
    "work": "workload kind",
    "clients": "number of clients",
    "device_read_bps": "speed of the device",
}
# Facts by group: of the system (the store and its servers), of the load, and of the place of the data.
SYSTEM, WORK, STORAGE = (
    frozenset(text.split())
    for text in (
        "store system version system_version server_version jvm server_jvm cache_bytes map_bytes compression how"
        " directory client connections pooler executors spin data_in binding db networked heap nodes driver",
        "work records record_bytes mix distribution files file_bytes bytes buffer_bytes action access sync test phase"
        " rows row_bytes value_bytes block_size mode iodepth jobs numjobs direct window operations bytes_per_read"
        " device size io_engine fsync fdatasync pipeline keyspace script scale query_mode threads tries"
        " rows_per_request workload columns multi_get auto_flush write_ahead_log regions maps reduces primes"
        " tool_version property_files",
        "file_system device device_read_bps device_write_bps directory",
    )
)
SYSTEM_PREFIXES = ("store.", "server.", "table.")
# Settings of a store that determine what a write survives, by their names in the command lines of other tools.
DURABLE = re.compile(
    r"^store\..*(consistency|durab|sync|journal|wal(?!l)|commit|acks|concern|quorum|readpref|url\.(w|j)$)", re.I
)
# The lab divides the connections to a node by the number of executors.
CONNECTIONS = ("store.cassandra.coreconnections", "store.cassandra.maxconnections")
# The settings of servers that determine when a write is durable.
SYNC_SETTINGS = (
    *("synchronous_commit", "fsync", "appendonly", "appendfsync", "no_appendfsync_on_rewrite"),
    *("commitlog_sync", "commitlog_sync_period"),
)
# The documented consequences of a compared dimension: names of facts, or of groups of facts.
CONSEQUENCES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("system", "store", "variant", "run"), ("system",)),
    "clients": ("connections", "executors", "work.insert_lag", *CONNECTIONS),
    "rate": ("loop", "latency", "arrival", "pace.rate", "pace.mode", "pace.arrival"),
    "arrival": ("pace.arrival",),
    "operations": ("work.operations", "until.operations"),
    "loop": ("rate", "latency", "arrival", "pace.rate", "pace.mode", "pace.arrival"),
    "workload": ("work",),
    "tls": ("encryption",),
    "test": ("work",),
    DURABILITY: ("how", *SYNC_SETTINGS),
    "sync": (DURABILITY, "how"),
    "replication": (
        *("replication_acknowledged", "store.dfs.replication"),
        *("primary", "synchronous_standby_names", "min_replicas_to_write"),
    ),
    "consistency": ("replication_acknowledged",),
    # A command that names the compared system may run another version of the tool.
    "work.run": ("tool_version",),
    # The processors and memory of the hosts are still compared.
    "placement": (
        "hosts",
        "host_names",
        "engines",
        "connections",
        "executors",
        "machines",
        "machines_shared",
        *CONNECTIONS,
    ),
}


def record_facts(trial: TrialResult) -> dict[str, Scalar]:
    """Requested settings, observed facts (which override settings), and facts that follow from the figures."""
    facts = {name: fact for name, fact in trial.facts.items() if fact != UNKNOWN and name not in VOLATILE}
    if (tool := trial.facts.get("tool")) is not None:
        has_options = COMMAND_LINE not in NEEDED.get(str(tool), ())
        facts = {
            name: fact
            for name, fact in facts.items()
            if not (PLACES.search(name) or (has_options and name == COMMAND_LINE))
        }
        if tool in OWN_VERSION and "version" in facts:
            facts["tool_version"] = facts.pop("version")
    known: dict[str, Scalar | None] = {**trial.requested, **ABSENT.get(str(facts.get("store")), {}), **facts}
    known["clients"], known["loop"] = client_count(trial), trial.loop
    if (work := work_of(trial)) is not None:
        known["work"] = work
    if trial.loop is not None:
        known.setdefault("latency", "response" if trial.loop == "open" else "service")
    every, length = count_due_operations(trial), trial.value("runtime")
    if trial.loop == "open":
        target = trial.numeric_fact("target")
        known["rate"] = target if target or not every or not length else every / length * 1e9
    # If a log has no runtime, a fact may state the length of the window.
    known["window"], known["operations"] = length or facts.get("window"), count_operations(trial)
    if "engine" in trial.facts:
        known["ledger"] = "ledger.acknowledged" in trial.values
    returned, reads = trial.value("returned"), trial.value("read.count")
    if returned and reads:
        known["bytes_per_read"] = returned / reads
    return {name: value for name, value in known.items() if value is not None}


def name_fact(name: str) -> str:
    """A fact's name as text."""
    if name.startswith(LOGGED):
        return f"{name_fact(name.removeprefix(LOGGED))} in the log"
    return NAMES.get(name) or wording.fact_name(name)


def work_of(trial: TrialResult) -> str | None:
    """The workload kind, which defines an operation."""
    tool = str(trial.facts.get("tool", ""))
    if tool == "sysbench" and trial.facts.get("test") == "SQL statistics":
        return "sysbench-oltp"
    if tool:
        return WORK_OF_TOOL.get(tool, tool)
    return next((work for fact, work in WORK_OF_FACT.items() if fact in trial.facts), None)


def missing_facts(records: Sequence[dict[str, Scalar]], counted: bool) -> list[str]:
    """The facts that a comparison needs and a trial lacks; the mix is not needed if the operations were `counted`."""
    if all(COMMAND in facts for facts in records):
        return []
    kinds = {str(facts.get("work", "")) for facts in records}
    needed = NEEDED.get(kinds.pop(), NEEDED_OTHERWISE) if len(kinds) == 1 else NEEDED_OTHERWISE
    return [name for name in needed if not (name == "mix" and counted) and any(name not in facts for facts in records)]


def differing_files(sides: Sequence[Sequence[Mapping[str, Scalar]]]) -> list[str]:
    """A message if YCSB's property files differ and the logs do not state every option that may be in the files.

    Stated options override the files.
    """
    records, options = [*chain(*sides)], {*NEEDED["ycsb"], *YCSB_OPTIONS}
    files = [list(dict.fromkeys(str(facts.get(PROPERTY_FILES, "")) for facts in side)) for side in sides]
    if len({*chain(*files)} - {""}) < 2 or all(options <= facts.keys() for facts in records):
        return []
    return [f"contents of the property files ({' against '.join(map(' and '.join, files))})"]


def operation_mix(trials: Sequence[TrialResult]) -> dict[str, float]:
    """The share of each kind of operation, from the operations counted; empty if they were not counted by kind."""
    counts: Counter[str] = Counter()
    for trial in trials:
        for kind, _, count in list_outcomes(trial):
            if kind not in COMPOSED:
                counts[kind] += count
    return {name: count / counts.total() for name, count in counts.items() if counts.total()}
