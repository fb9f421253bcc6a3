"""A search takes the expected steps on invented samples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from loadstone.search.next_step import next_step
from loadstone.search.objective import parse_objective
from loadstone.search.outcome import SearchOutcome
from loadstone.search.probe import Probe, ProbeSample
from loadstone.search.rule import Rule
from loadstone.search.sentence import explain_search, outcome_sentence, overlap_text, short_of_rate

# Repeats that vary by 0.1 %.
QUIET = (1.0, 1.001, 0.999)


def run_search(
    rule: Rule, draw: Callable[[float, int], ProbeSample], tried: Sequence[float] = ()
) -> tuple[SearchOutcome, list[float]]:
    """Runs a search to its end; returns its outcome, and the loads in the order in which they were first requested.

    `tried`: loads with three earlier trials.
    """
    samples = {load: [draw(load, repeat) for repeat in range(3)] for load in tried}
    while not isinstance(step := next_step(rule, samples), SearchOutcome):
        samples.setdefault(step, []).append(draw(step, len(samples.get(step, ()))))
        assert sum(map(len, samples.values())) < 1000
    return step, list(samples)


def quiet(curve: Callable[[float], float]) -> Callable[[float, int], ProbeSample]:
    """A system with this throughput and little noise."""
    return lambda load, repeat: ProbeSample(curve(load) * QUIET[repeat % 3])


def saturating(at: float) -> Callable[[float, int], ProbeSample]:
    """A system that scales perfectly up to this many clients."""
    return quiet(lambda load: 1000 * min(load, at))


def latencies(bound: str, ms: Callable[[float], float], most: float = 64) -> tuple[SearchOutcome, list[float]]:
    """A search for an objective on a system with these latencies."""
    objective = parse_objective(bound)

    def draw(load: float, _: int) -> ProbeSample:
        figures = {"all.p99": ms(load) * 1e6}
        return ProbeSample(1000.0, objective.is_met_by(figures), figures=figures)

    return run_search(Rule(most=most, objective=objective), draw)


def test_search_doubles_past_the_plateau_then_halves() -> None:
    outcome, loads = run_search(Rule(most=256), saturating(22))
    assert loads == [1, 2, 4, 8, 16, 32, 64, 128, 23, 19, 21, 20]
    # At 21 clients throughput is 95.5 % of the maximum.
    assert (outcome.kind, outcome.load, outcome.low, outcome.high) == ("found", 21, 20, 21)
    assert outcome_sentence(outcome) == (
        "throughput levels off at 22,000 op/s; 95 % of that is reached between 20 and 21 clients; 12 probes, 36 trials"
    )
    assert list(explain_search(outcome)) == [
        "Starting at 1 client, the number of clients was doubled until the load was 4 times the load that"
        " reaches 95 % of the plateau; then the bracket was halved on a logarithmic scale",
        "The search stopped because 20 and 21 are neighbours",
        "The bracket (contains the answer in at least 90 % of simulated searches): at 20, throughput"
        " is below 95 % of the plateau; at 21, throughput reaches this share",
    ]


def test_search_is_a_function_of_unordered_samples() -> None:
    rule, draw = Rule(most=64), saturating(5)
    samples: dict[float, list[ProbeSample]] = {}
    steps = []
    while not isinstance(step := next_step(rule, samples), SearchOutcome):
        steps.append(step)
        samples.setdefault(step, []).append(draw(step, len(samples.get(step, ()))))
        # A resumed search receives the same samples in another order.
        again = {load: list(sample) for load, sample in reversed(samples.items())}
        assert next_step(rule, again) == next_step(rule, samples)


def test_failure_before_an_undecidable_load_counts_once() -> None:
    objective = parse_objective("p99 < 10ms")
    outcome, _ = run_search(
        Rule(objective=objective),
        lambda load, _: ProbeSample(invalid="errors: 1 %") if load > 1 else ProbeSample(1000.0, False),
    )
    assert (outcome.kind, outcome.twice) == ("below", False)
    assert (
        next(explain_search(outcome))
        == "Starting at 1 client, the number of clients was doubled until p99 < 10ms no longer held"
    )
    twice, _ = latencies("p99 < 10ms", lambda load: load * 20)
    assert (twice.kind, twice.twice) == ("below", True)
    assert next(explain_search(twice)).endswith("until p99 < 10ms no longer held at two consecutive loads")


def test_rising_curve_has_no_knee() -> None:
    outcome, loads = run_search(Rule(least=4, most=24), saturating(1000))
    assert loads == [4, 8, 16, 24]
    assert (outcome.kind, outcome.load, outcome.low, outcome.high) == ("beyond", 24, 16, None)
    assert outcome_sentence(outcome) == ("throughput still rises at 24 clients (24,000 op/s); 4 probes, 12 trials")


def test_flat_curve_has_its_knee_at_the_start() -> None:
    outcome, loads = run_search(Rule(most=256), saturating(1))
    assert loads == [1, 2, 4]
    assert outcome.kind == "below"
    assert outcome_sentence(outcome) == (
        "throughput levels off at 1,000 op/s; 95 % of that is reached at 1 client, the lowest load tried;"
        " 3 probes, 9 trials"
    )


def test_dent_in_a_rising_curve_is_no_knee() -> None:
    def dent_curve(load: float) -> float:
        return 1000 * (4 if load == 8 else min(load, 64))

    outcome, _ = run_search(Rule(most=1024), quiet(dent_curve))
    assert (outcome.load, outcome.low, outcome.high) == (64, 59, 64)


def test_throughput_that_falls_beyond_the_knee_is_reported() -> None:
    outcome, _ = run_search(Rule(most=256), quiet(lambda load: 1000 * min(load, 8) / max(load / 8, 1) ** 0.5))
    assert (outcome.load, outcome.low, outcome.high) == (8, 7, 8)
    assert outcome_sentence(outcome).startswith(
        "throughput is highest at 8 clients, 8,000 op/s; 95 % of that is reached between 7 and 8 clients;"
        " throughput falls below that level again between 8 and 16 clients, to 4,000 op/s at 32 clients; "
    )


def test_bracket_wider_than_a_gap_is_retried() -> None:
    random = np.random.default_rng(3)
    outcome, _ = run_search(
        Rule(most=64), lambda load, _: ProbeSample(1000 * min(load, 8) * float(np.exp(0.04 * random.normal())))
    )
    assert outcome.low is not None
    assert outcome.high is not None
    within = [probe for probe in outcome.probes if outcome.low <= probe.load <= outcome.high]
    assert len(within) == 2 or {len(probe.samples) for probe in within} == {6}


def test_two_trials_per_load_give_no_knee() -> None:
    outcome, _ = run_search(Rule(most=64, at_least=1, at_most=2), saturating(8))
    assert (outcome.low, outcome.high) == (None, None)
    assert outcome_sentence(outcome).startswith(
        "no knee is named: it requires 3 repeats of each load (plateau 8,000 op/s; 95 % of it first reached"
        " between 7 and 8 clients, as an estimate); "
    )


def test_knee_requires_three_trials_per_load() -> None:
    outcome, _ = run_search(Rule(most=64, at_least=1), saturating(9))
    assert (outcome.low, outcome.high) == (8, 9)
    assert {len(probe.samples) for probe in outcome.probes} == {3}


def test_unjudged_load_above_the_answer_leaves_it_open() -> None:
    def draw(load: float, _: int) -> ProbeSample:
        return ProbeSample(1000.0, load < 10, "generator-limited" if load == 10 else "")

    outcome, _ = run_search(Rule(most=64, objective=parse_objective("p99 < 10ms")), draw)
    assert (outcome.load, outcome.high) == (9, 11)
    sentence = outcome_sentence(outcome)
    assert sentence.startswith("p99 < 10ms holds up to 9 clients (bracket ")
    assert "); 10 clients could not be judged (" in sentence
    assert "the probe at 10 clients is invalid: generator-limited" in sentence


def test_wall_is_the_load_that_stopped_the_search() -> None:
    def draw(load: float, repeat: int) -> ProbeSample:
        return ProbeSample(1000.0, load < 45, "late" if load == 45 or (load == 36 and repeat > 0) else "")

    outcome, _ = run_search(Rule(most=128, objective=parse_objective("p99 < 10ms")), draw, (36.0, 40.0))
    assert outcome.load == 40
    assert "holds up to 40 clients" in outcome_sentence(outcome)
    assert "45 clients could not be judged" in outcome_sentence(outcome)
    assert "the probe at 45 clients is invalid: late" in outcome_sentence(outcome)


def test_omitted_failures_do_not_narrow_the_bracket() -> None:
    def draw(load: float, repeat: int) -> ProbeSample:
        late = load == 8 and repeat == 1
        return ProbeSample(1000.0, load < 9 and not late, "generator-limited" if late else "", late=late)

    outcome, _ = run_search(Rule(most=64, objective=parse_objective("p99 < 10ms")), draw)
    assert (outcome.load, outcome.low, outcome.high) == (8, 4, 9)


def test_lateness_makes_the_figures_of_a_probe_bounds() -> None:
    def draw(lower: float) -> ProbeSample:
        return ProbeSample(1000.0, False, figures={"all.p99": 4e7}, lower={"all.p99": lower})

    assert Probe(8, [draw(3e7)] * 3).weakest_bound("all.p99") == "at_most"
    assert Probe(8, [draw(4e7 / 1.001)] * 3).weakest_bound("all.p99") is None


def test_disagreeing_repeats_are_extended_until_majority_decides() -> None:
    objective = parse_objective("p99 < 10ms")

    def wavering(load: float, repeat: int) -> ProbeSample:
        return ProbeSample(1000.0, load < 8 or (load < 11 and repeat % 3 < 2))

    outcome, _ = run_search(Rule(most=64, objective=objective), wavering)
    assert {probe.load: len(probe.samples) for probe in outcome.probes if len(probe.samples) > 3} == {
        4: 12,
        8: 6,
        9: 6,
        10: 6,
        11: 6,
    }
    assert [decision.load for decision in outcome.unsure] == [8, 9, 10]
    # An uncertain result does not narrow the bracket.
    assert (outcome.load, outcome.low, outcome.high) == (10, 4, 11)
    assert (
        "holds up to 10 clients (met in 4 of 6 trials, a majority; bracket 4 to 11, 90 % confidence)"
        in outcome_sentence(outcome)
    )
    message = "The repeats disagree at 8, 9 and 10: the majority decided, and the bracket does not rely on these loads"
    assert message in list(explain_search(outcome))


def test_repeats_that_disagree_evenly_do_not_hold() -> None:
    objective = parse_objective("p99 < 10ms")
    outcome, _ = run_search(
        Rule(most=64, objective=objective),
        lambda load, repeat: ProbeSample(1000.0, load < 8 or (load == 8 and repeat % 2 == 0)),
    )
    assert (outcome.load, outcome.low, outcome.high) == (7, 7, 16)


def test_the_highest_load_that_meets_an_objective() -> None:
    outcome, loads = latencies("p99 < 10ms", lambda load: load / 4)
    assert loads == [1, 2, 4, 8, 16, 32, 64, 45, 38, 41]
    assert (outcome.load, outcome.low, outcome.high) == (38, 38, 41)
    assert outcome_sentence(outcome) == (
        "p99 < 10ms holds up to 38 clients (bracket 38 to 41, 90 % confidence): p99 9.50 ms, 1,000 op/s at 38"
        " clients; p99 10.2 ms at 41 clients; 10 probes, 42 trials"
    )


@pytest.mark.parametrize(
    ("bound", "kind", "expected"),
    [
        ("p99 < 1ms", "below", "p99 < 1ms does not hold even at 1 client: p99 5.00 ms"),
        (
            "p99 <= 1s",
            "beyond",
            "p99 <= 1s holds up to 16 clients, where the search stopped: p99 80.0 ms, 1,000 op/s",
        ),
    ],
)
def test_an_objective_that_nothing_or_everything_meets(bound: str, kind: str, expected: str) -> None:
    outcome, _ = latencies(bound, lambda load: 5 * load, most=16)
    assert outcome.kind == kind
    assert outcome_sentence(outcome).startswith(expected)


def test_an_objective_that_holds_again_is_reported() -> None:
    outcome, _ = latencies("p99 < 10ms", lambda load: 11 if load == 4 else load, most=64)
    assert outcome.load == 9
    assert "the objective was not met at 4 clients, but was met again at 8 clients" in outcome.notes[0]


def test_more_clients_with_less_throughput_are_reported() -> None:
    objective = parse_objective("p99 < 10ms")
    outcome, _ = run_search(
        Rule(most=64, objective=objective),
        lambda load, _: ProbeSample(1000 / load, load < 20, figures={"all.p99": load * 5e5}),
    )
    assert outcome.load == 19
    assert outcome.notes == (
        "throughput is higher at 1 client: more clients meet the objective, but with less throughput",
    )


def test_invalid_probe_ends_the_way_up_with_reason() -> None:
    def limit_load(load: float, _: int) -> ProbeSample:
        return ProbeSample(invalid="generator-limited: our own limit") if load > 8 else ProbeSample(1000 * load)

    outcome, loads = run_search(Rule(), limit_load)
    assert loads == [1, 2, 4, 8, 16]
    assert len(outcome.probe_at(16).samples) == 2
    assert outcome_sentence(outcome) == (
        "throughput still rises at 8 clients (8,000 op/s); the probe at 16 clients is"
        " invalid: generator-limited: our own limit; 5 probes, 14 trials"
    )


def test_failed_trials_reduce_no_throughput() -> None:
    measured = ProbeSample(944, False, figures={"all.p99": 3e8})
    probe = Probe(1000, [measured, ProbeSample(meets=False, failed=True)])
    assert (probe.throughput, Probe(1000, probe.samples[1:]).throughput) == (944, 0)
    assert short_of_rate(Rule(over="rate"), probe) == "the system failed in 1 of 2 trials"


def test_an_invalid_first_probe_leaves_nothing_to_say() -> None:
    outcome, _ = run_search(Rule(), lambda *_: ProbeSample(invalid="errors: all failed"))
    assert (outcome.kind, outcome.load) == ("nothing", None)
    assert outcome_sentence(outcome) == (
        "no knee was found: the probe at 1 client is invalid: errors: all failed; 1 probe, 2 trials"
    )


def test_invalid_probe_beyond_the_knee_is_harmless() -> None:
    def limit_load(load: float, repeat: int) -> ProbeSample:
        return ProbeSample(invalid="errors: 1 %") if load >= 16 else saturating(4)(load, repeat)

    outcome, _ = run_search(Rule(), limit_load)
    assert (outcome.kind, outcome.load) == ("found", 4)
    assert outcome.notes == ("nothing is known about 16 clients, because the probe is invalid: errors: 1 %",)


def test_invalid_trial_is_omitted_and_replaced() -> None:
    first = itertools.count()

    def once(load: float, repeat: int) -> ProbeSample:
        return ProbeSample(invalid="lost-segment: gone") if next(first) == 0 else saturating(4)(load, repeat)

    outcome, _ = run_search(Rule(most=64), once)
    assert (outcome.kind, outcome.load) == ("found", 4)
    assert (len(outcome.probe_at(1).samples), len(outcome.probe_at(1).valid)) == (4, 3)


def test_missed_rate_fails_however_low_its_latency() -> None:
    objective = parse_objective("p99 < 10ms")
    outcome, _ = run_search(
        Rule("rate", 1000, 64_000, objective),
        lambda load, _: ProbeSample(min(load, 10_000.0), True, figures={"all.p99": 1e6}),
    )
    assert outcome.load is not None
    assert 9_500 < outcome.load <= 10_000 / 0.95
    assert "of the rate achieved" in outcome_sentence(outcome)


def test_narrowly_missed_rate_is_printed_with_enough_digits() -> None:
    objective = parse_objective("p99 < 10ms")
    outcome, _ = run_search(
        Rule("rate", 1000, 2000, objective), lambda load, _: ProbeSample(0.9485 * load, figures={"all.p99": 1e6})
    )
    assert "94.8 % of the rate achieved" in outcome_sentence(outcome)


def test_narrowly_exceeded_errors_are_printed_with_enough_digits() -> None:
    objective = parse_objective("errors <= 1%")
    outcome, _ = run_search(
        Rule(objective=objective), lambda *_: ProbeSample(1000.0, False, figures={"errors%": 0.01004})
    )
    assert "does not hold even at 1 client: errors 1.004 %" in outcome_sentence(outcome)


@pytest.mark.parametrize(
    "find",
    [
        {},
        {"over": "clients", "from": 8, "to": 4},
        {"over": "clients", "from": "one", "to": 4},
        {"over": "rate", "such_that": "fast"},
    ],
)
def test_plain_data_that_are_no_search_are_refused(find: Mapping[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        Rule.from_find(find, 3, 6)


def test_plain_data_become_a_rule() -> None:
    rule = Rule.from_find(
        {"max": "throughput", "over": "rate", "from": None, "to": 4000, "such_that": "p99 < 1ms"}, 3, None
    )
    assert rule == Rule("rate", 1000, 4000, parse_objective("p99 < 1ms"), 3, 3, 0)


@pytest.mark.parametrize(
    ("first", "second", "has_overlap"),
    [
        ((8.0, 2.0, None), (3.0, 2.0, 8.0), True),
        ((8.0, 4.0, 11.0), (3.0, 2.0, 4.0), False),
        ((3.0, None, 8.0), (16.0, 8.0, None), False),
        ((8.0, 2.0, None), (8.0, 2.0, 11.0), False),
        ((8.0, 2.0, None), (None, None, None), False),
    ],
)
def test_overlapping_brackets_leave_the_order_open(
    first: tuple[float | None, ...], second: tuple[float | None, ...], has_overlap: bool
) -> None:
    rule = Rule("clients", 1, 64, parse_objective("p99 < 10ms"))
    outcomes = [
        SearchOutcome(rule, "found", load, low, high, decisions=(), probes=(), stopped="")
        for load, low, high in (first, second)
    ]
    assert bool(overlap_text(outcomes)) == has_overlap
