"""Checks which faults a host supports (`loadstone.faults.support` tries the mechanisms)."""

from __future__ import annotations

from loadstone.doctor.check import Check, CheckResult, Machine, unknown_result


def check_faults(machine: Machine, _: int) -> CheckResult:
    """An experiment with an unsupported fault is refused."""
    unsupported = machine.unsupported_faults
    if unsupported is None:
        return unknown_result("not tried")
    if not unsupported:
        return CheckResult("ok", "all")
    reasons = "; ".join(sorted({*unsupported.values()}))
    fix = "sudo loadstone doctor" if "needs root" in reasons else ""
    return CheckResult("warn", f"not {', '.join(sorted(unsupported))} ({reasons})", fix)


CHECKS = (
    Check(
        "faults",
        "every kind of fault can be injected",
        "an experiment with an unsupported fault is refused",
        check_faults,
    ),
)
