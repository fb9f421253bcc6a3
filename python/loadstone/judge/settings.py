"""Settings: the thresholds of the checks, with the values that the question sets.

The checks use the following figures and facts of a trial, as far as they are known. The lab and the importers use the
same names.

Figures: `throughput`, `runtime`, `operations`, `errors` (failed operations), `not_yet`, `<operation>.<statistic>` and
`all.mean`; with the prefix `load.` for the load phase. `attempts.failed`: failed attempts, including retried attempts;
`unsent.unreached`: operations that failed because no server could be reached. `overdue`: at a rate with a limit on
operations, operations sent after the cut-off. `due`, `censored`: operations that were due, and operations that never
completed. `misses`: the share of reads that found no value. `carried`, `carried.max`: operations of the warm-up that
had not completed when the window began, and the time into the window at which the last of them completed (ns).
`unclosed`: clients whose session did not close. `late.generator`, `late.client`: operations that were more than 1 ms
late because of the load generator or of the clients. `executor.busy_max`: the share of the time for which the
busiest client-driving thread ran; `executor.held_max`: the maximum time for which a thread of the engine was ready to
run but had no processor (ns); `cpu.engine_share`: the share that the engine used of the processors available to it.
`clock.jumps`: the number of jumps of the measuring clock. `driver`: ns that an operation takes on the null store.
`device.read`, `device.written`: bytes, including the warm-up; with the suffix `_per_operation`, B per operation.
`returned`: bytes of values that reads returned. `cpu.steal`, `cpu.others`, `io.others`: the shares of the host that
other machines or programs used. `verified`, `wrong`: values that were compared, and values that differed.
`<operation>.bandwidth`: B/s of one node. `segments.lost`: the number of lost segments. A figure with n = 0 is based on
an unknown number of operations.

Facts: `durability`, `consistency`, `replication`, `replication_acknowledged` (guarantees); `file_system`;
`networked` (yes or no); `hosts`, `data_nodes`, `cpu_model`, `cpus`, `memory_bytes`, `kernel`; `device_read_bps`,
`device_write_bps`, `network_bps` (B/s, of one node); `bandwidth_of` (node, or cluster for the sum over all nodes);
`profile` of the engine's build; `jvm_compiling` (share of the window).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace

from loadstone.errors import LoadstoneError
from loadstone.format.suggestion import did_you_mean
from loadstone.results.result_set import Question, ResultSet

# The findings of the check `attempts`.
ATTEMPTS = ("lost-segment", "server-died", "retried", "interrupted", "incomplete")
# The findings of the checks `faults` and `loss`, which concern only trials with faults.
FAULTS = (
    *("fault-missed", "not-lifted", "bystander-hit", "before-unsteady"),
    *("not-recovered", "hidden-retries", "shared-host", "fault-errors"),
)
LOSS = ("lost-writes", "lost-as-allowed", "stale", "phantom", "corrupt")
# The thresholds by check and name. Shares are numbers from 0 to 1; docs/checks/<check>.md explains each threshold.
DEFAULTS: dict[str, dict[str, float]] = {
    "littles-law": {"low": 0.85, "high": 1.05},
    "generator-limited": {"late": 0.001, "cpu": 0.9, "driver": 0.1},
    "client-limited": {"late": 0.001},
    "rate-not-held": {"censored": 0.001, "missed": 0.05, "queue": 0.005, "behind": 0.001, "rise": 0.5, "alpha": 0.0015},
    "carried-over": {"share": 0.1},
    "clock": {},
    "page-cache": {"share": 0.1, "claimed_share": 0.5},
    "not-steady": {"effect": 0.05, "alpha": 0.025, "together": 0.005, "compiling": 0.05, "dip": 0.5},
    "noisy": {},
    "too-few-samples": {"beyond": 10},
    "errors": {"share": 0.001},
    "stalled": {"percentiles": 10, "seconds": 1, "share": 0.05},
    "sides-differ": {"memory": 0.02, "mix": 0.02, "measured": 0.1},
    "interference": {"share": 0.05},
    "unverified": {"not_yet": 0.01, "coverage": 0.9, "proven": 0.95},
    **{name: {} for name in ATTEMPTS},
    "view": {},
    "impossible": {"speed": 1, "rounding": 0.01},
    **{name: {} for name in (*FAULTS, *LOSS)},
    "before-unsteady": {"windows": 12, "yield": 0.9},
}
# The page in docs/checks for each finding that shares a page with other findings.
PAGES = {
    **dict.fromkeys(ATTEMPTS, "attempts"),
    **dict.fromkeys(FAULTS, "faults"),
    **dict.fromkeys(LOSS, "loss"),
    **dict.fromkeys(("rate-not-held", "carried-over", "client-limited", "generator-limited"), "rate"),
}
# Former names of checks, which are still accepted in experiment files and results.
RENAMED = {
    **dict.fromkeys(("hosts-differ", "load-differs", "guarantees-differ", "between-runs"), "sides-differ"),
    **dict.fromkeys(("unlike-hosts", "unlike-load", "unlike-promises"), "sides-differ"),
}


@dataclass(frozen=True)
class Settings(Question):
    """The settings of the checks: a question in which every threshold has a value."""

    checks: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: DEFAULTS)

    def check_threshold(self, check: str, name: str) -> float:
        """The threshold of a check with this name."""
        return self.checks[check][name]

    @classmethod
    def from_question(cls, question: Question) -> Settings:
        """The defaults, overridden by the question. Raises LoadstoneError for unknown names."""
        checks: dict[str, dict[str, float]] = {}
        for check, thresholds in question.checks.items():
            checks.setdefault(RENAMED.get(check, check), {}).update(thresholds)
        for name, known in find_unknown_names(checks):
            hint = did_you_mean(name.rpartition(".")[2], known).strip() or f"known names: {', '.join(known) or 'none'}"
            raise LoadstoneError(f"there is no threshold or check {name}", hint)
        every = {check: {**defaults, **checks.get(check, {})} for check, defaults in DEFAULTS.items()}
        return cls(**{**vars(question), "checks": every})


class Own:
    """The settings of each trial; if result sets are joined, with the checks and claims of the trial's own result set.

    A trial that is invalid in its experiment must not become valid because it is compared with another experiment.
    """

    def __init__(self, results: ResultSet) -> None:
        """Reads the settings of all result sets. Raises LoadstoneError for unknown thresholds."""
        self.common = Settings.from_question(results.question)
        of_sets = {id(question): Settings.from_question(question) for question in results.own.values()}
        self._own = {trial: of_sets[id(question)] for trial, question in results.own.items()}

    def settings_of(self, trial: str) -> Settings:
        """The settings of the trial with this id."""
        own = self._own.get(trial, self.common)
        return replace(self.common, checks=own.checks, claims=own.claims, verify=own.verify)

    def use_defaults(self) -> Own:
        """The settings with the default thresholds."""
        plain = copy(self)
        plain.common = replace(self.common, checks=DEFAULTS)
        of_sets = {id(own): replace(own, checks=DEFAULTS) for own in self._own.values()}
        plain._own = {trial: of_sets[id(own)] for trial, own in self._own.items()}
        return plain

    def is_unequal(self, check: str) -> bool:
        """Whether the joined result sets have different thresholds of a check."""
        return len({tuple(sorted(own.checks[check].items())) for own in self._own.values()}) > 1

    def list_changed(self) -> dict[tuple[str, str], float]:
        """The thresholds that differ from their defaults, by check and name."""
        return {
            (check, name): value
            for settings in (self.common, *self._own.values())
            for check, thresholds in settings.checks.items()
            for name, value in thresholds.items()
            if value != DEFAULTS[check][name]
        }


def find_unknown_names(checks: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, list[str]]]:
    """Every unknown name of a check or of a threshold (`check.threshold`), each with the known names."""
    for check, thresholds in checks.items():
        if check not in DEFAULTS:
            yield check, list(DEFAULTS)
        known = DEFAULTS.get(check, thresholds)
        yield from ((f"{check}.{name}", list(known)) for name in thresholds if name not in known)
