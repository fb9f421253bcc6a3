"""Servers of an experiment: a real Redis that is started, reused, restarted, found after a crash and stopped.

The store is `null`, so these tests concern only the servers.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lab_support import ROOT, command, environment, experiment, loadstone, single_folder, trials
from loadstone.experiment.file import load_experiment
from loadstone.experiment.plan.plan import Variant, plan_experiment
from loadstone.judge.finding import Severity
from loadstone.judge.judge import judge_results
from loadstone.results.folder import Folder
from loadstone.results.value import Value
from loadstone.runner.attached_system import AttachedServers
from loadstone.runner.hooks import HookError
from loadstone.runner.phase_result import engine_share
from loadstone.runner.server_pool import RunServers, ServersError
from loadstone.runner.settling import SAMPLE_S
from loadstone.runner.started_system import common
from loadstone.systems.base.running_system import RunningSystem
from systems_support import free_port, systems
from systems_support import redis_root as redis_root

pytestmark = pytest.mark.usefixtures("engine_variable")

REST = f"""
workload: {{file: {ROOT}/workloads/workloada, properties: {{recordcount: 100}}}}
measure: {{warmup: 0, duration: 300ms}}
repeats: 2
"""
LOADSTONE = f"{sys.executable} -c 'import sys; from loadstone.cli import main; sys.exit(main())'"
# Sets a key as redis-cli does, which may not be installed.
SET = (
    f'{sys.executable} -c \'import socket; c = socket.create_connection(("127.0.0.1", {{port}}));'
    ' c.sendall(b"SET a b\\r\\n"); assert c.recv(9)[:3] == b"+OK"\''
)


@pytest.fixture
def port() -> int:
    """A free port."""
    return free_port()


def run(home: Path, text: str, *options: str, code: int = 0) -> Folder:
    """Runs an experiment to its end in a separate folder."""
    loadstone(home, "run", experiment(home, text + REST), "--no-report", *options, code=code, timeout=300)
    return single_folder(home)


def servers(folder: Folder) -> list[dict[str, Any]]:
    """The recorded servers of each trial, in order."""
    files = [folder.path / "trials" / trial.trial / "servers.json" for trial in trials(folder)]
    return [json.loads(file.read_text()) for file in files]


def pids(folder: Folder) -> list[int]:
    """The pid of each trial's Redis."""
    return [server["servers"][0]["pid"] for server in servers(folder)]


def test_trials_share_equal_servers_until_the_run_ends(tmp_path: Path, root: Path, port: int) -> None:
    start = f"start: {{system: redis, settings: {{port: {port}, maxmemory: 100mb}}}}"
    folder = run(tmp_path, f'systems: {{one: {{store: "null", {start}}}, two: {{store: "null", {start}}}}}')
    assert len(trials(folder)) == 4
    assert len(set(pids(folder))) == 1
    assert RunningSystem("redis", root).status() == []
    assert (root / "redis/logs/redis.log").stat().st_size
    for trial in trials(folder):
        assert trial.facts["system"] == "redis"
        assert trial.facts["data_nodes"] == 1
        assert trial.facts["maxmemory"] == str(100 << 20)
        assert str(trial.facts["system_version"])[0].isdigit()
        assert trial.facts["set.port"] == str(port)
        assert trial.facts["device"]
        assert {"server.redis.cpu", "server.redis.memory_max", "server.memory_max"} <= trial.values.keys()
        assert trial.values["server.redis.network.received"].unit == "B"
        assert trial.values["server.redis.used_memory_bytes"].unit == "B"
        assert "server.before.redis.keys" in trial.values


def test_servers_with_different_settings_never_overlap(tmp_path: Path, root: Path, port: int) -> None:
    text = f"""
systems:
  redis: {{store: "null", start: {{settings: {{port: {port}, appendonly: "{{log}}"}}, system: redis}}}}
vary: {{log: ["yes", "no"]}}
"""
    folder = run(tmp_path, text)
    assert [row["facts"]["appendonly"] for row in servers(folder)] == [trial.config["log"] for trial in trials(folder)]
    by_log = [row.config["log"] for row in trials(folder)]
    changes = [True, *(before != after for before, after in pairwise(by_log))]
    assert len(set(pids(folder))) == sum(changes)
    assert RunningSystem("redis", root).status() == []


@pytest.mark.parametrize(("fresh", "keys"), [("table", [0, 0]), ("system", [0, 0]), ("none", [0, 1])])
def test_a_load_starts_from_what_fresh_says(tmp_path: Path, root: Path, port: int, fresh: str, keys: list[int]) -> None:
    hook = json.dumps(SET.format(port=port).replace("{", "{{").replace("}", "}}"))
    text = f"""
systems: {{redis: {{store: "null", fresh: {fresh}, start: {{system: redis, settings: {{port: {port}}}}}}}}}
hooks: {{after: [{hook}]}}
"""
    folder = run(tmp_path, text)
    assert [trial.value("server.before.redis.keys") for trial in trials(folder)] == keys
    assert len(set(pids(folder))) == (2 if fresh == "system" else 1)


def test_server_killed_by_a_trial_is_restarted(tmp_path: Path, root: Path, port: int) -> None:
    hook = json.dumps(f"test {{repeat}} = 2 || {LOADSTONE} systems kill redis")
    text = f"""
systems: {{redis: {{store: "null", start: {{system: redis, settings: {{port: {port}}}}}}}}}
hooks: {{before: [{hook}]}}
"""
    folder = run(tmp_path, text)
    first, second = trials(folder)
    (note,) = [note for note in first.notes if note.name == "server-died"]
    assert note.message == f"redis (127.0.0.1:{port}, pid {pids(folder)[0]}) exited during the trial"
    assert "loadstone systems logs redis" in note.hint
    assert [note.name for note in second.notes if note.name == "server-died"] == []
    assert len(set(pids(folder))) == 2
    findings = judge_results(folder.load_results()).trials[first.trial]
    assert [finding.severity for finding in findings if finding.check == "server-died"] == [Severity.INVALID]


def test_failed_server_start_fails_trials_with_its_reason(tmp_path: Path, root: Path, port: int) -> None:
    start = f"{{system: redis, settings: {{port: {port}, binary: /bin/false}}}}"
    folder = run(tmp_path, f'systems: {{redis: {{store: "null", start: {start}}}}}', code=1)
    assert {trial.end for trial in trials(folder)} == {"failed"}
    (note,) = trials(folder)[0].notes
    assert note.name == "servers"
    assert note.message.startswith("servers: ")
    assert RunningSystem("redis", root).status() == []


def test_next_run_takes_over_retained_servers(tmp_path: Path, root: Path, port: int) -> None:
    text = f'systems: {{redis: {{store: "null", start: {{system: redis, keep: true, settings: {{port: {port}}}}}}}}}'
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    (first,) = set(pids(run(tmp_path / "first", text)))
    assert [process.pid for process in RunningSystem("redis", root).running_processes()] == [first]
    (second,) = set(pids(run(tmp_path / "second", text)))
    assert second == first
    (tmp_path / "third").mkdir()
    other = text.replace("keep: true, ", "").replace("settings: {", "settings: {maxmemory: 50mb, ")
    assert first not in pids(run(tmp_path / "third", other))
    assert RunningSystem("redis", root).status() == []


def test_fresh_servers_replace_kept_ones(tmp_path: Path, root: Path, port: int) -> None:
    start = f"start: {{system: redis, keep: true, settings: {{port: {port}}}}}"
    text = f'systems: {{redis: {{store: "null", fresh: system, {start}}}}}'
    results = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        results += pids(run(tmp_path / name, text))
    assert len(set(results)) == len(results) == 4


def test_ownership_of_retained_servers_excludes_later_ones(tmp_path: Path, root: Path, port: int) -> None:
    text = f'systems: {{redis: {{store: "null", start: {{system: redis, keep: true, settings: {{port: {port}}}}}}}}}'
    (tmp_path / "first").mkdir()
    run(tmp_path / "first", text)
    systems(root, "down", "redis")
    systems(root, "up", "redis", "--set", f"port={port}")
    (before,) = RunningSystem("redis", root).running_processes()
    (tmp_path / "second").mkdir()
    with pytest.raises(AssertionError, match="redis is up, and no experiment started it"):
        run(tmp_path / "second", text)
    assert RunningSystem("redis", root).running_processes() == [before]


def test_kept_data_are_left_alone(tmp_path: Path, root: Path, port: int) -> None:
    systems(root, "up", "redis", "--set", f"port={port}")
    systems(root, "down", "redis", "--keep-data")
    text = f'systems: {{redis: {{store: "null", start: {{system: redis, settings: {{port: {port}}}}}}}}}'
    with pytest.raises(AssertionError, match="redis has kept data, and no experiment started it"):
        run(tmp_path, text)
    assert (root / "redis/data").is_dir()
    assert RunningSystem("redis", root).running_processes() == []


def test_device_is_recorded_only_for_a_single_device(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert common([tmp_path / "a", tmp_path]) == tmp_path / "a"
    assert common([tmp_path, Path("/proc")]) is None
    assert common([tmp_path, tmp_path / "not there"]) == tmp_path
    assert common([]) is None


def begin_run(home: Path, text: str) -> subprocess.Popen[str]:
    """A run during its first trial."""
    process = subprocess.Popen(
        command("run", experiment(home, text + REST.replace("300ms", "60s")), "--no-report"),
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 120
    while not list(home.glob("results/*/*/trials/*/run.spec.json")) and not list(
        home.glob("results/*/*/.trials/*/run.spec.json")
    ):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.05)
    return process


def test_ctrl_c_stops_the_servers(tmp_path: Path, root: Path, port: int, running: list[subprocess.Popen[str]]) -> None:
    text = f'systems: {{redis: {{store: "null", start: {{system: redis, settings: {{port: {port}}}}}}}}}'
    running.append(begin_run(tmp_path, text))
    (process,) = RunningSystem("redis", root).running_processes()
    running[0].send_signal(signal.SIGINT)
    running[0].communicate(timeout=120)
    assert running[0].returncode == 130
    assert RunningSystem("redis", root).status() == []
    assert not Path(f"/proc/{process.pid}").exists()


def test_next_run_cleans_up_after_a_killed_run(
    tmp_path: Path, root: Path, port: int, running: list[subprocess.Popen[str]]
) -> None:
    text = f'systems: {{redis: {{store: "null", start: {{system: redis, settings: {{port: {port}}}}}}}}}'
    running.append(begin_run(tmp_path, text))
    running[0].kill()
    running[0].wait()
    (left,) = RunningSystem("redis", root).running_processes()
    (tmp_path / "next").mkdir()
    folder = run(tmp_path / "next", text)
    assert left.pid not in pids(folder)
    assert RunningSystem("redis", root).running_processes() == []


def test_two_runs_do_not_take_each_others_servers(
    tmp_path: Path, root: Path, port: int, running: list[subprocess.Popen[str]]
) -> None:
    text = f'systems: {{redis: {{store: "null", start: {{system: redis, settings: {{port: {port}}}}}}}}}'
    running.append(begin_run(tmp_path, text))
    (before,) = RunningSystem("redis", root).running_processes()
    (tmp_path / "next").mkdir()
    with pytest.raises(AssertionError, match="another run uses the servers"):
        run(tmp_path / "next", text)
    assert RunningSystem("redis", root).running_processes() == [before]
    running[0].send_signal(signal.SIGINT)
    running[0].communicate(timeout=120)


def test_real_load_is_observed_on_both_sides(tmp_path: Path, root: Path, port: int) -> None:
    text = f"""
systems: {{redis: {{start: {{settings: {{port: {port}, appendonly: "yes"}}}}}}}}
load: {{reuse: shared}}
"""
    # Long enough for several samples, and for a nearly idle server to use some ticks.
    folder = run(tmp_path, text, "--set", "measure.duration=2s")
    first, second = sorted(trials(folder), key=lambda trial: trial.repeat)
    assert first.end == second.end == "done"
    assert (first.value("load.operations"), second.value("load.operations")) == (100, None)
    # The lab waited for the server after the load.
    assert (first.value("load.settle") or 0) >= SAMPLE_S * 1e9
    assert second.value("load.settle") is None
    for trial in (first, second):
        assert trial.facts["networked"] == "yes"
        assert trial.value("server.before.redis.keys") == trial.value("server.redis.keys") != 0
        # Updates send values of several hundred bytes, and reads return them.
        assert (trial.value("server.redis.network.received") or 0) >= (trial.value("stored") or 0) > 0
        assert (trial.value("server.redis.network.sent") or 0) >= (trial.value("returned") or 0) > 0
        assert (trial.value("server.redis.cpu") or 0) > 0
        assert 0 < (trial.value("cpu.engine_share") or 0) < 1
        assert trial.value("device.written_per_operation") is not None


def test_engine_share_is_relative_to_its_allowed_processors() -> None:
    used = [Value("cpu.engine", 1.5, "processors", 1)]
    assert [value.value for value in engine_share(used, 2)] == [0.75]
    assert list(engine_share(used, None)) == list(engine_share([], 2)) == []


def variants(home: Path, text: str) -> list[Variant]:
    """The variants of an experiment."""
    return [*plan_experiment(load_experiment(experiment(home, text + REST)).experiment).variants]


def test_loaded_data_are_reused_until_they_change(tmp_path: Path, root: Path, port: int) -> None:
    text = f"""
systems: {{redis: {{store: "null", start: {{system: redis, settings: {{port: {port}}}}}}}}}
vary: {{clients: [1, 2], bytes: [10, 20]}}
"""
    many = text + 'hooks: {before: ["echo {bytes}"]}\n'
    small, large, same, _ = variants(tmp_path, many)
    assert small.load_key == same.load_key != large.load_key
    log = tmp_path / "log"
    with RunServers(root) as servers:

        def loads(variant: Variant) -> bool:
            at = servers.prepare(variant, log, reuse=True)
            assert at is not None
            if at.must_load:
                servers.record_load(variant)
            return at.must_load

        assert loads(small)
        assert not loads(same)
        assert not loads(small)
        assert loads(large)
        assert loads(small)
        RunningSystem("redis", root).kill()
        assert loads(small)
        assert not loads(small)
        # An unfinished load does not count.
        assert servers.prepare(large, log, reuse=True)
        assert loads(large)
        at = servers.prepare(large, log, reuse=False)
        assert at
        assert at.must_load


ATTACHED = """
systems:
  mine:
    store: "null"
    attach:
      hosts: [a, b]
      status: "test -f {home}/{{host}}"
      restart: "touch {home}/{{host}}; echo restarted {{host}} >> {home}/said"
      kill: "rm {home}/{{host}}"
      fresh: "echo fresh {{table}} at {{host}} >> {home}/said"
"""


def test_attached_servers_are_controlled_by_commands(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    hook = json.dumps(f"test {{repeat}} = 2 || rm {tmp_path}/a")
    folder = run(tmp_path, ATTACHED.format(home=tmp_path) + f"hooks: {{before: [{hook}]}}\n")
    first, second = trials(folder)
    assert (tmp_path / "said").read_text().splitlines() == [
        "restarted b",
        "fresh usertable at a",
        "restarted a",
        "fresh usertable at a",
    ]
    assert [note.message for note in first.notes if note.name == "server-died"] == ["a exited during the trial"]
    assert [note for note in second.notes if note.name == "server-died"] == []
    assert first.facts["data_nodes"] == 2
    assert not [name for name in first.values if name.startswith("server.")]


def test_an_attached_server_is_killed_by_its_command(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    (variant,) = variants(tmp_path, ATTACHED.format(home=tmp_path))
    assert variant.servers is not None
    hosts = AttachedServers(variant.servers.how, tmp_path / "log")  # type: ignore[arg-type]
    assert hosts.dead() == []
    hosts.run("kill", "b")
    assert hosts.dead() == ["b"]
    with pytest.raises(HookError, match=r"kill.* failed with exit status"):
        hosts.run("kill", "b")


def test_unresponsive_attached_server_without_restart_fails_the_trial(tmp_path: Path) -> None:
    text = ATTACHED.format(home=tmp_path)
    gone = "\n".join(line for line in text.splitlines() if "restart" not in line)
    (variant,) = variants(tmp_path, f"{gone}\n")
    with RunServers(tmp_path) as servers, pytest.raises(ServersError, match="the server at a is not working"):
        servers.prepare(variant, tmp_path / "log", reuse=False)
    assert os.listdir(tmp_path)
