"""The judge's findings on a single trial, its settings, and Little's law with the means of several operation types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from judge_cases_faults import KILL
from judge_support import STEADY, both, experiment, facts, make_series, noting, set_figures, sound, with_end
from loadstone.errors import LoadstoneError
from loadstone.judge.checks import littles_law
from loadstone.judge.figures import attempt_rate
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.findings import check_trial, judge_trial
from loadstone.judge.judge import judge_results
from loadstone.judge.settings import DEFAULTS, Settings, find_unknown_names
from loadstone.results.result_set import Question
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value


def means(**statistics: tuple[float, int]) -> TrialResult:
    """Two clients at 1,000 op/s, with the mean in ms and the count of each operation."""
    means_ms = {f"{name.replace('_', '-')}.mean": statistic for name, statistic in statistics.items()}
    values = {metric: Value(metric, mean * 1e6, "ns", n) for metric, (mean, n) in means_ms.items()}
    values["throughput"] = Value("throughput", 1000.0, "op/s", 0)
    return TrialResult("t", {}, 1, values, clients=2, loop="closed")


@pytest.mark.parametrize(
    ("trial", "mean_ms"),
    [
        (means(read=(1, 900), update=(3, 100)), (1.2, 1.2)),
        # 100 reads, and 100 read-modify-writes that each consist of a read and an update.
        (means(read=(1, 200), update=(2, 100), read_modify_write=(3, 100)), (2.0, 2.0)),
        # The counts of the operations are unknown.
        (means(read=(1, 0), update=(3, 0)), (1.0, 3.0)),
        (means(read=(1, 0)), (1.0, 1.0)),
        # Entries other than operations do not count.
        (means(read=(1, 900), cleanup=(500, 2)), (1.0, 1.0)),
        (means(cleanup=(500, 2)), None),
        # 10 % failed, with unknown latencies.
        (both(set_figures(operations=1000, n=1000))(means(read=(1, 900))), None),
        (means(all=(1.5, 1000), read=(1, 900)), (1.5, 1.5)),
    ],
)
def test_the_mean_of_all_operations(trial: TrialResult, mean_ms: tuple[float, float] | None) -> None:
    expected = None if mean_ms is None else pytest.approx([bound * 1e6 for bound in mean_ms])
    assert littles_law.mean_ns(trial) == expected


@pytest.mark.parametrize(("read", "update", "fires"), [(1, 3, False), (1, 1.6, True), (2.2, 3, True)])
def test_without_counts_neither_mean_must_do(read: float, update: float, fires: bool) -> None:
    findings = list(littles_law.check_littles_law(means(read=(read, 0), update=(update, 0)), Settings()))
    assert bool(findings) == fires


def test_mean_of_one_digit_has_bounds() -> None:
    value = Value("all.mean", 1e5, "ns", 1_000, resolution=1e5)
    trial = replace(sound(), values={**sound().values, "all.mean": value})
    assert littles_law.mean_ns(trial) == (5e4, 1.5e5)


@pytest.mark.parametrize(("known", "fires"), [({"engine": "0.2.0"}, False), ({"tool": "ycsb"}, True)])
def test_operations_may_complete_after_the_window(known: dict[str, str], fires: bool) -> None:
    # 16 clients, 1,524 op/s and 11.05 ms: throughput × mean latency ÷ clients is 1.0525, and the slowest operation took
    # 86 ms of the window of 1 s.
    figures = set_figures(throughput=1524, all__mean=11.05e6, all__max=86e6, runtime=1e9)
    trial = replace(facts(**known)(figures(means(all=(11.05, 1524)))), clients=16)
    assert [isinstance(item, Finding) for item in littles_law.check_littles_law(trial, Settings())] == [fires]
    assert list(littles_law.check_littles_law(set_figures(all__mean=12e6)(trial), Settings()))


def test_failed_operations_keep_clients_busy_too() -> None:
    # Half of the operations failed: throughput counts the successful operations only.
    trial = set_figures(throughput=500, errors=OPERATIONS_FAILED)(sound())
    assert attempt_rate(trial) == 1000
    assert list(littles_law.check_littles_law(trial, Settings())) == []


@pytest.mark.parametrize(
    ("tool", "more", "outcome"),
    [
        ("redis-benchmark", {"pipeline": 16}, "several operations in flight"),
        ("memtier", {"pipeline": 4}, "several operations in flight"),
        ("redis-benchmark", {}, "the pipeline is not known"),
        ("redis-benchmark", {"pipeline": 1}, "littles-law"),
        ("pgbench", {}, "littles-law"),
    ],
)
def test_pipelines_exceed_one_operation_per_client(tool: str, more: dict[str, int], outcome: str) -> None:
    trial = means(read=(20, 1000))
    trial = replace(trial, facts={**trial.facts, "tool": tool, **more})
    (result,) = littles_law.check_littles_law(trial, Settings())
    assert outcome in (result.check if isinstance(result, Finding) else result.reason)


OPERATIONS_FAILED = 50_000


def test_trial_without_series_is_judged_by_its_figures() -> None:
    slow = make_series((*STEADY, 0.0, 0.0))
    assert judge_trial(sound(), None, Settings()) == ()
    assert {finding.check for finding in judge_trial(sound(), slow, Settings())} >= {"stalled"}


def test_trial_without_measurements_is_judged_by_its_end() -> None:
    empty = replace(with_end("lost", "lost-segment", "ended by SIGKILL")(sound()), values={}, facts={})
    (finding,) = judge_trial(empty, None, Settings(verify=False))
    assert (finding.check, finding.severity, finding.trials) == ("lost-segment", Severity.INVALID, ("rocksdb-1",))
    assert finding.hint == "see there"


@pytest.mark.parametrize(
    ("operation", "generator", "settings"),
    [
        ("READ", "stress", ["`measure: {verify: true}`"]),
        ("by_city", "columns", ["`compare: true` for the statement (in a profile: `validate: true` for the query)"]),
        ("WRITE", "stress", []),
    ],
)
def test_only_reads_require_a_comparison_of_values(operation: str, generator: str, settings: list[str]) -> None:
    trial = set_figures(without=("verified", "wrong"))(sound())
    trial = replace(trial, statuses={operation: {"OK": 100_000}, "CLEANUP": {"OK": 4}})
    trial = replace(trial, requested={"work.generator": generator})
    _, not_looked = check_trial(trial, None, Settings())
    assert [item.reason.partition(": set ")[2] for item in not_looked if item.check == "unverified"] == settings


def test_failed_reads_hide_no_wrong_row() -> None:
    statuses = {"READ": {"OK": 99_000, "UNEXPECTED_STATE": 1, "SERVICE_UNAVAILABLE": 999}}
    trial = replace(set_figures(verified=99_001, wrong=1)(sound()), statuses=statuses, faults=(KILL,))
    messages = [finding.message for finding in judge_trial(trial, None, Settings()) if finding.check == "unverified"]
    assert messages == ["1 of 99,001 values read differed from the values written"]


def test_unknown_note_is_passed_on() -> None:
    (finding,) = judge_trial(noting("facts-disagree", "the log says 2 clients")(sound()), None, Settings())
    assert (finding.check, finding.severity, finding.message) == (
        "facts-disagree",
        Severity.NOTE,
        "the log says 2 clients",
    )


def test_note_and_its_check_are_reported_once() -> None:
    trial = both(set_figures(late__generator=500), noting("generator-limited", "late"))(sound())
    assert [finding.check for finding in judge_trial(trial, None, Settings())] == ["generator-limited"]


def test_thresholds_are_settings() -> None:
    checks = {"errors": {"share": 0.01}}
    settings = Settings.from_question(Question(checks=checks))
    assert settings.check_threshold("errors", "share") == 0.01
    assert settings.check_threshold("littles-law", "low") == DEFAULTS["littles-law"]["low"]
    (finding,) = judge_trial(set_figures(errors=900)(sound()), None, settings)
    assert finding.severity == Severity.NOTE


@pytest.mark.parametrize(
    ("checks", "message", "hint"),
    [
        ({"little-law": {"low": 0.9}}, "there is no threshold or check little-law", 'did you mean "littles-law"?'),
        ({"littles-law": {"hgih": 1.1}}, "there is no threshold or check littles-law.hgih", 'did you mean "high"?'),
        ({"noisy": {"x": 1.0}}, "there is no threshold or check noisy.x", "known names: none"),
    ],
)
def test_a_threshold_that_there_is_not_is_named(checks: dict[str, dict[str, float]], message: str, hint: str) -> None:
    assert list(find_unknown_names(checks))
    with pytest.raises(LoadstoneError) as raised:
        judge_results(replace(experiment(), question=Question(checks=checks)))
    assert (raised.value.args[0], raised.value.hint) == (message, hint)


def test_uncounted_device_reads_do_not_validate_cached_values() -> None:
    # 95 of 100 reads of 100 bytes are cached; each of the remaining reads fetches a block of 4,096 bytes.
    cached = both(
        facts(engine="0.2.0"), set_figures(returned=100 * 1e6, read__count=1_000_000, device__read=4096 * 5e4)
    )
    reason = "the reads that the device served were not counted"
    findings, lacking = check_trial(cached(sound()), make_series(STEADY), Settings(claims="device"))
    assert reason in {gap.reason for gap in lacking}
    assert (Severity.SUSPECT, f"{reason}: page-cache could not run") in {
        (finding.severity, finding.message) for finding in findings
    }
    assert reason not in {gap.reason for gap in check_trial(cached(sound()), make_series(STEADY), Settings())[1]}
    large = set_figures(read__count=100_000, returned=1e10, device__read=9e9)(cached(sound()))
    assert reason not in {gap.reason for gap in check_trial(large, make_series(STEADY), Settings(claims="device"))[1]}


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        ({"ledger__proven": 0.9}, "only 90 % of 1,000 acknowledged writes could be proven, less than 95 %"),
        (
            {"ledger__settled": 0},
            "the servers had not replicated every write 5 minutes after the load: read back later",
        ),
        ({"ledger__undecided": 3}, "3 acknowledged writes are missing, but not all replicas could be read"),
    ],
)
def test_unproven_ledger_could_not_look(figures: dict[str, Any], reason: str) -> None:
    engine = facts(engine="0.2.0")
    read_back: dict[str, Any] = {"ledger__acknowledged": 1000, "ledger__proven": 0.96, "ledger__settled": 1}
    findings, lacking = check_trial(
        both(engine, set_figures(**{**read_back, **figures}))(sound()), make_series(STEADY), Settings()
    )
    assert reason in {gap.reason for gap in lacking}
    assert (Severity.SUSPECT, f"{reason}: unverified could not run") in {
        (finding.severity, finding.message) for finding in findings
    }
    _, lacking = check_trial(both(engine, set_figures(**read_back))(sound()), make_series(STEADY), Settings())
    assert "unverified" not in {gap.check for gap in lacking}


def test_short_trial_leaves_other_processes_unknown() -> None:
    judgement = judge_results(experiment(set_figures(without=("cpu.others",))))
    reasons = {check.reason for check in judgement.not_looked if check.check == "interference"}
    assert reasons == {"the trial was too short to measure the CPU time of other processes"}
