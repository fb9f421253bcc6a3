"""The store `jvm` runs YCSB's bindings in a JVM inside the engine, and handles bindings that misbehave."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from conftest import Engine, report
from jvm_support import CORE, compile_binding

RUN = "-P workloads/workloada recordcount=1000 operationcount=1000"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_binding("Scripted", tmp_path_factory.mktemp("classes"))


@pytest.fixture
def jvm_arguments(classes: Path) -> str:
    return f"jvm -db Scripted -cp {classes}"


def test_ycsb_binding_runs_with_wildcard_class_path(engine: Engine) -> None:
    result = engine(f"load jvm -db site.ycsb.BasicDB -cp {CORE.parent}/* -P workloads/workloada recordcount=5")
    assert result.returns("INSERT") == {"OK": 5}
    assert result.err.count("INSERT usertable user") == 5, "the binding prints its operations on stderr"
    assert "usertable" not in result.out


def test_binding_gets_every_property_and_a_clean_end(engine: Engine, jvm_arguments: str) -> None:
    result = engine(f"run {jvm_arguments} {RUN} -threads 3 scripted=tell my.own=value fieldcount=4")
    (first, *_) = result.messages("properties: ")
    for pair in ("my.own=value", "fieldcount=4", "recordcount=1000", "threadcount=3", "dotransactions=true"):
        assert pair in first
    assert sorted(result.messages("open: ")) == ["0", "1", "2"]
    assert result.value("CLEANUP", "Operations") == 3
    assert result.messages("warning: ") == [], "no property is unknown to a binding"


def test_class_after_another_store_is_measured(engine: Engine, classes: Path) -> None:
    result = engine(f"run basic -db Scripted -cp {classes} {RUN} scripted=tell")
    assert "\nStore: jvm, binding Scripted" in result.err
    assert len(result.messages("properties: ")) > 0
    assert result.messages("warning: ") == []


def test_shutdown_hooks_of_a_binding_run(engine: Engine, jvm_arguments: str) -> None:
    assert engine(f"run {jvm_arguments} {RUN} scripted=hook").messages("hook: ") == ["ran"]


def test_hanging_jvm_shutdown_is_abandoned(engine: Engine, jvm_arguments: str) -> None:
    result = engine(f"run {jvm_arguments} {RUN} scripted=endless_hook")
    assert result.messages("warning: ") == ["the binding's shutdown hooks did not finish within 10 s"]


def test_a_binding_is_named_as_ycsb_names_it(engine: Engine) -> None:
    result = engine.run(f"load mongodb {RUN}")
    assert result.code == 2
    assert result.messages("error: ") == [
        "the binding is not on the class path: site.ycsb.db.MongoDbClient is not found"
    ]


@pytest.mark.parametrize(
    ("script", "status", "message"),
    [
        ("throw", "ERROR", "java.lang.IllegalStateException: bad thing; caused by java.net.ConnectException: root"),
        ("late", "TIMEOUT", "the binding answers TIMEOUT: too late"),
        ("own", "ERROR", "the binding answers TEAPOT: short and stout"),
        ("overflow", "ERROR", "java.lang.StackOverflowError"),
    ],
)
def test_binding_errors_are_counted_with_their_messages(
    engine: Engine, jvm_arguments: str, script: str, status: str, message: str
) -> None:
    result = engine.run(f"run {jvm_arguments} {RUN} readproportion=1 updateproportion=0 scripted={script} -threads 4")
    assert result.code == 1
    assert result.returns("READ") == {"OK": 900, status: 100}
    assert result.messages("warning: ") == [f"100 x READ returned {status}; the first: {message}"]


def test_client_that_fails_to_close_fails_the_run(engine: Engine, jvm_arguments: str) -> None:
    result = engine.run(f"load {jvm_arguments} {RUN} scripted=keep -threads 4")
    assert result.code == 1
    assert result.returns("INSERT") == {"OK": 1000}
    (warning,) = result.messages("warning: ")
    assert warning.startswith("1 x CLEANUP returned ERROR; the first: ")
    assert "the buffer of the last client stays here" in warning
    assert result.messages("error: ") == ["1 client of this load did not close: writes that it buffered may be lost"]
    assert engine.run(f"load {jvm_arguments} {RUN} scripted=keep -threads 4 failures.tolerated=0.25").code == 0


def test_a_status_of_a_batch_is_a_success(engine: Engine, jvm_arguments: str) -> None:
    result = engine(f"load {jvm_arguments} {RUN} scripted=batch")
    assert result.returns("INSERT") == {"BATCHED_OK": 1000}


def test_no_status_is_an_error(engine: Engine, jvm_arguments: str) -> None:
    result = engine.run(f"run {jvm_arguments} {RUN} readproportion=1 updateproportion=0 scripted=nothing")
    assert (result.code, result.returns("READ")) == (1, {"ERROR": 1000})


def test_answers_of_any_size_come_back(engine: Engine, jvm_arguments: str) -> None:
    result = engine(f"shell {jvm_arguments} scripted=large", stdin="read user1\nread user2\n")
    assert result.out.count("field0=" + "x" * (3 << 20) + "\n") == 2
    assert "absent" not in result.out


def test_binding_that_cannot_connect_ends_the_run(engine: Engine, jvm_arguments: str) -> None:
    result = engine.run(f"run {jvm_arguments} {RUN} scripted=refuse -threads 4")
    assert (result.code, result.out) == (1, "")
    assert result.messages("error: ") == [
        "Scripted cannot connect: site.ycsb.DBException: no server; "
        "caused by java.net.ConnectException: Connection refused"
    ]


def test_exit_in_a_run_preserves_earlier_results(engine: Engine, jvm_arguments: str) -> None:
    # The other client continues until the JVM stops.
    total = 100_000_000
    result = engine.run(f"run {jvm_arguments} {RUN} operationcount={total} scripted=exit -threads 2")
    assert result.code == 1
    measured = int(result.value("READ", "Operations") + result.value("UPDATE", "Operations"))
    assert 498 <= measured < total
    assert result.messages("error: ") == [
        f"the run stopped after {measured} of {total}: the binding called System.exit(7)"
    ]


def test_an_exit_while_connecting_is_told(engine: Engine, jvm_arguments: str) -> None:
    result = engine.run(f"run {jvm_arguments} {RUN}", "scripted=exit at init")
    assert (result.code, result.out) == (1, "")
    assert result.messages("error: ") == ["the binding called System.exit(3)"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_signal_ends_the_load_but_preserves_the_report(
    engine: Engine, jvm_arguments: str, running: list[subprocess.Popen[str]], number: signal.Signals, code: int
) -> None:
    arguments = f"run {jvm_arguments} -P workloads/workloada recordcount=1000 operationcount=0 maxexecutiontime=600"
    process = engine.start(arguments, "scripted=sleep", "-threads", "3", "-s", "status.interval=1")
    running.append(process)
    assert process.stderr is not None
    for line in process.stderr:
        if " sec: " in line and " 0 operations" not in line:
            break
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == code
    counted = {metric: int(value) for metric, kind, value in report(out) if kind == "Return=OK"}
    assert counted["READ"] > 0


def test_what_is_no_binding_is_refused(engine: Engine, jvm_arguments: str) -> None:
    result = engine.run(f"run {jvm_arguments} -db java.lang.String {RUN}")
    assert (result.code, result.out) == (2, "")
    assert result.messages("error: ") == ["java.lang.String is not a binding: it does not extend site.ycsb.DB"]
    result = engine.run(f"run {jvm_arguments} -db NoSuchBinding {RUN}")
    assert (result.code, result.messages("error: ")) == (
        2,
        ["the binding is not on the class path: NoSuchBinding is not found"],
    )
    result = engine.run(f"run jvm {RUN}")
    assert (result.code, result.messages("error: ")) == (2, ["jvm.class is not set: no binding is named"])


def test_empty_class_path_is_refused(engine: Engine) -> None:
    for path, message in (
        ("none.jar", "none.jar does not exist (-cp)"),
        (f"{engine.home}/*", f"{engine.home}/* contains no jar (-cp)"),
    ):
        result = engine.run(f"run jvm -db Scripted -cp {path} {RUN}")
        assert (result.code, result.messages("error: ")) == (2, [message])
        assert result.messages("hint: ")


def test_without_a_jvm_the_package_is_named(engine: Engine, jvm_arguments: str) -> None:
    result = engine.run(f"run {jvm_arguments} {RUN}", JAVA_HOME="/nowhere")
    assert result.code == 1
    assert result.messages("error: ") == ["no JVM at JAVA_HOME=/nowhere: lib/server/libjvm.so is not there"]
    result = engine.run(f"run {jvm_arguments} {RUN}", JAVA_HOME="", PATH=str(engine.home))
    assert result.messages("error: ") == ["no JVM: JAVA_HOME is not set, and no java is on the PATH"]
    assert "openjdk-17-jre-headless" in result.messages("hint: ")[0]


def test_the_java_of_the_path_will_do(engine: Engine, jvm_arguments: str) -> None:
    java = shutil.which("java")
    assert java is not None
    result = engine(f"run {jvm_arguments} {RUN}", JAVA_HOME="", PATH=str(Path(java).parent))
    assert result.value("READ", "Operations") > 0


def test_arguments_of_the_jvm_are_its_own(engine: Engine, jvm_arguments: str) -> None:
    result = engine(f"run {jvm_arguments} {RUN}", "-jvm-args", "-Xmx64m -XX:+UseSerialGC")
    assert "TOTAL_GCS_Copy" in result.out
    result = engine.run(f"run {jvm_arguments} {RUN}", "-jvm-args", "-XX:NoSuchFlag")
    assert (result.code, result.messages("error: ")) == (2, ["the JVM did not start with -XX:NoSuchFlag (JNI -6)"])


def test_collections_stand_in_the_report(engine: Engine, jvm_arguments: str) -> None:
    result = engine(f"run {jvm_arguments} {RUN} operationcount=2000 scripted=garbage", "-jvm-args", "-Xmx128m")
    assert result.value("TOTAL_GCS_G1_Young_Generation", "Count") > 0
    assert result.value("TOTAL_GCs", "Count") >= result.value("TOTAL_GCS_G1_Young_Generation", "Count")


def test_many_clients_have_a_binding_each(engine: Engine, jvm_arguments: str) -> None:
    result = engine(f"run {jvm_arguments} {RUN} operationcount=6400 scripted=tell -threads 64")
    assert len(result.messages("open: ")) == 64
    assert result.value("READ", "Operations") + result.value("UPDATE", "Operations") == 6400


@pytest.mark.parametrize("clients", [4, 32, 256])
def test_outage_fails_what_is_due_whatever_the_clients(engine: Engine, jvm_arguments: str, clients: int) -> None:
    # The binding is unavailable for a second, at 500 operations per second.
    line = f"run {jvm_arguments} {RUN} operationcount=1000 -target 500 -threads {clients} scripted=outage"
    failures: list[int] = []
    # A JVM that the host stops during the outage sends late operations after the outage, but not in every run.
    while len(failures) < 5:
        result = engine.run(line)
        statuses = Counter(result.returns("READ")) + Counter(result.returns("UPDATE"))
        assert statuses.keys() <= {"OK", "SERVICE_UNAVAILABLE"}
        failures.append(statuses["SERVICE_UNAVAILABLE"])
        if abs(failures[-1] - 500) <= 75:
            return
    pytest.fail(f"failures in an outage of 500 operations: {failures}")
