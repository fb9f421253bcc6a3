"""10,000 clients in one engine on real servers: memory, the time to connect, and lateness at half the
saturation rate. Redis gets a connection per client; Cassandra's clients share connections."""

from __future__ import annotations

import resource
import sys

from measure import ROOT, spec, trial
from servers import properties, property_arguments, up

CLIENTS = 10_000
RECORDS = 100_000
SECONDS = 10.0
MEMORY_MAX_BYTES = 1 << 30
# Above this share, a run is `generator-limited`. This is reported, but not a failure, because the server uses the same
# processors.
LATE_SHARE = 0.001


def main() -> int:
    """Runs both stores; exit status 1 if a store needs too much memory, or an operation fails."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CLIENTS + 256:
        print(f"error: 10,000 connections need {CLIENTS + 256} open files, {hard} are allowed", file=sys.stderr)
        print("hint: `loadstone doctor --clients 10000` shows how to raise the limit", file=sys.stderr)
        return 1
    return max([check_limits("redis", maxclients=str(CLIENTS + 100)), check_limits("cassandra")])


def check_limits(store: str, **settings: str) -> int:
    """Runs one store; returns 1 if the memory limit is exceeded or an operation failed."""
    with up(store, 1, None, **settings) as running:
        if store == "cassandra":
            running.recreate_table("usertable", {})
        base = [
            "-P",
            str(ROOT / "workloads" / "workloadb"),
            *properties(running),
            *property_arguments(recordcount=RECORDS),
        ]
        trial(spec(["load", store, *base, "-threads", "100"]))
        # The workload's file has 1,000 operations, and a run has at most as many clients as operations.
        ends = property_arguments(operationcount=0, maxexecutiontime=f"{SECONDS:.0f}")
        trial_spec = spec(["run", store, *base, "-threads", str(CLIENTS), *ends])
        assert trial_spec["clients"] == CLIENTS
        trial_spec["warmup_seconds"] = 3.0
        closed = trial(trial_spec)
        rate = closed["completed"] / closed["measured_ns"] * 1e9 / 2
        trial_spec["pace"] = {"mode": "open", "rate": [{"from": rate, "to": rate, "seconds": 0}], "arrival": "poisson"}
        paced = trial(trial_spec)
    late = paced["late_generator"] / max(1, paced["operations"])
    failed = sum(summary["operations"] - summary["succeeded"] - summary["not_yet"] for summary in (closed, paced))
    memory = max(closed["memory_bytes_max"], paced["memory_bytes_max"])
    print(f"{store}: {CLIENTS:,} clients, {closed['connect_seconds']:.1f} s to connect, {memory / 1e6:.0f} MB at most,")
    print(f"    {2 * rate:,.0f} op/s in the closed loop, {failed} failed; {late:.3%} late at {rate:,.0f}")
    limited = " (generator-limited)" if late > LATE_SHARE else ""
    is_within = memory <= MEMORY_MAX_BYTES and failed == 0
    print(f"    at most {MEMORY_MAX_BYTES >> 20} MiB, none failed: {'kept' if is_within else 'NOT kept'}{limited}")
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
