"""A finding: what a check has to say, how bad it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How bad, in this order. A note changes no verdict; a withheld figure is not printed, the others stand."""

    NOTE = 0
    WITHHELD = 1
    SUSPECT = 2
    INVALID = 3


class Verdict(IntEnum):
    """Whether a trial or a comparison can be trusted."""

    VALID = 0
    SUSPECT = 1
    INVALID = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Finding:
    """One check's word on one trial, one variant or one comparison; neither sentence ends in a period."""

    check: str
    severity: Severity
    message: str
    hint: str
    # The trials' ids that it is about.
    trials: tuple[str, ...] = ()
    # The one metric that it is about; empty: all.
    metric: str = ""
    # Whether it is about latencies alone: throughput and the host's figures stand.
    latencies: bool = False


def verdict(findings: Iterable[Finding]) -> Verdict:
    """The worst finding decides."""
    worst = max((finding.severity for finding in findings), default=Severity.NOTE)
    return {Severity.INVALID: Verdict.INVALID, Severity.SUSPECT: Verdict.SUSPECT}.get(worst, Verdict.VALID)
