"""view: the results are not shown as the recorded question requests, so evidence may be omitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loadstone.format import units
from loadstone.judge.facts import GUARANTEES
from loadstone.judge.finding import Effect, Finding, Severity
from loadstone.judge.settings import DEFAULTS, Own
from loadstone.results.result_set import ResultSet

NAME = "view"
LOOSE_HINT = "remove the threshold from `checks` to see the finding"
HINT = "show the results as recorded; to answer another question, measure again with that question"


def departure_findings(
    results: ResultSet, loosened: Mapping[Severity, Mapping[str, Sequence[str]]], own: Own
) -> tuple[Finding, ...]:
    """A finding for each departure from the recorded question, and for each check whose findings are hidden by a
    changed threshold.

    `loosened`: the trials in which a changed threshold hides a finding, by severity (SUSPECT: the view
    changed it; NOTE: the experiment) and check.
    """
    every = tuple(trial.trial for trial in results.trials)
    messages = [(message, every) for message in results.departures]
    if results.recorded is not None and results.is_one_run:
        # Guarantees that differ are named in any case, so they need no finding; neither do declared facts between runs.
        recorded = {*results.recorded.promises, *GUARANTEES}
        declared = [fact for fact in results.question.promises if fact not in recorded]
        messages += [(f"the recorded question does not allow {fact} to differ", every) for fact in declared]
    by_view, by_experiment = (loosened.get(severity, {}) for severity in (Severity.SUSPECT, Severity.NOTE))
    for check, trials in by_view.items():
        hidden_in = units.count_noun(len(set(trials)), "trial")
        messages.append((f"a changed threshold hides findings of {check} in {hidden_in}", tuple(dict.fromkeys(trials))))
    findings = [Finding(NAME, Severity.SUSPECT, message, HINT, trials) for message, trials in messages]
    changed = own.list_changed() if by_experiment else {}
    for check, trials in by_experiment.items():
        if check in by_view:
            continue
        named = {name: value for name, value in changed.items() if name[0] == check} or changed
        texts = [f"{of}.{name} is {value:g} instead of {DEFAULTS[of][name]:g}" for (of, name), value in named.items()]
        message = (
            f"a threshold of the experiment hides findings of {check} in {units.count_noun(len(set(trials)), 'trial')}"
        )
        message += f": {units.list_items(texts)}"
        # A threshold that was changed for only one side favours that side.
        severity = Severity.SUSPECT if own.is_unequal(check) else Severity.NOTE
        findings.append(Finding(NAME, severity, message, LOOSE_HINT, tuple(dict.fromkeys(trials))))
    return tuple(findings)


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
