"""YCSB runs that end by a signal, a failure or a kill: their output, and the files that remain."""

from __future__ import annotations

import re
import signal
import subprocess
import time

import pytest

from conftest import CommandResult, Engine, dump, operations, report

STORES = ("rocksdb", "lmdb", "fjall", "redb")
LOAD = "load rocksdb -P workloads/workloada rocksdb.dir=db"
RUN = "run rocksdb rocksdb.dir=db"
# The version of YCSB's own binding, and the newest pinned version.
VERSIONS = ("5.11.3", "10.10.1")


# Ends


def wait_for_load(process: subprocess.Popen[str]) -> str:
    """Waits until the load runs."""
    assert process.stderr
    text = ""
    for line in process.stderr:
        text += line
        if line == "Starting test.\n":
            return text
    raise AssertionError(f"the process exited before its load began:\n{text}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("more", ["", "-target 1", "warmuptime=60", "-target 1 spin.sleep=true"])
def test_interrupted_run_prints_its_report_and_exits_130(
    engine: Engine, running: list[subprocess.Popen[str]], number: signal.Signals, more: str
) -> None:
    engine(f"{LOAD} recordcount=100")
    process = engine.start(f"{RUN} -P workloads/workloada operationcount=0 maxexecutiontime=60 -threads 3 {more}")
    running.append(process)
    wait_for_load(process)
    time.sleep(0.4)
    process.send_signal(number)
    sent = time.monotonic()
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - sent < 10
    assert process.returncode == 130
    assert "interrupted" in err
    keys = [(metric, key) for metric, key, _ in report(out)]
    assert ("OVERALL", "Throughput(ops/sec)") in keys
    if not more:
        assert operations(CommandResult(130, out, err, 0)) > 100
    engine(f"{RUN} -P workloads/workloada recordcount=100")


def test_an_interrupted_load_keeps_what_it_wrote(engine: Engine, running: list[subprocess.Popen[str]]) -> None:
    began = time.monotonic()
    load = "load rocksdb -P workloads/workloada rocksdb.dir=db recordcount=1000000 -target 1000"
    process = engine.start(f"{load} -s status.interval=1")
    running.append(process)
    wait_for_load(process)
    assert process.stderr
    counts = (int(match[1]) for line in process.stderr if (match := re.search(r"sec: (\d+) operations", line)))
    reported = next(count for count in counts if count > 0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    loaded = CommandResult(130, out, err, 0).value("INSERT", "Operations")
    assert reported <= loaded <= 1000 * (time.monotonic() - began) + 1
    assert len(dump(engine)) == loaded


def test_a_second_interrupt_ends_at_once(engine: Engine, running: list[subprocess.Popen[str]]) -> None:
    """The report goes to a full pipe without a reader, so the first interrupt cannot end the process."""
    process = engine.start(
        "run null -P workloads/workloadc operationcount=0 maxexecutiontime=60 -target 200000 measurementtype=raw"
    )
    running.append(process)
    wait_for_load(process)
    time.sleep(0.8)
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None, "the process must wait for a reader"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130


@pytest.mark.parametrize("store", STORES)
def test_store_of_a_killed_load_is_loaded_again(
    engine: Engine, running: list[subprocess.Popen[str]], store: str
) -> None:
    options = f"{store}.dir=db dataintegrity=true"
    process = engine.start(f"load {store} -P workloads/workloada {options} recordcount=10000000 -threads 2")
    running.append(process)
    wait_for_load(process)
    time.sleep(0.3)
    process.kill()
    process.communicate()
    engine(f"load {store} -P workloads/workloada {options} recordcount=500 -threads 2")
    result = engine(f"run {store} -P workloads/workloadc {options} recordcount=500 requestdistribution=sequential")
    assert result.returns("VERIFY") == {"OK": 1000}


def test_load_ends_at_the_first_failed_insert(engine: Engine) -> None:
    """A database of 64 KiB holds only a few records."""
    line = "load lmdb -P workloads/workloada lmdb.dir=db lmdb.mapsize=64K recordcount=100"
    result = engine.run(line, "-threads", "3")
    assert result.code == 1
    loaded = int(result.value("INSERT", "Operations"))
    assert 0 < loaded < 100
    (error,) = result.messages("error: ")
    assert re.fullmatch(rf"the load stopped after {loaded} of 100: insert of user\d+ failed with NO_SPACE: .+", error)
    assert len(result.messages("hint: ")) == 1
    assert len(dump(engine, "lmdb")) == loaded
    assert 1 <= result.returns("INSERT")["NO_SPACE"] <= 3, "one per thread at most"


def test_load_continues_after_failed_inserts_if_configured(engine: Engine) -> None:
    line = "load lmdb -P workloads/workloada lmdb.dir=db lmdb.mapsize=64K recordcount=100"
    result = engine.run(line, "core_workload_insertion_keep_going_on_error=true")
    assert result.code == 1
    assert sum(result.returns("INSERT").values()) == 100
    assert result.messages("error: ") == [f"{result.returns('INSERT')['NO_SPACE']} operations of this load failed"]


def test_every_attempt_of_an_insert_is_measured(engine: Engine) -> None:
    line = "load lmdb -P workloads/workloada lmdb.dir=db lmdb.mapsize=64K recordcount=100"
    result = engine.run(line, "core_workload_insertion_retry_limit=3", "core_workload_insertion_retry_interval=0.2")
    assert result.code == 1
    assert result.returns("INSERT")["NO_SPACE"] == 4
    assert result.value("INSERT-FAILED", "Operations") == 4
    # Three pauses between attempts. With the default of 3 s, the pauses would take at least 7.2 s.
    assert 0.4 < result.seconds < 7


def test_failed_operations_exit_1_unless_tolerated(engine: Engine) -> None:
    engine(f"{LOAD} recordcount=500")
    run = f"{RUN} -P workloads/workloadc recordcount=1000 requestdistribution=sequential"
    result = engine.run(run)
    assert result.code == 1
    assert result.returns("READ") == {"OK": 500, "NOT_FOUND": 500}
    assert result.value("READ-FAILED", "Operations") == 500
    assert result.messages("error: ") == ["500 operations of this run failed"]
    assert "failures.tolerated" in result.messages("hint: ")[0]
    assert result.value("OVERALL", "Throughput(ops/sec)") * result.value("OVERALL", "RunTime(ms)") < 700_000, (
        "a run with errors does not look faster"
    )
    assert engine.run(run, "failures.tolerated=0.4").code == 1
    assert engine.run(run, "failures.tolerated=0.5").code == 0


def test_operation_fails_once_for_several_failed_steps(engine: Engine) -> None:
    """A read-modify-write on a missing record has a failed read, a failed update and a failed check."""
    engine(f"{LOAD} recordcount=50 dataintegrity=true")
    run = f"{RUN} -P workloads/workloadf recordcount=200 insertstart=150 operationcount=50 dataintegrity=true"
    result = engine.run(run)
    assert result.code == 1
    assert result.messages("error: ") == ["50 operations of this run failed"]
    assert engine.run(run, "failures.tolerated=1").code == 0


def test_rare_operations_occur_or_cause_a_warning(engine: Engine) -> None:
    command = "run null -P workloads/workloadc operationcount=100000 -threads 2"
    result = engine(command, "readproportion=0.99996", "insertproportion=0.00004")
    assert (result.value("INSERT", "Operations"), result.messages("warning: ")) == (4, [])
    result = engine(command, "readproportion=1", "insertproportion=0.000001")
    assert result.value("INSERT", "Operations") == 2
    (warning,) = result.messages("warning: ")
    rounded = r"a proportion of 9\.99999\d*e-7 is rounded up to 1 in 50000, the smallest possible share"
    assert re.fullmatch(rounded, warning)


def test_threads_beyond_the_operations_are_lowered_with_warning(engine: Engine) -> None:
    result = engine("run null -P workloads/workloadc operationcount=3 -threads 10")
    assert result.value("CLEANUP", "Operations") == 3
    assert any("threadcount 10" in warning for warning in result.messages("warning: "))


@pytest.mark.parametrize(("more", "code"), [("", 0), ("-strict", 1)])
def test_missed_rate_ends_with_a_warning(engine: Engine, more: str, code: int) -> None:
    run = f"run null -P workloads/workloadc recordcount=100 operationcount=0 maxexecutiontime=1 {more}"
    missed = engine.run(f"{run} -target 1000000000")
    assert missed.code == code
    assert "\nwarning: the rate was not held: " in missed.err
    assert "had no answer by the cut-off, a tenth of the window (at most 5 s) after its end" in missed.err
    assert "error: the run did not hold its rate\n" in missed.err or not more
    # A busy host may stop the engine for a whole second, but not in each of five runs.
    sustained = (engine.run(f"{run} -target 100") for _ in range(5))
    assert any(result.code == 0 and "the rate was not held" not in result.err for result in sustained)


@pytest.mark.parametrize("more", ["", "spin.sleep=true"])
def test_hint_of_late_operations_proposes_spinning_once(engine: Engine, more: str) -> None:
    run = f"run null -P workloads/workloadc recordcount=100 operationcount=0 maxexecutiontime=1 {more}"
    (note,) = re.findall("note: generator-limited: .*", engine(f"{run} -target 1000000000").err)
    # On a busy host, the hint recommends an idle host.
    assert "had no processor" in note or ("spin.sleep" in note) == (not more)
