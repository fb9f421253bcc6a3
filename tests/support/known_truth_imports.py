"""Scenarios measured by other tools: the contents and gaps of their files, and the permitted claims."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from imports_support import FIXTURES
from known_truth_expected import (
    Case,
    expect_bound,
    expect_no_claim,
    expect_no_trust,
    expect_refusal,
    favours,
    fires,
    says,
    silent,
    too_few,
    unsure,
    verdict,
    wins,
)
from known_truth_support import figure, simulate_results, typical
from loadstone.commands.open_results import from_file
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.results.union import join_results

P99 = "read.p99"


@dataclass(frozen=True)
class Ycsb:
    """YCSB's report of one run of reads for a minute."""

    throughput: float
    mean_us: float
    p99_us: float
    target: int | None = None
    failed: int = 0
    # The share of updates, which are as fast as the reads.
    updates: float = 0.0
    # Latencies from the due time, if YCSB ran with measurement.interval=both.
    intended_p99_us: float | None = None
    # With the measurement type `histogram`, the number of reads for each millisecond of latency.
    milliseconds: tuple[int, ...] = ()

    def text(self) -> str:
        """The log's text."""
        operations = round(self.throughput * 60)
        updates = round(self.updates * operations)
        reads = operations - self.failed - updates
        rate = "" if self.target is None else f" -target {self.target}"
        lines = [
            f"Command line: -db site.ycsb.db.RocksDBClient -t -threads 10{rate} -P workloads/workloadc",
            "[OVERALL], RunTime(ms), 60000",
            f"[OVERALL], Throughput(ops/sec), {operations / 60}",
            *self.latencies("READ", reads, self.mean_us, self.p99_us),
            *(f"[READ], {at}, {count}" for at, count in enumerate(self.milliseconds)),
            *([f"[READ], >{len(self.milliseconds)}, 0"] if self.milliseconds else []),
            f"[READ], Return=OK, {reads}",
        ]
        if updates:
            lines += [*self.latencies("UPDATE", updates, self.mean_us, self.p99_us), f"[UPDATE], Return=OK, {updates}"]
        if self.failed:
            lines += [
                f"[READ], Return=ERROR, {self.failed}",
                *self.latencies("READ-FAILED", self.failed, self.mean_us / 10, self.p99_us / 10),
            ]
        if self.intended_p99_us is not None:
            lines += self.latencies("Intended-READ", operations, self.intended_p99_us / 3, self.intended_p99_us)
        return "\n".join(lines) + "\n"

    def latencies(self, name: str, count: int, mean_us: float, p99_us: float) -> list[str]:
        """The log's lines on the latencies of one operation."""
        return [
            f"[{name}], Operations, {count}",
            f"[{name}], AverageLatency(us), {mean_us}",
            f"[{name}], MinLatency(us), {round(mean_us / 10)}",
            f"[{name}], MaxLatency(us), {round(p99_us * 2)}",
            f"[{name}], 95thPercentileLatency(us), {self.read_off(p99_us * 0.7)}",
            f"[{name}], 99thPercentileLatency(us), {self.read_off(p99_us)}",
        ]

    def read_off(self, latency_us: float) -> int:
        """A latency in µs, as the log prints it; with the measurement type `histogram`, in whole milliseconds."""
        return int(latency_us) // 1000 * 1000 if self.milliseconds else round(latency_us)


def read(text: str, name: str, **facts: Scalar) -> ResultSet:
    """The results read from a file with this text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text)
        return from_file(path, facts)


def logs(name: str, runs: Sequence[Ycsb], **facts: Scalar) -> ResultSet:
    """Several runs of one system in one file."""
    return read("\n".join(run.text() for run in runs), f"{name}.log", variant=name, **facts)


def runs(throughput: float, p99_us: float, n: int = 6, noise: float = 0.01, **more: object) -> list[Ycsb]:
    """Repeats with ten clients, in a closed loop or at a target rate."""
    factors = typical(n, noise, (throughput, p99_us))
    closed = "target" not in more
    return [
        replace(
            Ycsb(
                throughput * (factor if closed else 1.0),
                (9.8e6 / throughput if closed else p99_us / 3) / factor,
                p99_us / factor,
            ),
            **more,  # type: ignore[arg-type]
        )
        for factor in factors
    ]


def compare_files(slow: ResultSet, fast: ResultSet, *metrics: str) -> ResultSet:
    """Two files, joined as `loadstone compare` joins them."""
    joined = join_results([slow, fast])
    return replace(joined, question=replace(joined.question, metrics=metrics)) if metrics else joined


def two(slow: list[Ycsb], fast: list[Ycsb], *metrics: str) -> ResultSet:
    """Logs of two systems without any facts."""
    return compare_files(logs("rocksdb", slow), logs("lmdb", fast), *metrics)


def table(rows: Sequence[str], header: str, **question: object) -> ResultSet:
    """A CSV file."""
    results = read("\n".join([header, *rows]) + "\n", "table.csv")
    return replace(results, question=Question(**question))  # type: ignore[arg-type]


def bounds_in_a_table() -> ResultSet:
    """A table in which one side's p99 falls on failed operations, as the table states."""
    rows = [f"rocksdb,{n},read.p99,ms,{20 + n / 100}," for n in range(1, 7)]
    rows += [f"lmdb,{n},read.p99,ms,{10 + n / 100},failed" for n in range(1, 7)]
    return table(rows, "variant,repeat,metric,unit,value,bound", metrics=(P99,))


def handwritten_report() -> ResultSet:
    """A report typed by hand: 20 clients, 68,849 op/s and a mean of 0.731 ms, which require 50 clients."""
    rows = []
    for n in range(1, 7):
        for variant, rate in (("plain", 28_000.0), ("split", 68_849.0)):
            rows.append(f"{variant},{n},20,throughput,op/s,{rate + n}")
            rows.append(f"{variant},{n},20,all.mean,ms,0.731")
    return table(rows, "variant,repeat,clients,metric,unit,value", by="variant", metrics=("throughput",))


def dfsio(read_mbs: dict[str, float]) -> ResultSet:
    """TestDFSIO on nodes whose disks deliver 1,000 MB/s."""

    def make(system: str, block: int, rate: float) -> TrialResult:
        bandwidth = figure("read.bandwidth", rate * 1e6, 100)
        known: dict[str, Scalar] = {
            "device_read_bps": 1e9,
            "bandwidth_of": "node",
            "data_nodes": 3,
            "tool": "testdfsio",
        }
        return TrialResult(f"{system}-{block}", {"system": system}, block, {"read.bandwidth": bandwidth}, facts=known)

    return simulate_results(read_mbs, make=make, minute=lambda _: None, planned={})


def millisecond_histograms(slow_us: int, fast_us: int) -> ResultSet:
    """The p99 of two sides with the measurement type `histogram`."""
    bins = (0, 590_000, 10_000)
    return two(runs(10_000, slow_us, milliseconds=bins), runs(10_000, fast_us, milliseconds=bins), P99)


IMPORTED = [
    Case(
        "YCSB, six runs each, twice as fast, no facts",
        lambda: two(runs(1000, 30_000), runs(2000, 15_000)),
        (
            wins("lmdb", 2.0),
            fires("sides-differ", "unchecked"),
            says(r"\d+ of \d+ checks ran"),
            verdict("unchecked"),
        ),
    ),
    Case(
        "YCSB, one run each, twice as fast",
        lambda: two(runs(1000, 30_000, 1), runs(2000, 15_000, 1)),
        (too_few(), fires("too-few-samples", "note"), verdict("unchecked")),
    ),
    Case(
        "YCSB, six runs each, the faster side failed in a fifth of its operations",
        lambda: two(runs(1000, 30_000), runs(2000, 15_000, failed=24_000)),
        (expect_refusal("errors"),),
    ),
    Case(
        "YCSB, six runs each, one side synced every write according to its facts",
        lambda: compare_files(
            logs("rocksdb", runs(100, 300_000), durability="device"), logs("lmdb", runs(2000, 15_000), durability="os")
        ),
        (expect_refusal("guarantees-differ"),),
    ),
    Case(
        "YCSB, six runs each, hosts of different sizes according to their facts",
        lambda: compare_files(logs("rocksdb", runs(1000, 30_000), cpus=8), logs("lmdb", runs(2000, 15_000), cpus=32)),
        (favours("lmdb"), verdict("suspect"), fires("hosts-differ", "suspect")),
    ),
    # Both sides reach 1,000 op/s, but lmdb pauses for one second in ten: its true p99 is 900 ms. With ten clients, YCSB
    # reports ten slow operations per pause and omits the remaining operations that were due.
    Case(
        "YCSB at a target, service times only: the report omits the pauses of one side",
        lambda: two(runs(1000, 2000, target=1000), runs(1000, 1000, target=1000), P99),
        (expect_no_trust(), says("service.time"), verdict("suspect", "invalid")),
        metric=P99,
    ),
    Case(
        "these runs with their response times",
        lambda: two(
            runs(1000, 2000, target=1000, intended_p99_us=2100.0),
            runs(1000, 1000, target=1000, intended_p99_us=900_000.0),
            P99,
        ),
        (favours("rocksdb"), verdict("unchecked")),
        metric=P99,
    ),
    Case(
        "YCSB did 700 of the 1,000 op/s of its target: the tail of the operations that it sent",
        lambda: two(runs(700, 2000, target=1000), runs(1000, 2500, target=1000), P99),
        (expect_no_trust(), verdict("invalid")),
        metric=P99,
    ),
    Case(
        "capacities of 9,500 and 9,900 op/s at a target of 10,000: the queue grew for a minute",
        lambda: two(
            runs(9500, 1000, target=10_000, intended_p99_us=2_970_000.0),
            runs(9900, 1000, target=10_000, intended_p99_us=594_000.0),
            P99,
        ),
        (expect_no_trust(), fires("rate-not-held", "invalid"), verdict("invalid")),
        metric=P99,
    ),
    Case(
        "both start 0.6 s late of a minute at their target: no operation waits for operations that were never due",
        lambda: two(
            runs(9900, 1000, target=10_000, intended_p99_us=40_000.0),
            runs(9900, 1000, target=10_000, intended_p99_us=20_000.0),
            P99,
        ),
        (favours("lmdb"), silent("rate-not-held"), verdict("unchecked")),
        metric=P99,
    ),
    Case(
        "YCSB's histogram of whole milliseconds: a p99 of 2 ms against 3 ms may be 2.99 against 3",
        lambda: millisecond_histograms(3050, 2050),
        (expect_no_claim(), silent("impossible"), verdict("unchecked")),
        metric=P99,
    ),
    Case(
        "YCSB's histogram of whole milliseconds: a p99 of 1 ms against 9 ms, and a p95 below the minimum, rounded to 0",
        lambda: millisecond_histograms(9050, 1050),
        (favours("lmdb"), silent("impossible"), verdict("unchecked")),
        metric=P99,
    ),
    Case(
        "three YCSB logs each, each imported twice",
        lambda: two(2 * runs(1000, 30_000, 3), 2 * runs(2000, 15_000, 3)),
        (expect_no_claim(), verdict("invalid")),
    ),
    Case(
        "YCSB, six runs each, 95 percent reads against 50 percent, according to the counts in the logs",
        lambda: two(runs(1000, 30_000, updates=0.5), runs(2000, 15_000, updates=0.05)),
        (verdict("suspect", "invalid"), fires("load-differs"), unsure()),
    ),
    Case(
        "a table whose p99 fell on failed operations",
        bounds_in_a_table,
        (expect_bound(), verdict("unchecked")),
        metric=P99,
    ),
    Case(
        "a table typed by hand, whose figures need 50 clients and name 20",
        handwritten_report,
        (fires("littles-law", "suspect"), favours("split"), verdict("suspect")),
    ),
    Case(
        "the report on TestDFSIO: 1,804 MB/s from disks that deliver 1,690 MB/s, three repeats",
        lambda: from_file(FIXTURES / "hdfs-read.csv", {}),
        (fires("impossible", "invalid"), expect_no_claim(), verdict("invalid")),
        metric="read.bandwidth",
        context={"hdfs_replication": 3, "volume_replication": 1},
    ),
    Case(
        "TestDFSIO reads at 1,800 MB/s from disks that deliver 1,000 MB/s",
        lambda: dfsio({"px": 300.0, "no-px": 1800.0}),
        (expect_refusal("impossible"),),
        metric="read.bandwidth",
    ),
    Case(
        "TestDFSIO reads at 600 MB/s from disks that deliver 1,000 MB/s",
        lambda: dfsio({"px": 300.0, "no-px": 600.0}),
        (wins("no-px", 2.0), silent("impossible"), verdict("valid")),
        metric="read.bandwidth",
    ),
]
