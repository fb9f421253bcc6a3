"""An outcome in a sentence, and the rule behind it in a few more."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.format import units
from loadstone.search.decision import Decision
from loadstone.search.objective import ERRORS, Term
from loadstone.search.outcome import Outcome
from loadstone.search.probe import Probe
from loadstone.search.rule import DELIVERED, GAIN, Rule


def sentence(outcome: Outcome) -> str:
    """The answer: `knee at 37 clients [32, 41]: throughput grew 2.1 % from 37 to 74; 14 probes, 42 trials`."""
    said = knee(outcome) if outcome.rule.objective is None else limit(outcome)
    if outcome.wall and outcome.kind in ("wall", "nothing"):
        load, reason = outcome.wall
        said += f"at {outcome.rule.amount(load)} the probe is invalid: {reason}"
    return f"{said}; {units.many(len(outcome.probes), 'probe')}, {units.many(outcome.trials, 'trial')}"


def knee(outcome: Outcome) -> str:
    """Where throughput stops to grow."""
    rule = outcome.rule
    grown = growth(outcome.decision(outcome.load))
    match outcome.kind:
        case "found":
            return f"knee at {where(outcome)}: {grown}"
        case "below":
            assert outcome.load is not None, "the first load is the answer"
            return f"knee at {rule.amount(outcome.load)} or below, where the search began: {grown}"
        case "beyond":
            return f"no knee up to {rule.amount(rule.ladder()[-1])}: {grown}"
        case "wall":
            assert outcome.load is not None, "some load was decided before the wall"
            partner = rule.partner(outcome.load)
            return f"no knee up to {rule.amount(partner)}: {grown}; "
    return "no knee was found: "


def limit(outcome: Outcome) -> str:
    """How far the objective holds."""
    rule = outcome.rule
    assert rule.objective is not None, "there is an objective"
    text = rule.objective.text
    match outcome.kind:
        case "found":
            first = next((each.load for each in outcome.decisions if each.load > (outcome.load or 0)), None)
            beyond = "" if first is None else f", {figures(outcome, first)} at {units.load(first)}"
            return f"{text} holds up to {where(outcome)}: {figures(outcome, outcome.load)} there{beyond}{at(outcome)}"
        case "below":
            first = rule.least
            return f"{text} does not hold even at {rule.amount(first)}: {figures(outcome, first)}"
        case "beyond":
            there = f"{figures(outcome, outcome.load)} there{at(outcome)}"
            return f"{text} holds up to {rule.amount(rule.most)}, where the search ended: {there}"
        case "wall":
            assert outcome.load is not None, "some load was decided before the wall"
            return f"{text} holds at {rule.amount(outcome.load)}: {figures(outcome, outcome.load)}{at(outcome)}; "
    return f"how far {text} holds was not found: "


def where(outcome: Outcome) -> str:
    """The answer with the loads between which it surely lies."""
    assert outcome.load is not None, "something was found"
    low = "?" if outcome.low is None else units.load(outcome.low)
    high = "?" if outcome.high is None else units.load(outcome.high)
    return f"{outcome.rule.amount(outcome.load)} [{low}, {high}]"


def growth(decision: Decision | None) -> str:
    """How much throughput grew from a load to its partner."""
    if decision is None or decision.growth is None or decision.partner is None:
        return "nothing was compared"
    verb = "grew" if decision.growth >= 0 else "fell"
    still = "still " if decision.go else ""
    ends = f"from {units.load(decision.load)} to {units.load(decision.partner)}"
    return f"throughput {still}{verb} {units.short_percent(abs(decision.growth), GAIN)} {ends}"


def figures(outcome: Outcome, load: float | None) -> str:
    """The objective's figures at a load, and what was done of a rate that was not held."""
    objective = outcome.rule.objective
    if load is None or objective is None:
        return ""
    probe = outcome.probe(load)
    said = [f"{term.metric.removeprefix('all.')} {of_probe(term, probe)}" for term in objective.terms]
    if why := short_of_rate(outcome.rule, probe):
        said.append(why)
    return ", ".join(said)


def of_probe(term: Term, probe: Probe) -> str:
    """A probe's figure, with what is known of it."""
    return units.bounded(shown(term, probe.figure(term.key)), probe.bound(term.key))


def short_of_rate(rule: Rule, probe: Probe) -> str:
    """Why a probe's rate was not held; empty where it was, or where there was none."""
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
    return f"{figure:,.0f}" if term.metric == ERRORS else units.figure(figure, "ns")


def at(outcome: Outcome) -> str:
    """The throughput of the answer."""
    done = None if outcome.load is None else outcome.probe(outcome.load).throughput
    return "" if done is None else f", {units.figure(done, 'op/s')}"


def explained(outcome: Outcome) -> Iterator[str]:
    """How it was searched and why it stopped; sentences without their periods."""
    rule = outcome.rule
    noun = "clients" if rule.over == "clients" else "the rate"
    until = (
        f"a doubling brought less than {units.short_percent(GAIN)}"
        if rule.objective is None
        else f"{rule.objective.text} did not hold"
    )
    halved = "; then the bracket was halved on a logarithmic scale" if outcome.kind == "found" else ""
    until += ", twice in a row" if outcome.twice else ""
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
    """What the bracket says."""
    rule = outcome.rule
    low, high = (
        ("throughput surely grew on", "it surely did not")
        if rule.objective is None
        else ("the objective surely held", "it surely did not")
    )
    parts = []
    if outcome.low is not None:
        parts.append(f"at {units.load(outcome.low)} {low}")
    if outcome.high is not None:
        parts.append(f"at {units.load(outcome.high)} {high}")
    return f"The bracket: {', '.join(parts)}"


def asked(rule: Rule) -> str:
    """What a rule looks for, in words that follow `search for`."""
    what = "the knee" if rule.objective is None else f"the most that holds {rule.objective.text}"
    return f"{what} over {rule.over} from {units.load(rule.least)} to {units.load(rule.most)}"
