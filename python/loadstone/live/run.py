"""Reads a run from its folder: the plan with its points, the current trial, the findings and the remaining time."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.format import units
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.findings import check_trial
from loadstone.judge.settings import Settings
from loadstone.live.tail import Tail
from loadstone.live.trial import Attempt, read_json
from loadstone.results.fault import select_requested
from loadstone.results.folder import ATTEMPT_START, PILOT, UNDER_WAY, VALUES, Folder, parse_attempt
from loadstone.results.result_set import first_metric, variant_name
from loadstone.results.trial_result import TrialResult

# The maximum number of findings that the page shows: the newest findings.
FINDINGS_MAX = 50
# The maximum number of a variant's repeats that the page shows before the repeats are planned.
REPEATS_MAX = 1_000
# The remaining time is estimated from at most this many intervals between the starts of consecutive trials.
PACE_TRIALS = 12
# The maximum number of finished trials that are checked after one read of the files: during the run, and after its end.
# A check takes about a millisecond, so a page opened late uses 1 % of a processor during a trial.
CHECKED_RUNNING = 10
CHECKED_ENDED = 300
# Larger figures in a document are damage.
COUNT_MAX, TRIAL_SECONDS_MAX = 2**63, 1e9


class FollowedRun:
    """One result folder that is followed while it grows. Only appended data is read."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.planned: dict[str, dict[str, Any]] = {}
        self.results: dict[str, TrialResult] = {}
        # The findings on each checked trial, excluding notes.
        self.findings: dict[str, list[Finding]] = {}
        self.current: Attempt | None = None
        # Counts all changes, except changes in the points of the current trial.
        self.version = 0
        # The rows of the plan by trial, and the trials whose rows changed, in order: viewers receive only changes.
        self.rows: dict[str, dict[str, Any]] = {}
        self.changes: list[str] = []
        self._variants: dict[str, int] = {}
        self._unchecked: dict[str, None] = {}
        self._done = 0
        # The number of trials that the whole run is expected to have, and the start of the latest attempt in progress.
        self._expected = read_count(mapping_of(folder.header.get("forecast")).get("trials"))
        self._begun_unix_ns = 0
        # The latest result at the time when the current attempt was selected.
        self._last: TrialResult | None = None
        self._marked = ""
        self._metric, self._metrics = "", frozenset[str]()
        self._key: tuple[int, bool, str] | None = None
        self._state: dict[str, Any] = {}
        self._plan, self._values = Tail(folder.path / "plan.jsonl"), Tail(folder.path / VALUES)
        try:
            self._settings = Settings.from_question(folder.question)
        except LoadstoneError:
            self._settings = Settings()

    def read_new(self) -> None:
        """Reads the new lines in the folder's files."""
        for document in self._plan.read_new():
            trials = document.get("trials")
            for trial in trials if isinstance(trials, list) else ():
                if isinstance(trial, dict) and isinstance(trial.get("trial"), str):
                    self.planned[trial["trial"]] = mapping_of(trial.get("config"))
                    self._change_row(trial["trial"])
            self._expected = read_count(document.get("expected")) or self._expected
        lines = self._values.read_lines()
        for line in lines:
            with suppress(ValueError, OverflowError):
                if (result := parse_attempt(line)) is not None:
                    self._take_result(result)
        if len(lines) <= CHECKED_ENDED:
            # After a read of many lines, the check waits for the next read, so that viewers see figures sooner.
            self._check_trials()
        self._find_current()
        if self.current is not None:
            self.current.read_new()

    def _take_result(self, result: TrialResult) -> None:
        self.version += 1
        if result.was_interrupted:
            return
        # The last attempt counts, and its findings replace the findings on earlier attempts.
        for names in (self.findings, self._unchecked):
            names.pop(result.trial, None)
        before = self.results.pop(result.trial, None)
        self._done += (result.end == "done") - (before is not None and before.end == "done")
        self.results[result.trial], self._unchecked[result.trial] = result, None
        if not self._metrics.issuperset(result.values):
            self._metrics = self._metrics.union(result.values)
            metric = first_metric(self.results.values(), self.folder.question.metrics)
            if metric != self._metric:
                self._metric = metric
                for trial in self.rows:
                    self._change_row(trial)
        self._change_row(result.trial)

    def _check_trials(self) -> None:
        """Checks some of the finished trials, the newest first."""
        number = CHECKED_RUNNING if self._unchecked and self.is_running else CHECKED_ENDED
        for trial in [*islice(reversed(self._unchecked), number)]:
            del self._unchecked[trial]
            result = self.results[trial]
            findings: list[Finding] = []
            # The figures of a foreign trial may have any values; the page shows the remaining trials nevertheless.
            with suppress(ArithmeticError, LookupError, TypeError, ValueError):
                every = check_trial(result, self.folder.load_series(trial, result.attempt), self._settings)[0]
                findings += [finding for finding in every if finding.severity > Severity.NOTE]
            if result.end != "done":
                findings.append(Finding(result.end, Severity.INVALID, result.reason, "", (trial,)))
            self.version += 1
            if findings:
                self.findings[trial] = findings
                self._change_row(trial)

    def _newest_findings(self) -> Iterator[tuple[str, Finding]]:
        """The findings, with the newest first."""
        for trial in reversed(self.results):
            for finding in reversed(self.findings.get(trial, ())):
                yield trial, finding

    def _change_row(self, trial: str) -> None:
        """Computes the row of a trial, and records that the row changed."""
        self.version += 1
        result = self.results.get(trial)
        config = self.planned.get(trial) or ({} if result is None else result.config)
        value = None if result is None else result.values.get(self.metric)
        findings = self.findings.get(trial)
        variant = self.rows[trial]["variant"] if trial in self.rows else variant_name(config)
        if trial not in self.rows:
            self._variants[variant] = self._variants.get(variant, 0) + 1
        self.rows[trial] = {
            "variant": variant,
            "trial": trial,
            "state": "running" if trial == self._marked else "planned" if result is None else result.end,
            "value": None if value is None else value.value,
            "text": ""
            if value is None
            else units.format_bound(units.format_figure(value.value, value.unit), value.bound),
            "worst": max(finding.severity for finding in findings).name.lower() if findings else "",
        }
        self.changes.append(trial)

    def _find_current(self) -> None:
        """Finds the attempt whose directory is not complete, or the last complete attempt."""
        if self.current is not None and (final := self.current.find_final()) is not None:
            # The attempt has ended: its last lines belong to its figures, even if the next attempt has begun.
            self.version += 1
            self.current.follow_rename(final)
            self.current.read_new()
        if self.current is not None and self.current.is_part and self.current.directory.is_dir():
            # A lab runs one attempt at a time, and a search among thousands of trials costs processor time.
            return
        parts = sorted((self.folder.path / "trials").glob(f"*{UNDER_WAY}/{ATTEMPT_START}"))
        last = next(reversed(self.results.values()), None)
        if parts:
            directory, line = parts[-1].parent, mapping_of(read_json(parts[-1]).get("line"))
            self._begun_unix_ns = read_count(line.get("start_unix_ns"))
        elif last is not None and last is not self._last:
            directory, line = self.folder.files_of(last.trial, last.attempt), {}
            line = {"trial": last.trial, "config": last.config, "repeat": last.repeat}
        else:
            return
        if self.current is not None and directory == self.current.directory:
            return
        self.version += 1
        self._last = last
        trial, repeat = str(line.get("trial") or directory.name.removesuffix(UNDER_WAY)), line.get("repeat")
        self.current = Attempt(
            directory, trial, mapping_of(line.get("config")), repeat if isinstance(repeat, int) else 0
        )

    @property
    def is_behind(self) -> bool:
        """Whether the plan, the results or the current attempt have further lines to read."""
        tails = (self._plan, self._values)
        return any(tail.is_behind for tail in tails) or (self.current is not None and self.current.is_behind)

    @property
    def is_running(self) -> bool:
        """Whether a lab holds the folder's lock. The kernel releases the lock, however the lab exits."""
        return is_locked(self.folder.path)

    @property
    def metric(self) -> str:
        """The metric of the points in the plan: the deciding metric."""
        return self._metric or first_metric((), self.folder.question.metrics)

    def page_state(self) -> dict[str, Any]:
        """The state for the page, without the points of the current trial; the same object until something changes."""
        running = self.is_running
        self._mark_running(running)
        current = self.describe_current(running)
        key = (self.version, running, json.dumps(current))
        if key != self._key:
            self._key, self._state = key, self._describe_state(running, current)
        return self._state

    def _describe_state(self, running: bool, current: dict[str, Any] | None) -> dict[str, Any]:
        done = self._done
        question = self.folder.question
        return {
            "version": self.version,
            "name": self.folder.name,
            "expect": list(question.expect),
            "running": running,
            "planned": self.count_planned(running),
            "rough": running and self.is_search,
            "done": done,
            "failed": len(self.results) - done,
            # Blocks are planned one after another; the question states their minimum number.
            "least": min(question.at_least, REPEATS_MAX),
            "metric": self.metric,
            "checked": len(self.results) - len(self._unchecked),
            "findings": [describe_finding(*item) for item in islice(self._newest_findings(), FINDINGS_MAX)],
            "trial": current,
        }

    @property
    def is_search(self) -> bool:
        """Whether the results decide how many trials follow."""
        return self.folder.question.find is not None

    def count_planned(self, running: bool) -> int:
        """The number of trials planned so far, or the number that the run is expected to have if that is larger."""
        if self.is_search:
            return max(len(self.rows), self._expected if running else 0)
        return max(len(self.rows), self._expected, self.folder.question.at_least * len(self._variants))

    def estimate_seconds_left(self, now_unix_ns: int) -> float | None:
        """The remaining time of a running experiment, from the pace of the last trials, or from the forecast until the
        second trial begins; None if neither is known."""
        last = islice(reversed(self.results.values()), PACE_TRIALS + 1)
        starts = sorted(result.start_unix_ns for result in last if result.start_unix_ns)
        finished = starts[-1] if starts else 0
        if self._begun_unix_ns > finished:
            starts.append(self._begun_unix_ns)
        # If the record of the start of the running trial is missing, this trial began about one step after the last
        # finished trial began. Before a resumption, the run was not in progress.
        resumed = read_lock_time(self.folder.path)
        steps = [(after - before) / 1e9 for before, after in pairwise(starts) if not before < resumed <= after]
        pace = median(steps) if steps else self._forecast_trial_seconds()
        remaining = self.count_planned(running=True) - len(self.results)
        if pace is None or remaining <= 0:
            return None
        start = finished + round(pace * 1e9) if finished else now_unix_ns
        if self._begun_unix_ns > finished:
            start = self._begun_unix_ns
        elapsed = max((now_unix_ns - start) / 1e9, 0)
        if not steps:
            # A first trial that takes longer than the forecast corrects it.
            pace = max(pace, elapsed)
        return pace * remaining - min(elapsed, pace)

    def _forecast_trial_seconds(self) -> float | None:
        """The duration of a trial according to the pilot block, or else to the plan; None if neither was recorded."""
        forecast = mapping_of(self.folder.header.get("forecast"))
        for document in (read_json(self.folder.path / PILOT), forecast):
            seconds = document.get("trial_seconds")
            if isinstance(seconds, int | float) and 0 < seconds <= TRIAL_SECONDS_MAX:
                return float(seconds)
        return None

    def _mark_running(self, running: bool) -> None:
        """Marks the row of the running trial, and only this row."""
        name = self.current.trial if self.current is not None and self.current.is_part and running else ""
        if name != self._marked:
            before, self._marked = self._marked, name
            for trial in (before, name):
                if trial in self.rows:
                    self._change_row(trial)

    def describe_current(self, running: bool) -> dict[str, Any] | None:
        """The name, phase and settings of the current or last trial; None before the first trial."""
        attempt = self.current
        if attempt is None:
            return None
        result = self.results.get(attempt.trial)
        is_part = attempt.is_part
        phase = (attempt.phase if running else "interrupted") if is_part else "done" if result is None else result.end
        return {
            "name": attempt.trial,
            "variant": variant_name(attempt.config),
            "repeat": attempt.repeat,
            "phase": phase,
            "seconds": attempt.seconds,
            "clients": attempt.ready.get("clients"),
            "store": attempt.ready.get("store"),
            "durability": attempt.ready.get("durability"),
            "faults": [*attempt.faults.values()] if is_part or result is None else describe_faults(result),
        }


def read_count(part: Any) -> int:
    """A count or an instant in a document; 0 if it is missing or damaged."""
    return part if isinstance(part, int) and 0 <= part <= COUNT_MAX else 0


def read_lock_time(path: Path) -> int:
    """The time when a lab last took the lock of a result folder, Unix time in ns; 0 if there is no lock."""
    try:
        return (path / "lock").stat().st_mtime_ns
    except OSError:
        return 0


def mapping_of(part: Any) -> dict[str, Any]:
    """A part of a document that must be a mapping; empty if it is not one."""
    return dict(part) if isinstance(part, dict) else {}


def describe_faults(result: TrialResult) -> list[dict[str, Any]]:
    """The requested faults of a trial as bands for charts, in seconds since the start of the trial's window."""
    return [
        {
            "kind": fault.kind,
            "from": (fault.planned_at_ns if fault.held_ns is None else fault.held_ns) / 1e9,
            "to": end / 1e9,
        }
        for fault in select_requested(result.faults)
        if (end := fault.lifted_ns or fault.planned_lift_ns) is not None
    ]


def describe_finding(trial: str, finding: Finding) -> dict[str, Any]:
    """A finding for the page."""
    return {
        "trial": trial,
        "check": finding.check,
        "severity": finding.severity.name.lower(),
        "message": finding.message,
    }


def is_locked(path: Path, proc: Path = Path("/proc")) -> bool:
    """Whether a process holds the lock of a result folder, according to the kernel's list of locks (proc(5)).

    Trying to take the lock would hold it for a moment, during which a starting lab would be refused.
    """
    return holds_lock(path, read_locks(proc))


def read_locks(proc: Path = Path("/proc")) -> set[tuple[str, str]]:
    """The device (`fe:01`) and the inode of every file locked by flock(2)."""
    try:
        lines = (proc / "locks").read_text().splitlines()
    except OSError:
        return set()
    # `1: FLOCK  ADVISORY  WRITE 1234 fe:01:12345 0 EOF`
    rows = [line.split() for line in lines]
    places = [next((field for field in fields if field.count(":") == 2), "") for fields in rows if "FLOCK" in fields]
    return {(device, inode) for device, _, inode in (place.rpartition(":") for place in places)}


def holds_lock(path: Path, locks: Collection[tuple[str, str]]) -> bool:
    """Whether the lock of a result folder is among these locks."""
    if not locks:
        return False
    try:
        status = os.stat(path / "lock")
    except OSError:
        return False
    # On btrfs, the device number of a subvolume differs from the number in the list.
    devices = {f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"}
    if os.major(status.st_dev) == 0:
        devices = {device for device, _ in locks}
    return any((device, str(status.st_ino)) in locks for device in devices)
