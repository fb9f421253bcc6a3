"""Fixtures of the whole suite: the engine as its users run it, one process per command line in an empty directory."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import browser_support
from loadstone import workloads
from loadstone.engine.trial import Trial
from stress_support import Stress
from trial_support import RECORDS, Running, Start, events, spec, summary_of

# Commands register the workload kinds in the same way.
workloads.register()

# A shell starts background processes with SIGINT ignored, and nohup with SIGHUP ignored; child processes inherit both.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "tests/fixtures"

# The regular expression with which existing scripts parse YCSB's reports.
LINE = re.compile(r"\[(\w.*?)\], (.*?), (.*)")


# The time in a status line; tests request one line per second.
STAMP = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}) \d+ sec: ")
SECOND = timedelta(seconds=1)
# The engine's messages about late operations, which a test compares with the engine's source.
LATE = ("more than 1 ms late", "waited over 1 ms")


@dataclass(frozen=True)
class CommandResult:
    """The exit code, output and duration of a command."""

    code: int
    out: str
    err: str
    seconds: float

    def report(self) -> list[tuple[str, str, str]]:
        """The lines of the report: metric, measurement, value."""
        return report(self.out)

    def value(self, metric: str, measurement: str) -> float:
        """A figure of the report, which must contain it exactly once."""
        (value,) = [v for m, k, v in self.report() if (m, k) == (metric, measurement)]
        return float(value)

    def returns(self, metric: str) -> dict[str, int]:
        """The count of each status."""
        return {k.removeprefix("Return="): int(v) for m, k, v in self.report() if m == metric and "Return=" in k}

    def metrics(self) -> list[str]:
        """The metrics of the report in their order, without OVERALL and the metrics of garbage collection."""
        names = dict.fromkeys(m for m, _, _ in self.report())
        return [name for name in names if not name.startswith(("OVERALL", "TOTAL_GC"))]

    def is_late(self) -> bool:
        """Whether the run itself reports late operations or status lines; the host may have caused them."""
        times = [datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S:%f") for stamp in STAMP.findall(self.err)]
        gaps = [after - before for before, after in itertools.pairwise(times)]
        return any(text in self.err for text in LATE) or max(gaps, default=SECOND) > 1.25 * SECOND

    def messages(self, start: str) -> list[str]:
        """The lines of stderr that begin with this prefix, without the prefix."""
        return [line.removeprefix(start) for line in self.err.splitlines() if line.startswith(start)]


def report(text: str) -> list[tuple[str, str, str]]:
    """A report in YCSB's text format."""
    matches = (LINE.fullmatch(line) for line in text.splitlines())
    return [(match[1], match[2], match[3]) for match in matches if match]


class Engine:
    """Runs `loadstone-engine ycsb …` in `home`."""

    def __init__(self, program: Path, home: Path) -> None:
        self.program = program
        self.home = home
        self.workloads = ROOT / "workloads"

    def arguments(self, line: str, *more: str) -> list[str]:
        """A command line; `workloads/…` is a path, and `a=b` is short for `-p a=b`."""
        command = [str(self.program), "ycsb"]
        for word in [*line.split(), *more]:
            if "=" in word and command[-1] not in ("-p", "-P", "-l"):
                command += ["-p", word]
            elif word.startswith("workloads/") and (self.workloads / word[10:]).exists():
                command.append(str(self.workloads / word[10:]))
            else:
                command.append(word)
        return command

    def start(self, line: str, *more: str, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Starts a command and does not wait for it."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*prefix, *self.arguments(line, *more)], cwd=self.home, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def run(
        self, line: str, *more: str, stdin: str = "", timeout: float = 60, prefix: Sequence[str] = (), **variables: str
    ) -> CommandResult:
        """Runs a command to its end and returns its result, whatever its exit code."""
        start = time.monotonic()
        done = subprocess.run(
            [*prefix, *self.arguments(line, *more)],
            cwd=self.home,
            input=stdin.encode(),
            capture_output=True,
            timeout=timeout,
            env={**os.environ, **variables},
        )
        result = CommandResult(
            done.returncode,
            done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"),
            time.monotonic() - start,
        )
        assert "panicked" not in result.err, result.err
        return result

    def __call__(self, line: str, *more: str, stdin: str = "", timeout: float = 60, **variables: str) -> CommandResult:
        """Runs a command that must succeed."""
        result = self.run(line, *more, stdin=stdin, timeout=timeout, **variables)
        assert result.code == 0, f"{line} {' '.join(more)}\n{result.err}"
        return result


# The files that take the longest, longest first.
LONGEST = (
    "test_stores_networked",
    "test_dfsio_hdfs",
    "test_systems_cassandra",
    "test_systems_hbase",
    "test_lab_pilot",
    "test_terasort_hdfs_faults",
    "test_live_browser",
    "test_lab_search",
    "test_hbase_seeds",
    "test_terasort_hdfs",
    "test_lab_hdfs",
    "test_outages",
    "test_faults_redis",
    "test_lab_crash",
    "test_ledger_counts",
    "test_fleet",
    "test_command_kind",
    "test_examples",
    "test_cassandra_stress",
    "test_systems_hdfs",
    "test_jvm_store",
    "test_known_truth",
    "test_search_simulations",
    "test_judge_simulations",
    "test_style",
    "test_help",
)
# Files with many simulated experiments; `make check` deselects them.
SIMULATIONS = (
    "test_availability",
    "test_judge_liars",
    "test_judge_simulations",
    "test_known_truth",
    "test_search_simulations",
    "test_statistics_knee",
    "test_statistics_rising",
    "test_statistics_simulations",
)
# Files whose tests share no fixture. Their tests are distributed one by one, so that no file occupies a worker at the
# end of the suite.
INDEPENDENT = ("test_judge_simulations", "test_search_simulations", "test_statistics_simulations")
# The file whose tests share one server per store; the store is their first parameter.
BY_STORE = "test_stores_networked"


def unit_of(nodeid: str) -> str:
    """The tests that run on the same worker: all tests of a file, all tests of a store, or a single test."""
    path, _, test = nodeid.partition("::")
    name = Path(path).stem
    if name in INDEPENDENT:
        return nodeid
    return path + re.split(r"[-\[\]]", test)[1] if name == BY_STORE else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distributes units. The groups of pytest-xdist would suffice, but pytest 9.2 ignores their names."""
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = unit_of
    return scheduler


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests by folder and file, deselects soak tests, and moves the longest files to the front.

    A long file at the end of the suite would keep one worker busy while the other workers are idle.
    """
    for item in items:
        item.add_marker(item.path.parent.name)
        if item.path.stem in SIMULATIONS:
            item.add_marker("simulation")
    if "soak" not in config.option.markexpr:
        soak = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=soak)
        items[:] = [item for item in items if item not in soak]
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@pytest.fixture(scope="module", autouse=True)
def fast_jvms(request: pytest.FixtureRequest) -> Iterator[None]:
    """Makes the servers' JVMs use only the fast compiler, which shortens their start.

    Cassandra's start then takes 5.4 s of processor time instead of 10 s.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name == "servers":
            patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        yield


@pytest.fixture(scope="session")
def program() -> Path:
    """The engine's binary: `LOADSTONE_ENGINE`, or the binary that `make` installs in the virtual environment."""
    named = os.environ.get("LOADSTONE_ENGINE")
    path = Path(named) if named else ROOT / ".venv/bin/loadstone-engine"
    if not os.access(path, os.X_OK):
        pytest.fail(f"there is no engine at {path}: run `make`, or set LOADSTONE_ENGINE")
    return path


@pytest.fixture
def stress(program: Path) -> Stress:
    """Runs a command line of cassandra-stress on a server."""
    return Stress(program)


@pytest.fixture
def engine(program: Path, tmp_path: Path) -> Engine:
    """An engine in an empty directory."""
    return Engine(program, tmp_path)


@pytest.fixture(scope="module")
def module_engine(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """An engine in a directory that the tests of a module share."""
    return Engine(program, tmp_path_factory.mktemp("shared"))


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that a test started; the fixture kills the processes that are still running at the end."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.fixture
def engine_variable(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the lab use the engine under test."""
    monkeypatch.setenv("LOADSTONE_ENGINE", str(program))


@pytest.fixture(scope="module")
def module_engine_variable(program: Path) -> Iterator[None]:
    """Makes the lab use the engine under test in fixtures of module scope."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADSTONE_ENGINE", str(program))
        yield


@pytest.fixture
def start(program: Path) -> Iterator[Start]:
    engines: list[Running] = []

    def start_engine(*arguments: Any, **changes: Any) -> Running:
        engines.append(Running(program, spec(*arguments, **changes)))
        return engines[-1]

    yield start_engine
    for engine in engines:
        engine.__exit__()


@pytest.fixture
def load_store(tmp_path: Path, engine_variable: None) -> Callable[[str], Path | None]:
    """Loads a store and returns its directory."""

    def load(store: str) -> Path | None:
        directory = None if store == "null" else tmp_path / store
        with Trial(spec(store, directory, phase="load", until={"operations": RECORDS}, settle=True)) as trial:
            assert [*events(trial)]
        summary = summary_of(trial)
        assert (trial.status, summary.end, summary.succeeded) == (0, "done", RECORDS)
        return directory

    return load


def dump(engine: Engine, store: str = "rocksdb", directory: str = "db", *more: str) -> dict[str, dict[str, str]]:
    """Every record of a store, read through the shell."""
    # The shell ignores these counts.
    counts = "recordcount=1 operationcount=1"
    result = engine(f"shell {store} {store}.dir={directory} {counts}", *more, stdin="scan ! 1000000\n")
    assert result.out.startswith("Return code: OK\n")
    records: dict[str, dict[str, str]] = {}
    for block in result.out.split("--------------------------------\nRecord ")[1:]:
        key, *fields = block.split("\n")
        records[key] = dict(field.split("=", 1) for field in fields if "=" in field)
    return records


def check_on_time(engine: Engine, command: str, check: Callable[[CommandResult], None], *more: str) -> None:
    """Checks the result and timing of a run.

    Runs that report late operations are repeated, up to ten times in all.
    """
    for _ in range(9):
        result = engine(command, *more)
        try:
            check(result)
        except AssertionError:
            if not result.is_late():
                raise
        else:
            return
    check(engine(command, *more))


def operations(result: CommandResult) -> int:
    """The number of successful reads, updates, inserts and scans."""
    return int(
        sum(result.value(m, "Operations") for m in result.metrics() if m in ("READ", "UPDATE", "INSERT", "SCAN"))
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[browser_support.Browser]:
    """A browser for all tests of a file; required in CI."""
    path = browser_support.find()
    if path is None:
        reason = "no Chromium here: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with browser_support.Browser(path) as opened:
        yield opened
