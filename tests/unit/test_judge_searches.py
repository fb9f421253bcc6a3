"""A trial's verdict on its load: findings that make a probe invalid, and the deciding figures."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from judge_support import Change, both, set_figures, sound
from loadstone.judge.finding import Severity, Verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement, Search
from loadstone.judge.search import find_contradictions
from loadstone.report.search import rows
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.search.next_step import next_step
from loadstone.search.objective import parse_objective
from loadstone.search.outcome import Decision, SearchOutcome
from loadstone.search.probe import Probe, ProbeSample
from loadstone.search.rule import Rule
from loadstone.search.sentence import outcome_sentence
from loadstone.statistics.percentile import Bound

LOADS = (1, 2, 4)
REPEATS = 3


def judge_search(such_that: str, change: Change) -> Judgement:
    """Judges a search over 1 to 4 clients with all of its trials."""
    find: dict[str, Scalar | None] = {
        "max": "throughput",
        "such_that": such_that,
        "over": "clients",
        "from": 1,
        "to": 4,
    }
    trials = [
        change(replace(sound(repeat=repeat), trial=f"{load}-{repeat}", config={"clients": load}, clients=10))
        for load in LOADS
        for repeat in range(1, REPEATS + 1)
    ]
    return judge_results(ResultSet("searched", trials, Question(at_least=REPEATS, at_most=6, find=find)))


def run_search(such_that: str, change: Change) -> Search:
    """The only search of a judgement."""
    (search,) = judge_search(such_that, change).searches
    return search


def outcome(such_that: str, change: Change) -> SearchOutcome:
    """The outcome of a search."""
    result = run_search(such_that, change).outcome
    assert result is not None, "the search has every trial that it needs"
    return result


def from_two_clients_on(change: Change) -> Change:
    """Applies a change to the trials at all loads except one client."""
    return lambda trial: trial if trial.config["clients"] == 1 else change(trial)


# An error rate of 0.5 %, which exceeds the check's limit, and one of 5 %.
FEW, MANY = set_figures(errors=500), set_figures(errors=5_000)
LOADING = set_figures(load__errors=500, load__operations=1_000)


@pytest.mark.parametrize("such_that", ["errors < 1%", "errors < 501", "p99 < 1s and errors <= 0.5%"])
def test_errors_within_the_objective_leave_a_probe_valid(such_that: str) -> None:
    result = outcome(such_that, both(FEW, set_figures(all__p99=3e7)))
    assert (result.kind, result.load) == ("beyond", 4)


@pytest.mark.parametrize("such_that", ["errors == 0", "errors < 1%"])
def test_errors_beyond_the_objective_are_an_answer(such_that: str) -> None:
    result = outcome(such_that, from_two_clients_on(MANY))
    assert (result.kind, result.load) == ("found", 1)
    assert result.wall is None


def fail_trial(trial: TrialResult) -> TrialResult:
    """A trial that failed without a figure, as if the server or the load generator had refused it."""
    return replace(trial, end="failed", values={})


def test_load_that_never_ran_is_no_limit() -> None:
    result = outcome("p99 < 1s", both(set_figures(all__p99=3e7), from_two_clients_on(fail_trial)))
    assert (result.kind, result.load) == ("wall", 1)
    assert "; the probe at 2 clients is invalid: incomplete: " in outcome_sentence(result)


def test_load_that_failed_once_does_not_hold() -> None:
    def once(trial: TrialResult) -> TrialResult:
        return fail_trial(trial) if trial.repeat == 2 else trial

    result = outcome("p99 < 1s", both(set_figures(all__p99=3e7), from_two_clients_on(once)))
    assert (result.kind, result.load, result.high) == ("found", 1, 2)


def test_errors_outside_the_objective_make_a_probe_invalid() -> None:
    result = outcome("p99 < 1s", both(FEW, set_figures(all__p99=3e7)))
    assert result.kind == "nothing"
    assert "errors: 500 of 100,000 operations failed (0.5 %)" in outcome_sentence(result)


@pytest.mark.parametrize("measured", [0, 500, 5_000])
def test_load_errors_make_a_probe_invalid(measured: int) -> None:
    result = outcome("errors < 1%", both(set_figures(errors=measured), LOADING))
    assert result.kind == "nothing"
    assert "errors: 500 of 1,000 operations of the load failed (50 %)" in outcome_sentence(result)


def test_further_findings_make_a_probe_with_errors_invalid() -> None:
    result = outcome("errors < 1%", both(FEW, set_figures(wrong=1)))
    assert result.kind == "nothing"
    assert "unverified: 1 of 50,000 values" in outcome_sentence(result)


def test_permitted_errors_of_a_trial_are_still_reported() -> None:
    def change_trial(trial: TrialResult) -> TrialResult:
        return FEW(replace(trial, config={"clients": 1}))

    trials = [change_trial(sound(repeat=repeat)) for repeat in (1, 2, 3)]
    find: dict[str, Scalar | None] = {"such_that": "errors < 1%", "over": "clients", "from": 1, "to": 2}
    assert judge_results(ResultSet("searched", trials, Question(find=find))).verdict == Verdict.INVALID


def test_two_conditions_on_errors_have_a_figure_each() -> None:
    # 20 errors: a small share, but more than the allowed ten.
    such_that = "errors < 10 and errors < 1%"
    result = run_search(such_that, set_figures(errors=20))
    assert result.outcome is not None
    assert result.outcome.kind == "below"
    assert outcome_sentence(result.outcome).startswith(
        f"{such_that} does not hold even at 1 client: errors 20, errors 0.02 %; "
    )
    assert rows(result)[0][2:4] == ("20", "0.02 %")
    assert outcome(such_that, set_figures(errors=9)).kind == "beyond"
    # 900 errors: fewer than the allowed 1,000, but more than 0.1 %.
    assert outcome("errors < 1000 and errors < 0.1%", set_figures(errors=900)).kind == "below"


def test_an_impossible_search_is_noted() -> None:
    # Earlier versions accepted this form.
    find: dict[str, Scalar | None] = {"such_that": "throughput > 10", "over": "clients", "from": 1, "to": 4}
    judgement = judge_results(ResultSet("old", [sound()], Question(find=find)))
    assert judgement.searches == []
    assert [finding.message for finding in judgement.findings] == [
        "the search has an unreadable objective: throughput > 10"
    ]


def test_table_distinguishes_a_narrowly_missed_rate() -> None:
    rule = Rule("rate", 1_000, 2_000, parse_objective("p99 < 10ms"))
    samples = {load: [ProbeSample(0.9485 * load, True, figures={"all.p99": 1e6})] * 3 for load in (1_000.0, 2_000.0)}
    result = Search((), rule, samples, next_step(rule, samples))
    assert [row[-1] for row in rows(result)] == ["does not hold: 94.8 % of the rate achieved"] * 2


# At a rate.


def rates(change: Change) -> Search:
    """Judges a search over rates. By the counts, all rates are reached; the p99 is low."""
    find: dict[str, Scalar | None] = {"such_that": "p99 < 1s", "over": "rate", "from": 1_000, "to": 4_000}
    trials = []
    for rate in (1_000, 2_000, 4_000):
        done = set_figures(throughput=rate, all__p99=3e7, all__mean=1e6, without=("read.mean", "runtime"))
        for repeat in range(1, REPEATS + 1):
            trial = replace(sound(repeat=repeat), trial=f"{rate}-{repeat}", config={"rate": rate}, loop="open")
            trials.append(change(done(trial)))
    results = ResultSet("searched", trials, Question(at_least=REPEATS, at_most=6, find=find))
    (search,) = judge_results(results).searches
    return search


def above(rate: int, change: Change) -> Change:
    """Applies a change only to the trials at rates above `rate`."""
    return lambda trial: change(trial) if int(trial.config["rate"]) > rate else trial


def test_a_rate_that_was_held_meets_its_objective() -> None:
    result = rates(set_figures(due=100_000, censored=100))
    assert result.outcome is not None
    assert (result.outcome.kind, result.outcome.load) == ("beyond", 4_000)


def search_systems(*systems: str) -> ResultSet:
    """A search over clients for each system; all loads meet the objective."""
    find: dict[str, Scalar | None] = {"such_that": "p99 < 1s", "over": "clients", "from": 1, "to": 4}
    trials = [
        set_figures(all__p99=3e7)(
            replace(
                sound(repeat=repeat),
                trial=f"{system}-{load}-{repeat}",
                config={"clients": load, "system": system},
                clients=load,
            )
        )
        for load in LOADS
        for repeat in range(1, REPEATS + 1)
        for system in systems
    ]
    question = Question(by="system", at_least=REPEATS, at_most=6, find=find)
    return ResultSet("searched", trials, question)


def test_departure_concerns_the_answer_of_a_search() -> None:
    departed = replace(search_systems("a", "b"), departures=("--filter leaves out repeat 3",))
    assert "view" in {finding.check for finding in judge_results(departed).answer_findings}


def test_generator_does_not_set_the_limit() -> None:
    late = above(1_000, set_figures(all__p99=2e9, all__lower__p99=5e8))
    samples = rates(late).samples[2_000]
    assert {sample.invalid for sample in samples} == {
        "generator-limited: without the generator's lateness, the objective is met"
    }
    slow = above(1_000, set_figures(all__p99=2e9, all__lower__p99=1.5e9))
    assert {sample.invalid for sample in rates(slow).samples[2_000]} == {""}
    # A missed rate fails the load, whatever its latency.
    missed = above(1_000, set_figures(all__p99=2e9, all__lower__p99=5e8, throughput=500))
    assert {sample.invalid for sample in rates(missed).samples[2_000]} == {""}


def test_missed_rate_makes_a_valid_failed_probe() -> None:
    result = rates(above(1_000, set_figures(due=100_000, censored=2_000)))
    assert result.end == 1_410
    assert [row[-1] for row in rows(result)][1:] == [""] * 2
    samples = result.samples[2_000]
    assert [sample.invalid for sample in samples] == [""] * REPEATS
    assert {sample.missed for sample in samples} == {"2 % of the 100,000 operations that were due never completed"}


def test_sentence_and_table_report_a_missed_rate() -> None:
    result = rates(set_figures(due=100_000, censored=2_000))
    assert result.outcome is not None
    assert result.outcome.kind == "below"
    why = "the rate was not held: 2 % of the 100,000 operations that were due never completed"
    assert outcome_sentence(result.outcome).startswith(
        f"p99 < 1s does not hold even at 1,000 op/s: p99 30.0 ms, {why}; "
    )
    assert rows(result)[0][-1] == f"does not hold: {why}"


@pytest.mark.parametrize(("bound", "text"), [("at_least", "at least 30.0 ms"), ("failed", "failed")])
def test_bound_below_the_limit_does_not_meet_it(bound: Bound, text: str) -> None:
    def change_trial(trial: TrialResult) -> TrialResult:
        return replace(trial, values={**trial.values, "all.p99": replace(trial.values["all.p99"], bound=bound)})

    result = rates(change_trial)
    assert result.outcome is not None
    assert outcome_sentence(result.outcome).startswith(f"p99 < 1s does not hold even at 1,000 op/s: p99 {text}; ")
    assert rows(result)[0][2] == text


def test_figures_of_a_load_include_sparse_trials() -> None:
    """Slow trials have the fewest operations: without them, the load would look fast."""

    def slow_down(trial: TrialResult) -> TrialResult:
        if trial.repeat != 1:
            return trial
        few = replace(trial.values["read.p99"], n=50)
        return set_figures(throughput=50)(replace(trial, values={**trial.values, "read.p99": few}))

    samples = run_search("read.p99 < 1s", slow_down).samples[4]
    assert "too few" in samples[0].invalid
    assert Probe(4, samples[:2]).throughput == median(sample.throughput for sample in samples[:2])


def test_unclosed_sessions_are_no_errors_of_an_objective() -> None:
    result = outcome("errors < 1%", set_figures(unclosed=1))
    assert result.kind == "nothing"
    assert "errors: 1 client did not close" in outcome_sentence(result)


def test_loads_far_from_the_answer_contradict_it() -> None:
    ended = rates(set_figures(due=100_000, censored=100)).outcome
    assert ended is not None
    decisions = [Decision(1_000, 6, 6), Decision(2_000, 3, 6), *ended.decisions[2:]]
    low = replace(ended, kind="found", load=1_000, decisions=decisions)
    assert [*low.contradictions] == [[4_000], []]
    assert "but in most repeats, the objective was met again at 4,000" in outcome_sentence(low)
    trials: dict[float, list[TrialResult]] = {
        load: [replace(sound(), trial=f"at-{load}")] for load in (1_000, 2_000, 4_000)
    }
    (finding,) = find_contradictions(low, trials)
    assert (finding.severity, finding.trials) == (Severity.SUSPECT, ("at-4000",))
    # The check also applies to a search that reached its upper bound.
    high = replace(low, kind="beyond", load=4_000)
    assert [*high.contradictions] == [[], [2_000]]
    assert "was not met at 2,000" in next(find_contradictions(high, trials)).message


def test_mixed_objective_states_each_operation() -> None:
    at_one = set_figures(all__p99=1.5e7, read__p99=1.2e7, update__p99=2.4e7, cleanup__p99=3e7, read__lower__p99=1e7)
    judgement = judge_search("p99 < 20ms", both(at_one, from_two_clients_on(set_figures(all__p99=3e7))))
    assert judgement.answer.startswith("p99 < 20ms over all operations holds up to 1 client ")
    short = judgement.short
    assert short is not None
    assert short.statement.startswith("p99 < 20ms over all operations holds up to 1 client ")
    assert short.remarks == ("at 1 client, read p99 is 12.0 ms and update p99 is 24.0 ms",)


def test_rare_stalls_are_named() -> None:
    def stall(factor: float) -> list[str]:
        judgement = judge_search("p99 < 1s", set_figures(all__mean=factor * 1e5, all__p99=1e5))
        return [text for text in judgement.further if "slowest 1 %" in text]

    assert stall(1.9) == []
    (text,) = stall(2)
    assert text.endswith(" of the total time at 4 clients: the mean is 2.00 times p99 (also in 2 other variants)")


def test_stalls_at_the_answer_are_named_first() -> None:
    worse = from_two_clients_on(set_figures(all__mean=6e10, all__p99=2e9))
    judgement = judge_search("p99 < 1s", both(set_figures(all__mean=2e5, all__p99=1e5), worse))
    (text,) = [text for text in judgement.further if "slowest 1 %" in text]
    assert "at 1 client: the mean is 2.00 times p99" in text
