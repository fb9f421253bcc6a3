"""page-cache: what was read came out of memory, not from the device."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.format import units
from loadstone.judge.figures import moved
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "page-cache"
HINT = "fine for a question about memory; for the device, use data several times larger than memory, or drop caches"


def check(trial: TrialResult, settings: Settings) -> Iterator[Finding]:
    """Bytes that the device gave for the bytes that reads returned."""
    claimed = "device" in (settings.claims, trial.facts.get("claims"))
    severity = Severity.INVALID if claimed else Severity.NOTE
    here = (trial.trial,)
    if trial.facts.get("file_system") == "tmpfs":
        hint = "put the data on a file system that has a device"
        yield Finding(NAME, severity, "the data lies on tmpfs, which has no device", hint, here)
        return
    read, returned = moved(trial, "device.read"), trial.value("returned")
    if not returned:
        return
    if read is None:
        if claimed:
            message = "the results are claimed to be the device's, but its bytes were not measured"
            yield Finding(NAME, severity, message, "run where the host can be observed", here)
        return
    share = read / returned
    if share < settings.threshold(NAME, "claimed_share" if claimed else "share"):
        gave = f"the device gave {units.size(read)} ({units.percent(share)})"
        message = f"reads returned {units.size(returned)}, of which {gave}"
        yield Finding(NAME, severity, message, HINT, here)
