"""An outcome in a sentence, and the rule behind it in a few more."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.format import units
from loadstone.search.explore import BEYOND, refusal
from loadstone.search.objective import ERRORS, Term
from loadstone.search.outcome import Outcome
from loadstone.search.probe import Probe
from loadstone.search.rule import CONFIDENCE, DELIVERED, Over, Rule
from loadstone.statistics.knee import LOADS_MIN, REPEATS_MIN, TOLERANCE, Knee


def sentence(outcome: Outcome) -> str:
    """The answer: `p99 < 10ms holds up to 38 clients [38, 41]: …; 14 probes, 42 trials`."""
    text = saturation(outcome) if outcome.rule.objective is None else limit(outcome)
    if outcome.wall and outcome.kind in ("wall", "nothing"):
        text += f"{': ' if outcome.kind == 'nothing' else '; '}{refusal(outcome.rule, outcome.wall)}"
    return f"{text}; {units.many(len(outcome.probes), 'probe')}, {units.many(outcome.trials, 'trial')}"


def saturation(outcome: Outcome) -> str:
    """Where throughput reaches its plateau."""
    return "no knee was found" if outcome.knee is None else reached(outcome.knee, outcome.rule.over)


def reached(knee: Knee, over: Over = "clients", whose: str = "") -> str:
    """A knee in words: `throughput levels off at 20,000 op/s; 95 % of it is reached between 16 and 20 clients`.

    `whose` names a curve among several; for a knee that is not claimed it gives the reason.
    """
    share, of = units.percent(1 - TOLERANCE), f" of {whose}" if whose else ""
    if not knee.loads:
        return f"no knee{of} is named: that takes {LOADS_MIN} loads with throughput"
    last = units.load_over(knee.loads[-1], over)
    plateau = units.figure(knee.plateau, "op/s", units.precision(knee.plateau, knee.plateau))
    if knee.upper is None:
        if knee.unclaimed == "rising":
            there = units.figure(knee.medians[-1], "op/s", units.precision(knee.medians[-1], knee.medians[-1]))
            return f"throughput{of} still rises at {last} ({there} there)"
        why = f"that takes {REPEATS_MIN} repeats of each load"
        if knee.unclaimed == "scatter":
            why = f"the repeats differ too much to tell whether throughput still rises at {last}"
        estimate = "" if knee.reached is None else f"; {share} of it {between(knee, knee.reached, over)}"
        named = f"no knee{of} is named"
        if knee.lower is not None:
            named = f"throughput{of} reaches {share} of its plateau above {units.load_over(knee.lower, over)}"
            named += "; no upper end is named"
        return f"{named}: {why} (plateau {plateau}{estimate}, as an estimate)"
    upper = units.load_over(knee.upper, over)
    if knee.lower is not None:
        where = f"between {units.load(knee.lower)} and {upper}"
    elif knee.upper == knee.loads[0]:
        where = f"at {upper}, the lowest load tried"
    else:
        where = f"at {upper} or less"
    # A plateau is not a maximum: single loads lie above it.
    verb = "levels off at" if knee.collapse is None else "peaks at a plateau of"
    text = f"throughput{of} {verb} {plateau}; {share} of that is reached {where}"
    if knee.departing:
        loads = units.listed([units.load(load) for load in knee.departing])
        text += f"; throughput rises or falls more than once (at {loads}), so there may be more than one answer"
    if knee.collapse is None:
        return text
    high, low = knee.collapse
    end = units.figure(knee.fit[-1], "op/s", units.precision(knee.fit[-1], knee.fit[-1]))
    where = f"between {units.load(high)} and {units.load_over(low, over)}, to {end} at {units.load(knee.loads[-1])}"
    return f"{text}; throughput falls below that again {where}"


def between(knee: Knee, reached: float, over: Over) -> str:
    """Between which tried loads the fit reaches a share of the plateau: `first reached between 4 and 8 clients`."""
    at = knee.loads.index(reached)
    where = units.load_over(reached, over)
    # Where repeats scatter, the gap would read as the interval, which is wider.
    if not at or knee.unclaimed == "scatter":
        return f"from {where} on"
    return f"first reached between {units.load(knee.loads[at - 1])} and {where}"


def limit(outcome: Outcome) -> str:
    """How far the objective holds."""
    rule, load = outcome.rule, outcome.load
    assert rule.objective is not None, "there is an objective"
    text = rule.objective.text
    if outcome.kind == "below":
        return f"{text} does not hold even at {rule.amount(rule.least)}: {figures(outcome, rule.least)}"
    if load is None:
        return f"how far {text} holds was not found"
    there, done = figures(outcome, load), outcome.probe(load).throughput
    at = "" if done is None else f", {units.figure(done, 'op/s', units.precision(done, done))}"
    if outcome.kind == "beyond":
        return f"{text} holds up to {rule.amount(rule.most)}, where the search ended: {there}{at} there"
    if outcome.kind == "wall":
        return f"{text} holds at {rule.amount(load)}: {there}{at}"
    # The loads between which the answer lies.
    low, high = ("?" if each is None else units.load(each) for each in (outcome.low, outcome.high))
    first = next((each.load for each in outcome.decisions if each.load > load), None)
    beyond = "" if first is None else f", {figures(outcome, first)} at {units.load(first)}"
    bracket = f"[{low}, {high}]{f' at {units.percent(CONFIDENCE)}' if rule.confirmations else ''}"
    return f"{text} holds up to {rule.amount(load)} {bracket}: {there}{at} there{beyond}"


def figures(outcome: Outcome, load: float) -> str:
    """The objective's figures at a load, and the share done of a rate that was not held."""
    probe, objective = outcome.probe(load), outcome.rule.objective
    terms = () if objective is None else objective.terms
    parts = [f"{term.metric.removeprefix('all.')} {of_probe(term, probe)}" for term in terms]
    if why := short_of_rate(outcome.rule, probe):
        parts.append(why)
    return ", ".join(parts)


def of_probe(term: Term, probe: Probe) -> str:
    """A probe's figure, with its bound."""
    return units.bounded(shown(term, probe.figure(term.key)), probe.bound(term.key))


def short_of_rate(rule: Rule, probe: Probe) -> str:
    """Why a probe's rate was not held; empty where it was held, or where none was set."""
    done = probe.throughput
    if rule.over != "rate" or done is None:
        return ""
    if done < DELIVERED * probe.load:
        return f"{units.short_percent(done / probe.load, DELIVERED)} of the rate done"
    return f"the rate was not held: {probe.missed}" if probe.missed else ""


def shown(term: Term, figure: float | None) -> str:
    """A figure in the unit of its condition."""
    if figure is None:
        return "unknown"
    if term.share:
        return units.short_percent(figure, term.bound)
    return units.figure(figure, "operations" if term.metric == ERRORS else "ns")


def explained(outcome: Outcome) -> Iterator[str]:
    """How it was searched and why it stopped; sentences without their periods."""
    rule = outcome.rule
    noun = "clients" if rule.over == "clients" else "the rate"
    halved = "; then the bracket was halved on a logarithmic scale" if outcome.kind == "found" else ""
    until = f"the load was {BEYOND} times that which reaches {units.percent(1 - TOLERANCE)} of the plateau"
    if rule.objective is not None:
        until = f"{rule.objective.text} did not hold{', twice in a row' if outcome.twice else ''}"
    climbed = "" if outcome.kind in ("nothing", "wall", "beyond") else f" until {until}"
    yield f"From {rule.amount(rule.least)} on {noun} doubled{climbed}{halved}"
    yield f"It stopped because {outcome.stopped}"
    if outcome.low is not None or outcome.high is not None:
        yield bracket(outcome)
    if outcome.unsure:
        listed = ", ".join(units.load(decision.load) for decision in outcome.unsure)
        yield f"Their repeats disagree, so that the median decided and the bracket does not rest on them: {listed}"
    for note in outcome.notes:
        yield f"{note[:1].upper()}{note[1:]}"


def bracket(outcome: Outcome) -> str:
    """The bracket in words."""
    low, high = "the objective held in all trials", "it held in none, or the system failed"
    if outcome.rule.objective is None:
        low, high = f"throughput is below {units.percent(1 - TOLERANCE)} of the plateau", "it reaches that"
    ends = ((outcome.low, low), (outcome.high, high))
    return f"The bracket: {', '.join(f'at {units.load(load)} {what}' for load, what in ends if load is not None)}"


def asked(rule: Rule) -> str:
    """What a rule looks for, worded to follow `search for`."""
    what = "the knee" if rule.objective is None else f"the highest load that holds {rule.objective.text}"
    return f"{what} over {rule.over} from {units.load(rule.least)} to {units.load(rule.most)}"
