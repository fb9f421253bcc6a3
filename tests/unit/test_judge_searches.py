"""What a trial says of its load: which findings make a probe invalid, and by which figures it is decided."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge_support import Spoil, both, given, sound
from loadstone.judge.finding import Verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Search
from loadstone.report.search import rows
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.search.objective import parse_objective
from loadstone.search.outcome import SearchOutcome
from loadstone.search.path import next_step
from loadstone.search.probe import ProbeSample
from loadstone.search.rule import Rule
from loadstone.search.sentence import outcome_sentence
from loadstone.statistics.percentile import Bound

LOADS = (1, 2, 4)
REPEATS = 3


def searched(such_that: str, spoil: Spoil) -> Search:
    """A search over 1 to 4 clients whose trials are all there."""
    find: dict[str, Scalar | None] = {
        "max": "throughput",
        "such_that": such_that,
        "over": "clients",
        "from": 1,
        "to": 4,
    }
    trials = [
        spoil(replace(sound(repeat=repeat), trial=f"{load}-{repeat}", config={"clients": load}, clients=10))
        for load in LOADS
        for repeat in range(1, REPEATS + 1)
    ]
    (found,) = judge_results(ResultSet("searched", trials, Question(at_least=REPEATS, at_most=6, find=find))).searches
    return found


def outcome(such_that: str, spoil: Spoil) -> SearchOutcome:
    """What it came to."""
    found = searched(such_that, spoil).outcome
    assert found is not None, "every trial that it needs is there"
    return found


def from_two_clients_on(spoil: Spoil) -> Spoil:
    """Not at one client."""
    return lambda trial: trial if trial.config["clients"] == 1 else spoil(trial)


# Five in a thousand, more than the check itself allows.
FEW, MANY = given(errors=500), given(errors=5_000)
LOADING = given(load__errors=500, load__operations=1_000)


@pytest.mark.parametrize("such_that", ["errors < 1%", "errors < 501", "p99 < 1s and errors <= 0.5%"])
def test_errors_within_the_objective_leave_a_probe_valid(such_that: str) -> None:
    found = outcome(such_that, both(FEW, given(all__p99=3e7)))
    assert (found.kind, found.load) == ("beyond", 4)


@pytest.mark.parametrize("such_that", ["errors == 0", "errors < 1%"])
def test_errors_beyond_the_objective_are_an_answer(such_that: str) -> None:
    found = outcome(such_that, from_two_clients_on(MANY))
    assert (found.kind, found.load) == ("found", 1)
    assert found.wall is None


def fail_trial(trial: TrialResult) -> TrialResult:
    """A trial that failed without a figure, as when the server, or the load generator, refused it."""
    return replace(trial, end="failed", values={})


def test_load_that_never_ran_is_no_limit() -> None:
    result = outcome("p99 < 1s", both(given(all__p99=3e7), from_two_clients_on(fail_trial)))
    assert (result.kind, result.load) == ("wall", 1)
    assert "; at 2 clients the probe is invalid: incomplete: " in outcome_sentence(result)


def test_load_that_failed_once_does_not_hold() -> None:
    def once(trial: TrialResult) -> TrialResult:
        return fail_trial(trial) if trial.repeat == 2 else trial

    result = outcome("p99 < 1s", both(given(all__p99=3e7), from_two_clients_on(once)))
    assert (result.kind, result.load, result.high) == ("found", 1, 2)


def test_errors_outside_the_objective_make_a_probe_invalid() -> None:
    found = outcome("p99 < 1s", both(FEW, given(all__p99=3e7)))
    assert found.kind == "nothing"
    assert "errors: 500 of 100,000 operations failed (0.5 %)" in outcome_sentence(found)


@pytest.mark.parametrize("measured", [0, 500, 5_000])
def test_load_errors_make_a_probe_invalid(measured: int) -> None:
    found = outcome("errors < 1%", both(given(errors=measured), LOADING))
    assert found.kind == "nothing"
    assert "errors: 500 of 1,000 operations of the load failed (50 %)" in outcome_sentence(found)


def test_further_findings_make_a_probe_with_errors_invalid() -> None:
    found = outcome("errors < 1%", both(FEW, given(wrong=1)))
    assert found.kind == "nothing"
    assert "unverified: 1 of 50,000 values" in outcome_sentence(found)


def test_permitted_errors_of_a_trial_are_still_reported() -> None:
    def spoil(trial: TrialResult) -> TrialResult:
        return FEW(replace(trial, config={"clients": 1}))

    trials = [spoil(sound(repeat=repeat)) for repeat in (1, 2, 3)]
    find: dict[str, Scalar | None] = {"such_that": "errors < 1%", "over": "clients", "from": 1, "to": 2}
    assert judge_results(ResultSet("searched", trials, Question(find=find))).verdict == Verdict.INVALID


def test_two_conditions_on_errors_have_a_figure_each() -> None:
    # Few as a share, but more than ten.
    such_that = "errors < 10 and errors < 1%"
    found = searched(such_that, given(errors=20))
    assert found.outcome is not None
    assert found.outcome.kind == "below"
    assert outcome_sentence(found.outcome).startswith(
        f"{such_that} does not hold even at 1 client: errors 20, errors 0.02 %; "
    )
    assert rows(found)[0][2:4] == ("20", "0.02 %")
    assert outcome(such_that, given(errors=9)).kind == "beyond"
    # And few, but more than one in a hundred.
    assert outcome("errors < 1000 and errors < 0.1%", given(errors=900)).kind == "below"


def test_an_impossible_search_is_noted() -> None:
    # As earlier versions accepted it.
    find: dict[str, Scalar | None] = {"such_that": "throughput > 10", "over": "clients", "from": 1, "to": 4}
    found = judge_results(ResultSet("old", [sound()], Question(find=find)))
    assert found.searches == []
    assert [each.message for each in found.findings] == ["what was searched for is not an objective: throughput > 10"]


def test_table_distinguishes_a_narrowly_missed_rate() -> None:
    asked = Rule("rate", 1_000, 2_000, parse_objective("p99 < 10ms"))
    samples = {load: [ProbeSample(0.9485 * load, True, figures={"all.p99": 1e6})] * 3 for load in (1_000.0, 2_000.0)}
    found = Search((), asked, samples, next_step(asked, samples))
    assert [row[-1] for row in rows(found)] == ["does not hold: 94.8 % of the rate done"] * 2


# At a rate.


def rates(spoil: Spoil) -> Search:
    """A search over rates that were all done, by what was counted, and whose p99 is short."""
    find: dict[str, Scalar | None] = {"such_that": "p99 < 1s", "over": "rate", "from": 1_000, "to": 4_000}
    trials = []
    for rate in (1_000, 2_000, 4_000):
        done = given(throughput=rate, all__p99=3e7, all__mean=1e6, without=("read.mean", "runtime"))
        for repeat in range(1, REPEATS + 1):
            trial = replace(sound(repeat=repeat), trial=f"{rate}-{repeat}", config={"rate": rate}, loop="open")
            trials.append(spoil(done(trial)))
    results = ResultSet("searched", trials, Question(at_least=REPEATS, at_most=6, find=find))
    (found,) = judge_results(results).searches
    return found


def above(rate: int, spoil: Spoil) -> Spoil:
    """At higher rates only."""
    return lambda trial: spoil(trial) if int(trial.config["rate"]) > rate else trial


def test_a_rate_that_was_held_meets_its_objective() -> None:
    found = rates(given(due=100_000, censored=100))
    assert found.outcome is not None
    assert (found.outcome.kind, found.outcome.load) == ("beyond", 4_000)


def test_missed_rate_makes_a_valid_failed_probe() -> None:
    found = rates(above(1_000, given(due=100_000, censored=2_000)))
    assert found.end == 1_410
    assert [row[-1] for row in rows(found)][1:] == [""] * 2
    samples = found.samples[2_000]
    assert [each.invalid for each in samples] == [""] * REPEATS
    assert {each.missed for each in samples} == {"2 % of the 100,000 operations that were due never ended"}


def test_sentence_and_table_report_a_missed_rate() -> None:
    found = rates(given(due=100_000, censored=2_000))
    assert found.outcome is not None
    assert found.outcome.kind == "below"
    why = "the rate was not held: 2 % of the 100,000 operations that were due never ended"
    assert outcome_sentence(found.outcome).startswith(
        f"p99 < 1s does not hold even at 1,000 op/s: p99 30.0 ms, {why}; "
    )
    assert rows(found)[0][-1] == f"does not hold: {why}"


@pytest.mark.parametrize(("bound", "shown"), [("at_least", "at least 30.0 ms"), ("failed", "failed")])
def test_bound_below_the_limit_does_not_meet_it(bound: Bound, shown: str) -> None:
    def spoil(trial: TrialResult) -> TrialResult:
        return replace(trial, values={**trial.values, "all.p99": replace(trial.values["all.p99"], bound=bound)})

    found = rates(spoil)
    assert found.outcome is not None
    assert outcome_sentence(found.outcome).startswith(f"p99 < 1s does not hold even at 1,000 op/s: p99 {shown}; ")
    assert rows(found)[0][2] == shown


def test_unclosed_sessions_are_no_errors_of_an_objective() -> None:
    found = outcome("errors < 1%", given(unclosed=1))
    assert found.kind == "nothing"
    assert "errors: 1 client did not close" in outcome_sentence(found)
