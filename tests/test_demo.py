"""`loadstone demo`, run as a user runs it, on real stores with little data."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from loadstone import side_by_side, units
from loadstone.demo import Options, trial_spec
from loadstone.event import Outcome, Ready, Summary, merged
from loadstone.side_by_side import Column, Measured
from loadstone.trial import Trial

COMMAND = (sys.executable, "-c", "import sys; from loadstone.cli import main; sys.exit(main())", "demo")
TINY = ("--seconds", "1", "--records", "2000")


@pytest.fixture(autouse=True)
def chosen(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo takes the engine that all tests take, and nothing else from our environment."""
    monkeypatch.setenv("LOADSTONE_ENGINE", str(program))
    for variable in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(variable, raising=False)


def demo(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Runs the demo to its end."""
    return subprocess.run(
        [*COMMAND, "--directory", str(directory), *arguments], capture_output=True, text=True, timeout=300
    )


def test_two_stores_stand_side_by_side_and_nothing_is_claimed(tmp_path: Path) -> None:
    told = demo(*TINY, directory=tmp_path)
    assert told.returncode == 0, told.stderr
    assert [*tmp_path.iterdir()] == []
    lines = told.stdout.splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert cells[0] == ["", "", "RocksDB", "LMDB"]
    rows = {(heading, label): values for heading, label, *values in cells[1:]}

    speed = re.compile(r"[\d,.]+ op/s")
    latency = re.compile(r"[\d,.]+ (ns|µs|ms|s)|too few samples")
    for row in (("load", "throughput"), ("run", "throughput")):
        assert all(speed.fullmatch(value) for value in rows[row]), rows[row]
    labels = [label for _, label, *_ in cells[1:]]
    for operation in ("read", "update"):
        at = next(i for i, row in enumerate(cells[1:]) if row[0] == operation)
        assert labels[at : at + 4] == ["p50", "p95", "p99", "p99.9"]
        assert all(latency.fullmatch(value) for row in cells[1 + at : 5 + at] for value in row[2:])
    assert rows["device", "written"]
    assert all(value.endswith(" processors") for value in rows["CPU", "engine + store"])
    assert rows["errors", ""] == ["0", "0"]
    assert rows["writes", "survive"] == ["the end of the process"] * 2
    assert rows["store", "version"][0].startswith("10.")
    assert "heed" in rows["store", "version"][1]
    assert rows["", "compression"][1] == "none"

    assert max(len(line) for line in lines[: len(cells)]) <= 80
    assert any(line.startswith("n=1: no interval, no claim possible.") for line in lines)
    assert [line[:4] for line in lines[-3:]] == ["  1.", "  2.", "  3."]
    # What goes on is told elsewhere, in plain lines.
    assert "\x1b" not in told.stdout + told.stderr
    for phase in ("RocksDB load", "RocksDB run", "LMDB load", "LMDB run"):
        assert f"\n{phase}: opening\n" in told.stderr
        assert re.search(rf"\n{phase}: 100%, [\d,]+ op/s, .*\n", told.stderr)


def test_json_holds_everything_in_base_units(tmp_path: Path) -> None:
    told = demo(*TINY, "--json", directory=tmp_path)
    assert told.returncode == 0, told.stderr
    document = json.loads(told.stdout)
    assert (document["claim"], document["comparable"]) == (None, True)
    assert document["why"] == "n=1: no interval, no claim possible"
    assert [store["store"] for store in document["stores"]] == ["RocksDB", "LMDB"]
    for store in document["stores"]:
        assert store["load"]["summary"]["operations"] == 2_000
        run = store["run"]
        assert run["spec"]["store"]["durability"] == run["ready"]["durability"] == "os"
        assert run["spec"]["seed"] == document["stores"][0]["run"]["spec"]["seed"]
        assert run["summary"]["warmup_operations"] > 0
        for operation, quantiles in run["service_ns"].items():
            histogram = merged((Outcome(**each) for each in run["summary"]["outcomes"]), operation)
            p99 = histogram.quantile(0.99) if histogram.supports(0.99) else None
            assert quantiles["p99"] == p99


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_stops_the_engine_and_removes_the_data(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, status: int
) -> None:
    pids = tmp_path / "pids"
    stand_in = tmp_path / "engine"
    stand_in.write_text(f'#!/bin/sh\necho $$ >> {pids}\nexec {program} "$@"\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("LOADSTONE_ENGINE", str(stand_in))
    data = tmp_path / "data"
    data.mkdir()
    process = subprocess.Popen(
        [*COMMAND, "--directory", str(data), "--seconds", "15", "--records", "2000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        # In the middle of the first run.
        for line in process.stderr:
            if line.startswith("RocksDB run") and "op/s" in line:
                break
        assert len([*data.iterdir()]) == 1
        # A second one, of an impatient user, must not leave anything behind.
        process.send_signal(number)
        time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (status, "")
    if number == signal.SIGINT:
        assert err.endswith("interrupted: the engine is stopped, its data removed\n")
    assert "Traceback" not in err
    assert [*data.iterdir()] == []
    started = pids.read_text().split()
    assert len(started) == 2
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["--seconds", "soon"], 2, '--seconds must be a number from 1 to 86,400, got "soon"'),
        (["--seconds", "0"], 2, '--seconds must be a number from 1 to 86,400, got "0"'),
        (["--seconds", "nan"], 2, '--seconds must be a number from 1 to 86,400, got "nan"'),
        (["--records", "1e6"], 2, '--records must be a whole number from 1 to 10,000,000,000, got "1e6"'),
        (["--record", "7"], 2, "unrecognized arguments: --record 7"),
        (["--directory", "/nowhere"], 1, "cannot use /nowhere: No such file or directory"),
        (["--directory", sys.executable], 1, f"{sys.executable} is no directory that you may write to"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(tmp_path: Path, arguments: list[str], status: int, error: str) -> None:
    told = demo(*arguments, directory=tmp_path)
    assert (told.returncode, told.stdout) == (status, "")
    first, hint = told.stderr.splitlines()
    assert first == f"error: {error}"
    assert hint.startswith("hint: ")


def test_a_device_without_room_is_noticed_before_anything_is_written(tmp_path: Path) -> None:
    told = demo("--records", "10000000000", directory=tmp_path)
    assert (told.returncode, told.stdout) == (1, "")
    assert re.fullmatch(
        rf"error: {tmp_path} has [\d.]+ .B free, 10,000,000,000 records need up to 40\.0 TB\nhint: make room, .*\n",
        told.stderr,
    )
    assert [*tmp_path.iterdir()] == []


def test_a_failing_engine_is_an_error_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = tmp_path / "engine"
    stand_in.write_text(
        "#!/bin/sh\nread spec\necho 'error: no jar of RocksDB' >&2\necho 'hint: make rocksdb' >&2\nexit 1\n"
    )
    stand_in.chmod(0o755)
    monkeypatch.setenv("LOADSTONE_ENGINE", str(stand_in))
    data = tmp_path / "data"
    data.mkdir()
    told = demo(*TINY, directory=data)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.endswith("RocksDB load: opening\nerror: no jar of RocksDB\nhint: make rocksdb\n")
    assert [*data.iterdir()] == []


@pytest.mark.parametrize("plain", [False, True])
def test_a_terminal_gets_bars_and_colours_unless_it_wants_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    if plain:
        monkeypatch.setenv("NO_COLOR", "1")
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, "--directory", str(tmp_path), *TINY], stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    # Linux reports the end of a terminal as an error.
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 1 << 16):
            seen += chunk
    os.close(ours)
    assert process.wait(60) == 0
    text = seen.decode()
    assert "✓" in text
    assert "━" in text
    # SGR 30 to 38 and 90 to 97 are colours; bold and dim are none.
    assert bool(re.search(r"\x1b\[(\d+;)*(3\d|9[0-7])[;m]", text)) != plain
    # The cursor is given back.
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")


# What the table says of results that are not as good as these.


@pytest.fixture(scope="module")
def measured(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    """A real, short run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADSTONE_ENGINE", str(program))
        directory = tmp_path_factory.mktemp("measured")
        options = Options(seconds=1, records=500, directory=directory, json=False)
        with Trial(trial_spec("lmdb", "load", options, str(directory))) as load:
            assert [*load.events()]
        yield Measured(load.spec, load.record.result(), (500.0,), None)


Change = Callable[..., Measured]


@pytest.fixture
def changed(measured: Measured) -> Change:
    """The run, with other fields in its `ready` or its summary."""

    def change(**fields: object) -> Measured:
        def of(kind: type[Ready | Summary]) -> dict[str, object]:
            names = {each.name for each in dataclasses.fields(kind)}
            return {name: value for name, value in fields.items() if name in names}

        ready = dataclasses.replace(measured.result.ready, **of(Ready))  # type: ignore[arg-type]
        summary = dataclasses.replace(measured.result.summary, **of(Summary))  # type: ignore[arg-type]
        return dataclasses.replace(measured, result=dataclasses.replace(measured.result, ready=ready, summary=summary))

    return change


def rendered(columns: list[Column], file_system: str = "ext4") -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(side_by_side.table(columns, "title", file_system, 80))
        for line in side_by_side.remarks(columns):
            console.print(line, soft_wrap=True)
    return capture.get()


def test_stores_with_unlike_promises_do_not_compare(measured: Measured, changed: Change) -> None:
    other = changed(durability="device")
    columns = [Column("One", measured, measured), Column("Other", other, other)]
    text = rendered(columns)
    assert "the end of the machine" in text
    assert (
        "unlike-promises: what writes survive differs (One keeps os, Other keeps device):"
        " these results do not compare\n  hint: " in text
    )
    assert side_by_side.document(columns, "ext4")["comparable"] is False
    alike = [Column("One", measured, measured), Column("Other", measured, measured)]
    assert "unlike-promises" not in rendered(alike)


def test_too_few_samples_are_no_quantile(measured: Measured) -> None:
    column = Column("One", measured, measured)
    # A load has no reads, and 500 inserts are too few for their p99.
    assert measured.quantiles_ns("READ") == dict.fromkeys(side_by_side.QUANTILES)
    inserts = measured.quantiles_ns("INSERT")
    assert inserts["p50"] is not None
    assert inserts["p99"] is None
    assert "too few samples" in rendered([column])


def test_errors_disturbances_and_missing_devices_are_said(measured: Measured, changed: Change) -> None:
    failing = changed(succeeded=measured.result.summary.operations - 3)
    busy = dataclasses.replace(measured, others=0.4)
    text = rendered([Column("One", busy, failing)], "tmpfs")
    assert re.search(r"errors .* 3 │", text)
    assert text.count("no device (tmpfs)") == 2
    assert "interference: other processes' share of the processors: 40% in One load\n  hint: " in text


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (999.9, "1.00 µs"),
        (1_234, "1.23 µs"),
        (99_960, "100 µs"),
        (999_700, "1.00 ms"),
        (12_345_678, "12.3 ms"),
        (3e12, "3,000 s"),
    ],
)
def test_durations_have_three_digits(ns: float, words: str) -> None:
    assert units.duration(ns) == words


def test_a_sparkline_is_as_wide_as_it_may_be() -> None:
    assert units.sparkline([], 5) == ""
    assert units.sparkline([0, 0], 5) == "▁▁"
    assert units.sparkline([0, 50, 100], 5) == "▁▅█"
    assert units.sparkline([100, 100, 0, 0, 50], 3) == "█▁▅"
