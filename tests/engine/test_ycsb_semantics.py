"""The YCSB front end sends the right operations and keys to a store at the right times, and counts them correctly."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import statistics
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from conftest import FIXTURES, LATE, ROOT, CommandResult, Engine, check_on_time, dump, operations

STORES = ("rocksdb", "lmdb", "fjall", "redb")
LOAD = "load rocksdb -P workloads/workloada rocksdb.dir=db"
RUN = "run rocksdb rocksdb.dir=db"
# The version of YCSB's own binding, and the newest pinned version.
VERSIONS = ("5.11.3", "10.10.1")


def fnv(number: int) -> int:
    """YCSB's hash of a record's number."""
    value = 0xCBF29CE484222325
    for byte in number.to_bytes(8, "little"):
        value = (value ^ byte) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return abs(value - (1 << 64) if value >> 63 else value)


def integrity(key: str, field: str, length: int) -> str:
    """YCSB's content of a field with dataintegrity."""
    text = f"{key}:{field}"
    while len(text) < length:
        text += ":"
        code = 0
        for letter in text:
            code = (31 * code + ord(letter)) & 0xFFFFFFFF
        text += str(code - (1 << 32) if code >> 31 else code)
    return text[:length]


# Keys and values


def test_loaded_keys_are_the_hashes_of_ycsb(engine: Engine) -> None:
    assert fnv(0) == 6284781860667377211
    assert fnv(999999) == 2744965632448235251
    engine(f"{LOAD} recordcount=300 -threads 3")
    assert set(dump(engine)) == {f"user{fnv(number)}" for number in range(300)}


def test_ordered_keys_are_padded_numbers(engine: Engine) -> None:
    engine(f"{LOAD} recordcount=120 insertorder=ordered zeropadding=8 insertstart=20 insertcount=100")
    assert list(dump(engine)) == [f"user{number:08}" for number in range(20, 120)]


def test_values_have_ycsbs_letters_and_length(engine: Engine) -> None:
    engine(f"{LOAD} recordcount=200 fieldcount=3 fieldlength=50")
    digits, capitals, small = set(range(0x20, 0x40)), set(range(0x20, 0x60)), {*range(0x20, 0x40), *range(0x60, 0x80)}
    results: list[set[int]] = [set() for _ in range(6)]
    for fields in dump(engine).values():
        assert sorted(fields) == ["field0", "field1", "field2"]
        for value in fields.values():
            assert len(value) == 50
            for at, letter in enumerate(value):
                results[at % 6].add(ord(letter))
    assert results == [digits, capitals, small, digits, capitals, small]


def test_values_with_integrity_are_ycsbs_byte_for_byte(engine: Engine) -> None:
    assert integrity("user1", "field3", 16) == "user1:field3:-12"
    engine(f"{LOAD} recordcount=20 dataintegrity=true")
    for key, fields in dump(engine).items():
        assert fields == {name: integrity(key, name, 100) for name in fields}
        assert len(fields) == 10


@pytest.mark.parametrize("version", VERSIONS)
def test_database_of_the_ycsb_binding_is_verified_completely(engine: Engine, version: str) -> None:
    with tarfile.open(FIXTURES / "ycsb-rocksdb-2000.tar.gz") as archive:
        archive.extractall(engine.home, filter="data")
    options = f"rocksdb.dir=visible rocksdb.version={version} recordcount=2000 dataintegrity=true"
    result = engine(f"run rocksdb -P workloads/workloadc {options} operationcount=2000 requestdistribution=sequential")
    assert result.returns("VERIFY") == {"OK": 2000}
    assert f"version {version}" in result.err
    # A newer RocksDB would write a format that the older version cannot read.
    assert len(dump(engine, "rocksdb", "visible", f"rocksdb.version={version}")) == 2000
    result = engine(f"run rocksdb -P workloads/workloadf {options} operationcount=2000 -threads 3")
    assert result.returns("VERIFY") == {"OK": 2000}


@pytest.mark.parametrize("store", STORES)
def test_every_store_gives_back_what_was_written(engine: Engine, store: str) -> None:
    options = f"{store}.dir=db recordcount=500 dataintegrity=true -threads 3"
    assert engine(f"load {store} -P workloads/workloada {options}").returns("INSERT") == {"OK": 500}
    for workload in "abcdf":
        result = engine(f"run {store} -P workloads/workload{workload} {options} operationcount=1000")
        assert set(result.returns("VERIFY")) == {"OK"}
    result = engine(f"run {store} -P workloads/workloade {options} operationcount=300")
    assert result.returns("SCAN") == {"OK": 285}
    expected = {f"user{fnv(number)}" for number in range(500 + 50)}
    assert set(dump(engine, store)) == expected


def test_absent_record_is_not_verified(engine: Engine) -> None:
    """A missing record cannot be compared, and is not a fault of the store."""
    engine(f"{LOAD} recordcount=100 dataintegrity=true")
    result = engine(
        f"{RUN} -P workloads/workloadd recordcount=100 operationcount=30000 insertlag=0 -threads 8 dataintegrity=true "
        "readproportion=0.5 insertproportion=0.5"
    )
    assert result.returns("VERIFY") == {"OK": result.returns("READ")["OK"]}


def test_one_field_is_read_and_written_where_asked(engine: Engine) -> None:
    engine(f"{LOAD} recordcount=50 dataintegrity=true")
    result = engine(f"{RUN} -P workloads/workloada recordcount=50 readallfields=false dataintegrity=true")
    assert set(result.returns("VERIFY")) == {"OK"}
    result = engine(f"{RUN} -P workloads/workloada recordcount=50 writeallfields=true dataintegrity=true")
    assert set(result.returns("VERIFY")) == {"OK"}
    assert {len(fields) for fields in dump(engine).values()} == {10}


@pytest.mark.parametrize("distribution", ["uniform", "zipfian", "histogram"])
def test_field_lengths_follow_their_distribution(engine: Engine, distribution: str) -> None:
    (engine.home / "hist.txt").write_text("BlockSize\t10\n0\t5\n1\t3\n2\t2\n3\t1\n")
    engine(f"{LOAD} recordcount=300 fieldlengthdistribution={distribution} minfieldlength=5 fieldlength=40")
    lengths = [len(value) for fields in dump(engine).values() for value in fields.values()]
    assert len(lengths) == 3000
    if distribution == "histogram":
        assert set(lengths) == {10, 20, 30}
        assert lengths.count(10) > lengths.count(20) > lengths.count(30)
    else:
        assert (min(lengths), max(lengths)) == (5, 40)
        mean = statistics.mean(lengths)
        assert abs(mean - 22.5) < 1.5 if distribution == "uniform" else mean < 20


# Workloads


def test_core_workloads_run_in_sequence_without_a_failure(engine: Engine) -> None:
    assert engine(f"{LOAD} recordcount=1000 -threads 3").returns("INSERT") == {"OK": 1000}
    quotas = {
        "a": {"READ": 500, "UPDATE": 500},
        "b": {"READ": 950, "UPDATE": 50},
        "c": {"READ": 1000},
        "f": {"READ": 1000, "UPDATE": 500},
        "d": {"READ": 950, "INSERT": 50},
        "e": {"SCAN": 950, "INSERT": 50},
    }
    for workload, quota in quotas.items():
        result = engine(f"{RUN} -P workloads/workload{workload} -threads 3")
        for metric, count in quota.items():
            returns = result.returns(metric)
            assert set(returns) <= {"OK", "NOT_YET"}, workload
            assert sum(returns.values()) == count, "operations have exact proportions"
    assert len(dump(engine)) == 1050


def test_latest_records_are_read_or_reported_as_pending(engine: Engine) -> None:
    engine(f"{LOAD} recordcount=1000")
    for keys, lag in itertools.product(("latest", "zipfian", "uniform", "exponential"), ("", "insertlag=0")):
        result = engine(
            f"{RUN} -P workloads/workloadd operationcount=30000 requestdistribution={keys} {lag} -threads 8 "
            "readproportion=0.5 insertproportion=0.5"
        )
        returns = result.returns("READ")
        assert set(returns) <= {"OK", "NOT_YET"}
        assert result.returns("INSERT") == {"OK": 15000}
        assert result.value("READ", "Operations") == returns["OK"], "a read of a pending record is no success"
        if "NOT_YET" in returns:
            assert result.value("READ-NOT_YET", "Operations") == returns["NOT_YET"]
        if not lag:
            assert returns.get("NOT_YET", 0) < 150


def test_second_run_warns_of_overwritten_inserts(engine: Engine) -> None:
    line = "lmdb -P workloads/workloadd lmdb.dir=db recordcount=1000"
    engine(f"load {line}")
    first = engine(f"run {line} operationcount=2000")
    assert "overwritten" not in first.err
    inserts = int(first.value("INSERT", "Operations"))
    second = engine(f"run {line} operationcount=2000")
    (warning,) = second.messages("warning: ")
    start = f"the inserts of this run begin at record 1000, and overwrite at least {inserts} existing records"
    assert warning.startswith(start)
    (hint,) = second.messages("hint: ")
    assert hint.startswith(f"set recordcount={1000 + inserts} ")
    third = engine(f"run lmdb -P workloads/workloadd lmdb.dir=db recordcount={1000 + inserts} operationcount=2000")
    assert not third.messages("warning: ")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_quotas_are_exact_for_run_length(engine: Engine, seed: int) -> None:
    # The share of updates is 0.05 of 1.05, because updateproportion keeps its default.
    result = engine(f"run null recordcount=10 operationcount=1000 readproportion=1 seed={seed}")
    assert result.value("UPDATE", "Operations") in (47, 48)


def test_deletes_remove_the_oldest_records(engine: Engine) -> None:
    mix = "readproportion=0.8 insertproportion=0.1 deleteproportion=0.1"
    for threads in (1, 3):
        directory = f"db{threads}"
        engine(f"load rocksdb -P workloads/workloada rocksdb.dir={directory} recordcount=1000")
        run = f"run rocksdb -P workloads/workloadc rocksdb.dir={directory} recordcount=1000 operationcount=2000 {mix}"
        result = engine(f"{run} -threads {threads}")
        assert result.returns("DELETE") == {"OK": 200}
        assert result.returns("INSERT") == {"OK": 200}
        # A single client's operations cannot overtake each other.
        assert set(result.returns("READ")) <= ({"OK"} if threads == 1 else {"OK", "NOT_YET"})
        assert set(dump(engine, "rocksdb", directory)) == {f"user{fnv(number)}" for number in range(200, 1200)}


@pytest.mark.parametrize(
    ("options", "records"),
    [
        ("disksize=100000", 90),
        ("disksize=123456 occupancy=.37 fieldcount=3 fieldlength=77", 197),
        ("disksize=100000 fieldlengthdistribution=uniform", 178),
        ("disksize=100000 fieldlengthdistribution=uniform minfieldlength=20", 150),
        ("disksize=100000 fieldlengthdistribution=histogram fieldlengthhistogram=h fieldcount=4", 3214),
    ],
)
def test_constant_occupancy_counts_records_as_ycsb_does(engine: Engine, options: str, records: int) -> None:
    """The numbers are from a load by YCSB 0.17.0."""
    (engine.home / "h").write_text("BlockSize\t10\n0\t5\n1\t3\n2\t2\n")
    workload = "workload=site.ycsb.workloads.ConstantOccupancyWorkload"
    assert engine(f"load rocksdb rocksdb.dir=db {workload} {options}").value("INSERT", "Operations") == records
    result = engine(f"{RUN} {workload} {options} storageages=3")
    assert operations(result) == 3 * records
    assert set(result.returns("READ")) == {"OK"}


def test_class_name_may_omit_its_package(engine: Engine) -> None:
    for name in ("CoreWorkload", "site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload"):
        assert engine(f"load null recordcount=10 workload={name}").value("INSERT", "Operations") == 10


# Segments


def test_parallel_clients_load_disjoint_and_complete_keys(engine: Engine) -> None:
    shares = []
    for k in range(3):
        result = engine(f"load lmdb -P workloads/workloada lmdb.dir=db{k} recordcount=1000 segment={k}/3 -threads 3")
        shares.append(set(dump(engine, "lmdb", f"db{k}")))
        assert result.value("INSERT", "Operations") == len(shares[-1])
    assert [len(share) for share in shares] == [334, 333, 333]
    assert set.union(*shares) == {f"user{fnv(number)}" for number in range(1000)}


def test_inserts_of_segments_do_not_collide(engine: Engine) -> None:
    inserted = []
    for k in range(3):
        engine(f"load lmdb -P workloads/workloada lmdb.dir=db{k} recordcount=1000 seed=1")
        before = set(dump(engine, "lmdb", f"db{k}"))
        result = engine(
            f"run lmdb -P workloads/workloadd lmdb.dir=db{k} operationcount=3000 segment={k}/3 -threads 6 seed=2"
        )
        inserted.append(set(dump(engine, "lmdb", f"db{k}")) - before)
        assert result.value("INSERT", "Operations") == len(inserted[-1])
        # The other segments' inserts are absent from this database, which is not a failure.
        assert set(result.returns("READ")) <= {"OK", "NOT_YET"}
    assert sum(map(len, inserted)) == 150
    assert set.union(*inserted) == {f"user{fnv(number)}" for number in range(1000, 1150)}


def test_concurrent_segments_share_clients_and_rate(engine: Engine) -> None:
    """LMDB accepts several processes."""
    rates, expected = [], [pytest.approx(1000, abs=100)] * 3
    # A busy host may also stop a process before or after its load, but not in each of ten attempts.
    for attempt in range(10):
        load = f"load lmdb -P workloads/workloada lmdb.dir=db{attempt} recordcount=3000 -threads 5 -target 3000"
        processes = [engine.start(f"{load} segment={k}/3") for k in range(3)]
        results = [CommandResult(0, *process.communicate(timeout=60), 0) for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0]
        assert len(dump(engine, "lmdb", f"db{attempt}")) == 3000
        assert [result.value("CLEANUP", "Operations") for result in results] == [2, 2, 1]
        rates = [result.value("OVERALL", "Throughput(ops/sec)") for result in results]
        if rates == expected:
            break
    assert rates == expected


# Seeds


def test_equal_seeds_store_equal_bytes_for_any_threads(engine: Engine) -> None:
    dumps = []
    for threads in (1, 2, 7):
        engine(
            f"load rocksdb -P workloads/workloada rocksdb.dir=db{threads} recordcount=500 seed=42 -threads {threads}"
        )
        engine(
            f"run rocksdb -P workloads/workloadd rocksdb.dir=db{threads} recordcount=500 operationcount=2000 seed=43 "
            f"-threads {threads} insertlag=14"
        )
        dumps.append(dump(engine, directory=f"db{threads}"))
    assert len(dumps[0]) == 600
    assert dumps[0] == dumps[1] == dumps[2]
    engine("load rocksdb -P workloads/workloada rocksdb.dir=other recordcount=500 seed=44")
    other = dump(engine, directory="other")
    assert all(other[key] != dumps[0][key] for key in other)


def test_the_seed_that_is_told_repeats_the_run(engine: Engine) -> None:
    first = engine("load rocksdb -P workloads/workloada rocksdb.dir=first recordcount=100")
    (seed,) = first.messages("Seed: ")
    engine(f"load rocksdb -P workloads/workloada rocksdb.dir=again recordcount=100 seed={seed} -threads 3")
    assert dump(engine, directory="first") == dump(engine, directory="again")


# Time


def test_run_without_operation_count_lasts_its_time(engine: Engine) -> None:
    result = engine("run null -P workloads/workloadc operationcount=0 maxexecutiontime=2")
    # Without a rate, no report states that the last operation was late, so the run time has no tight upper bound.
    assert 1000 <= result.value("OVERALL", "RunTime(ms)") <= 1000 * result.seconds
    assert result.value("READ", "Operations") > 10_000
    assert 2 <= result.seconds < 20


def test_a_run_ends_at_whichever_limit_comes_first(engine: Engine) -> None:
    assert operations(engine("run null -P workloads/workloadc operationcount=50 maxexecutiontime=30")) == 50

    def check_end(result: CommandResult) -> None:
        assert 95 <= operations(result) <= 101

    check_on_time(
        engine, "run null -P workloads/workloadc operationcount=1000000 maxexecutiontime=1 -target 100", check_end
    )


def test_load_stops_when_its_time_is_over(engine: Engine) -> None:
    def check_end(result: CommandResult) -> None:
        assert 195 <= result.value("INSERT", "Operations") <= 201

    check_on_time(
        engine, "load null -P workloads/workloada recordcount=100000 maxexecutiontime=1 -target 200", check_end
    )


def test_the_warm_up_is_in_no_figure(engine: Engine) -> None:
    def check_pace(result: CommandResult) -> None:
        assert operations(result) == 1000
        assert 950 <= result.value("OVERALL", "RunTime(ms)") <= 1060
        assert result.seconds >= 1.9

    command = "run null -P workloads/workloada operationcount=1000 -target 1000 warmuptime=1 -s status.interval=1"
    check_on_time(engine, command, check_pace)
    result = engine("run null -P workloads/workloada operationcount=0 maxexecutiontime=1 warmuptime=1")
    assert 500 <= result.value("OVERALL", "RunTime(ms)") <= 1000 * (result.seconds - 1)
    assert result.seconds > 1.9
    result = engine("run null -P workloads/workloada operationcount=1000 warmuptime=1 -threads 3")
    assert operations(result) == 1000


@pytest.mark.parametrize("options", ["-threads 1", "-threads 5", "-threads 5 spin.sleep=true", "-threads 100"])
def test_a_target_holds_the_rate(engine: Engine, options: str) -> None:
    def check_rate(result: CommandResult) -> None:
        assert 1480 <= result.value("OVERALL", "RunTime(ms)") <= 1560
        assert 960 <= result.value("OVERALL", "Throughput(ops/sec)") <= 1015

    check_on_time(engine, f"run null -P workloads/workloada operationcount=1500 -target 1000 {options}", check_rate)


@pytest.mark.parametrize(("arrival", "low", "high"), [("uniform", 0.0, 0.03), ("poisson", 0.07, 0.2)])
def test_arrivals_are_spaced_as_asked(engine: Engine, arrival: str, low: float, high: float) -> None:
    def check_spacing(result: CommandResult) -> None:
        gaps = [b - a for a, b in itertools.pairwise(reads_at(result))]
        assert abs(statistics.mean(gaps) - 2.5) < 0.35
        # An exponential gap exceeds twice its mean with a probability of e^-2 = 13.5 %.
        assert low <= sum(1 for gap in gaps if gap > 5) / len(gaps) <= high

    command = "run null -P workloads/workloadc operationcount=1000 -target 400 measurementtype=raw seed=5"
    check_on_time(engine, f"{command} arrival={arrival}", check_spacing)


def test_a_ramp_climbs_and_then_stays(engine: Engine) -> None:
    def climbing(result: CommandResult) -> None:
        assert 1850 <= result.value("READ", "Total Operations") <= 1910
        assert [round(count, -2) for count in reads_per_second(result)] == [300, 700, 900]

    command = "run null -P workloads/workloadc operationcount=0 maxexecutiontime=3 measurementtype=raw"
    check_on_time(engine, f"{command} rate.ramp=100:900:2", climbing)


def test_words_for_late_operations_are_the_engines() -> None:
    # If the wording of the engine's messages changes, every timing check fails on a busy machine.
    source = (ROOT / "crates/measure/src/diagnostics.rs").read_text()
    assert all(text in source for text in LATE)


def test_steps_follow_one_another(engine: Engine) -> None:
    due_ms = [*range(0, 1000, 10), *range(1000, 2000, 2), *range(2000, 3000, 5)]

    def stepping(result: CommandResult) -> None:
        # The first read can be late without a report of late operations, but hardly all reads.
        start = min(at - due for at, due in zip(reads_at(result), due_ms, strict=False))
        for count, expected in zip(reads_per_second(result, start), (100, 500, 200), strict=True):
            assert abs(count - expected) <= 12

    command = "run null -P workloads/workloadc operationcount=0 maxexecutiontime=3 measurementtype=raw"
    check_on_time(engine, f"{command} rate.steps=100:1,500:1,200:1", stepping)


def reads_at(result: CommandResult) -> list[int]:
    """The start times of reads, in milliseconds, from raw measurements."""
    return sorted(int(ms) for ms in re.findall(r"^READ,(\d+),\d+$", result.out, re.M))


def reads_per_second(result: CommandResult, start: int | None = None) -> list[int]:
    """The number of reads in each of three seconds after the start; by default, after the first read."""
    at = reads_at(result)
    start = at[0] if start is None else start
    return [sum(1 for ms in at if second <= (ms - start) / 1000 < second + 1) for second in range(3)]


# Other entry points.


def test_a_printed_spec_runs_the_same_trial(engine: Engine) -> None:
    line = f"{LOAD} recordcount=300 -threads 3 seed=9"
    result = engine(line, "--print-spec")
    assert result.err == ""
    assert list(engine.home.iterdir()) == []
    spec = json.loads(result.out)
    assert (spec["spec"], spec["phase"], spec["seed"], spec["clients"]) == (2, "load", 9, 3)
    # The spec sets no lease, so the trial continues although its input ends after the spec.
    done = subprocess.run(
        [engine.program, "trial"], input=result.out, capture_output=True, text=True, cwd=engine.home, timeout=30
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(event) for event in done.stdout.splitlines()]
    assert events[0]["event"] == "ready"
    assert events[-1]["event"] == "summary"
    assert (events[-1]["end"], events[-1]["operations"]) == ("done", 300)
    through_trial = dump(engine)
    shutil.rmtree(engine.home / "db")
    engine(line)
    assert dump(engine) == through_trial


def test_reports_of_a_pipe_arrive_whole(engine: Engine, tmp_path: Path) -> None:
    process = engine.start("run null -P workloads/workloadc operationcount=200000 measurementtype=raw")
    assert process.stdout
    time.sleep(1)
    out = process.stdout.read()
    process.wait(timeout=20)
    assert len(re.findall(r"^READ,\d{13},\d+$", out, re.M)) == 200_000
    assert out.splitlines()[-1].startswith("[CLEANUP], ")
