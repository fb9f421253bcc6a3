"""Bad input: the YCSB front end reports the problem on one line and a hint on another, and leaves no partial output."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import CommandResult, Engine, dump
from ycsb_support import FAILED, INTERRUPTED, RUN, STORES, USAGE, A, read_refusal

LOAD = f"load rocksdb {A} rocksdb.dir=db"
LONG_MAX = "9223372036854775807"
BEYOND = "99999999999999999999"
PROPORTIONS = [f"{kind}proportion" for kind in ("read", "update", "insert", "scan", "readmodifywrite", "delete")]


def everything(home: Path) -> dict[str, bytes | None]:
    """Every file and directory below a directory, with contents."""
    return {str(p.relative_to(home)): p.read_bytes() if p.is_file() else None for p in sorted(home.rglob("*"))}


def refuse(engine: Engine, line: str, *more: str, code: int = USAGE, stdin: str = "") -> tuple[str, str]:
    """Runs a command that must fail before it changes anything."""
    before = everything(engine.home)
    result = engine.run(line, *more, stdin=stdin, timeout=20)
    refusal = read_refusal(result, code)
    assert result.out == ""
    assert everything(engine.home) == before, "files were left behind"
    return refusal


@pytest.mark.parametrize(
    ("line", "error", "hint"),
    [
        (f"{LOAD} recordcuont=5 -strict", "recordcuont", "did you mean recordcount?"),
        (f"{LOAD} rocksdb.dri=x -strict", "rocksdb.dri", "did you mean rocksdb.dir?"),
        (f"{LOAD} nonsense.property=1 -strict", "nonsense.property", "no effect"),
        (f"{LOAD} threads=10 -strict", "threads=10 has no effect", "-threads 10"),
        (f"{LOAD} recordcount=1e6", 'recordcount must be a whole number, got "1e6" (-p recordcount)', "write 1000000"),
        (f"{LOAD} recordcount=1_000", 'got "1_000"', "write 1000"),
        (f"{LOAD} recordcount=10k", 'got "10k"', "recordcount"),
        (f"{LOAD} recordcount=-5", 'got "-5"', "recordcount"),
        (f"{LOAD} recordcount=0x10", 'got "0x10"', "recordcount"),
        ("load rocksdb rocksdb.dir=db -P nowhere", "cannot read nowhere", "workloads/"),
        ("load rocksdb rocksdb.dir=db -P .", "cannot read .", "workloads/"),
        (f"load rocksbd {A}", 'no store "rocksbd"', "did you mean rocksdb?"),
        (f"load zzzzzz {A}", 'no store "zzzzzz"', "rocksdb"),
        (f"load mongodb {A}", "site.ycsb.db.MongoDbClient is not found", "-cp"),
        (f"load memcached {A}", "site.ycsb.db.MemcachedClient is not found", "-cp"),
        (f"load hbase12 {A}", "columnfamily is not set", "-p columnfamily=cf"),
        (f"load rocksdb {A}", "rocksdb.dir is not set", "-p rocksdb.dir=DIRECTORY"),
        (f"load lmdb {A}", "lmdb.dir is not set", "-p lmdb.dir=DIRECTORY"),
        (f"{LOAD} recordcount=10 insertstart=20", "insertstart", "recordcount"),
        (f"{LOAD} recordcount=10 insertstart=5 insertcount=6", "insertstart", "recordcount"),
        (
            f"{RUN} insertstart=200 recordcount=200",
            "there are no records in the range: insertstart = 200",
            "insertcount",
        ),
        (f"{RUN} insertstart=50 insertcount=0", "insertcount = 0", "leave insertstart and insertcount out"),
        (f"{LOAD} insertcount=0", "insertcount = 0", "insertcount"),
        (f"{LOAD} -threads 0", "threadcount", "threadcount"),
        (f"{LOAD} -threads -1", "threadcount", "threadcount"),
        (f"{LOAD} -threads two", "threadcount", "threadcount"),
        (f"{RUN} -target -5", "target", "target"),
        (f"{RUN} -target fast", "target", "target"),
        (f"{RUN} -target NaN", "target", "target"),
        (f"{RUN} -target {LONG_MAX}", "rate", "target"),
        (f"{RUN} operationcount=0", "never end", "maxexecutiontime"),
        (f"{RUN} exportfile=missing/report", "missing/report", "directory"),
        (f"{RUN} exportfile=.", "is a directory (exportfile)", "name a file"),
        (f"{RUN} measurementtype=raw measurement.raw.output_file=missing/raw", "missing/raw", "directory"),
        (f"{RUN} measurementtype=raw measurement.raw.output_file=.", "directory", "name a file"),
        (f"{RUN} hdrhistogram.fileoutput=true hdrhistogram.output.path=missing/", "missing/", "directory"),
        (f"{RUN} -p", "-p needs a value", "--help"),
        (f"{RUN} -P", "-P needs a value", "--help"),
        (f"{RUN} -threads", "-threads needs a value", "--help"),
        (f"{RUN} -p word", "NAME=VALUE", "--help"),
        (f"{RUN} --threads 4", "unknown option --threads", "-threads"),
        (f"{RUN} -thread 4", "unknown option -thread", "did you mean -threads?"),
        (f"{RUN} -zzz 4", "unknown option -zzz", "--help"),
        (f"{RUN} stray", 'unexpected argument "stray"', "--help"),
        ("lod rocksdb", '"lod"', "loadstone ycsb load rocksdb"),
        ("load", "needs a store", "rocksdb"),
        (f"{RUN} fieldcount=0", "fieldcount", "fieldcount"),
        (f"{RUN} {' '.join(f'{p}=0' for p in PROPORTIONS)}", "proportion", "readproportion"),
        (f"{RUN} readproportion=-0.5", "readproportion must be at least 0", "readproportion"),
        (f"{RUN} readproportion=NaN", "readproportion must be a number", "readproportion"),
        (f"{RUN} readproportion=Infinity", "readproportion must be a number", "readproportion"),
        (f"{RUN} readproportion=95%", "readproportion must be a number", "readproportion"),
        (f"{RUN} minscanlength=10 maxscanlength=5", "minscanlength", "maxscanlength"),
        (f"{RUN} scanlengthdistribution=latest", "scanlengthdistribution", "scanlengthdistribution"),
        (f"{RUN} fieldlengthdistribution=uniform minfieldlength=9 fieldlength=5", "minfieldlength", "fieldlength"),
        (f"{RUN} fieldlengthdistribution=normal", "fieldlengthdistribution", "fieldlengthdistribution"),
        (f"{RUN} fieldlengthdistribution=histogram", "hist.txt", "fieldlengthhistogram"),
        (f"{RUN} requestdistribution=zipf", "requestdistribution", "requestdistribution"),
        (f"{RUN} requestdistribution=hotspot hotspotdatafraction=2", "hotspotdatafraction", "hotspotdatafraction"),
        (f"{RUN} requestdistribution=exponential exponential.percentile=100", "exponential.percentile", "exponential"),
        (f"{RUN} requestdistribution=exponential exponential.frac=0", "exponential.frac", "exponential.frac"),
        (f"{RUN} requestdistribution=exponential exponential.frac=-1", "exponential.frac", "exponential.frac"),
        (f"{RUN} rate.steps=fast", "rate.steps", "rate.steps"),
        (f"{RUN} rate.steps=100", "rate.steps", "rate.steps"),
        (f"{RUN} rate.steps=100:1,", "rate.steps", "rate.steps"),
        (f"{RUN} rate.steps=1:2:3", "rate.steps", "rate.steps"),
        (f"{RUN} rate.steps=0:1", "rate", "rate.steps"),
        (f"{RUN} rate.steps=-5:1", "rate", "rate.steps"),
        (f"{RUN} rate.steps=NaN:1", "rate", "rate.steps"),
        (f"{RUN} rate.steps=100:-1", "seconds", "rate.steps"),
        (f"{RUN} rate.ramp=1:2", "rate.ramp", "rate.ramp"),
        (f"{RUN} rate.ramp=5:0:1", "rate", "rate.ramp"),
        (f"{RUN} rate.ramp=1:2:3 -target 5", "mutually exclusive", "keep one"),
        (f"{RUN} arrival=bursty", "arrival", "arrival"),
        (f"{RUN} segment=4/4", "segment", "segment=0/4"),
        (f"{RUN} segment=half", "segment", "segment=0/4"),
        (f"{RUN} segment=1/0", "segment", "segment=0/4"),
        (f"{RUN} segment=0/2 -threads 1", "segments", "threadcount"),
        (f"{RUN} maxexecutiontime=-1", "maxexecutiontime", "maxexecutiontime"),
        (f"{RUN} maxexecutiontime=99999999999", "maxexecutiontime", "maxexecutiontime"),
        (f"{RUN} warmuptime=-1", "warmuptime", "warmuptime"),
        (f"{RUN} warmuptime={LONG_MAX}", "warmuptime", "warmuptime"),
        (f"{LOAD} warmuptime=1", "warmuptime", "leave it out"),
        (f"{LOAD} core_workload_insertion_retry_interval=-1", "core_workload_insertion_retry_interval", "retry"),
        (f"{RUN} measurementtype=hdr", "measurementtype", "measurementtype"),
        (f"{RUN} measurement.interval=service", "measurement.interval", "measurement.interval"),
        (f"{RUN} workload=com.example.Mine", "com.example.Mine", "CoreWorkload"),
        (f"{RUN} durability=disk", "durability", "durability"),
        (f"{RUN} failures.tolerated=some", "failures.tolerated", "failures.tolerated"),
        (f"{RUN} failures.tolerated=2", "failures.tolerated", "failures.tolerated"),
        (f"{RUN} dataintegrity=true fieldlengthdistribution=uniform", "dataintegrity", "length"),
        (f"{RUN} workload=ConstantOccupancyWorkload disksize=10", "disksize", "disksize"),
        (f"{RUN} workload=ConstantOccupancyWorkload storageages={LONG_MAX}", "storageages", "storageages"),
        (f"{RUN} fieldcount={LONG_MAX}", "fieldcount", "fieldcount"),
        (f"{LOAD} fieldlength={LONG_MAX}", "fieldlength", "fieldlength"),
        (f"{RUN} measurementtype=histogram histogram.buckets={LONG_MAX}", "histogram.buckets", "histogram.buckets"),
        (f"{LOAD} rocksdb.version=../../etc", "rocksdb.version", "rocksdb"),
        ("load null", "recordcount is not set", "recordcount"),
    ],
)
def test_bad_usage_exits_2_before_anything_is_done(engine: Engine, line: str, error: str, hint: str) -> None:
    messages = refuse(engine, line)
    assert error in messages[0]
    assert hint in messages[1]


@pytest.mark.parametrize("pair", ["", "=", "=value"])
def test_a_property_without_a_name_is_refused(engine: Engine, pair: str) -> None:
    before = everything(engine.home)
    result = Engine(engine.program, engine.home).run(RUN, "-p", pair)
    assert "NAME=VALUE" in read_refusal(result, USAGE)[0]
    assert everything(engine.home) == before


@pytest.mark.parametrize(
    "name",
    [
        *("recordcount", "operationcount", "insertstart", "insertcount", "threadcount", "target", "fieldcount"),
        *("fieldlength", "minfieldlength", "maxscanlength", "minscanlength", "maxexecutiontime", "zeropadding", "seed"),
        *("histogram.buckets", "timeseries.granularity", "status.interval", "warmuptime", "insertlag", "executors"),
        "core_workload_insertion_retry_limit",
    ],
)
def test_a_number_beyond_64_bits_is_refused(engine: Engine, name: str) -> None:
    refuse(engine, f"{RUN} operationcount=10 recordcount=10 {name}={BEYOND}")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "recordcount",
            "insertlag",
            "executors",
            "seed",
            "maxscanlength",
            "status.interval",
            "timeseries.granularity",
        ),
        *("zeropadding", "histogram.buckets", "core_workload_insertion_retry_limit", "threadcount"),
    ],
)
@pytest.mark.parametrize("workload", ["a", "d", "e"])
def test_greatest_long_is_used_or_refused(engine: Engine, name: str, workload: str) -> None:
    result = engine.run(
        f"run null -P workloads/workload{workload} operationcount=100 recordcount=10 -s {name}={LONG_MAX}", timeout=20
    )
    if result.code == 0:
        assert sum(result.value(m, "Operations") for m in result.metrics() if m != "CLEANUP") == 100
    else:
        read_refusal(result, USAGE)


def test_operation_count_beyond_any_run_ends_on_time(engine: Engine) -> None:
    result = engine(f"run null {A} operationcount={LONG_MAX} maxexecutiontime=1", timeout=20)
    assert 1 <= result.seconds < 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recordcount=10\n".encode("utf-16"), "UTF-16"),
        ("recordcount=10\n".encode("utf-16-le"), "UTF-16"),
        (b"recordcount=10\nlabel=\\uZZZZ\n", "(broken:2)"),
        (b"recordcount=1e6\n", "(broken:1)"),
        (b"# one\nrecordcount=ten\n", "(broken:2)"),
    ],
)
def test_malformed_properties_file_is_named_with_its_line(engine: Engine, text: bytes, message: str) -> None:
    (engine.home / "broken").write_bytes(text)
    error, _ = refuse(engine, "load null -P broken")
    assert message in error
    assert "broken" in error


def test_long_property_name_is_refused(engine: Engine) -> None:
    (engine.home / "long").write_text("recordcount=10\n" + "n" * 3_000_000 + "=1\n")
    error, _ = refuse(engine, "load null -P long")
    assert error.startswith("a property name has 3000000 bytes")
    assert "(long:2)" in error
    assert len(error) < 1_000


@pytest.mark.parametrize("name", ["recordcount", "requestdistribution", "rocksdb.dir", "measurementtype"])
def test_long_values_are_shortened_in_messages(engine: Engine, name: str) -> None:
    (engine.home / "long").write_text(f"recordcount=10\noperationcount=10\n{name}={'v' * 3_000_000}\n")
    result = engine.run(f"run rocksdb -P {engine.home}/long", timeout=20)
    assert result.code != 0
    assert max(map(len, result.err.splitlines())) < 2_000


def test_blanks_behind_a_number_are_forgiven(engine: Engine) -> None:
    """YCSB throws a NumberFormatException for a blank after a number."""
    (engine.home / "blank").write_text("recordcount=10 \t\r\noperationcount = 20 \r\nupdateproportion=0 \r\n")
    assert engine("run null -P blank").value("READ", "Operations") == 20


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"0\t1\n", b"hello\n", b"BlockSize\t0\n0\t1\n", b"BlockSize\t-5\n0\t1\n", b"BlockSize\t10\n1\t5\n"),
        *(b"BlockSize\t10\n0\n", b"BlockSize\t10\n0\t0\n", b"BlockSize\t10\n", b"BlockSize\t10\n0\tmany\n"),
        *(b"\xff\xfe\x00\x01" * 10, b"BlockSize\t9223372036854775807\n0\t1\n1\t1\n"),
        b"BlockSize\t10\n0\t18446744073709551615\n1\t18446744073709551615\n",
    ],
)
def test_a_broken_histogram_of_field_lengths_is_refused(engine: Engine, text: bytes) -> None:
    (engine.home / "h").write_bytes(text)
    error, _ = refuse(engine, f"{RUN} fieldlengthdistribution=histogram fieldlengthhistogram=h")
    assert "h" in error


def test_misspelt_property_is_a_warning(engine: Engine) -> None:
    result = engine("load null recordcount=10 operationcuont=7 operatoincount=8")
    assert len(result.messages("warning: ")) == 2
    assert all("did you mean operationcount?" in warning for warning in result.messages("warning: "))
    assert result.value("INSERT", "Operations") == 10


def test_bad_percentiles_are_warned_of_as_in_ycsb(engine: Engine) -> None:
    for text in ("abc", "95,,99", "95;99", "101", "-1", "NaN"):
        result = engine(f"{RUN} hdrhistogram.percentiles={text}")
        assert len(result.messages("warning: ")) == 1
        assert text in result.messages("warning: ")[0]
        assert "[READ], 99thPercentileLatency(us)" in result.out


def test_options_given_twice_hold_the_last_value(engine: Engine) -> None:
    result = engine(f"{RUN} operationcount=10 -threads 2 -threads 3 -s -s operationcount=40 -P workloads/workloadc")
    assert result.value("CLEANUP", "Operations") == 3
    assert result.value("READ", "Operations") == 40, "the last file wins, and -p overrides all files"
    assert engine(f"load null {A} -threads 4 threadcount=2").value("CLEANUP", "Operations") == 2


def test_an_argument_that_is_no_text_is_refused(engine: Engine) -> None:
    refuse(engine, RUN, "-l", os.fsdecode(b"\xff\xfe"))


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nowhere"])
def test_a_directory_that_cannot_be_made_is_named(engine: Engine, store: str, place: str) -> None:
    (engine.home / "file").write_text("not a directory")
    error, _ = refuse(engine, f"load {store} {A} {store}.dir={place}", code=FAILED)
    assert place in error


@pytest.mark.parametrize("store", STORES)
def test_a_run_on_nothing_says_to_load_first(engine: Engine, store: str) -> None:
    error, hint = refuse(engine, f"run {store} {A} {store}.dir=db", code=FAILED)
    assert "db" in error
    assert f"load {store}" in hint


@pytest.mark.parametrize("store", STORES)
def test_run_on_garbage_fails_and_leaves_it_unchanged(engine: Engine, store: str) -> None:
    directory = engine.home / "db"
    directory.mkdir()
    for name in ("CURRENT", "MANIFEST-000001", "data.mdb", "loadstone.redb", "version", "0.jnl", "CF_NAMES"):
        (directory / name).write_bytes(b"garbage " * 1024)
    (directory / "keyspaces").mkdir()
    before = everything(directory)
    error, _ = read_refusal(engine.run(f"run {store} {A} {store}.dir=db"), FAILED)
    assert "db" in error
    after = everything(directory)
    assert {name: after.get(name) for name in before} == before


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("other", STORES)
def test_database_of_another_store_is_refused_and_unchanged(engine: Engine, store: str, other: str) -> None:
    if store == other:
        return
    engine(f"load {other} {A} {other}.dir=db recordcount=10")
    error, _ = refuse(engine, f"run {store} {A} {store}.dir=db", code=FAILED)
    assert "db" in error
    engine(f"run {other} {A} {other}.dir=db recordcount=10 operationcount=10")


@pytest.mark.parametrize(
    "line",
    [
        f"{LOAD} rocksdb.library=/etc/passwd",
        f"{LOAD} rocksdb.version=99.9.9",
        f"{LOAD} rocksdb.optionsfile=/etc/passwd",
        f"{LOAD} rocksdb.options=colour=green",
        f"load lmdb {A} lmdb.dir=db table={'t' * 600}",
        f"load lmdb {A} lmdb.dir=db lmdb.mapsize=large",
        f"load fjall {A} fjall.dir=db table={'t' * 600}",
        f"load redb {A} redb.dir=db redb.cachesize=-1",
    ],
)
def test_unusable_store_options_are_refused_before_any_change(engine: Engine, line: str) -> None:
    before = everything(engine.home)
    result = engine.run(line)
    assert result.code in (FAILED, USAGE)
    read_refusal(result, result.code)
    assert everything(engine.home) == before, "files were left behind"
    assert "damaged" not in result.err, "an invalid word is not damage"


def test_data_integrity_detects_records_of_another_shape(engine: Engine) -> None:
    engine(f"{LOAD} recordcount=200 fieldcount=5 dataintegrity=true")
    result = engine.run("run rocksdb -P workloads/workloadc rocksdb.dir=db recordcount=200 dataintegrity=true")
    error, _ = read_refusal(result, FAILED)
    assert "1000 operations" in error
    assert result.returns("VERIFY") == {"UNEXPECTED_STATE": 1000}
    assert result.returns("READ") == {"OK": 1000}
    result = engine.run(
        "run rocksdb -P workloads/workloadc rocksdb.dir=db recordcount=200 fieldcount=5 fieldlength=99 "
        "dataintegrity=true"
    )
    read_refusal(result, FAILED)
    assert result.returns("VERIFY") == {"UNEXPECTED_STATE": 1000}
    engine("run rocksdb -P workloads/workloadc rocksdb.dir=db recordcount=200 fieldcount=5 dataintegrity=true")


@pytest.mark.parametrize(
    "keys", ["latest", "zipfian", "uniform", "hotspot", "sequential", "exponential", "truezipfian"]
)
@pytest.mark.parametrize("records", [1, 2])
def test_one_record_is_enough_for_every_distribution(engine: Engine, keys: str, records: int) -> None:
    engine(f"{LOAD} recordcount={records}")
    for workload in "acdef":
        result = engine(
            f"run rocksdb -P workloads/workload{workload} rocksdb.dir=db recordcount={records} operationcount=200",
            f"requestdistribution={keys}",
            timeout=20,
        )
        assert "NOT_FOUND" not in result.out


@pytest.mark.parametrize("digits", [25, 300])
def test_zero_padding_is_kept_whole_or_refused(engine: Engine, digits: int) -> None:
    result = engine.run(f"{LOAD} recordcount=3 zeropadding={digits} insertorder=ordered")
    if result.code != 0:
        read_refusal(result, USAGE)
        return
    key = "user" + "2".zfill(digits)
    result = engine("shell rocksdb rocksdb.dir=db recordcount=1 operationcount=1", stdin=f"read {key}\n")
    assert "Return code: OK" in result.out, "the padding was cut silently"


def test_too_long_keys_are_refused_by_the_store(engine: Engine) -> None:
    """LMDB's keys have at most 511 bytes."""
    result = engine.run(f"load lmdb {A} lmdb.dir=db recordcount=3 zeropadding=600")
    if result.code != 0:
        read_refusal(result, result.code)
        return
    key = "user" + "6284781860667377211".zfill(600)
    result = engine("shell lmdb lmdb.dir=db recordcount=1 operationcount=1", stdin=f"read {key}\n")
    assert "Return code: OK" in result.out, "the padding was cut silently"


def test_field_names_may_be_very_long(engine: Engine) -> None:
    engine(f"{LOAD} recordcount=5 dataintegrity=true fieldnameprefix={'x' * 50_000}")
    engine(
        "run rocksdb -P workloads/workloadc rocksdb.dir=db recordcount=5 operationcount=20 dataintegrity=true",
        f"fieldnameprefix={'x' * 50_000}",
    )


def test_linked_export_file_is_written_through_its_link(engine: Engine) -> None:
    """`exportfile=/dev/stdout` is a link; a rename over it would replace it for every process on the host."""
    (engine.home / "link").symlink_to("target")
    engine(f"{RUN} exportfile=link")
    assert (engine.home / "link").is_symlink()
    assert (engine.home / "target").read_text().startswith("[OVERALL]")


def test_special_export_file_is_written_but_not_replaced(engine: Engine) -> None:
    """As root, a rename over `exportfile=/dev/null` would leave the host without /dev/null."""
    fifo = engine.home / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        result = engine.run(f"{RUN} exportfile=fifo", timeout=20)
        assert fifo.is_fifo(), "the pipe was replaced by a file"
        assert result.code in (0, USAGE)
        assert result.code == USAGE or os.read(reader, 9) == b"[OVERALL]"
    finally:
        os.close(reader)


def test_unprintable_report_is_a_failure(engine: Engine) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(engine.arguments(RUN), stdout=full, stderr=subprocess.PIPE, text=True, cwd=engine.home)
    assert done.returncode == FAILED, "the figures are lost, and the calling script must notice"
    assert "No space left" in done.stderr


def test_a_reader_that_went_away_is_no_crash(engine: Engine) -> None:
    process = engine.start(f"{RUN} operationcount=100000 measurement.histogram.verbose=true -s")
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    assert "panicked" not in process.stderr.read()
    process.wait(timeout=20)


@pytest.mark.parametrize("store", ["null", "lmdb"])
def test_threads_beyond_the_memory_are_a_reported_failure(engine: Engine, store: str) -> None:
    limit = ["prlimit", f"--as={3 << 30}"]
    result = engine.run(
        f"load {store} {A} recordcount=1000000 -threads 50000 lmdb.mapsize=64M lmdb.dir=db", prefix=limit, timeout=20
    )
    assert result.code == 0 or read_refusal(result, result.code)
    result = engine.run(
        f"run {store} {A} operationcount=0 maxexecutiontime=1 -threads {LONG_MAX} lmdb.dir=db", prefix=limit, timeout=20
    )
    assert result.code in (FAILED, USAGE), "the host has fewer threads"
    read_refusal(result, result.code)


@pytest.mark.parametrize("store", ["rocksdb", "fjall", "redb"])
def test_database_in_use_is_unchanged(engine: Engine, running: list[subprocess.Popen[str]], store: str) -> None:
    first = engine.start(f"load {store} {A} {store}.dir=db recordcount=1000000 -target 500")
    running.append(first)
    assert first.stderr
    assert any(line == "Starting test.\n" for line in first.stderr)
    error, hint = read_refusal(engine.run(f"load {store} {A} {store}.dir=db"), FAILED)
    assert "db" in error
    assert "process" in hint
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=20)
    assert first.returncode == INTERRUPTED
    assert len(dump(engine, store)) == CommandResult(INTERRUPTED, out, err, 0).value("INSERT", "Operations") > 0
