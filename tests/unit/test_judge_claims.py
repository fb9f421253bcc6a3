"""Claims with uncertain figures, with insignificant differences, and without evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from judge_support import (
    CHECKS,
    STEADY,
    Change,
    asking,
    both,
    experiment,
    facts,
    make_series,
    rocksdb,
    set_figures,
    sound,
    value,
)
from known_truth_support import change_system, simulate_results
from loadstone.judge import decision_table
from loadstone.judge.clause import hedge_claim, ratio_ends
from loadstone.judge.finding import Finding, Pair, Severity, Verdict, worst_verdict
from loadstone.judge.findings import check_trial
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Claim, Comparison
from loadstone.judge.scenarios import Kind, Scenario, Weighed
from loadstone.judge.settings import Settings
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.statistics.comparison import Evidence
from loadstone.statistics.estimate import Estimate


def lmdb(change: Change) -> Change:
    """Applies a change to the trials of lmdb only."""
    return lambda trial: change(trial) if trial.config["system"] == "lmdb" else trial


def times(factor: float, noise: float = 0.001) -> Change:
    """lmdb at this multiple of rocksdb's throughput, with a deviation of up to `noise` in each block."""

    def change_trial(trial: TrialResult) -> TrialResult:
        # All repeats differ in their last digits.
        off = noise * ((trial.repeat * 5) % 7 - 3) / 3 + 1e-7 * trial.repeat
        speed = factor * (1 + off) if trial.config["system"] == "lmdb" else 1.0
        mean = 9.8e6 / speed
        return set_figures(
            throughput=1000 * speed, operations=1e5 * speed, all__mean=mean, read__mean=mean, read__min=1e5
        )(trial)

    return change_trial


def single_comparison(results: ResultSet, metric: str = "throughput") -> Comparison:
    """The one comparison by a metric."""
    (rows,) = [comparison for comparison in judge_results(results).comparisons if comparison.metric == metric]
    return rows


def compare_by(change: Change, repeats: int = 6, metric: str = "throughput") -> Comparison:
    """The comparison of an experiment that asks for one metric."""
    return single_comparison(experiment(change, repeats, question=asking(metrics=(metric,))), metric)


@pytest.mark.parametrize(
    ("factor", "noise", "claim"),
    [
        (1.02, 0.001, "better"),
        (1.005, 0.001, "slight"),
        (1.0, 0.001, "same"),
        (0.995, 0.001, "slight"),
        (1.0, 0.03, "none"),
    ],
)
def test_a_claim_needs_a_difference_that_matters(factor: float, noise: float, claim: Claim) -> None:
    assert compare_by(times(factor, noise)).claim == claim


def test_undecided_comparison_states_detectable_difference() -> None:
    why = compare_by(times(1.0, 0.03)).why
    pattern = r"6 repeats can detect a difference of (\S+) % or more \(80 % power\); "
    pattern += r"24 repeats \(4 times the run time\) can detect (\S+) %"
    match = re.fullmatch(pattern, why)
    assert match is not None, why
    # The interval narrows with the root of the number of repeats, and Student's t has more degrees of freedom.
    assert 2 * float(match[2]) < float(match[1]) < 3 * float(match[2])


def test_detectable_difference_beyond_100_percent_is_a_factor() -> None:
    why = compare_by(times(1.0, 0.999)).why
    first, second = why.split("; ")
    assert re.fullmatch(r"6 repeats can detect a factor of \S+ or more \(80 % power\)", first), why
    assert re.fullmatch(r"24 repeats \(4 times the run time\) can detect a (factor|difference) of .+", second), why


def test_one_bucket_of_a_histogram_is_no_difference() -> None:
    # 30.0 ms compared with the next bucket of three significant digits, in every repeat.
    step = 3e7 * 2**-10
    result = compare_by(lmdb(set_figures(read__p99=3e7 + step)), metric="read.p99")
    assert result.claim == "same"


def test_last_printed_digit_is_no_difference() -> None:
    def coarse(trial: TrialResult) -> TrialResult:
        figure = 4e7 if trial.config["system"] == "lmdb" else 3e7
        read = replace(value("read.p99", figure), resolution=1e7)
        return replace(trial, values={**trial.values, "read.p99": read})

    assert compare_by(coarse, metric="read.p99").claim == "none"


def test_our_own_time_makes_a_ratio_a_bound() -> None:
    # The generator takes 14 % of the faster side's time per operation, and 1.4 % of the slower side's.
    own = both(times(10), lmdb(set_figures(driver=1.4e5)), rocksdb(set_figures(driver=1.4e5)))
    result = compare_by(own)
    assert (result.claim, result.bound) == ("better", True)
    assert result.ratio.value == pytest.approx(10 * 0.986, rel=0.002)
    judged = judge_results(experiment(own, question=asking(metrics=("throughput",))))
    assert "lmdb holds at least 9.86× the throughput of rocksdb" in judged.answer
    assert result.verdict == Verdict.VALID


def test_our_own_time_refuses_what_it_could_turn() -> None:
    # The slower side may be a seventh faster than measured.
    result = compare_by(both(times(1.1), rocksdb(set_figures(driver=1.4e6))))
    assert (result.claim, result.verdict) == ("refused", Verdict.INVALID)
    assert result.findings[-1].check == "generator-limited"
    assert result.findings[-1].hint == "compare service times, not throughput, or use larger values"
    text = "is 1.10× the throughput of rocksdb as measured, but if the generator slowed only one side, anything from 5."
    assert text in result.findings[-1].message


def test_the_engines_time_does_not_concern_latencies() -> None:
    slower = both(rocksdb(set_figures(driver=4e6)), lmdb(set_figures(read__p99=2e7)))
    assert compare_by(slower, metric="read.p99").claim == "better"


BUSY = both(facts(networked="yes"), set_figures(executor__busy_max=0.97))


def test_saturated_generator_refuses_only_the_slower_side() -> None:
    winner = compare_by(both(times(2), lmdb(BUSY)))
    assert (winner.claim, winner.bound, winner.verdict) == ("better", True, Verdict.SUSPECT)
    loser = compare_by(both(times(2), rocksdb(BUSY)))
    assert (loser.claim, loser.verdict) == ("refused", Verdict.INVALID)
    assert compare_by(both(times(2), BUSY)).claim == "refused"


def delay_response(lower: float) -> Change:
    """Runs trials at a rate; `lower` is the p99 without the generator's lateness."""
    return both(
        lambda trial: replace(trial, loop="open"),
        set_figures(due=100_000, censored=0, late__generator=400, read__lower__p99=lower),
    )


@pytest.mark.parametrize(("lower", "claim"), [(2.9e7, "better"), (1.9e7, "refused")])
def test_lateness_of_the_generator_bounds_latencies(lower: float, claim: Claim) -> None:
    def change_trial(trial: TrialResult) -> TrialResult:
        faster = trial.config["system"] == "lmdb"
        off = 1 + 0.001 * trial.repeat
        delayed = delay_response((2e7 - 1e5 if faster else lower) * off)(trial)
        return set_figures(read__p99=(2e7 if faster else 3e7) * off)(delayed)

    result = compare_by(change_trial, metric="read.p99")
    assert result.claim == claim
    if claim == "refused":
        assert "`properties: {spin.sleep: true}` for the system" in result.findings[-1].hint
        spinning = compare_by(lambda trial: replace(change_trial(trial), requested={"spin": True}), metric="read.p99")
        assert spinning.findings[-1].hint == "lower the rate, or use another host"
        paused = compare_by(both(change_trial, set_figures(executor__held_max=1e9, runtime=1e10)), metric="read.p99")
        assert paused.findings[-1].hint.startswith("use an idle host, or a host with more processors: ")
        assert "read p99 of lmdb is 33 % lower than the read p99 of rocksdb as measured" in result.findings[-1].message


def test_opposite_scenarios_leave_no_interval() -> None:
    def change_trial(trial: TrialResult) -> TrialResult:
        off = 1 + 0.01 * trial.repeat * (-1) ** (trial.repeat + (trial.config["system"] == "lmdb"))
        return set_figures(read__p99=3e7 * off)(delay_response(1e5)(trial))

    result = compare_by(change_trial, metric="read.p99")
    assert (result.claim, result.p) == ("none", 1)
    assert ratio_ends(result, result.ratio).endswith(
        'as measured, almost any ratio with scenario "without the generator\'s lateness"'
    )
    assert "6 repeats can detect only a factor of" in result.why
    assert result.why.endswith("mostly because of the generator's lateness, which more repeats do not change")


def change_one(change: Change, repeat: int = 3) -> Change:
    """Applies a change to one trial of lmdb only."""
    return lmdb(lambda trial: change(trial) if trial.repeat == repeat else trial)


def test_errors_in_one_trial_permit_a_clear_answer() -> None:
    result = compare_by(both(times(10), change_one(set_figures(errors=2000))), repeats=40)
    assert (result.claim, result.verdict) == ("better", Verdict.SUSPECT)
    assert any("operations failed (0.2 %)" in finding.message for finding in result.findings)


def test_errors_in_one_trial_refuse_dependent_claims() -> None:
    # The claim depends on a single block of seven.
    def change_trial(trial: TrialResult) -> TrialResult:
        if trial.config["system"] == "lmdb" and trial.repeat == 3:
            return set_figures(throughput=900, errors=90_000)(trial)
        return trial

    result = compare_by(both(times(1.0), change_trial), repeats=7)
    assert result.claim not in ("better", "worse")


def test_errors_in_every_trial_refuse() -> None:
    assert compare_by(both(times(10), lmdb(set_figures(errors=2000)))).claim == "refused"


def test_clock_jump_costs_the_winner_like_a_failure() -> None:
    jumped = set_figures(clock__jumps=1)
    assert compare_by(both(times(10), change_one(jumped)), repeats=20).claim == "better"
    half: Callable[[TrialResult], TrialResult] = lmdb(lambda trial: jumped(trial) if trial.repeat % 2 else trial)
    assert compare_by(both(times(10), half), repeats=20).claim == "refused"


def test_six_repeats_between_runs_cannot_decide_many_tests() -> None:
    shares = (10, 25, 50, 75, 90, 95, 99)
    metrics = (*(f"read.p{share}" for share in shares), "throughput")

    def change_trial(trial: TrialResult) -> TrialResult:
        slower = 2 if trial.config["system"] == "lmdb" else 1
        results = [value(f"read.p{share}", (1e6 + share) * slower) for share in shares]
        return replace(trial, values={**trial.values, **{comparison.metric: comparison for comparison in results}})

    trials = [
        replace(comparison, trial=f"{load}-{comparison.trial}", config={**comparison.config, "load": load})
        for load in range(4)
        for comparison in experiment(both(times(2), change_trial)).trials
    ]
    comparisons = judge_results(
        experiment(trials=trials, interleaved=False, question=asking(metrics=metrics, by="system"))
    ).comparisons
    first = [comparison for comparison in comparisons if not comparison.exploratory]
    assert {comparison.metric for comparison in first} == {"read.p10"}
    assert {comparison.claim for comparison in first} == {"worse"}
    remaining = [comparison for comparison in comparisons if comparison.exploratory]
    assert {comparison.claim for comparison in remaining} == {"impossible"}
    assert {comparison.why for comparison in remaining} == {"n = 6 cannot decide 32 tests; n ≥ 7 can"}


def test_a_verdict_shows_how_many_checks_could_look() -> None:
    judgement = judge_results(experiment(both(facts(engine="0.2.0"), set_figures(clock__jumps=0))))
    assert judgement.trust.startswith("valid (")
    assert {finding.check for finding in judgement.not_looked} == {"carried-over"}
    assert judgement.trust == f"valid ({CHECKS - 1} of {CHECKS} checks ran in full)"


OWN = facts(engine="0.2.0")


@pytest.mark.parametrize("missing", ["errors"])
def test_own_trial_without_standard_facts_is_suspect(missing: str) -> None:
    trial = both(OWN, set_figures(without=(missing,)))(sound())
    result, lacking = check_trial(trial, make_series(STEADY), Settings())
    assert worst_verdict(result) == Verdict.SUSPECT
    assert {finding.check for finding in lacking} >= {"errors"}
    imported, _ = check_trial(replace(trial, facts={}), make_series(STEADY), Settings())
    assert worst_verdict(imported) == Verdict.VALID


def test_one_verified_value_verifies_nothing() -> None:
    few = set_figures(verified=1, read__count=1_000_000)
    result, _ = check_trial(few(sound()), make_series(STEADY), Settings(verify=True))
    assert [finding.message for finding in result if finding.severity == Severity.INVALID] == [
        "`verify` was requested, but only 1 of 1,000,000 reads was verified"
    ]


def test_device_blocks_do_not_hide_cached_values() -> None:
    # 95 of 100 reads of 100 bytes are cached; each of the remaining reads fetches a block of 4,096 bytes.
    cached = set_figures(
        returned=100 * 1e6, read__count=1_000_000, device__read=4096 * 5e4, device__reads=50_000, verified=1
    )
    result, _ = check_trial(cached(sound()), make_series(STEADY), Settings(claims="device"))
    assert [finding.check for finding in result if finding.severity == Severity.INVALID] == ["page-cache"]
    assert "at least 95 % came from memory" in result[0].message
    result, _ = check_trial(
        set_figures(device__reads=0)(cached(sound())), make_series(STEADY), Settings(claims="device")
    )
    assert result[0].message == "the device served none of 1,000,000 reads: all of them came from memory"


def test_recurring_drops_are_not_steady() -> None:
    rates = [100.0 if at % 10 else 40.0 for at in range(1, 61)]
    result, _ = check_trial(sound(), make_series(tuple(rates)), Settings())
    assert [finding.message for finding in result] == ["throughput is below 50 % of its upper quartile 6 times"]


def test_drops_may_exceed_half_of_the_time() -> None:
    rates = tuple(40.0 if at % 10 < 6 else 100.0 for at in range(60))
    result, _ = check_trial(sound(), make_series(rates), Settings())
    assert any("is below 50 % of its upper quartile 6 times" in finding.message for finding in result)


def drops(rates: Iterable[float]) -> list[str]:
    """The findings about drops."""
    result, _ = check_trial(sound(), make_series(tuple(rates)), Settings())
    return [finding.message for finding in result if "upper quartile" in finding.message]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.6, 0.74])
def test_drops_are_detected_for_any_share_of_time(share: float) -> None:
    assert drops((30.0 if at % 50 < 50 * share else 100.0) + at % 3 for at in range(200))


@pytest.mark.parametrize(
    "draw",
    [
        lambda source: source.lognormvariate(0, 0.3),
        lambda source: source.lognormvariate(0, 0.5),
        lambda source: source.gammavariate(4, 1),
        # A slow system: eight operations in an interval, on average.
        lambda source: sum(source.random() < 0.08 for _ in range(100)),
    ],
    ids=["lognormal 0.3", "lognormal 0.5", "gamma", "counts"],
)
@pytest.mark.parametrize("points", [12, 60, 300])
def test_tail_of_steady_noise_has_no_drops(draw: Callable[[Random], float], points: int) -> None:
    source = Random(points)
    fired = [bool(drops(draw(source) for _ in range(points))) for _ in range(100)]
    # The check fires in up to 5 % of the shortest windows and 3 % of the windows of slow systems; 10 of 100 allow for
    # chance.
    assert sum(fired) <= 10


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.15])
def test_drops_are_found_in_noise(noise: float) -> None:
    source = Random(1)
    fired = [
        bool(drops((1.0 if at % 10 > 1 else 0.4) * source.lognormvariate(0, noise) for at in range(60)))
        for _ in range(100)
    ]
    assert sum(fired) >= 95


def test_window_of_many_small_drops_is_steady() -> None:
    assert drops(40.0 if at % 10 < 2 else 100.0 for at in range(60))
    assert not drops(40.0 if at % 10 < 2 else 100.0 for at in range(600))


def test_three_short_drops_of_an_hour_are_irrelevant() -> None:
    assert not drops(40.0 if at in (500, 1500, 2500) else 100.0 for at in range(3600))


def test_a_long_drop_is_one() -> None:
    assert not drops(10.0 if 20 <= at < 25 else 100.0 for at in range(60))


def test_levels_alternating_over_five_intervals_are_drops() -> None:
    for points in range(13):
        assert bool(drops(100.0 if at % 2 else 40.0 for at in range(points))) == (points >= 5)


@pytest.mark.parametrize(("share", "steady"), [(0.1, True), (0.2, True), (0.3, False), (0.5, False)])
def test_bursts_in_the_upper_quartile_are_a_level(share: float, steady: bool) -> None:
    assert bool(drops(300.0 if at % 20 < 20 * share else 100.0 for at in range(80))) != steady


def test_server_activity_before_the_window_is_reported_once() -> None:
    periods: dict[str, Any] = {f"server.{when}postgres.checkpoint_period_seconds": 300.0 for when in ("", "before.")}
    result, _ = check_trial(set_figures(**periods)(sound()), make_series(STEADY), Settings())
    assert [finding.message for finding in result] == [
        "postgres begins a checkpoint every 300 s (median), and the window is 100 s long"
    ]


def test_server_activity_rarer_than_the_window_is_reported() -> None:
    periods = {"postgres.checkpoint": 300.0, "cassandra.flush": 4.0}
    figures: dict[str, Any] = {f"server.{name}_period_seconds": seconds for name, seconds in periods.items()}
    result, _ = check_trial(set_figures(**figures)(sound()), make_series(STEADY), Settings())
    assert [(finding.severity, finding.message) for finding in result] == [
        (Severity.NOTE, "postgres begins a checkpoint every 300 s (median), and the window is 100 s long")
    ]


def test_latencies_that_are_compared_must_be_steady() -> None:
    rising = replace(make_series(STEADY), p99_ns=tuple(1e6 * (1 + 0.02 * at) for at in range(len(STEADY))))
    result, _ = check_trial(sound(), rising, Settings(metrics=("throughput", "read.p99")))
    (only_one,) = result
    assert (only_one.check, only_one.about) == ("not-steady", "latencies")
    trend = "has a rising trend (1.06 ms to 1.52 ms from the first quarter of the window to the last)"
    assert only_one.message.startswith(f"the p99 of all operations {trend}")
    assert check_trial(sound(), rising, Settings(metrics=("throughput",)))[0] == ()


def test_p_covers_the_scenario_of_unequal_processors() -> None:
    def simulate_others(share: float) -> Comparison:
        change = change_system("rocksdb", set_figures(cpu__others=share))
        results = simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1300.0}, 8, change=both(set_figures(cpu__others=0.0), change)
        )
        return judge_results(results).comparisons[0]

    calm, busy = simulate_others(0.0), simulate_others(0.1)
    assert (calm.claim, busy.claim) == ("better", "better")
    assert busy.scenarios[-1].name == "less CPU on one side"
    assert busy.p is not None
    assert calm.p is not None
    assert busy.p > 5 * calm.p


@pytest.mark.parametrize(("tests", "reading"), [(1, "better"), (10, "none")])
def test_scenario_bears_the_correction_of_p(tests: int, reading: Claim) -> None:
    comparison = single_comparison(simulate_results({"rocksdb": 1000.0, "lmdb": 1000.0}, 6))
    as_measured = Evidence(Estimate(1.0, 6, 0.9, 1.1), 0.5, "", 6, 0.0)
    faster = replace(as_measured, ratio=Estimate(1.3, 6, 1.2, 1.4), p=0.02)
    kinds: list[tuple[Kind, Evidence]] = [("measured", as_measured), ("own-time", faster)]
    scenarios = [Weighed(Scenario(kind, ({}, {})), evidence, evidence.ratio) for kind, evidence in kinds]
    # Corrected by Holm's method, the p of 0.5 is 1 with two tests or more.
    open_claim = replace(comparison, claim="none", p=0.5, p_adjusted=min(1.0, 0.5 * tests), scenarios=())
    pair = Pair("system", "rocksdb", "lmdb", (), ())
    decided = decision_table.decide_claim(decision_table.Tested(open_claim, pair, scenarios), 0.01, tests)
    assert [row.reading for row in decided.scenarios] == ["none", reading]


@pytest.mark.parametrize(("reading", "hedge"), [("better", ""), ("none", " as measured (not with drift)")])
def test_suspect_claim_is_stated_as_measured(reading: Claim, hedge: str) -> None:
    comparison = single_comparison(simulate_results({"rocksdb": 1000.0, "lmdb": 1300.0}, 6))
    readings: dict[str, Claim] = {"as measured": "better", "drift": reading}
    rows = [replace(comparison.scenarios[0], name=name, reading=row) for name, row in readings.items()]
    doubtful = Finding("interference", Severity.SUSPECT, "", "", ())
    assert hedge_claim(replace(comparison, scenarios=tuple(rows), findings=(doubtful,))) == hedge
    assert hedge_claim(replace(comparison, scenarios=tuple(rows), findings=())) == ""
