"""The workload kind `command` runs any command in its phases, fills in names, reads its figures and reports its
failures."""

from __future__ import annotations

import base64
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab_support import ROOT, experiment, loadstone, single_folder, start, trials
from loadstone.engine.histogram import Histogram, decode_histogram, encode_histogram
from loadstone.errors import LoadstoneError
from loadstone.experiment.file import load_experiment
from loadstone.experiment.kind import CommandContext, CommandUse, Ended, ObservedCommand
from loadstone.fleet.command import CommandError
from loadstone.importers.read import FORMATS, read_file
from loadstone.importers.run import ImportedRun, build_histogram
from loadstone.importers.source import Source
from loadstone.judge import facts
from loadstone.judge.judge import judge_results
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value
from loadstone.runner import phase_result
from loadstone.workloads.command import Command, read_figures, shell, single_run
from systems_support import free_port, systems, temporary_root
from test_doc_pages import blocks

GUIDE = ROOT / "docs/guides/any-command.md"
REDIS, POSTGRES, GZIP = blocks(GUIDE, "yaml")
TPS = {"regex": {"throughput": ["tps = ([0-9.]+)", "op/s"]}}


def run_command(home: Path, command: dict[str, Any], code: int = 0, **keys: Any) -> list[TrialResult]:
    """The trials of an experiment with a command."""
    document = {"systems": {"local": {}}, "workload": {"command": command}, "repeats": 2, **keys}
    path = experiment(home, yaml.safe_dump(document).replace("%", "%%"))
    path.write_text(yaml.safe_dump(document))
    loadstone(home, "run", path, "--no-report", code=code)
    return trials(single_folder(home))


def failure(home: Path, command: dict[str, Any], **keys: Any) -> tuple[str, str]:
    """The message and the hint of the first trial, which fails."""
    trial = run_command(home, command, code=1, **keys)[0]
    assert trial.end == "failed"
    return trial.notes[-1].message, trial.notes[-1].hint


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The servers' state directory."""
    with temporary_root() as path:
        monkeypatch.setenv("LOADSTONE_SYSTEMS", str(path))
        yield path
        for system in ("redis", "postgres"):
            systems(path, "down", system)


@pytest.mark.usefixtures("servers")
def test_redis_benchmark_ends_with_a_verdict(tmp_path: Path) -> None:
    assert len(REDIS.splitlines()) == 9
    path = experiment(tmp_path, REDIS.replace("100000", "2000"))
    port = f"systems.redis.start.settings.port={free_port()}"
    loadstone(tmp_path, "run", path, "--no-report", "--set", "systems.redis.start.system=redis", "--set", port)
    results = single_folder(tmp_path).load_results()
    assert [trial.end for trial in results.trials] == ["done"] * 12
    judgement = judge_results(results)
    (comparison,) = [pair for pair in judgement.comparisons if pair.metric == "throughput"]
    assert (comparison.ratio.n, comparison.by) == (6, "pipeline")
    trial = results.trials[0]
    assert trial.facts["version"] == "redis-benchmark 7.0.15"
    assert (trial.facts["tool"], trial.facts["system"], trial.facts["store"]) == ("redis-benchmark", "redis", "redis")
    assert trial.clients == 16
    assert trial.value("get.p99")
    assert trial.value("server.redis.network.received")
    assert "-c {clients} -P {pipeline} -n 2000" in str(trial.requested["work.run"])


ISSUE = """
question: How many clients can PostgreSQL serve?
systems: {postgres: {start: {system: postgres, settings: {port: PORT}}}}
workload:
  command:
    run: pgbench -n -c {clients} -T {duration} -h {host} -p {port} bench
    prepare: pgbench -i -q -s {scale} -h {host} -p {port} bench
    figures: pgbench
measure: {duration: 1s}
vary: {clients: [1, 4], scale: [1]}
repeats: 6
"""

# The guide's example, on the database that Loadstone's stores use.
STORES = POSTGRES.replace("start: postgres", "start: {system: postgres}").replace(" bench", " {database}")


def run_pgbench(home: Path, document: str, *changes: str) -> list[TrialResult]:
    """The trials of an experiment with pgbench."""
    path = experiment(home, document.replace("PORT", str(free_port())))
    loadstone(home, "run", path, "--no-report", *(part for change in changes for part in ("--set", change)))
    results = trials(single_folder(home))
    for trial in results:
        assert trial.end == "done"
        assert trial.clients == trial.config["clients"]
        assert trial.facts["scale"] == 1
        assert trial.facts["durability"] == "device"
        assert "15." in str(trial.facts["version"])
        assert trial.value("load.time")
        assert trial.value("operations")
        # pgbench's tables: 100,000 accounts, which are not in the stores' database.
        assert (trial.value("server.postgres.live_rows") or 0) >= 100_000
    assert not any("PGPASSWORD" in str(trial.to_json()) for trial in results)
    return results


@pytest.mark.usefixtures("servers")
def test_pgbench_runs_on_a_started_server(tmp_path: Path) -> None:
    assert len(run_pgbench(tmp_path, ISSUE, "repeats=2", "vary.clients=[2]")) == 2


@pytest.mark.soak
@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("document", [ISSUE, STORES])
def test_pgbench_ends_with_a_verdict(tmp_path: Path, document: str) -> None:
    port = f"systems.postgres.start.settings.port={free_port()}"
    assert len(run_pgbench(tmp_path, document, "measure.duration=1s", port)) == 12
    judgement = judge_results(single_folder(tmp_path).load_results())
    (comparison,) = [pair for pair in judgement.comparisons if pair.metric == "throughput"]
    assert (comparison.ratio.n, comparison.by) == (6, "clients")
    assert comparison.claim in ("better", "worse", "slight", "same", "undecided", "none")
    assert str(judgement.verdict) in ("valid", "unchecked", "suspect", "invalid")


def test_time_is_measured_without_figures(tmp_path: Path) -> None:
    path = experiment(tmp_path, GZIP)
    loadstone(tmp_path, "run", path, "--no-report", "--set", "repeats=2")
    results = single_folder(tmp_path).load_results()
    assert results.headline_metrics == ("time", "cpu_time")
    for trial in results.trials:
        assert (trial.end, trial.requested["work.run"]) == ("done", "gzip -{level} -c data > data.gz")
        files = results.path / "trials" / trial.trial  # type: ignore[operator]
        level = trial.config["level"]
        assert (files / "commands.sh").read_text().splitlines()[-1] == f"gzip -{level} -c data > data.gz"
    assert not list((tmp_path / "data").iterdir())


def test_peak_memory_is_the_commands_own(tmp_path: Path) -> None:
    python = shlex.quote(sys.executable)
    results = run_command(tmp_path, {"run": f"{python} -c 'x = bytearray({{size}} << 20)'"}, vary={"size": [50, 100]})
    memory = {trial.config["size"]: trial.value("memory_max") or 0 for trial in results}
    assert 40e6 < memory[100] - memory[50] < 65e6
    assert memory[50] < 80e6


def parse_output(home: Path, text: str, figures: Any, warmup: float = 0.0, **keys: Any) -> ImportedRun:
    """The figures in a command's output, without the first `warmup` seconds. Raises CommandError."""
    context = CommandContext(home, home)
    ended = Ended(0, home / "command.stdout", home / "command.stderr", CommandUse(1, 1, None), context)
    with ended.stdout.open("wb") as out, ended.stderr.open("wb") as errors:
        subprocess.run(shell(text, context), stdout=out, stderr=errors, check=True, cwd=home)
    work = Command.model_validate({"run": text, "figures": figures, **keys})
    phase = ObservedCommand("command", lambda _: [], partial(read_figures, work, "command", False, warmup))
    return phase_result.parse_output(phase, ended)


def test_figures_are_read_by_path_and_pattern(tmp_path: Path) -> None:
    paths = {"json": {"all.mean": ["$['a b'][0].x", "ms"], "operations": ["$.n", "op"]}}
    run = parse_output(tmp_path, 'echo \'{{"a b": [{{"x": "1.5"}}], "n": 3}}\'', paths)
    known = {value.metric: value.value for value in run.values}
    assert known == {"all.mean": 1_500_000, "operations": 3, "time": 1, "cpu_time": 1}
    run = parse_output(tmp_path, "awk 'BEGIN {{ print \"it'\\''s tps = 7\" }}'", TPS)
    assert run.values[0] == Value("throughput", 7.0, "op/s", 1, resolution=1.0)
    run = parse_output(tmp_path, "echo load 22 5 %", {"regex": {"miss": ["2{2} ([0-9]) %", "%"]}})
    assert run.values[0].value == 0.05
    assert parse_output(tmp_path, "true", None).facts["work"] == "command"


IMPORTS = ROOT / "tests/fixtures/imports"


def test_warmup_is_excluded_from_a_series(tmp_path: Path) -> None:
    command = f"cat {IMPORTS / 'pgbench-progress.txt'}"
    whole, run = (parse_output(tmp_path, command, "pgbench", warmup) for warmup in (0.0, 1.0))
    assert (whole.series, run.series) != (None, None)
    known = {value.metric: value.value for value in run.values}
    # The second and the third second: 312.9 and 385.1 transactions.
    assert known["throughput"] == pytest.approx((312.9 + 385.1) / 2)
    assert (known["operations"], known["runtime"]) == (698, 2e9)
    assert run.series is not None
    assert run.series.start_seconds == (0.0, 1.0)
    # The mean that pgbench prints includes the warm-up, so it is omitted.
    assert "all.mean" in {value.metric for value in whole.values}
    assert "all.mean" not in known
    assert [note.name for note in run.notes if note not in whole.notes] == ["warmup-excluded"]


def test_latencies_after_the_warmup_are_read_from_histograms(tmp_path: Path) -> None:
    log = IMPORTS / "cassandra-stress.hlog"
    runs = [parse_output(tmp_path, f"cat {log}", "hlog", warmup) for warmup in (0.0, 1.0)]
    counts = [{value.metric: value.value for value in run.values} for run in runs]
    assert [known["operations"] for known in counts] == [6000, 4000]
    assert [known["runtime"] for known in counts] == pytest.approx([3e9, 2e9])
    (tmp_path / "tool.hlog").write_bytes(log.read_bytes())
    run = parse_output(tmp_path, f"cat {IMPORTS / 'pgbench-progress.txt'}", "pgbench", 1.0)
    known = {value.metric: value.value for value in run.values}
    assert known["read.p99"] == counts[1]["read.p99"]
    assert known["throughput"] == pytest.approx(349)


@pytest.mark.parametrize(("name", "warmup"), [("pgbench-scripts.txt", 1.0), ("pgbench-progress.txt", 60.0)])
def test_warmup_without_a_series_fails(name: str, warmup: float, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no time series after the warm-up"):
        parse_output(tmp_path, f"cat {IMPORTS / name}", "pgbench", warmup)


FAILURES = [
    ("printf 'tps = 5\\0'", TPS, "no figures can be read: command.stdout is a binary file", "print text"),
    ("echo ERROR: refused", TPS, "the pattern for throughput has no match", "ERROR: refused"),
    ("echo tps = 5; echo tps = 6", TPS, "the pattern for throughput has 2 matches", "match one line"),
    ("echo tps = 5 >&2", TPS, "it printed nothing to standard output", "2>&1"),
    ("true", TPS, "it printed nothing to standard output", "have the command print its figures"),
    ("echo tps = 1..2", TPS, 'throughput is not a number: "1..2"', "group"),
    ("echo '{{\"a\":'", {"json": {"throughput": ["$.a", "op/s"]}}, "the JSON is truncated or damaged", "import"),
    ("echo '[1, 2]'", {"json": {"throughput": ["$[*]", "op/s"]}}, "it printed 2 results", "once"),
    ("echo pgbench is fine", "pgbench", "the pgbench report is truncated", "whole output"),
    ("head -c 70000000 /dev/zero", TPS, "it printed 70.0 MB; figures are read from at most 67.1 MB", "print less"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "figures", "message", "hint"), FAILURES)
def test_missing_figures_are_named(tmp_path: Path, text: str, figures: Any, message: str, hint: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_output(tmp_path, text, figures)
    assert str(caught.value.args[0]).startswith(f"command: {message}")
    assert hint in caught.value.hint
    assert "\n" not in str(caught.value.args[0]) + caught.value.hint


def test_exit_status_fails_the_trial(tmp_path: Path) -> None:
    message, hint = failure(tmp_path, {"run": "echo tps = 5; echo broken >&2; exit 3", "figures": TPS})
    assert (message, hint) == ("command exited with status 3", "the end of its output: broken")
    for trial in trials(single_folder(tmp_path)):
        assert trial.value("throughput") is None
        assert (single_folder(tmp_path).path / "trials" / trial.trial / "command.stderr").read_text() == "broken\n"


def test_failed_part_of_a_pipe_fails_the_trial(tmp_path: Path) -> None:
    message, hint = failure(tmp_path, {"run": "(echo tps = 5; exit 3) | cat", "figures": TPS})
    assert (message, hint) == ("command exited with status 3", "the end of its output: tps = 5")


def test_writer_without_reader_has_a_hint(tmp_path: Path) -> None:
    message, hint = failure(tmp_path, {"run": "yes | head -n 1"})
    assert message == "command exited with status 141"
    assert "write `(writer || true) | reader`" in hint


def test_missing_figure_of_one_repeat_is_one_failure(tmp_path: Path) -> None:
    count = tmp_path / "count"
    text = f"echo x >> {count}; [ $(wc -l < {count}) = 2 ] || echo tps = 5"
    results = run_command(tmp_path, {"run": text, "figures": TPS}, code=1, repeats=6)
    assert sorted(trial.end for trial in results) == ["done"] * 5 + ["failed"]
    # The next run repeats failed trials.
    loadstone(tmp_path, "run", tmp_path / "small.yaml", "--no-report", "--resume")
    resumed = trials(single_folder(tmp_path))
    assert [trial.end for trial in resumed] == ["done"] * 6
    assert [trial.attempt for trial in resumed].count(2) == 1
    assert len(count.read_text().splitlines()) == 7


def test_hanging_command_is_killed_with_its_daemons(tmp_path: Path) -> None:
    message, hint = failure(tmp_path, {"run": "setsid sleep 4721 & sleep 4721"}, timeout="1s")
    assert message == "command did not finish within 1 s"
    assert "`timeout`" in hint
    assert subprocess.run(["pgrep", "-f", "^sleep 4721"]).returncode == 1


def test_daemon_is_killed_and_named(tmp_path: Path) -> None:
    daemon = "setsid sleep 4722 &"
    results = run_command(tmp_path, {"prepare": daemon, "run": f"{daemon} echo tps = 5", "figures": TPS})
    for trial in results:
        assert [note.name for note in trial.notes] == ["survivors"] * 2
        assert all("sleep" in note.message for note in trial.notes)
    assert [trial.end for trial in results] == ["done", "done"]
    assert subprocess.run(["pgrep", "-f", "^sleep 4722"]).returncode == 1


def test_middle_of_a_large_output_is_cut(tmp_path: Path) -> None:
    first, _ = run_command(tmp_path, {"run": "echo begin; head -c 80000000 /dev/zero; echo end"})
    output = single_folder(tmp_path).path / "trials" / first.trial / "command.stdout"
    assert 32 << 20 < output.stat().st_size < 33 << 20
    data = output.read_bytes()
    assert data.startswith(b"begin")
    assert data.endswith(b"end\n")
    assert "loadstone: 46" in str(data[16 << 20 :][:80])
    assert first.notes[-1].name == "output-cut"


def test_phases_run_in_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = {
        "prepare": f"echo prepare {{seed}} {{repeat}} > data; cat data >> {log}",
        "run": f"cat data; echo run {{trial}} >> {log}",
        "warmups": 2,
        "figures": {"regex": {"x": ["prepare ([0-9]+)", "s"]}},
    }
    results = run_command(tmp_path, command, hooks={"before": [f"echo before >> {log}"]})
    lines = [line.split()[0] for line in log.read_text().splitlines()]
    assert lines == ["before", "prepare", "run", "run", "run"] * 2
    # The trials of a block have equal seeds; blocks have different seeds.
    assert len({trial.value("x") for trial in results}) == 2
    assert all(trial.value("load.time") for trial in results)
    assert {trial.requested["hooks.before"] for trial in results} == {f"echo before >> {log}"}


def test_json_of_a_logger_keeps_its_figures(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = "".join(f'{{"level": "info", "msg": "step {word} is done"}}\n' for word in "abcde")
    log.write_text(f'{steps}{{"level": "info", "msg": "result", "tps": 12}}\n')
    figures = {"regex": {"throughput": ['"tps": ([0-9]+)', "op/s"]}}
    for trial in run_command(tmp_path, {"run": f"cat {log}", "figures": figures}):
        assert trial.value("throughput") == 12


@pytest.mark.parametrize(("done", "notes"), [(1000, []), (960, []), (100, ["incomplete"])])
def test_missing_operations_are_noted(tmp_path: Path, done: int, notes: list[str]) -> None:
    command = {
        "run": f"echo {done} of {{operations}}",
        "figures": {"regex": {"operations": ["([0-9]+) of", "operations"]}},
    }
    trial = run_command(tmp_path, command, measure={"operations": 1000})[0]
    assert [note.name for note in trial.notes] == notes


@pytest.mark.parametrize("phase", ["prepare", "warmups"])
def test_failed_phase_is_named(tmp_path: Path, phase: str) -> None:
    command = {"prepare": "exit 7", "run": "true"} if phase == "prepare" else {"run": "exit 7", "warmups": 1}
    message, _ = failure(tmp_path, command)
    assert message.startswith("load exited with status 7" if phase == "prepare" else "warmup-1 exited with status")


def test_histograms_of_the_tool_are_kept(tmp_path: Path) -> None:
    histogram = build_histogram([(1000, 10), (2000, 90)])
    log = "#[Histogram log format version 1.3]\n#[Unit: ns]\n" + f"Tag=READ,0.0,1.0,2.0,{encode_histogram(histogram)}\n"
    text = base64.b64encode(log.encode()).decode()
    results = run_command(
        tmp_path, {"run": f"echo tps = 5; echo {text} | base64 -d > {{results}}/tool.hlog", "figures": TPS}
    )
    for trial in results:
        assert trial.value("read.p50") == pytest.approx(2000, rel=0.001)
        log_file = single_folder(tmp_path).path / "trials" / trial.trial / "command.hlog"
        assert decode_histogram(log_file.read_text().rstrip().rpartition(",")[2]) == histogram


def test_histograms_of_processes_are_merged(tmp_path: Path) -> None:
    parts = [build_histogram([(1000, 10), (2000, 90)]), build_histogram([(9000, 300)])]
    for number, part in enumerate(parts):
        head = f"#[Histogram log format version 1.3]\n#[Unit: ns]\n#[StartTime: {1000 + number / 2:.1f} (seconds)]\n"
        (tmp_path / f"{number}.log").write_text(f"{head}Tag=READ,0.0,1.0,2.0,{encode_histogram(part)}\n")
    copies = "; ".join(f"cp {shlex.quote(str(tmp_path / f'{n}.log'))} {{results}}/{n}.hdr" for n in (0, 1))
    trial, _ = run_command(tmp_path, {"run": f"{copies}; echo tps = 5", "figures": TPS})
    assert trial.value("read.count") == trial.value("all.count") == 400
    assert trial.value("read.p50") == pytest.approx(9000, rel=0.001)
    log_file = single_folder(tmp_path).path / "trials" / trial.trial / "command.hlog"
    merged = Histogram()
    for part in parts:
        merged.add_histogram(part)
    assert decode_histogram(log_file.read_text().rstrip().rpartition(",")[2]) == merged
    # The second process began half a second later.
    assert trial.value("runtime") == pytest.approx(1.5e9)


@pytest.mark.parametrize("unit", [None, "us"])
def test_unit_of_histograms_is_a_key(tmp_path: Path, unit: str | None) -> None:
    histogram = build_histogram([(1000, 10), (2000, 90)])
    log = f"#[Histogram log format version 1.3]\nTag=READ,0.0,1.0,2.0,{encode_histogram(histogram)}\n"
    (tmp_path / "x.log").write_text(log)
    copy = f"cp {shlex.quote(str(tmp_path / 'x.log'))} {{results}}/x.hlog; echo tps = 5"
    trial, _ = run_command(tmp_path, {"run": copy, "figures": TPS, **({"hlog_unit": unit} if unit else {})})
    assert (trial.end, trial.value("throughput")) == ("done", 5)
    if unit:
        assert trial.value("read.p50") == pytest.approx(2_000_000, rel=0.001)
        assert not trial.notes
    else:
        assert trial.value("read.p50") is None
        (note,) = trial.notes
        assert (note.name, "x.hlog" in note.message, "hlog_unit: us" in note.hint) == ("unknown", True, True)


def test_unit_of_a_printed_log_is_required(tmp_path: Path) -> None:
    log = (
        f"#[Histogram log format version 1.3]\nTag=READ,0.0,1.0,2.0,{encode_histogram(build_histogram([(1000, 10)]))}\n"
    )
    (tmp_path / "x.log").write_text(log)
    with pytest.raises(CommandError, match="the unit of the log's values is unknown") as caught:
        parse_output(tmp_path, "cat x.log", "hlog")
    assert "add `hlog_unit: us` (or ns, or ms) to `command`" in caught.value.hint
    run = parse_output(tmp_path, "cat x.log", "hlog", hlog_unit="ms")
    assert {value.metric: value.value for value in run.values}["read.max"] == pytest.approx(1e9, rel=0.001)


def test_secrets_are_no_names(tmp_path: Path) -> None:
    document = {"systems": {"redis": {"start": "redis"}}, "workload": {"command": {"run": "echo {password}"}}}
    path = experiment(tmp_path, yaml.safe_dump(document))
    assert "{password} in workload.command.run is not defined" in loadstone(tmp_path, "run", path, code=2).stderr


REFUSED = [
    ({"run": "echo {hots}"}, {}, "{hots} in workload.command.run is not defined"),
    ({"run": "echo {host}"}, {}, "have the lab start servers"),
    ({"run": "echo {"}, {}, 'an unmatched "{"'),
    ({"run": " "}, {}, "the command is empty"),
    ({"run": "true", "figures": "pgbenhc"}, {}, 'did you mean "pgbench"?'),
    ({"run": "true", "figures": {"regex": {"x": ["(a)(b)", "s"]}}}, {}, "a pattern with several groups"),
    ({"run": "true", "figures": {"regex": {"x": ["(", "s"]}}}, {}, "an invalid pattern for x"),
    ({"run": "true", "figures": {"regex": {"x": ["a", "lightyears"]}}}, {}, 'an unknown unit "lightyears"'),
    ({"run": "true", "figures": {"json": {"x": ["a", "s"]}}}, {}, "an invalid path"),
    ({"run": "true", "figures": {"xml": {}}}, {}, "must be an importer's name"),
    ({"run": "true"}, {"measure": {"duration": "5s"}}, "sets duration, but the command does not use it"),
    ({"run": "true"}, {"vary": {"clients": [1, 2]}}, "sets clients, but the command does not use it"),
    ({"run": "true"}, {"measure": {"warmup": "5s"}}, "measure.warmup has no effect"),
    ({"run": "true"}, {"find": {"max": "throughput"}}, "`find` needs a steady workload"),
]


@pytest.mark.parametrize(("command", "keys", "message"), REFUSED)
def test_invalid_commands_are_refused(tmp_path: Path, command: dict[str, Any], keys: Any, message: str) -> None:
    document = {"systems": {"local": {}}, "workload": {"command": command}, **keys}
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(LoadstoneError, match=re.escape(message)):
        load_experiment(path)


def test_invalid_shell_is_refused_before_the_first_trial(tmp_path: Path) -> None:
    for text, message in (("echo 'a", "the shell cannot parse"), ("no-such-program -x", "there is no program")):
        path = experiment(tmp_path, yaml.safe_dump({"systems": {"a": {}}, "workload": {"command": {"run": text}}}))
        assert message in loadstone(tmp_path, "run", path, code=1).stderr
    assert not (tmp_path / "results").exists()


def test_command_ends_with_the_lab(tmp_path: Path) -> None:
    path = experiment(tmp_path, yaml.safe_dump({"systems": {"a": {}}, "workload": {"command": {"run": "sleep 4723"}}}))
    lab = start(tmp_path, "run", path, "--no-report")
    while subprocess.run(["pgrep", "-f", "^sleep 4723"], capture_output=True).returncode:
        assert lab.poll() is None
    lab.send_signal(signal.SIGKILL)
    lab.communicate(timeout=60)
    deadline = 600
    while not subprocess.run(["pgrep", "-f", "^sleep 4723"], capture_output=True).returncode and deadline:
        deadline -= 1
    assert deadline


def test_command_may_name_loadstone_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (trial, _) = run_command(tmp_path, {"run": "loadstone teragen 10 in && loadstone teragen 10 in2"})
    assert trial.end == "done"


def test_results_of_several_tests_are_one_run() -> None:
    source = ROOT / "tests/fixtures/imports/redis-benchmark.csv"
    runs = [imported.result for imported in read_file(source, {})]
    chosen = FORMATS["redis-benchmark"]
    whole = single_run(chosen.read_runs(Source(source, source.read_text(), {})), chosen)
    names = {value.metric for value in whole.values}
    assert len(runs) > 1
    assert {f"{str(run.config['test']).lower()}.throughput" for run in runs[:2]} <= names
    doubled = [*chosen.read_runs(Source(source, source.read_text(), {})) * 2]
    with pytest.raises(LoadstoneError, match="results of redis-benchmark, but a trial has one"):
        single_run(doubled, chosen)


LACKING = {
    "pgbench-rate.txt": [],
    "sysbench-oltp.txt": ["records"],
    "redis-benchmark.txt": ["pipeline", "keyspace"],
    "redis-benchmark.csv": ["clients", "record_bytes", "pipeline", "keyspace"],
    "memtier.json": [],
    "memtier.txt": ["record_bytes", "records", "pipeline", "distribution"],
    "hyperfine.json": [],
    "latte.json": [],
    "scylla-bench.txt": [],
    "cql-stress.txt": [],
}


@pytest.mark.parametrize("name", LACKING)
def test_tools_state_what_a_comparison_needs(name: str) -> None:
    result = read_file(ROOT / "tests/fixtures/imports" / name, {})[0].result
    assert str(facts.work_of(result)) in facts.NEEDED
    assert facts.missing_facts([facts.record_facts(result)] * 2, counted=True) == LACKING[name]


def test_equal_commands_state_their_work() -> None:
    trial = TrialResult("a", {}, 1, {}, requested={"work.run": "mytool"}, facts={"tool": "redis-benchmark"})
    assert facts.missing_facts([facts.record_facts(trial)] * 2, counted=False) == []
