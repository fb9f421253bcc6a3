"""view: the results are looked at in another way than the recorded question asks, so that evidence is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loadstone.format import units
from loadstone.judge.finding import Finding, Severity
from loadstone.results.result_set import ResultSet

NAME = "view"
HINT = "show the results as they were recorded; to ask another question, measure again with it"


def findings(results: ResultSet, loosened: Mapping[str, Sequence[str]]) -> tuple[Finding, ...]:
    """One for each departure; `loosened`: the trials of which a changed threshold hides a finding, by check."""
    every = tuple(trial.trial for trial in results.trials)
    made = [Finding(NAME, Severity.SUSPECT, message, HINT, every) for message in results.departures]
    for check, trials in loosened.items():
        message = f"a changed threshold hides {check} in {units.many(len(trials), 'trial')}"
        made.append(Finding(NAME, Severity.SUSPECT, message, HINT, tuple(trials)))
    return tuple(made)


def hidden(before: Sequence[Finding], now: Sequence[Finding]) -> Iterator[Finding]:
    """The findings under the recorded thresholds that are gone, or less severe, under those of the view."""
    for each in before:
        same = max((other.severity for other in now if other.check == each.check), default=Severity.NOTE)
        if each.severity > max(same, Severity.UNCHECKED):
            yield each
