"""view: the results are not shown as the recorded question requests, so evidence may be omitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loadstone.format import units
from loadstone.judge.facts import GUARANTEES
from loadstone.judge.finding import Effect, Finding, Severity
from loadstone.results.result_set import ResultSet

NAME = "view"
HINT = "show the results as recorded; to answer another question, measure again with that question"


def departure_findings(results: ResultSet, loosened: Mapping[str, Sequence[str]]) -> tuple[Finding, ...]:
    """A finding for each departure; `loosened`: the trials in which a changed threshold hides a finding, by check."""
    every = tuple(trial.trial for trial in results.trials)
    messages = [(message, every) for message in results.departures]
    if results.recorded is not None and results.is_one_run:
        # A guarantee that differs is named in any case; between runs, so is every declared fact.
        recorded = {*results.recorded.promises, *GUARANTEES}
        declared = [fact for fact in results.question.promises if fact not in recorded]
        messages += [(f"the recorded question does not allow {fact} to differ", every) for fact in declared]
    for check, trials in loosened.items():
        hidden_in = units.count_noun(len(set(trials)), "trial")
        messages.append((f"a changed threshold hides {check} in {hidden_in}", tuple(dict.fromkeys(trials))))
    return tuple(Finding(NAME, Severity.SUSPECT, message, HINT, trials) for message, trials in messages)


def find_hidden(before: Sequence[Finding], now: Sequence[Finding]) -> Iterator[Finding]:
    """The findings under the recorded thresholds that are missing or less severe under the view's thresholds.

    A note with an effect changes scenarios, so it counts as suspect.
    """

    def rank_finding(finding: Finding) -> Severity:
        return max(finding.severity, Severity.NOTE if finding.effect == Effect() else Severity.SUSPECT)

    for finding in before:
        severity = max((rank_finding(other) for other in now if other.check == finding.check), default=Severity.NOTE)
        if rank_finding(finding) > max(severity, Severity.UNCHECKED):
            yield finding
