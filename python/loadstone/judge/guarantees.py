"""The guarantee of each system setting: the greatest age of an acknowledged write that a fault may lose.

`python -m loadstone.judge.guarantees` writes docs/concepts/guarantees.md. A setting that is not in the table has an
unknown guarantee. Each row names its source: the system's documentation or code, or Loadstone's own runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadstone.format import parsing, units
from loadstone.results.fault import NONE, FaultRecord
from loadstone.results.trial_result import Scalar

PAGE = Path("docs/concepts/guarantees.md")
BEGIN, END = "<!-- generated: guarantees -->", "<!-- end of generated -->"
Facts = Mapping[str, Scalar]
MILLISECOND, SECOND = 1e6, 1e9
# Ages in ns: 0 if no write may be lost, infinite if any write may be lost. An unknown age is None.
NOTHING, ANYTHING = 0.0, math.inf
# The kinds of faults that may lose writes; other kinds lose none.
KILLS, POWER, STOPS = frozenset({"kill"}), frozenset({"power"}), frozenset({"stop", "restart"})
# A full disk can end a server.
ENDING = KILLS | frozenset({"full"})
LEVEL = re.compile(r"read (\w+), write (\w+)")
# The number of replicas that a consistency level waits for; QUORUM depends on the number of copies.
LEVELS = {"ANY": 0, "ONE": 1, "LOCAL_ONE": 1, "TWO": 2, "THREE": 3}
QUORUMS = frozenset({"QUORUM", "LOCAL_QUORUM", "EACH_QUORUM"})


@dataclass(frozen=True)
class Guarantee:
    """The greatest age, ns, of an acknowledged write that may be lost; 0 if none, infinite if any, None if unknown."""

    age_ns: float | None
    # The system and the setting, and the source of the bound; empty if the setting is unknown.
    setting: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """The bound as text: `none`, `100 ms`, `everything`, `unknown`."""
        return age_text(self.age_ns)


@dataclass(frozen=True)
class Period:
    """A bound that the server's settings determine: a multiple of a period; unknown if the period was not recorded."""

    fact: str
    factor: int = 1

    @property
    def text(self) -> str:
        """The bound in the table."""
        return f"`{self.fact}`" if self.factor == 1 else f"{self.factor} × `{self.fact}`"

    def read_ns(self, facts: Facts) -> float | None:
        """The bound, ns. Cassandra reports `10000ms`, PostgreSQL `200ms`; older results have `200 ms`."""
        try:
            seconds = parsing.parse_seconds(str(facts.get(self.fact, "")).replace(" ", ""))
            return float(self.factor * round(seconds * SECOND))
        except ValueError:
            return None


Bound = float | Period | None


@dataclass(frozen=True)
class GuaranteeRow:
    """A setting with its bounds, ns, for each fault of one server and of all servers at once."""

    stores: tuple[str, ...]
    setting: str
    applies: Callable[[Facts], bool]
    kill_one: Bound
    kill_all: Bound
    power_one: Bound
    power_all: Bound
    stop: Bound
    source: str
    # Whether another server takes over from an unresponsive server; the loss is then as after a kill.
    fails_over: bool = False


# Stores whose clients retry within an operation, so that failures show as latency.
RETRYING = frozenset({"hbase", "jvm"})
CASSANDRA, REDIS = ("cassandra",), ("redis",)
# The fact that names the primary of servers that the lab started, so that no failover takes place.
PRIMARY = "primary"
POSTGRES, HBASE = ("postgres", "postgrenosql"), ("hbase",)
MARKER, HINTS, AOF_LAG = 100 * MILLISECOND, 10 * SECOND, 2 * SECOND
COMMIT_LOG, WAL_WRITER = Period("commitlog_sync_period"), Period("wal_writer_delay", 3)


def levels_of(facts: Facts) -> tuple[str, str]:
    """The consistency levels of reads and writes; empty if unknown."""
    match = LEVEL.search(str(facts.get("consistency", "")))
    return (match[1].upper(), match[2].upper()) if match else ("", "")


def count_replicas(level: str, facts: Facts) -> int | None:
    """The number of replicas that a level waits for; None if unknown."""
    if level in LEVELS:
        return LEVELS[level]
    # The store knows the replicas of each data centre.
    acknowledged = parse_fact_number(facts, "replication_acknowledged")
    if acknowledged is not None and level == levels_of(facts)[1] == "LOCAL_QUORUM":
        return acknowledged
    copies = parse_fact_number(facts, "replication")
    if level in QUORUMS and copies is not None:
        return copies // 2 + 1
    return copies if level == "ALL" else None


def parse_fact_number(facts: Facts, name: str) -> int | None:
    """A fact as a whole number; None if it is not one."""
    text = str(facts.get(name, ""))
    return int(text) if text.isdecimal() else None


def is_periodic(facts: Facts) -> bool:
    """Whether Cassandra syncs its commit log at intervals."""
    return facts.get("commitlog_sync") == "periodic" and facts.get("durable_writes") != "no"


def is_mapped(facts: Facts) -> bool:
    """Whether the commit log is a mapped file, which is the default."""
    return str(facts.get("commitlog_format", "mapped")) == "mapped"


def has_copies(facts: Facts, at_least: int, at_most: int = 1 << 30) -> bool:
    """Whether the number of replicas that have an acknowledged write is in this range."""
    count = count_replicas(levels_of(facts)[1], facts)
    return count is not None and at_least <= count <= at_most


def is_setting(name: str, *expected: str) -> Callable[[Facts], bool]:
    """A condition that is true if a fact has one of the expected values."""
    return lambda facts: str(facts.get(name)) in expected


def is_redis(fsync: str, at_rewrite: bool = True) -> Callable[[Facts], bool]:
    """A condition that is true if Redis has an append-only log with this `appendfsync`; `at_rewrite` states whether
    Redis also syncs the log during a rewrite."""
    paused = "no" if at_rewrite else "yes"
    return lambda facts: (
        facts.get("appendonly") == "yes"
        and facts.get("appendfsync") == fsync
        and str(facts.get("no_appendfsync_on_rewrite", "no")) == paused
    )


def can_promote_replica(facts: Facts) -> bool:
    """Whether another Redis server may become the primary: there are replicas, and no fact names a fixed primary."""
    return PRIMARY not in facts and str(facts.get("replication", 1)) not in ("1", "none")


def can_promote_standby(facts: Facts) -> bool:
    """Whether another PostgreSQL server may become the primary: there are several servers or synchronous standbys, and
    no fact names a fixed primary."""
    standbys = str(facts.get("replication_acknowledged", 1)) != "1"
    return PRIMARY not in facts and (standbys or (parse_fact_number(facts, "data_nodes") or 1) > 1)


# The first row that applies gives the guarantee.
TABLE: tuple[GuaranteeRow, ...] = (
    GuaranteeRow(
        CASSANDRA, "`durable_writes = false` (writes since the last flush)", is_setting("durable_writes", "no"),
        ANYTHING, ANYTHING, ANYTHING, ANYTHING, None, "documentation",
    ),
    GuaranteeRow(
        CASSANDRA, "written at `ANY` (hints in a coordinator's memory)", lambda facts: levels_of(facts)[1] == "ANY",
        HINTS, HINTS, None, None, None, "HintsService: hints are flushed every 10 s",
    ),
    GuaranteeRow(
        CASSANDRA, "commit log `batch` or `group`", is_setting("commitlog_sync", "batch", "group"),
        NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, "documentation",
    ),
    GuaranteeRow(
        CASSANDRA, "commit log `periodic`, mapped (default), one acknowledging replica",
        lambda facts: is_periodic(facts) and is_mapped(facts) and has_copies(facts, 1, 1),
        MARKER, MARKER, COMMIT_LOG, COMMIT_LOG, NOTHING, "CASSANDRA-13987; measured: losses in 2 of 3 kills",
    ),
    GuaranteeRow(
        CASSANDRA, "commit log `periodic`, mapped (default), two or more acknowledging replicas",
        lambda facts: is_periodic(facts) and is_mapped(facts) and has_copies(facts, 2),
        NOTHING, MARKER, NOTHING, COMMIT_LOG, NOTHING, "CASSANDRA-13987",
    ),
    GuaranteeRow(
        CASSANDRA, "commit log `periodic`, compressed, encrypted or direct I/O, one acknowledging replica",
        lambda facts: is_periodic(facts) and has_copies(facts, 1, 1),
        COMMIT_LOG, COMMIT_LOG, COMMIT_LOG, COMMIT_LOG, NOTHING, "CASSANDRA-13987",
    ),
    GuaranteeRow(
        CASSANDRA, "commit log `periodic`, compressed, encrypted or direct I/O, two or more acknowledging replicas",
        lambda facts: is_periodic(facts) and has_copies(facts, 2),
        NOTHING, COMMIT_LOG, NOTHING, COMMIT_LOG, NOTHING, "CASSANDRA-13987",
    ),
    GuaranteeRow(
        REDIS, "with replicas that may be promoted (the failover loses writes that were not sent)", can_promote_replica,
        None, None, None, None, None, "documentation: replication is asynchronous", fails_over=True,
    ),
    GuaranteeRow(
        REDIS, "`appendonly no` (and no snapshots)", is_setting("appendonly", "no"),
        ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING, "measured: all of 36,135 lost",
    ),
    GuaranteeRow(
        REDIS, "`appendfsync everysec`", is_redis("everysec"),
        AOF_LAG, AOF_LAG, AOF_LAG, AOF_LAG, NOTHING, "aof.c: behind by at most 2 s while a sync lags; measured: 0.87 s",
    ),
    GuaranteeRow(
        REDIS, "`appendfsync everysec`, `no-appendfsync-on-rewrite yes`", is_redis("everysec", at_rewrite=False),
        AOF_LAG, AOF_LAG, ANYTHING, ANYTHING, NOTHING, "documentation: no sync during a rewrite",
    ),
    GuaranteeRow(
        REDIS, "`appendfsync no`", lambda facts: is_redis("no")(facts) or is_redis("no", at_rewrite=False)(facts),
        NOTHING, NOTHING, ANYTHING, ANYTHING, NOTHING, "documentation; measured",
    ),
    GuaranteeRow(
        REDIS, "`appendfsync always`", is_redis("always"),
        NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, "documentation; measured",
    ),
    GuaranteeRow(
        REDIS, "`appendfsync always`, `no-appendfsync-on-rewrite yes`", is_redis("always", at_rewrite=False),
        NOTHING, NOTHING, ANYTHING, ANYTHING, NOTHING, "documentation: no sync during a rewrite",
    ),
    GuaranteeRow(
        POSTGRES, "with standbys that may be promoted (the failover may lose writes)", can_promote_standby,
        None, None, None, None, None, "documentation: it depends on the promoted standby", fails_over=True,
    ),
    GuaranteeRow(
        POSTGRES, "unlogged table", is_setting("durability", "none"),
        ANYTHING, ANYTHING, ANYTHING, ANYTHING, NOTHING, "documentation",
    ),
    GuaranteeRow(
        POSTGRES, "`synchronous_commit = off`, `fsync = off`",
        lambda facts: facts.get("durability") == "interval" and facts.get("fsync") == "off",
        WAL_WRITER, WAL_WRITER, ANYTHING, ANYTHING, NOTHING, "documentation",
    ),
    GuaranteeRow(
        POSTGRES, "`synchronous_commit = off`", is_setting("durability", "interval"),
        WAL_WRITER, WAL_WRITER, WAL_WRITER, WAL_WRITER, NOTHING, "documentation; the default is 200 ms",
    ),
    GuaranteeRow(
        POSTGRES, "`fsync = off`", is_setting("durability", "os"),
        NOTHING, NOTHING, ANYTHING, ANYTHING, NOTHING, "documentation",
    ),
    GuaranteeRow(
        POSTGRES, "`synchronous_commit = on`", is_setting("durability", "device"),
        NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, "documentation; measured",
    ),
    GuaranteeRow(
        HBASE, "`SKIP_WAL` (writes since the last flush)", is_setting("durability", "none"),
        ANYTHING, ANYTHING, ANYTHING, ANYTHING, None, "documentation", fails_over=True,
    ),
    GuaranteeRow(
        HBASE, "`ASYNC_WAL` (writes not yet flushed to HDFS)", is_setting("durability", "interval"),
        None, None, None, None, NOTHING, "HBASE-16689 states no bound", fails_over=True,
    ),
    GuaranteeRow(
        HBASE, "`SYNC_WAL` over HDFS (hflush)", is_setting("durability", "os"),
        NOTHING, NOTHING, NOTHING, ANYTHING, NOTHING, "documentation", fails_over=True,
    ),
    GuaranteeRow(
        HBASE, "`FSYNC_WAL` over HDFS (hsync)", is_setting("durability", "device"),
        NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, "documentation", fails_over=True,
    ),
)  # fmt: skip
# No fault on replicas or standbys affects the data of a primary that remains the primary.
COPIES = GuaranteeRow(
    (*REDIS, *POSTGRES), "any, with a fault on replicas or standbys only", lambda facts: PRIMARY in facts,
    NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, "the primary has all acknowledged writes, and no failover takes place",
)  # fmt: skip
UNKNOWN = Guarantee(None)


def guarantee_of(facts: Facts, faults: Iterable[FaultRecord]) -> Guarantee:
    """The guarantee of a trial's setting under the trial's faults: the weakest bound; unknown if any is unknown.

    HBase's rows apply only to logs on HDFS: on other file systems, an hflush may guarantee nothing.
    """
    faults = list(faults)
    store = str(facts.get("store"))
    if faults and store in COPIES.stores and all(spares_primary(fault, facts) for fault in faults):
        return Guarantee(NOTHING, f"{store}, {COPIES.setting}", COPIES.source)
    row = next((row for row in TABLE if store in row.stores and row.applies(facts)), None)
    if row is None or (row.stores == HBASE and "hdfs" not in str(facts.get("wal.file_system", "")).lower()):
        return UNKNOWN
    ages = [bound_of(row, fault, facts) for fault in faults]
    name = f"{row.stores[0]}, {row.setting}"
    if any(age is None for age in ages):
        return Guarantee(None, name, row.source)
    return Guarantee(max((age for age in ages if age is not None), default=NOTHING), name, row.source)


def bound_of(row: GuaranteeRow, fault: FaultRecord, facts: Facts) -> float | None:
    """The bound for one fault. A store that states no number of nodes is assumed to have one node.

    Several victims count as one server if acknowledged writes have more replicas than that, else as all servers.
    """
    if spares_primary(fault, facts):
        return NOTHING
    if fault.kind in STOPS:
        return resolve(row.stop, facts)
    if fault.kind == NONE or not (fault.kind in ENDING | POWER or row.fails_over):
        return NOTHING
    bounds = (row.power_one, row.power_all) if fault.kind in POWER else (row.kill_one, row.kill_all)
    single, every = (resolve(bound, facts) for bound in bounds)
    victims = len({*fault.servers})
    if victims >= (parse_fact_number(facts, "nodes") or 1) or single == every:
        return every
    replicas = count_replicas(levels_of(facts)[1], facts)
    if victims > 1 and replicas is None:
        return None
    return single if victims <= 1 or victims < (replicas or 0) else every


def spares_primary(fault: FaultRecord, facts: Facts) -> bool:
    """Whether a fault affects servers, but not the only server to which clients write."""
    return PRIMARY in facts and bool(fault.servers) and facts[PRIMARY] not in fault.servers


def resolve(bound: Bound, facts: Facts) -> float | None:
    """A bound, ns, under the server's settings; None if it is unknown."""
    return bound.read_ns(facts) if isinstance(bound, Period) else bound


def reads_are_current(facts: Facts) -> bool:
    """Whether a read that begins after an acknowledgement must see that write: R + W > RF."""
    read, write = (count_replicas(level, facts) for level in levels_of(facts))
    copies = parse_fact_number(facts, "replication")
    return None not in (read, write, copies) and (read or 0) + (write or 0) > (copies or 0)


def age_text(age_ns: float | None) -> str:
    """An age as text: `none`, `100 ms`, `everything`, `unknown`."""
    if age_ns is None:
        return "unknown"
    return "none" if age_ns == 0 else "everything" if math.isinf(age_ns) else units.format_duration(age_ns)


def render_table() -> str:
    """The table in Markdown."""
    heads = ("system", "setting", "kill one", "kill all", "power one", "power all", "orderly stop", "source")
    lines = [heads, ("---",) * len(heads)]
    for row in (*TABLE, COPIES):
        ages = (row.kill_one, row.kill_all, row.power_one, row.power_all, row.stop)
        cells = [age.text if isinstance(age, Period) else age_text(age) for age in ages]
        lines.append(
            (", ".join(name for name in row.stores if name != "postgrenosql"), row.setting, *cells, row.source)
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def complete_page(text: str) -> str:
    """The page with its table replaced by this module's table."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{render_table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(complete_page(PAGE.read_text()))
