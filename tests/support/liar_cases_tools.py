"""Other tools' logs whose contents, options or versions differ, copied logs, reused results, and their honest twins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from judge_support import REPEATS, Change, asking, both, set_figures
from known_truth_expected import Case, favours, fires, says, silent, unsure, verdict, wins
from known_truth_support import change_system, simulate_results
from liar_support import KNOWN, fio, logs, noise, plant_difference, stress, table, ycsb
from loadstone.judge.facts import YCSB_OPTIONS
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar
from tool_logs import copy_log, drop_progress, equal_percentiles, go_ycsb, pgbench, sysbench, teragen

UNCHECKED, SUSPECT, INVALID = verdict("unchecked"), verdict("suspect"), verdict("invalid")
# Expects a valid claim of the planted difference, and no finding of `sides-differ`.
HONEST = wins("tuned", 1.3), verdict("valid"), silent("sides-differ")
MONGO, JDBC = "-p mongodb.url=mongodb://", "-p db.url=jdbc:postgresql://"


def pair_ycsb(plain: str, tuned: str, known: Mapping[str, Scalar] = MappingProxyType(KNOWN)) -> ResultSet:
    """Alternating logs of YCSB with these arguments."""
    return logs(ycsb(1000, "a", plain), ycsb(1300, "b", tuned), known=known)


def replace_in_ycsb(old: str, new: str, first: str = "", known: Mapping[str, Scalar] = KNOWN) -> ResultSet:
    """Alternating logs of YCSB; `old` becomes `new` in the second side's logs, and `first`, if set, in the first's."""
    slow, fast = ycsb(1000, "a"), ycsb(1300, "b")
    return logs(
        [text.replace(old, first or old) for text in slow], [text.replace(old, new) for text in fast], known=known
    )


def pair_fio(plain: Mapping[str, object], tuned: Mapping[str, object]) -> ResultSet:
    """Alternating reports of fio with these options."""
    return logs(fio(1000, "a", **plain), fio(1300, "b", **tuned), suffix="json")


def state_options() -> dict[str, Scalar]:
    """Stated facts that include every option that a property file may contain."""
    return {**KNOWN, **dict.fromkeys(YCSB_OPTIONS, "stated")}


def time_command(slow: Change, fast: Change = lambda trial: trial) -> ResultSet:
    """Two timed commands, of which one takes 1.3 times as long as the other."""
    results = simulate_results({"first": 1300.0, "second": 1000.0}, change=both(slow, fast), repeats=REPEATS)
    trials = [
        replace(
            trial,
            values={"time": replace(trial.values["throughput"], metric="time", unit="ns")},
            facts={"store": "command", "work": "command"},
            requested={"work.run": "make"},
        )
        for trial in results.trials
    ]
    return replace(results, trials=trials, series=lambda _: None, question=asking(metrics=("time",)))


def slow_first(system: str, factor: float) -> Change:
    """Multiplies the time of one side's first execution by `factor`."""
    return lambda trial: (
        set_figures(throughput=trial.values["throughput"].value * factor)(trial)
        if trial.repeat == 1 and trial.config["system"] == system
        else trial
    )


def store_results() -> ResultSet:
    """One side prints the same stored figure in five of six repeats."""
    rows = []
    for n, factor in enumerate(noise("stored"), 1):
        rows.append(f"plain,{n},10,throughput,op/s,{1000 * factor:.3f}")
        rows.append(f"tuned,{n},10,throughput,op/s,{1301.257 if n == 1 else 1337.416}")
    return table(rows, "variant,repeat,clients,metric,unit,value", by="variant", metrics=("throughput",))


def add_hooks(first: str, second: str, *promises: str) -> ResultSet:
    """Two systems with these commands before each trial."""
    results = plant_difference(1.3, by="system")
    trials = [
        replace(trial, requested={"hooks.before": first if trial.config["system"] == "first" else second})
        for trial in results.trials
    ]
    return replace(results, trials=trials, question=asking(by="system", promises=promises))


HOOKS = [
    Case(
        "a command before the trials of one system",
        lambda: add_hooks("none", "touch boost"),
        (favours("second"), SUSPECT, says(r"commands before each trial \(none against touch boost\)")),
    ),
    Case(
        "the same command before the trials of both systems",
        lambda: add_hooks("sync {directory}", "sync {directory}"),
        (wins("second", 1.3), verdict("valid"), silent("sides-differ")),
    ),
    Case(
        "a command before the trials of one system, as declared",
        lambda: add_hooks("none", "start-server", "hooks"),
        (wins("second", 1.3), verdict("valid"), silent("sides-differ")),
    ),
]
REUSED = [
    Case(
        "a command that reuses the result of its first execution",
        lambda: time_command(change_system("first", lambda trial: trial), slow_first("second", 100.0)),
        (unsure(), SUSPECT, says("reuse the first result")),
        metric="time",
    ),
    Case(
        "a first execution that takes a fifth longer",
        lambda: time_command(slow_first("second", 1.2)),
        (favours("second"), verdict("valid"), silent("sides-differ")),
        metric="time",
    ),
    Case(
        "first executions of both commands that take ten times as long",
        lambda: time_command(slow_first("first", 10.0), slow_first("second", 10.0)),
        (favours("second"), verdict("valid"), silent("sides-differ")),
        metric="time",
    ),
    Case(
        "a figure that is equal in all repeats except the first",
        store_results,
        (unsure(), INVALID, says("in all 6 repeats except the first")),
    ),
]
COPIES = [
    Case(
        "a copy of a YCSB log with another total",
        lambda: logs(
            ycsb(1000, "a"), copy_log(ycsb(1300, "b"), r"(Throughput\(ops/sec\), \d+\.)\d+", "125"), known=KNOWN
        ),
        (INVALID, says("the same figures to the last digit")),
    ),
    Case(
        "a copy of a pgbench log with another total",
        lambda: logs(pgbench(1000, "a"), copy_log(pgbench(1300, "b"), r"(tps = \d+\.)\d+", "125125")),
        (INVALID, says("the same figures to the last digit")),
    ),
    Case(
        "YCSB logs with equal percentiles and different means",
        lambda: logs(equal_percentiles(1000, "a"), equal_percentiles(1300, "b"), known=KNOWN),
        (favours("tuned"), verdict("valid"), silent("impossible")),
    ),
]
FILES = [
    Case(
        "YCSB with another property file on each side",
        lambda: replace_in_ycsb("workloads/workloadc", "workloads/hot"),
        (favours("tuned"), UNCHECKED, says(r"if contents of the property files \(workloadc against hot\) were equal")),
    ),
    Case(
        "YCSB without a property file on one side",
        lambda: replace_in_ycsb("-P workloads/workloadc", ""),
        (UNCHECKED, says("workloadc against none")),
    ),
    Case(
        "YCSB with other property files, whose options are all stated",
        lambda: replace_in_ycsb("workloads/workloadc", "workloads/hot", known=state_options()),
        HONEST,
    ),
    Case(
        "YCSB with the same property file in another folder",
        lambda: replace_in_ycsb("workloads/workloadc", "/opt/ycsb/workloads/workloadc"),
        HONEST,
    ),
]
VERSIONS = [
    Case(
        "YCSB 0.12 against 0.17",
        lambda: replace_in_ycsb(
            "[OVERALL], Run", "YCSB Client 0.12.0\n[OVERALL], Run", "YCSB Client 0.17.0\n[OVERALL], Run"
        ),
        (SUSPECT, says(r"tool's version \(0\.17\.0 against 0\.12\.0\)")),
    ),
    Case(
        "YCSB's version in its first line, or in the class path",
        lambda: replace_in_ycsb(
            "[OVERALL], Run",
            "java -cp /ycsb/lib/core-0.17.0.jar site.ycsb.Client\nYCSB Client 0.1\n[OVERALL], Run",
            "YCSB Client 0.17.0\n[OVERALL], Run",
        ),
        HONEST,
    ),
    Case(
        "fio 2 against fio 3",
        lambda: logs(fio(1000, "a"), [text.replace("fio-3.33", "fio-2.21") for text in fio(1300, "b")], suffix="json"),
        (SUSPECT, says(r"tool's version \(fio-3\.33 against fio-2\.21\)")),
    ),
    Case(
        "pgbench 9.6 against 15.4",
        lambda: logs(pgbench(1000, "a"), pgbench(1300, "b", "9.6")),
        (SUSPECT, says(r"tool's version \(15\.4 against 9\.6\)")),
    ),
    Case(
        "one pgbench against two versions of the server",
        lambda: logs(pgbench(1000, "a", "15.4, server 15.4"), pgbench(1300, "b", "15.4, server 16.1")),
        HONEST,
    ),
]
YCSB = [
    Case(
        "MongoDB with another write concern in its URL",
        lambda: pair_ycsb(f"{MONGO}h:27017/ycsb?w=1", f"{MONGO}h:27017/ycsb?w=0"),
        (unsure(), INVALID, says(r"\(1 against 0\)")),
    ),
    Case(
        "MongoDB with a journal on one side only",
        lambda: pair_ycsb(f"{MONGO}h/ycsb?w=1&j=true", f"{MONGO}h/ycsb?w=1"),
        (UNCHECKED, says(r"mongodb\.url\.j|mongodb url j")),
    ),
    Case(
        "MongoDB on another host",
        lambda: pair_ycsb(f"{MONGO}10.0.0.1/ycsb?w=1&j=true", f"{MONGO}10.0.0.2/ycsb?j=TRUE&w=1"),
        HONEST,
    ),
    Case(
        "JDBC with and without autocommit",
        lambda: pair_ycsb("-p jdbc.autocommit=true", "-p jdbc.autocommit=false"),
        (unsure(), INVALID, says("autocommit")),
    ),
    Case(
        "RocksDB without its log on one side",
        lambda: pair_ycsb("", "-p rocksdb.disableWAL=true"),
        (UNCHECKED, says("disableWAL")),
    ),
    Case(
        "RocksDB with and without its log",
        lambda: pair_ycsb("-p rocksdb.disableWAL=false", "-p rocksdb.disableWAL=true"),
        (unsure(), INVALID, says("false against true")),
    ),
    Case("JDBC on another host", lambda: pair_ycsb(f"{JDBC}a/ycsb", f"{JDBC}b/ycsb"), HONEST),
    Case("Cassandra on another host", lambda: pair_ycsb("-p hosts=10.0.0.1", "-p hosts=10.0.0.2 -p port=9043"), HONEST),
    Case(
        "Cassandra's levels in lower case",
        lambda: pair_ycsb(
            "-p cassandra.readconsistencylevel=LOCAL_QUORUM", "-p cassandra.readconsistencylevel=local_quorum"
        ),
        HONEST,
    ),
    Case(
        "YCSB with hashed against ordered keys",
        lambda: pair_ycsb("-p insertorder=hashed", "-p insertorder=ordered"),
        (SUSPECT, says(r"\(hashed against ordered\)")),
    ),
    Case(
        "YCSB with two numbers of clients, of which the last counts",
        lambda: pair_ycsb("", "-threads 40 -s"),
        (unsure(), verdict("suspect", "invalid"), says("10 against 40")),
    ),
    Case(
        "YCSB with 40 clients in a property after the option",
        lambda: replace_in_ycsb("-threads 10", "-threads 10 -p threadcount=40"),
        (unsure(), verdict("suspect", "invalid"), says("40")),
    ),
    Case("YCSB with its clients as a property", lambda: replace_in_ycsb("-threads 10", "-p threadcount=10"), HONEST),
    Case(
        "YCSB with numbers in two notations",
        lambda: pair_ycsb("-p recordcount=1e6", "-p 'recordcount=1000000'", {**KNOWN, "records": 1_000_000}),
        HONEST,
    ),
    Case(
        "YCSB with the same options in another order",
        lambda: pair_ycsb("-p fieldcount=10 -p fieldlength=100", "-p fieldlength=100 -p fieldcount=10"),
        HONEST,
    ),
    Case(
        "YCSB with another output file, label and interval of its status",
        lambda: pair_ycsb("-p exportfile=/tmp/a -p label=a", "-p exportfile=/tmp/b -p label=b -p status.interval=5"),
        HONEST,
    ),
    Case(
        "one YCSB log of six with another field length",
        lambda: logs(
            ycsb(1000, "a", "-p fieldlength=100"),
            [*ycsb(1300, "b", "-p fieldlength=100")[:5], *ycsb(1300, "c", "-p fieldlength=10", n=1)],
            known={name: value for name, value in KNOWN.items() if name != "record_bytes"},
        ),
        (verdict("suspect", "invalid"), says("changed between repeats")),
    ),
]
FIO = [
    Case("fio with a block size for each direction", lambda: pair_fio({"bs": "4k,4k"}, {"bs": "4k"}), HONEST),
    Case(
        "fio with another block size for writes",
        lambda: pair_fio({"bs": "4k,8k"}, {"bs": "4k"}),
        (verdict("suspect", "invalid"), says("4k,8k")),
    ),
    Case(
        "fio with buffered I/O in two spellings", lambda: pair_fio({"direct": 0}, {"buffered": 1, "direct": 0}), HONEST
    ),
    Case(
        "fio with the share of reads or of writes",
        lambda: pair_fio({"rw": "randrw", "rwmixread": 70}, {"rw": "randrw", "rwmixwrite": 30}),
        HONEST,
    ),
    Case("fio with sizes in two units", lambda: pair_fio({"size": "1G"}, {"size": "1024m"}), HONEST),
    Case(
        "fio with another file, name and form of its report",
        lambda: pair_fio({"filename": "/a", "name": "a"}, {"filename": "/b", "name": "b", "group_reporting": "1"}),
        HONEST,
    ),
    Case(
        "fio with a rate on one side",
        lambda: pair_fio({}, {"rate_iops": "1300"}),
        (unsure(), INVALID, says("open")),
    ),
    Case(
        "fio with four jobs against one",
        lambda: pair_fio({}, {"numjobs": 4}),
        (verdict("suspect", "invalid"), says("4")),
    ),
    Case(
        "fio with another distribution of its offsets",
        lambda: pair_fio({"random_distribution": "zipf:1.2"}, {"random_distribution": "random"}),
        (SUSPECT, says(r"zipf:1\.2 against random")),
    ),
]
CLIENTS = [
    Case(
        "pgbench with another script",
        lambda: logs(pgbench(1000, "a"), pgbench(1300, "b", script="select.sql")),
        (SUSPECT, says(r"select\.sql")),
    ),
    Case(
        "pgbench with progress lines on one side",
        lambda: logs(pgbench(1000, "a"), drop_progress(pgbench(1300, "b"))),
        HONEST,
    ),
    Case(
        "pgbench with the same work on both sides",
        lambda: logs(pgbench(1000, "a"), pgbench(1300, "b")),
        (*HONEST, silent("impossible")),
    ),
    Case(
        "cassandra-stress with another consistency level",
        lambda: logs(
            stress(500, "a", "throttle"), [text.replace("QUORUM", "ONE") for text in stress(650, "b", "throttle")]
        ),
        (unsure(), INVALID, says("QUORUM"), says("ONE")),
    ),
    Case(
        "cassandra-stress with its level in lower case",
        lambda: logs(
            stress(500, "a", "throttle"),
            [text.replace("QUORUM", "quorum") for text in stress(650, "b", "throttle")],
            known={"distribution": "sequential", "record_bytes": 170},
        ),
        (verdict("valid"), silent("sides-differ")),
    ),
    Case(
        "facts that state another durability on each side",
        lambda: plant_difference(1.3, first={"durability": "device"}, known={"durability": "os"}),
        (unsure(), INVALID, says(r"\(device against os\)")),
    ),
    Case(
        "truths and levels within longer texts",
        lambda: plant_difference(
            1.3,
            first={"options": "journal=true level=QUORUM size=4k"},
            known={"options": "journal=1 level=quorum size=4096"},
        ),
        (wins("second", 1.3), verdict("valid"), silent("sides-differ")),
    ),
    Case(
        "another level within a longer text",
        lambda: plant_difference(1.3, first={"options": "level=QUORUM"}, known={"options": "level=ONE"}),
        (SUSPECT, fires("sides-differ"), says("level=ONE")),
    ),
]
SERVERS = [
    Case(
        "sysbench without its command: the number of rows is unknown",
        lambda: logs(sysbench(1000, "a"), sysbench(1300, "b")),
        (favours("tuned"), UNCHECKED, says("if number of records were equal")),
    ),
    Case(
        "sysbench with another size of its tables",
        lambda: logs(
            sysbench(1000, "a", "oltp_read_write --table-size=10000000"),
            sysbench(1300, "b", "oltp_read_write --table-size=1000"),
        ),
        (SUSPECT, says("10,000,000 against 1,000")),
    ),
    Case(
        "sysbench with another script",
        lambda: logs(sysbench(1000, "a", "oltp_read_write"), sysbench(1300, "b", "oltp_update_index")),
        (SUSPECT, says("oltp_read_write against oltp_update_index")),
    ),
    Case(
        "sysbench with an option of the work on one side",
        lambda: logs(sysbench(1000, "a", "oltp_read_write"), sysbench(1300, "b", "oltp_read_write --skip-trx")),
        (UNCHECKED, says("skip.trx")),
    ),
    Case(
        "sysbench with the same tables on another host",
        lambda: logs(
            sysbench(1000, "a", "oltp_read_write --mysql-host=a --tables=10 --table-size=1000"),
            sysbench(1300, "b", "/usr/share/sysbench/oltp_read_write.lua --table-size=1000 --tables=10 --mysql-host=b"),
        ),
        HONEST,
    ),
    Case(
        "go-ycsb with and without synchronous writes",
        lambda: logs(
            go_ycsb(1000, "a", **{"badger.sync_writes": "true"}), go_ycsb(1300, "b", **{"badger.sync_writes": "false"})
        ),
        (unsure(), INVALID, says("true against false")),
    ),
    Case(
        "go-ycsb with synchronous writes on one side",
        lambda: logs(go_ycsb(1000, "a"), go_ycsb(1300, "b", **{"badger.sync_writes": "true"})),
        (UNCHECKED, says("sync.writes")),
    ),
    Case(
        "go-ycsb with the default size of its records",
        lambda: logs(
            go_ycsb(1000, "a", **{"redis.addr": "10.0.0.1:6379", "fieldlength": 100}),
            go_ycsb(1300, "b", **{"redis.addr": "10.0.0.2:6379"}),
        ),
        HONEST,
    ),
    Case(
        "go-ycsb with another field length than the default",
        lambda: logs(go_ycsb(1000, "a"), go_ycsb(1300, "b", fieldlength=10)),
        (SUSPECT, says("record size")),
    ),
    Case("TeraGen with the same rows", lambda: logs(teragen(130, "a"), teragen(100, "b"), "throughput"), HONEST),
    Case(
        "TeraGen with a tenth of the rows",
        lambda: logs(teragen(130, "a"), teragen(100, "b", 100_000), "throughput"),
        (verdict("suspect", "invalid"), says("rows")),
    ),
]
TOOLS = [*HOOKS, *REUSED, *COPIES, *FILES, *VERSIONS, *YCSB, *FIO, *CLIENTS, *SERVERS]
