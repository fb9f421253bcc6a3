"""`faults:` of an experiment file: accepted forms, and messages about invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiment_support import load_text, mistakes, warnings
from loadstone.experiment.plan.plan import plan_experiment

TEXT = """
systems:
  redis: {start: {settings: {port: 7000}}}
workload: {file: WORKLOADS/workloada, properties: {recordcount: 100}}
rate: 1000
vary: {fault: [none, kill]}
measure: {warmup: 5s, duration: 200s, deadline: 50ms}
faults:
  - do: "{fault}"
    at: {from: 1/3, to: 60%}
    lift: 10s
repeats: 6
"""


def test_fault_is_planned_for_each_variant(tmp_path: Path) -> None:
    experiment = load_text(tmp_path, TEXT).experiment
    faults = [variant.faults[0] for variant in plan_experiment(experiment).variants]
    assert [fault.kind for fault in faults] == ["none", "kill"]
    for fault in faults:
        assert fault.at_s == pytest.approx((200 / 3, 120.0))
        assert fault.lift_s == (10.0, 10.0)
        assert fault.servers == ("any",)
    assert experiment.measure.interval == 0.1


def test_short_forms_are_exact_instants(tmp_path: Path) -> None:
    text = TEXT.replace("at: {from: 1/3, to: 60%}", "at: 70s").replace("lift: 10s", "lift: never\n    server: redis")
    (fault, _) = (variant.faults[0] for variant in plan_experiment(load_text(tmp_path, text).experiment).variants)
    assert (fault.at_s, fault.lift_s, fault.servers) == ((70.0, 70.0), None, ("redis",))


def test_resolved_file_has_the_same_plan(tmp_path: Path) -> None:
    original = load_text(tmp_path, TEXT)
    again = load_text(tmp_path, original.text_with_defaults)
    assert again.text_with_defaults == original.text_with_defaults
    assert plan_experiment(again.experiment).variants == plan_experiment(original.experiment).variants


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kill]", "kil]", 'there is no fault "kil"'),
        ("{start: {settings: {port: 7000}}}", "{}", "the fault kill needs servers, but redis has none"),
        ("kill]", "power]", "the fault power needs a file system for each server"),
        ("kill]", "cut]", "the fault cut needs isolated servers"),
        ("warmup: 5s, ", "", "an experiment with `faults` needs `measure.warmup`"),
        ("duration: 200s", "operations: 1000", "`faults` and a number of operations cannot be combined"),
        ("repeats: 6", "load: {reuse: shared}", "`load.reuse` and `faults` cannot be combined"),
        ("repeats: 6", "find: {max: throughput}", "`find` and `faults` cannot be combined"),
        ("from: 1/3", "from: 20s", "only 20s before the fault: 12 windows of 5s take 1m"),
        ("from: 1/3, to: 60%", "from: 60%, to: 1/2", "at.to is before at.from"),
        ("lift: 10s", "lift: {from: 10s, to: 5s}", "lift.to is below lift.from"),
        ("lift: 10s", "server: [any, redis]", "`any` cannot be combined with names"),
        ("lift: 10s", "server: redis-2", 'redis has no server "redis-2"'),
        ("lift: 10s", "server: []", "`server` is empty"),
        ("lift: 10s", "count: 2", "`count: 2`, but redis has only 1 server"),
        ("from: 1/3", "from: 3/2", 'faults[1].at.from must be within the window, got "3/2"'),
        ("from: 1/3", "from: soon", 'faults[1].at.from must be an instant in the window, got "soon"'),
        ("lift: 10s", "lift: ever", 'faults[1].lift.from must be a length, got "ever"'),
        ("lift: 10s", "lif: 10s", 'there is no key "lif" in faults[1]'),
        ("do: ", "fault: ", 'there is no key "fault" in faults[1]'),
    ],
)
def test_mistake_is_reported(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TEXT
    messages = mistakes(tmp_path, TEXT.replace(old, new))
    assert any(text.startswith(message) for text in messages), messages


@pytest.mark.parametrize(
    ("nodes", "server", "expected"),
    [
        ("2", "primary", []),
        ("2", "replica", []),
        ("2", "replica-1", []),
        ("1", "primary", []),
        ("2", "standby", ['redis has no server "standby"']),
        ("2", "redis", ['redis has no server "redis"']),
        ('"{nodes}"', "primary", []),
        ('"{nodes}"', "replica", ['redis with 1 node has no server "replica"']),
        ("2", '"{victim}"', []),
        ('"{nodes}"', '"{victim}"', ['redis with 1 node has no server "replica"']),
    ],
)
def test_roles_are_checked_in_every_variant(tmp_path: Path, nodes: str, server: str, expected: list[str]) -> None:
    text = TEXT.replace("start: {settings", f"start: {{nodes: {nodes}, settings")
    text = text.replace("lift: 10s", f"lift: 10s\n    server: {server}")
    varied = {"nodes": "[1, 2]", "victim": "[primary, replica]"}
    names = "".join(f"{name}: {values}, " for name, values in varied.items() if f"{{{name}}}" in text)
    assert mistakes(tmp_path, text.replace("vary: {", f"vary: {{{names}")) == expected


def test_fault_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    (message,) = mistakes(tmp_path, TEXT.replace("to: 60%", "to: 90%"))
    assert message == ("the fault does not fit: at 3m + lift 10s + start 2s + hold 30s is 222s, but the window is 200s")
    assert mistakes(tmp_path, TEXT.replace("to: 60%", "to: 158s")) == []


def test_windows_before_fault_follow_threshold(tmp_path: Path) -> None:
    stricter = TEXT.replace("from: 1/3", "from: 66s") + "checks: {before-unsteady: {windows: 14}}\n"
    assert mistakes(tmp_path, stricter) == ["only 66s before the fault: 14 windows of 5s take 70s"]
    assert mistakes(tmp_path, stricter.replace("14", "13")) == []


def test_quota_below_kernel_minimum_is_refused(tmp_path: Path) -> None:
    slow = TEXT.replace("kill]", "slow]")
    assert mistakes(tmp_path, slow.replace("lift: 10s", "cpu: 1%")) == []
    assert mistakes(tmp_path, slow.replace("lift: 10s", "cpu: 0.5%")) == ["`cpu` must be at least 1%, got 0.005"]


def test_closed_loop_is_warned_of(tmp_path: Path) -> None:
    messages = warnings(tmp_path, TEXT.replace("rate: 1000", ""))
    assert any("in a closed loop, a stall counts once" in message for message in messages)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rate: 1000", "rate: 10", "only 66.7s before the fault: 12 windows of 10s take 2m"),
        (
            "at: {from: 1/3, to: 60%}",
            "at: 6s\n    recovered: {window: 500ms}",
            "only 6s before the fault: 12 windows of 1s",
        ),
    ],
)
def test_few_windows_before_a_fault_are_warned_about(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert mistakes(tmp_path, TEXT.replace(old, new)) == []
    assert any(text.startswith(message) for text in warnings(tmp_path, TEXT.replace(old, new)))


def test_second_fault_may_not_begin_within_the_first(tmp_path: Path) -> None:
    second = TEXT.replace("repeats: 6", "  - {do: kill, at: 125s, lift: 1s}\nrepeats: 6")
    (message,) = mistakes(tmp_path, second)
    assert message.startswith("this fault may begin at 125s, before the previous fault has ended")
    assert mistakes(tmp_path, second.replace("125s", "140s")) == []


PAIR = """
systems:
  cassandra: {start: {nodes: 3, isolate: network}}
workload: {file: WORKLOADS/workloada, properties: {recordcount: 100}}
rate: 1000
vary: {fault: [none, cut]}
measure: {warmup: 5s, duration: 200s, deadline: 50ms}
faults:
  - {do: "{fault}", at: 70s, lift: 10s, PARTS}
repeats: 6
"""


def test_partial_cut_is_planned(tmp_path: Path) -> None:
    text = PAIR.replace("PARTS", "server: cassandra-1, peer: cassandra-2, direction: out")
    faults = [variant.faults[0] for variant in plan_experiment(load_text(tmp_path, text).experiment).variants]
    assert [(fault.peer, fault.direction) for fault in faults] == [("cassandra-2", "out")] * 2
    assert [fault.is_partial_cut for fault in faults] == [False, True]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ("peer: cassandra-4", 'cassandra has no other server "cassandra-4"'),
        ("server: cassandra-1, peer: cassandra-1", 'cassandra has no other server "cassandra-1"'),
        ("server: all, peer: any", "`peer: any`, but no other server remains"),
        ("direction: left", "faults[1].direction"),
    ],
)
def test_impossible_part_of_a_cut_is_reported(tmp_path: Path, parts: str, message: str) -> None:
    messages = mistakes(tmp_path, PAIR.replace("PARTS", parts))
    assert any(text.startswith(message) for text in messages), messages


def test_peer_of_another_fault_is_warned_of(tmp_path: Path) -> None:
    text = PAIR.replace("PARTS", "peer: any").replace("[none, cut]", "[none, pause]")
    assert "`peer` only has an effect on the fault cut" in warnings(tmp_path, text)


def test_slow_disk_needs_a_file_system(tmp_path: Path) -> None:
    slow = TEXT.replace("kill]", "slow]").replace("lift: 10s", "disk: 4MB")
    assert mistakes(tmp_path, slow) == ["the fault slow needs a file system for each server"]
    complete = slow.replace("{port: 7000}", "{port: 7000}, file_system: 1GB")
    (_, fault) = (variant.faults[0] for variant in plan_experiment(load_text(tmp_path, complete).experiment).variants)
    assert (fault.disk_bytes, fault.cpu, fault.mechanisms) == (4 << 20, 0.0, frozenset({"slow", "slow disk"}))
    both = complete.replace("    disk: 4MB", "    disk: 4MB\n    cpu: 20%")
    (_, fault) = (variant.faults[0] for variant in plan_experiment(load_text(tmp_path, both).experiment).variants)
    assert (fault.disk_bytes, fault.cpu) == (4 << 20, 0.2)


def test_attached_servers_need_commands(tmp_path: Path) -> None:
    attached = TEXT.replace("{start: {settings: {port: 7000}}}", "{attach: {hosts: [a], kill: k, fresh: f}}")
    assert mistakes(tmp_path, attached) == [
        "the fault kill needs a command `attach.restart`",
        "the fault kill needs a command `attach.verify`",
    ]
    complete = attached.replace("kill: k", "kill: k, status: s, restart: r, verify: v")
    assert mistakes(tmp_path, complete) == []
    assert mistakes(tmp_path, complete.replace("lift: 10s", "server: b")) == ['redis has no server "b"']
    assert mistakes(tmp_path, complete.replace("kill]", "slow]")) == ["the fault slow cannot be used with `attach`"]
    cut = complete.replace("kill]", "cut]").replace("status: s", "cut: c, uncut: u").replace("lift: 10s", "peer: any")
    assert "a partial cut cannot be used with `attach`" in mistakes(tmp_path, cut)
