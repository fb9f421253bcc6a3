"""Searches: the probes of a result set, judged like all trials, and the outcome.

The outcome is always computed from the trials, so that the lab, a table and a report agree. The lab calls the
same function after each trial to find the next load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from loadstone.format import units
from loadstone.judge.checks import attempts, errors, interference, noisy, rate, sides_differ, too_few_samples
from loadstone.judge.facts import record_facts
from loadstone.judge.figures import count_operations, is_latency, lower_name
from loadstone.judge.finding import Finding, Pair, Severity
from loadstone.judge.judgement import Search, VariantKey
from loadstone.judge.settings import Settings
from loadstone.results.result_set import Question
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.results.value import THROUGHPUT
from loadstone.search.next_step import next_step
from loadstone.search.objective import Objective, Term
from loadstone.search.outcome import SearchOutcome
from loadstone.search.probe import INVALID_MIN, ProbeSample
from loadstone.search.rule import DELIVERED, Rule
from loadstone.search.sentence import contradiction_text
from loadstone.statistics.percentile import Bound


def read_rule(question: Question) -> Rule | None:
    """The rule of a question's search; None without a search, or if the objective cannot be parsed."""
    if question.find is None:
        return None
    try:
        return Rule.from_find(question.find, question.at_least, question.at_most)
    except (KeyError, TypeError, ValueError):
        return None


def judge_searches(
    question: Question,
    trials: Iterable[TrialResult],
    findings: Mapping[str, Sequence[Finding]],
    settings: Settings,
    contexts: Iterable[VariantKey] = (),
) -> list[Search]:
    """Every search, including the `contexts` without a trial; `findings` has each trial's findings, by trial id."""
    rule = read_rule(question)
    if rule is None:
        return []
    trials_of: dict[VariantKey, dict[float, list[TrialResult]]] = {context: {} for context in contexts}
    for trial in trials:
        load = trial.config.get(rule.over)
        if isinstance(load, int | float):
            trials_of.setdefault(context_of(trial.config, rule.over), {}).setdefault(float(load), []).append(trial)
    searches = []
    for context, probes in trials_of.items():
        samples: dict[float, list[ProbeSample]] = {}
        valid_findings: dict[float, list[Finding]] = {}
        for load, tried in probes.items():
            ordered = sorted(tried, key=lambda trial: trial.order or 0)
            # Findings that only several repeats together can show.
            together = list(rate.check_driver_time(ordered, settings)) if len(ordered) >= INVALID_MIN else []
            tries: list[ProbeSample] = []
            for trial in ordered:
                every = [*findings[trial.trial], *together]
                # Earlier failed attempts also count against the load.
                tries += [failure_sample(reason) for reason in trial.failures] if rule.objective else []
                tries.append(sample_load(trial, every, rule, settings))
                if not tries[-1].invalid and not tries[-1].failed:
                    valid_findings.setdefault(load, []).extend(
                        relevant_findings(trial, every, rule.objective, settings)
                    )
            # If no trial ever ran, the load generator may have refused the load, which is not the system's limit.
            if any(not (entry.failed and entry.invalid) for entry in tries):
                tries = [replace(entry, invalid="") if entry.failed else entry for entry in tries]
            samples[load] = tries
        end = next_step(rule, samples)
        behind: list[Finding] = []
        if isinstance(end, SearchOutcome):
            behind += valid_findings.get(end.load, ()) if end.load is not None else ()
            behind += find_contradictions(end, probes)
            behind += find_disturbed_misses(end, probes, findings)
            behind += find_unequal_loads(end, probes, question, settings)
            behind += find_missing_answer(end)
        searches.append(Search(context, rule, samples, end, tuple(dict.fromkeys(behind))))
    return searches


def find_missing_answer(outcome: SearchOutcome) -> Iterator[Finding]:
    """A finding on a search whose first load could not be judged, so that nothing is known about the system."""
    if outcome.kind == "nothing" and outcome.wall is not None:
        message = f"the search has no answer: {outcome.rule.format_load(outcome.wall[0])} cannot be judged"
        yield Finding(attempts.INCOMPLETE, Severity.INVALID, message, "remove the cause, and search again")


def find_disturbed_misses(
    outcome: SearchOutcome, trials: Mapping[float, Sequence[TrialResult]], findings: Mapping[str, Sequence[Finding]]
) -> Iterator[Finding]:
    """The `interference` findings on the load above the answer, if they concern most trials at this load.

    The system may then sustain this load. Other findings on an overloaded trial can follow from the load.
    """
    tried = () if outcome.load_above is None else trials[outcome.load_above]
    every = [
        [finding for finding in findings[trial.trial] if finding.check == interference.NAME and finding.severity]
        for trial in tried
    ]
    if 2 * sum(map(bool, every)) > len(tried):
        yield from chain(*every)


def find_unequal_loads(
    outcome: SearchOutcome, trials: Mapping[float, Sequence[TrialResult]], question: Question, settings: Settings
) -> Iterator[Finding]:
    """Findings on facts that differ between the loads behind the answer, or between their repeats."""
    over = outcome.rule.over
    loads = [load for load in dict.fromkeys(outcome.ends) if load in trials]
    groups = frozenset((*question.promises, *question.guarantees.get(over, ())))
    for load in loads[1:] or loads:
        baselines, contenders = ([trial for trial in trials[at] if trial.values] for at in (loads[0], load))
        if baselines and contenders:
            here, there = (side[0].config[over] for side in (baselines, contenders))
            pair = Pair(over, here, there, baselines, contenders, groups, blocks=False)
            records = [[record_facts(trial) for trial in side] for side in pair.sides]
            yield from sides_differ.fact_differences(pair, records, settings)


def find_contradictions(outcome: SearchOutcome, trials: Mapping[float, Sequence[TrialResult]]) -> Iterator[Finding]:
    """A finding if repeats far from the answer contradict it: the objective then depends on more than the load."""
    if not (text := contradiction_text(outcome)):
        return
    answer = "no load" if outcome.load is None else outcome.rule.format_load(outcome.load)
    message = f"the search's answer is {answer}, but {text}"
    hint = "search again on an idle host; if the contradiction remains, the limit depends on more than the load"
    here = tuple(trial.trial for load in chain(*outcome.contradictions) for trial in trials[load])
    yield Finding(noisy.NAME, Severity.SUSPECT, message, hint, here)


def context_of(config: Mapping[str, Scalar], over: str) -> VariantKey:
    """A config without the searched dimension, as a variant key."""
    return tuple(sorted((name, value) for name, value in config.items() if name != over))


def sample_load(trial: TrialResult, findings: Sequence[Finding], rule: Rule, settings: Settings) -> ProbeSample:
    """The sample that a trial contributes to the probe at its load."""
    if rule.objective is not None and any(finding.check == attempts.DIED for finding in findings):
        return failure_sample("")
    throughput = trial.value(THROUGHPUT) or 0.0
    figures: dict[str, float] = {}
    bounds: dict[str, Bound] = {}
    lacking = ""
    for term in () if rule.objective is None else rule.objective.terms:
        value, name = term_figure(trial, term), term.metric.removeprefix("all.")
        if value is None:
            lacking = lacking or f"{name} was not measured"
            continue
        figures[term.key] = value
        figure = trial.values[term.metric]
        if figure.bound is not None:
            bounds[term.key] = figure.bound
        if too_few_samples.has_few_samples(
            figure.n, term.metric, settings.check_threshold(too_few_samples.NAME, "beyond")
        ):
            few = f"{units.count_noun(figure.n, 'operation')} {'is' if figure.n == 1 else 'are'} too few"
            lacking = lacking or f"{few} for {name}: measure longer"
    # The true figure can be above the limit even if its lower bound is below the limit, so the objective is not met.
    meets = None if rule.objective is None or lacking else rule.objective.is_met_by(figures) and not bounds
    missed = next((finding.message for finding in findings if finding.check == rate.RATE_NOT_HELD), "")
    bad = [
        finding
        for finding in relevant_findings(trial, findings, rule.objective, settings)
        if finding.severity == Severity.INVALID
    ]
    reason = f"{bad[0].check}: {bad[0].message}" if bad else ""
    late, load = False, trial.config.get(rule.over)
    terms = () if rule.objective is None else rule.objective.terms
    lower = {term.key: lower_figure(trial, term, figures[term.key]) for term in terms if term.key in figures}
    is_slow = rule.over == "rate" and isinstance(load, int | float) and throughput < DELIVERED * load
    is_missed = meets is False and not (reason or bounds or missed or is_slow)
    if is_missed and rule.objective is not None and rule.objective.is_met_by(lower):
        # If this trial counted, the answer would be the load generator's limit.
        late = True
        reason = f"{rate.GENERATOR_LIMITED}: without the generator's lateness, the objective is met"
    if rule.over == "clients" and trial.loop == "open":
        reason = reason or "the loop is open: the workload file sets a rate"
    if not reason and not throughput:
        reason = "no operation succeeded"
    failed = trial.end == "failed" and rule.objective is not None
    is_sparse = bool(lacking) and not reason
    return (
        failure_sample(reason)
        if failed
        else ProbeSample(throughput, meets, reason or lacking, figures, bounds, missed, late, is_sparse, lower=lower)
    )


def failure_sample(reason: str) -> ProbeSample:
    """The sample of a trial in which the system failed; with a `reason` if the load generator may have failed."""
    return ProbeSample(meets=False, failed=True, invalid=reason)


def term_figure(trial: TrialResult, term: Term) -> float | None:
    """A trial's figure in the unit of the condition; None if it is unknown."""
    value = trial.value(term.metric)
    if not term.share or value is None:
        return value
    every = count_operations(trial)
    return value / every if every else None


def lower_figure(trial: TrialResult, term: Term, figure: float) -> float:
    """The lower bound of a latency that the generator's lateness increased; the figure itself without such a bound."""
    lower = trial.values.get(lower_name(term.metric)) if is_latency(term.metric) else None
    return figure if lower is None or lower.bound else min(lower.value, figure)


def relevant_findings(
    trial: TrialResult, findings: Sequence[Finding], objective: Objective | None, settings: Settings
) -> Sequence[Finding]:
    """A trial's findings, without the findings that the search itself accounts for.

    A rate that is not held is an answer of the search, and its throughput is valid. An objective on errors has its
    own threshold for errors in the measured phase, which are then a figure like any other. Failed writes in the load
    phase and possible losses still count.
    """
    findings = [finding for finding in findings if finding.check != rate.RATE_NOT_HELD]
    if objective is None or not objective.about_errors:
        return findings
    remaining = [finding for finding in findings if finding.check != errors.NAME]
    return [*remaining, *errors.check_phase(trial, errors.LOAD, settings), *errors.find_unclosed_sessions(trial)]
