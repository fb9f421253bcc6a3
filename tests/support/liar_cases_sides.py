"""Deceptive sides, with different work or with copied repeats; and honest sides that resemble them."""

from __future__ import annotations

from dataclasses import replace

from judge_support import asking, set_figures
from known_truth_expected import Case, favours, fires, says, silent, unsure, verdict, wins
from known_truth_imports import compare_files
from known_truth_support import MS, change_system, figure, simulate_results, trial
from liar_support import (
    KNOWN,
    alternating,
    dfsio,
    fio,
    logs,
    noise,
    performance,
    plant_difference,
    side,
    stress,
    table,
    ycsb,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult

P99 = "read.p99"
NOT_VALID = verdict("suspect", "invalid")
DIFFER = fires("sides-differ", "suspect", "invalid")


def two_rates(first: float, second: float) -> ResultSet:
    """The latencies of two sides at these rates; the latencies of the second side are a ninth as long."""

    def make(system: str, block: int, factor: float) -> TrialResult:
        rate = first if system == "rocksdb" else second
        trial_of = trial(system, block, rate, rate, 10 * MS * factor / 1000)
        return replace(trial_of, facts={**trial_of.facts, "target": rate})

    return simulate_results({"rocksdb": 1000.0, "lmdb": 110.0}, make=make, question=asking(metrics=(P99,)))


def mix_clients() -> ResultSet:
    """One side has eleven logs with ten clients and one log with forty clients."""
    slow = side("plain", ycsb(1000, "a", n=12), begins=alternating(0, 12), known=KNOWN)
    fast = ycsb(1010, "b", n=11) + ycsb(4000, "c", n=1, clients=40)
    results = side("tuned", fast, begins=alternating(1, 12), known=KNOWN)
    trials = [replace(trial_of, config={"variant": "tuned"}) for trial_of in results.trials]
    return compare_files(slow, replace(results, trials=trials))


def kinds_as_repeats() -> ResultSet:
    """Half of one side's six repeats are its reads, the other half its updates."""
    slow, fast = ycsb(1000, "a"), ycsb(1300, "b")
    fast[3:] = [text.replace("[READ]", "[UPDATE]") for text in fast[3:]]
    known = {name: value for name, value in KNOWN.items() if name != "mix"}
    return logs(slow, fast, known=known)


def repeat_mean() -> ResultSet:
    """The mean of six repeats, entered for each of them."""
    rows = [f"{variant},{n},10,throughput,op/s,{rate}" for n in range(1, 7) for variant, rate in MEANS.items()]
    return table(rows, "variant,repeat,clients,metric,unit,value", by="variant", metrics=("throughput",))


MEANS = {"plain": 1031.24, "tuned": 1126.54}


def share_logs() -> ResultSet:
    """Five of the six logs of one side are also logs of the other side."""
    slow = ycsb(1000, "a")
    return logs(slow, [*slow[:5], *ycsb(1300, "b", n=1)], known=KNOWN)


def crash_repeats() -> ResultSet:
    """Three of nine repeats of one side crashed, and their cells contain NaN."""
    rows = []
    for n, (plain, tuned) in enumerate(zip(noise("a", 9), noise("b", 9), strict=True), 1):
        rows.append(f"plain,{n},10,throughput,op/s,{1000 * plain:.3f}")
        rows.append(f"tuned,{n},10,throughput,op/s,{'NaN' if n % 3 == 0 else f'{1100 * tuned:.3f}'}")
    return table(rows, "variant,repeat,clients,metric,unit,value", by="variant", metrics=("throughput",))


def own_folders() -> ResultSet:
    """Each run of either side has a separate data folder and writes to a separate file."""
    slow, fast = (
        [text.replace("-threads", f"-p rocksdb.dir=/data/{at} -p exportfile=/tmp/{at} -threads", 1)
         for at, text in enumerate(texts)]
        for texts in (ycsb(1000, "a"), ycsb(1300, "b"))
    )  # fmt: skip
    return logs(slow, fast, known=KNOWN)


def overlapping_runs() -> ResultSet:
    """Each run of one side began five seconds after a run of the other side."""
    slow, fast = (side(name, ycsb(rate, name), begins=alternating(0), known=KNOWN) for name, rate in MEANS.items())
    later = [replace(trial_of, start_unix_ns=(trial_of.start_unix_ns or 0) + 5 * 10**9) for trial_of in fast.trials]
    return compare_files(slow, replace(fast, trials=later))


def device_against_cache() -> ResultSet:
    """One side reads from the device, the other from the page cache, twice as fast."""
    cached = set_figures(device__reads=20, device__read=80_000, device__read_per_operation=1.3)
    return simulate_results({"rocksdb": 1000.0, "lmdb": 2000.0}, change=change_system("lmdb", cached))


def bytes_per_read() -> ResultSet:
    """Reads of one side return 1,000 bytes, reads of the other side 100 bytes."""

    def short(trial_of: TrialResult) -> TrialResult:
        returned = figure("returned", 100 * trial_of.values["operations"].value, 60_000)
        return replace(trial_of, values={**trial_of.values, "returned": returned})

    return simulate_results({"rocksdb": 1000.0, "lmdb": 2000.0}, change=change_system("lmdb", short))


SIDES = [
    Case(
        "latencies at 20,000 op/s against latencies at 1,000 op/s",
        lambda: two_rates(20_000, 1000),
        (unsure(), verdict("invalid"), says("20,000"), says("1,000")),
        metric=P99,
    ),
    Case(
        "latencies at 1,000 op/s on both sides",
        lambda: two_rates(1000, 1000),
        (favours("lmdb"), verdict("valid"), silent("sides-differ")),
        metric=P99,
    ),
    Case(
        "values of 10,000 bytes against 100",
        lambda: plant_difference(3.01, first={"record_bytes": 10_000}, known={"record_bytes": 100}),
        (unsure(), NOT_VALID),
    ),
    Case(
        "ext4 on sda with engine 0.1 against xfs on nvme with 0.9",
        lambda: plant_difference(
            1.99,
            first={"device": "sda", "engine": "0.1.0"},
            known={"file_system": "xfs", "device": "nvme0n1", "engine": "0.9.0"},
        ),
        (favours("second"), verdict("suspect"), DIFFER, says("ext4"), says("xfs"), says(r"0\.9\.0")),
    ),
    Case(
        "fio with fsync on one side",
        lambda: logs(fio(1000, "a", fsync=1), fio(1300, "b"), suffix="json"),
        (NOT_VALID, DIFFER, says("fsync")),
    ),
    Case(
        "fio with an option on one side whose default is unknown",
        lambda: logs(fio(1000, "a", random_distribution="zipf:1.2"), fio(1300, "b"), suffix="json"),
        (verdict("unchecked"), says("random.distribution")),
    ),
    Case(
        "fio with sizes and truths in several spellings",
        lambda: logs(fio(1000, "a", size="1G"), fio(1300, "b", bs="4096", direct="true", size=2**30), suffix="json"),
        (wins("tuned", 1.3), verdict("valid"), silent("sides-differ")),
    ),
    Case(
        "YCSB with reads of one field on one side",
        lambda: logs(ycsb(1000, "a"), ycsb(1300, "b", "-p readallfields=false"), known=KNOWN),
        (verdict("unchecked"), says("readallfields")),
    ),
    Case(
        "YCSB with consistency levels of Cassandra on both command lines",
        lambda: logs(
            ycsb(1000, "a", "-p cassandra.writeconsistencylevel=QUORUM"),
            ycsb(1300, "b", "-p cassandra.writeconsistencylevel=ONE"),
            known=KNOWN,
        ),
        (unsure(), verdict("invalid"), says("QUORUM"), says("ONE")),
    ),
    Case("YCSB with a folder for each run", own_folders, (wins("tuned", 1.3), verdict("valid"))),
    Case("runs of both sides at the same time", overlapping_runs, (verdict("suspect"), says("overlapped"))),
    Case(
        "the same facts on both sides",
        lambda: plant_difference(1.3),
        (wins("second", 1.3), verdict("valid"), silent("sides-differ")),
    ),
    Case(
        "file systems as the compared dimension",
        lambda: plant_difference(1.3, by="file_system", known={"file_system": "xfs"}),
        (wins("second", 1.3), verdict("valid"), silent("sides-differ")),
    ),
    Case(
        "a pooler before PostgreSQL on one side only",
        lambda: plant_difference(1.3, first={"store": "postgres"}, known={"pooler": "shares server connections"}),
        (favours("second"), verdict("suspect"), DIFFER, says("pooler"), says("none")),
    ),
    Case(
        "a pooler before PostgreSQL's documents on one side only",
        lambda: plant_difference(1.3, first={"store": "postgrenosql"}, known={"pooler": "shares server connections"}),
        (favours("second"), verdict("suspect"), DIFFER, says("pooler"), says("none")),
    ),
    Case(
        "PostgreSQL with and without a pooler, which are the compared systems",
        lambda: plant_difference(
            1.3, by="system", first={"store": "postgres"}, known={"pooler": "shares server connections"}
        ),
        (wins("second", 1.3), verdict("valid"), silent("sides-differ")),
    ),
    Case(
        "a window of an hour against one of five seconds",
        lambda: plant_difference(
            1.3, alter_second=set_figures(runtime=5e9, operations=6500, read__count=6500, device__read=2e7)
        ),
        (unsure(), verdict("suspect", "invalid")),
    ),
    Case(
        "YCSB with 1,000 records against 100,000,000, by the command lines",
        lambda: logs(ycsb(4000, "a", "-p recordcount=1000"), ycsb(1000, "b", "-p recordcount=100000000")),
        (unsure(), verdict("suspect"), DIFFER, says("1,000"), says("100,000,000")),
    ),
    Case(
        "YCSB with fields of 100 bytes against 1,000, by the command lines",
        lambda: logs(ycsb(4000, "a", "-p fieldlength=100"), ycsb(1000, "b", "-p fieldlength=1000")),
        (unsure(), verdict("suspect"), DIFFER),
    ),
    Case(
        "YCSB with zipfian requests against uniform ones, by the command lines",
        lambda: logs(
            ycsb(4000, "a", "-p requestdistribution=zipfian"), ycsb(1000, "b", "-p requestdistribution=uniform")
        ),
        (unsure(), verdict("suspect"), DIFFER, says("zipfian"), says("uniform")),
    ),
    Case(
        "YCSB, all relevant facts stated and equal, with alternating runs",
        lambda: logs(ycsb(1000, "a"), ycsb(1300, "b"), known=KNOWN),
        (favours("tuned"), verdict("valid")),
    ),
    Case(
        "YCSB by its reports alone: the number of records is unknown",
        lambda: logs(ycsb(1000, "a"), ycsb(1300, "b")),
        (favours("tuned"), verdict("unchecked"), says("if .*record")),
    ),
    Case(
        "cassandra-stress: service times against response times",
        lambda: logs(stress(500, "a", "fixed", 90.0), stress(500, "b", "throttle", 30.0), "all.p99"),
        (unsure(), verdict("invalid"), says("response"), says("service")),
        metric="all.p99",
    ),
    Case(
        "HBase with its write-ahead log against HBase without",
        lambda: logs(performance(1000, "a", writeToWAL=True), performance(2000, "b", writeToWAL=False)),
        (unsure(), verdict("suspect", "invalid"), DIFFER),
    ),
    Case(
        "fio with an iodepth of 1 against 32",
        lambda: logs(fio(1000, "a"), fio(15_000, "b", iodepth=32), "throughput", suffix="json"),
        (unsure(), verdict("suspect", "invalid"), DIFFER, says("32")),
    ),
    Case(
        "fio's psync against io_uring, both with an iodepth of 8",
        lambda: logs(
            fio(1000, "a", iodepth=8, ioengine="psync"), fio(15_000, "b", iodepth=8), "throughput", suffix="json"
        ),
        (unsure(), verdict("suspect", "invalid"), DIFFER, says("1 against 8")),
    ),
    Case(
        "fio with random reads against random writes",
        lambda: logs(fio(1000, "a"), fio(1000, "b", rw="randwrite"), "throughput", suffix="json"),
        (unsure(), verdict("suspect", "invalid"), DIFFER, says("randwrite")),
    ),
    Case(
        "fio with direct I/O against buffered I/O",
        lambda: logs(fio(1000, "a"), fio(15_000, "b", direct=0), "throughput", suffix="json"),
        (unsure(), verdict("suspect", "invalid"), DIFFER),
    ),
    Case(
        "fio with the same job on both sides",
        lambda: logs(fio(1000, "a"), fio(1500, "b"), "throughput", suffix="json"),
        (favours("tuned"), verdict("valid"), silent("sides-differ")),
    ),
    Case(
        "TestDFSIO with 64 files against one",
        lambda: logs(dfsio(50, "a", 64), dfsio(100, "b", 1), "write.bandwidth"),
        (unsure(), verdict("suspect", "invalid"), DIFFER, says("64")),
        metric="write.bandwidth",
    ),
    Case(
        "TestDFSIO with the same files on both sides",
        lambda: logs(dfsio(50, "a", 64), dfsio(100, "b", 64), "write.bandwidth"),
        (favours("tuned"), verdict("valid")),
        metric="write.bandwidth",
    ),
    Case(
        "cassandra-stress against YCSB",
        lambda: logs(stress(500, "a", "throttle"), ycsb(1000, "b")),
        (unsure(), verdict("invalid")),
    ),
    Case(
        "1,000 bytes against 100 in each read",
        bytes_per_read,
        (unsure(), verdict("suspect", "invalid"), DIFFER),
    ),
    Case(
        "the device against the page cache",
        device_against_cache,
        (unsure(), verdict("suspect", "invalid")),
    ),
    # Repeats.
    Case(
        "eleven logs of ten clients and one of forty on one side",
        mix_clients,
        (verdict("suspect", "invalid"), says("40")),
    ),
    Case(
        "the reads and the updates of three runs as six repeats",
        kinds_as_repeats,
        (verdict("suspect", "invalid"), DIFFER),
    ),
    Case("one mean entered six times", repeat_mean, (unsure(), verdict("invalid"))),
    Case("five of six logs shared by both sides", share_logs, (unsure(), verdict("invalid"))),
    Case("three of nine repeats crashed", crash_repeats, (unsure(), NOT_VALID)),
]
