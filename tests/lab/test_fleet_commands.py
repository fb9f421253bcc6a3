"""Commands and fio on hosts of a fleet: agents in this process, without Ray."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from experiment_support import message_of
from fleet_support import InProcess
from lab_support import experiment, is_running, single_folder, trials
from loadstone.commands import run as run_command
from loadstone.fleet.agent import Agent
from loadstone.fleet.clock import HostClock, ShiftedClock
from loadstone.importers.processes import combine_hosts
from loadstone.importers.run import ImportedRun, build_histogram
from loadstone.judge.judge import judge_results
from loadstone.report import hosts as report_hosts
from loadstone.report.view import View
from loadstone.results.hlog import write_histograms
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value
from loadstone.runner import run as runner

ROLES = ("lab", "clients", "clients", "clients")
HOSTS = ("host1", "host2", "host3")
CLOCKS = (HostClock(), ShiftedClock(500_000_000), HostClock(), HostClock())
FLEET = "fleet: {on: ray, per_host: 1, hosts: {clients: {label: role=clients}}}\nrepeats: 1\n"
COMMAND = """
systems: {tool: {}}
workload:
  command:
    prepare: echo 'all {clients}' > shared
    warmups: 1
    run: >-
      cat shared; echo "{host_index}/{host_count} {clients} tps = {rate}.0"; sleep 1
    figures: {regex: {throughput: ['tps = ([0-9.]+)', op/s]}}
clients: 7
rate: 100
"""
SECOND = 1e9


def run_on_hosts(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str, status: int = 0, transport: type[InProcess] = InProcess
) -> list[TrialResult]:
    """Runs an experiment on agents with different clocks, without Ray; returns its trials."""
    file = experiment(home, text.replace("%", "%%") + FLEET)
    monkeypatch.chdir(home)
    monkeypatch.setenv("LOADSTONE_SHARE_HOST", "1")
    monkeypatch.setattr(runner, "RayTransport", lambda address: transport(CLOCKS, ROLES))
    assert run_command.main([str(file), "--no-report"]) == status
    return trials(single_folder(home))


def command_text(run: str, **keys: object) -> str:
    """An experiment with a command."""
    return f"systems: {{tool: {{}}}}\nworkload: {{command: {json.dumps({'run': run, **keys})}}}\n"


def test_hosts_share_the_load_of_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (trial,) = run_on_hosts(tmp_path, monkeypatch, COMMAND + f"directory: {tmp_path}/data\n")
    files = single_folder(tmp_path).path / "trials" / trial.trial
    # Without servers, each host prepares the data for itself, in the directory of its command.
    lines = ("all 7\n0/3 3 tps = 34.0\n", "all 7\n1/3 2 tps = 33.0\n", "all 7\n2/3 2 tps = 33.0\n")
    assert tuple((files / host / "command.stdout").read_text() for host in HOSTS) == lines
    rates = [trial.value(f"host.{host}.throughput") for host in HOSTS]
    assert (trial.end, rates, trial.clients, trial.facts["target"]) == ("done", [34, 33, 33], 7, 100)
    assert trial.value("time") == max(trial.value(f"host.{host}.time") or 0 for host in HOSTS)
    assert trial.value("fleet.start_skew") is not None
    # The directories on the hosts are removed.
    assert list((tmp_path / "data").glob("*")) == []
    table = report_hosts.compare_hosts(View(judge_results(single_folder(tmp_path).load_results())), list(HOSTS))
    assert [column.title for column in table.columns[:3]] == ["host", "throughput", "time"]


def test_failed_command_names_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = "if [ {host_index} = 1 ]; then echo no such table >&2; exit 3; else sleep 600; fi"
    (trial,) = run_on_hosts(tmp_path, monkeypatch, command_text(run), status=1)
    (note,) = trial.notes
    assert (trial.end, note.name) == ("failed", "failed")
    assert note.message == "host host2: command exited with status 3"
    assert "no such table" in note.hint


def test_lost_host_repeats_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (trial,) = run_on_hosts(tmp_path, monkeypatch, command_text("sleep 0.1"), transport=LosingOnce)
    rows = [json.loads(line) for line in (single_folder(tmp_path).path / "values.jsonl").read_text().splitlines()]
    assert [row["end"] for row in rows] == ["lost", "done"]
    assert rows[0]["notes"][-1]["message"].startswith("host host2 is lost: silent for ")
    assert trial.end == "done"


class LosingOnce(InProcess):
    """The second host with clients sends no reply after its first start, until its agent is started again."""

    lost = False
    has_lost = False

    def open(self, host: int) -> None:
        self.lost = self.lost and host != 2
        super().open(host)

    def send(self, host: int, request: Mapping[str, Any]) -> None:
        super().send(host, request)
        if host == 2 and "start_at" in str(request) and not self.has_lost:
            self.lost = self.has_lost = True

    def _call(self, host: int, call: Callable[[], Mapping[str, Any]]) -> None:
        if not (self.lost and host == 2):
            super()._call(host, call)


def test_silent_lab_ends_the_command(tmp_path: Path) -> None:
    agent = Agent()
    command = {"argv": ["sh", "-c", "echo $$ > pid; sleep 600"], "environment": {}, "defaults": {}, "files": {}}
    spec = {"command": {**command, "place": str(tmp_path), "version": []}, "lease_ms": 2000, "is_last": True}
    agent.exchange({"commands": [{"launch": 1, "specs": [{**spec, "directory": str(tmp_path / "base")}]}]})
    agent.exchange({"commands": [{"start_at": time.time_ns()}]})
    wait_for((tmp_path / "base/data/pid").exists)
    pid = int((tmp_path / "base/data/pid").read_text())
    wait_for(lambda: not is_running(pid))
    wait_for(lambda: not (tmp_path / "base").exists())


def wait_for(condition: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_logs_of_hosts_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        histogram = build_histogram([(1_000_000 * (number + 1), 100)])
        write_histograms(tmp_path / f"{number}.log", {"READ": histogram})
    text = command_text(f"cp {tmp_path}/{{host_index}}.log {{results}}/tool.hlog")
    (trial,) = run_on_hosts(tmp_path, monkeypatch, text)
    assert trial.value("all.count") == trial.value("read.count") == 300
    p50s = [trial.value(f"host.{host}.read.p50") or 0 for host in HOSTS]
    assert p50s == sorted(set(p50s))
    assert trial.value("read.p50") == p50s[1]


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_runs_on_each_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = json.dumps("[write]\nrw=write\nsize=1m\nbs=16k\n")
    text = f"systems: {{disk: {{}}}}\nworkload: {{fio: {{job: {job}}}}}\ndirectory: {tmp_path}/data\n"
    (trial,) = run_on_hosts(tmp_path, monkeypatch, text)
    assert (trial.value("operations"), trial.value("stored"), trial.value("write.count")) == (192, 3 << 20, 192)
    assert [trial.value(f"host.{host}.operations") for host in HOSTS] == [64] * 3
    longest = max(trial.value(f"host.{host}.write.max") or 0 for host in HOSTS)
    assert trial.value("write.max") == longest
    assert trial.value("write.p50") is not None
    assert str(trial.facts["version"]).startswith("fio-")
    assert list((tmp_path / "data").glob("*")) == []


def tool_run(rate: float, seconds: float, p99: float = 5e6) -> ImportedRun:
    """The run of a tool without histograms."""
    figures = [("throughput", rate, "op/s"), ("runtime", seconds * SECOND, "ns"), ("read.p99", p99, "ns")]
    figures += [("errors", 2, "operations"), ("task_throughput", 10.0, "B/s"), ("connections", 8, "")]
    return ImportedRun(values=[Value(metric, value, unit, 1) for metric, value, unit in figures], clients=4)


@pytest.mark.parametrize(("seconds", "total", "names"), [(9.9, 300, []), (5, 200, ["processes-apart"])])
def test_total_rate_covers_the_longest_time(seconds: float, total: float, names: list[str]) -> None:
    run = combine_hosts({"a": tool_run(100, 10), "b": tool_run(200, seconds)}, {"a": 1, "b": 1})
    known = {value.metric: value.value for value in run.values}
    assert known["throughput"] == total
    assert [note.name for note in run.notes] == names
    assert (known["errors"], known["runtime"], run.clients) == (4, 10 * SECOND, 8)


def test_percentiles_stay_figures_of_their_hosts() -> None:
    run = combine_hosts({"a": tool_run(1, 1), "b": tool_run(1, 1, p99=9e6)}, {"a": 1, "b": 1})
    known = {value.metric: value.value for value in run.values}
    assert {"read.p99", "task_throughput", "connections"}.isdisjoint(known)
    assert (known["host.a.read.p99"], known["host.b.p99"]) == (5e6, 9e6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fleet: {engines: 2}", "command runs once on this machine, so fleet.engines has no effect"),
        ("fleet: {on: ray, per_host: 2}", "command runs once on each host, but fleet.per_host is 2"),
        ("fleet: {on: ray}\nload: {reuse: copy}", "data on several hosts cannot be copied"),
    ],
)
def test_unsupported_fleet_of_commands_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in message_of(experiment(tmp_path, command_text("true", prepare="true") + text + "\n"))


def test_load_must_suffice_for_all_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (trial,) = run_on_hosts(tmp_path, monkeypatch, command_text("echo {clients}") + "clients: 2\n", status=1)
    assert trial.notes[0].message == "there are fewer clients than hosts: 3"
