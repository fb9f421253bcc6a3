"""The outcome of a search as a sentence, and an explanation of the search in further sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from loadstone.format import units
from loadstone.search.next_step import BEYOND, refusal_reason
from loadstone.search.objective import ERRORS, Term
from loadstone.search.outcome import Decision, SearchOutcome
from loadstone.search.probe import Probe
from loadstone.search.rule import CONFIDENCE, DELIVERED, Over, Rule
from loadstone.statistics.knee import LOADS_MIN, REPEATS_MIN, TOLERANCE, Knee

UNRELIED = "and the bracket does not rely on these loads"


def outcome_sentence(outcome: SearchOutcome) -> str:
    """The answer: `p99 < 10ms holds up to 38 clients (bracket 38 to 41): …; 14 probes, 42 trials`."""
    claim, details = outcome_parts(outcome)
    return f"{claim}{': ' if outcome.kind == 'found' and outcome.rule.objective is not None else '; '}{details}"


def outcome_parts(outcome: SearchOutcome) -> tuple[str, str]:
    """The claim of the answer, and its details: figures at the ends of the bracket, numbers of probes and trials."""
    knee = "no knee was found" if outcome.knee is None else knee_text(outcome.knee, outcome.rule.over)
    parts = [knee] if outcome.rule.objective is None else limit_parts(outcome)
    if outcome.wall and outcome.kind in ("wall", "nothing"):
        parts[0] += f"{': ' if outcome.kind == 'nothing' else '; '}{refusal_reason(outcome.rule, outcome.wall)}"
    elif outcome.wall and has_open_end(outcome):
        parts.append(refusal_reason(outcome.rule, outcome.wall))
    effort = f"{units.count_noun(len(outcome.probes), 'probe')}, {units.count_noun(outcome.trials, 'trial')}"
    return parts[0], "; ".join([*parts[1:], effort])


def knee_text(knee: Knee, over: Over = "clients", whose: str = "") -> str:
    """A knee as text: `throughput levels off at 20,000 op/s; 95 % of that is reached between 16 and 20 clients`.

    `whose` names one of several curves. If no knee is claimed, the text gives the reason.
    """
    share, of = units.format_percent(1 - TOLERANCE), f" of {whose}" if whose else ""
    if not knee.loads:
        return f"no knee{of} is named: it requires {LOADS_MIN} loads with throughput"
    last = units.load_over(knee.loads[-1], over)
    plateau = format_throughput(knee.plateau)
    if knee.upper is None:
        if knee.unclaimed == "rising":
            return f"throughput{of} still rises at {last} ({format_throughput(knee.medians[-1])})"
        why = f"it requires {REPEATS_MIN} repeats of each load"
        if knee.unclaimed == "scatter":
            why = f"the repeats differ too much to decide whether throughput still rises at {last}"
        estimate = "" if knee.reached is None else f"; {share} of it {bracket_text(knee, knee.reached, over)}"
        named = f"no knee{of} is named"
        if knee.lower is not None:
            named = f"throughput{of} reaches {share} of its plateau above {units.load_over(knee.lower, over)}"
            named += "; no upper end is named"
        return f"{named}: {why} (plateau {plateau}{estimate}, as an estimate)"
    upper = units.load_over(knee.upper, over)
    if knee.lower is not None:
        where = f"between {units.format_load(knee.lower)} and {upper}"
    elif knee.upper == knee.loads[0]:
        where = f"at {upper}, the lowest load tried"
    else:
        where = f"at {upper} or less"
    # The plateau is not the maximum: individual loads lie above it.
    load, most = knee.peak
    peak = format_throughput(most)
    above = f", {mean_text(knee, over)} (the highest median is {peak}, at {units.load_over(load, over)})"
    above = above if most > knee.plateau * (1 + TOLERANCE) else ""
    text = f"throughput{of} levels off at {plateau}{above}; {share} of that is reached {where}"
    end = knee.medians[-1]
    if knee.collapse is None and end < most * (1 - 2 * TOLERANCE):
        text += f"; the repeats differ too much to decide whether throughput falls from {peak} at"
        text += f" {units.load_over(load, over)} to {format_throughput(end)} at {last}"
    if knee.collapse is not None:
        that = "that" if plateau == peak else f"its plateau ({mean_text(knee, over)}, {plateau})"
        text = f"throughput{of} is highest at {units.load_over(load, over)}, {peak}"
        text += f"; {share} of {that} is reached {where}"
    if knee.departing:
        loads = units.list_items([units.format_load(load) for load in knee.departing])
        text += f"; throughput rises or falls more than once (at {loads}), so there may be more than one answer"
    if knee.collapse is None:
        return text
    high, low = knee.collapse
    # The text has the median, as in the table, because the fit averages over neighbours that rise again.
    where = f"between {units.format_load(high)} and {units.load_over(low, over)}, to {format_throughput(end)} at {last}"
    return f"{text}; throughput falls below that level again {where}"


def summarize_knee(knee: Knee, whose: str) -> str:
    """The knee of one of several curves in a few words: `lmdb levels off somewhere between 1 and 8 clients`.

    Empty if it is unknown.
    """
    if knee.upper is None:
        rises = f"{whose} still rises at {units.load_over(knee.loads[-1], 'clients')}" if knee.loads else ""
        return rises if knee.unclaimed == "rising" else ""
    if knee.collapse is not None:
        return f"{whose} peaks at {units.load_over(knee.peak[0], 'clients')} and then falls"
    upper = units.load_over(knee.upper, "clients")
    where = f"at {upper} or less" if knee.lower is None else f"between {units.format_load(knee.lower)} and {upper}"
    return f"{whose} levels off {'somewhere ' if knee.lower is not None else ''}{where}"


def mean_text(knee: Knee, over: Over) -> str:
    """The loads whose mean is the plateau: `the adjusted mean of 2 to 16 clients`.

    For one load: `the adjusted level at 32 clients`.
    """
    low, high = knee.ends
    most = units.load_over(high, over)
    text = f"level at {most}" if low == high else f"mean of {units.format_load(low)} to {most}"
    return f"the adjusted {text}"


def format_throughput(throughput: float) -> str:
    """A throughput (op/s) without an interval."""
    return units.format_figure(throughput, "op/s", units.digit_carried(throughput, throughput))


def bracket_text(knee: Knee, reached: float, over: Over) -> str:
    """The tried loads between which the fit reaches the knee's share: `first reached between 4 and 8 clients`."""
    at = knee.loads.index(reached)
    where = units.load_over(reached, over)
    # If repeats scatter, readers would mistake this gap for the interval, which is wider.
    if not at or knee.unclaimed == "scatter":
        return f"from {where} on"
    return f"first reached between {units.format_load(knee.loads[at - 1])} and {where}"


def limit_parts(outcome: SearchOutcome) -> list[str]:
    """The highest load that meets the objective, and, if it was found, the figures at the ends of its bracket."""
    rule, load = outcome.rule, outcome.load
    assert rule.objective is not None, "there is an objective"
    text = rule.objective.text
    if outcome.kind == "below":
        return [f"{text} does not hold even at {rule.format_load(rule.least)}: {figures_text(outcome, rule.least)}"]
    if load is None:
        return [f"the highest load at which {text} holds was not found"]
    there, done = figures_text(outcome, load), outcome.probe_at(load).throughput
    # In a search over rates, the throughput at a load that meets the objective equals the rate.
    there += "" if done is None or rule.over == "rate" else f", {format_throughput(done)}"
    if outcome.kind == "beyond":
        return [f"{text} holds up to {rule.format_load(rule.most)}, where the search stopped: {there}"]
    if outcome.kind == "wall":
        return [f"{text} holds at {rule.format_load(load)}: {there}"]
    first = next((decision for decision in outcome.decisions if decision.load > load), None)
    there += f" at {rule.format_load(load)}"
    beyond = "" if first is None else f"; {figures_text(outcome, first.load)} at {rule.format_load(first.load)}"
    if first is not None and first.votes and (against := count_judged(outcome, first.load)):
        beyond += f" ({against})"
    bracket = "; ".join(part for part in (count_judged(outcome, load), name_bracket(outcome)) if part)
    contradiction = contradiction_text(outcome)
    but = f"; but {contradiction}" if contradiction else ""
    wall = outcome.wall if has_open_end(outcome) else None
    unjudged = "" if wall is None else f"; {rule.format_load(wall[0])} could not be judged ({wall[1]})"
    return [f"{text} holds up to {rule.format_load(load)} ({bracket}){unjudged}", f"{there}{beyond}{but}"]


def name_bracket(outcome: SearchOutcome) -> str:
    """The bracket of the answer, with its confidence: `bracket 38 to 41, 90 % confidence`."""
    low, high = ("" if end is None else units.format_load(end) for end in (outcome.low, outcome.high))
    confidence = f", {units.format_percent(CONFIDENCE)} confidence" if outcome.rule.confirmations else ""
    if low and high:
        return f"bracket {low} to {high}{confidence}"
    if not (low or high):
        return "no bracket was found"
    if low:
        return f"at least {low}{confidence}; no upper end, as no higher load missed the objective in all trials"
    return f"at most {high}{confidence}; no lower end, as no lower load met the objective in all trials"


def overlap_text(outcomes: Sequence[SearchOutcome | None]) -> str:
    """A statement that the brackets of two searches with different answers overlap; else empty."""
    known = [outcome for outcome in outcomes if outcome is not None and outcome.load is not None]
    if len(outcomes) != 2 or len(known) != 2 or known[0].load == known[1].load:
        return ""
    (low, high), (other_low, other_high) = ((outcome.low or 0.0, outcome.high or math.inf) for outcome in known)
    is_overlapping = max(low, other_low) < min(high, other_high)
    return "the brackets overlap, so it is undecided which answer is higher" if is_overlapping else ""


def count_judged(outcome: SearchOutcome, load: float) -> str:
    """The number of trials that met the objective, if some trials disagree or were not judged; else empty."""
    decision, every = outcome.decision_at(load), len(outcome.probe_at(load).samples)
    if decision is None or (decision.met == decision.trials == every):
        return ""
    unjudged, is_majority = every - decision.trials, decision.go and decision.met < decision.trials
    text = f"met in {decision.met} of {every} trials{', a majority' if is_majority else ''}"
    return text + (f", {unjudged} not judged" if unjudged else "")


def has_open_end(outcome: SearchOutcome) -> bool:
    """Whether a load within the bracket could not be judged, so that the system may sustain more than the answer."""
    if outcome.wall is None or outcome.load is None:
        return False
    return outcome.load < outcome.wall[0] < (outcome.high or math.inf)


def peak_text(outcome: SearchOutcome) -> str:
    """The load below the answer at which throughput is higher: beyond it, more clients add no operations."""
    probes = [probe for probe in outcome.probes if outcome.load is not None and probe.load <= outcome.load]
    done = {probe.load: probe.throughput for probe in probes if probe.throughput is not None}
    if outcome.rule.over != "clients" or outcome.load not in done:
        return ""
    peak = max(done, key=lambda load: done[load])
    if done[peak] * (1 - TOLERANCE) <= done[outcome.load]:
        return ""
    highest = f"throughput is highest at {outcome.rule.format_load(peak)}, {format_throughput(done[peak])}"
    return f"{highest}; at the answer, it is {format_throughput(done[outcome.load])}"


def contradiction_text(outcome: SearchOutcome) -> str:
    """The loads far from the answer that contradict it; empty if there are no such loads."""
    verbs = ("was met again at", "was not met at")
    parts = [
        f"{verb} {units.list_items([units.format_load(load) for load in loads])}"
        for verb, loads in zip(verbs, outcome.contradictions, strict=True)
        if loads
    ]
    return f"in most repeats, the objective {' and '.join(parts)}" if parts else ""


def figures_text(outcome: SearchOutcome, load: float) -> str:
    """The figures of the objective at a load, and the reason if the rate was not held."""
    probe, objective = outcome.probe_at(load), outcome.rule.objective
    terms = () if objective is None else objective.terms
    parts = [f"{term.metric.removeprefix('all.')} {probe_figure(term, probe)}" for term in terms]
    if why := short_of_rate(outcome.rule, probe):
        parts.append(why)
    return ", ".join(parts)


def probe_figure(term: Term, probe: Probe) -> str:
    """The median figure of a probe as text, with its bound; `about` if some trials have too few operations for it."""
    about = "about " if any(sample.sparse for sample in probe.usable) else ""
    return about + units.format_bound(term_text(term, probe.median_figure(term.key)), probe.weakest_bound(term.key))


def short_of_rate(rule: Rule, probe: Probe) -> str:
    """The number of trials in which the system failed, or the reason why the rate was not held; else empty."""
    if failed := sum(sample.failed for sample in probe.valid):
        return f"the system failed in {failed} of {units.count_noun(len(probe.valid), 'trial')}"
    done = probe.throughput
    if rule.over != "rate" or done is None:
        return ""
    if done < DELIVERED * probe.load:
        return f"{units.short_percent(done / probe.load, DELIVERED)} of the rate achieved"
    return f"the rate was not held: {probe.miss_reason}" if probe.miss_reason else ""


def term_text(term: Term, figure: float | None) -> str:
    """A figure as text, in the unit of its condition."""
    if figure is None:
        return "unknown"
    if term.share:
        return units.short_percent(figure, term.bound)
    return units.format_figure(figure, "operations" if term.metric == ERRORS else "ns")


def explain_search(outcome: SearchOutcome) -> Iterator[str]:
    """An explanation of the search and of its end; sentences without their periods."""
    rule = outcome.rule
    noun = "the number of clients" if rule.over == "clients" else "the rate"
    halved = "; then the bracket was halved on a logarithmic scale" if outcome.kind == "found" else ""
    until = f"the load was {BEYOND} times the load that reaches {units.format_percent(1 - TOLERANCE)} of the plateau"
    if rule.objective is not None:
        until = f"{rule.objective.text} no longer held{' at two consecutive loads' if outcome.twice else ''}"
    climbed = "" if outcome.kind in ("nothing", "wall", "beyond") else f" until {until}"
    yield f"Starting at {rule.format_load(rule.least)}, {noun} was doubled{climbed}{halved}"
    yield f"The search stopped because {outcome.stopped}"
    if outcome.low is not None or outcome.high is not None:
        yield explain_bracket(outcome)
    apart = [decision for decision in outcome.unsure if decision.met < decision.trials]
    if apart:
        yield f"The repeats disagree at {list_loads(apart)}: the majority decided, {UNRELIED}"
    if partial := [decision for decision in outcome.unsure if decision not in apart]:
        yield f"At {list_loads(partial)}, the trials in which only the load generator was late do not count, {UNRELIED}"
    for note in outcome.notes:
        yield f"{note[:1].upper()}{note[1:]}"


def list_loads(decisions: Sequence[Decision]) -> str:
    """The loads of some decisions: `8, 9 and 10`."""
    return units.join_names([units.format_load(decision.load) for decision in decisions])


def explain_bracket(outcome: SearchOutcome) -> str:
    """A sentence on the ends of the bracket."""
    low, high = "all judged trials met the objective", "no judged trial met it, or the system failed"
    if outcome.rule.objective is None:
        low, high = (
            f"throughput is below {units.format_percent(1 - TOLERANCE)} of the plateau",
            "throughput reaches this share",
        )
    ends = ((outcome.low, low), (outcome.high, high))
    known = [f"at {units.format_load(load)}, {what}" for load, what in ends if load is not None]
    share = f" (contains the answer in at least {units.format_percent(CONFIDENCE)} of simulated searches)"
    return f"The bracket{share if outcome.rule.confirmations else ''}: {'; '.join(known)}"


def describe_rule(rule: Rule) -> str:
    """The aim of a search, as a text that follows `search for`."""
    what = "the knee" if rule.objective is None else f"the highest load that meets {rule.objective.text}"
    return f"{what} over {rule.over} from {units.format_load(rule.least)} to {units.format_load(rule.most)}"
