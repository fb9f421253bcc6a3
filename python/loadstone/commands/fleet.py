"""`loadstone fleet` shows and checks the hosts of a Ray cluster for `fleet: {on: ray}`, and stops its agents."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadstone.commands.parser import CommandParser, guard_command

if TYPE_CHECKING:
    from loadstone.fleet.remote import Remote

VERBS = {
    "status": "print every host: address, labels, processors, memory, limits, versions, clock",
    "check": "also compare versions and programs, and run `doctor` on every host; exit status 1 if a host is unfit",
    "stop": "stop all agents and load generators in the cluster, including the agents of other labs",
}
# Clock offsets must be known to within a tenth of an interval. An interval is 1 s, or less if a window is short.
BOUND_NS_MAX = 100_000_000
# The limits that `status` prints.
LIMITS = {"nofile": "open files", "nproc": "processes"}


@guard_command
def main(arguments: list[str]) -> int:
    """Runs one verb. The exit status is 0 if every host is fit."""
    verbs = "\n".join(f"  {verb:<8}{text}" for verb, text in VERBS.items())
    parser = CommandParser("fleet", "Show or check the hosts of a Ray cluster, or stop its agents.", f"verbs:\n{verbs}")
    parser.add_argument("verb", metavar="VERB", choices=VERBS, help=", ".join(VERBS))
    parser.add_argument(
        "--address", metavar="HOST:PORT", default="auto", help="the cluster's head (default: on this machine)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    if options.verb == "stop":
        return stop_agents(options)
    with open_fleet(options) as fleet:
        rows = describe_hosts(fleet, is_checked=options.verb == "check")
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            print(render_row(row))
            for problem in row["problems"]:
                print(f"  {problem}")
    return int(any(row["problems"] for row in rows))


def stop_agents(options: Namespace) -> int:
    """Stops all agents, and prints their names."""
    from loadstone.fleet.ray import RayTransport

    transport = RayTransport(options.address)
    try:
        names = transport.stop_agents()
    finally:
        transport.close()
    print(json.dumps(names) if options.json else "\n".join(names or ["no agent is running"]))
    return 0


@contextmanager
def open_fleet(options: Namespace) -> Iterator[Remote]:
    """Yields a fleet that contains all hosts of the cluster."""
    from loadstone.fleet.ray import RayTransport
    from loadstone.fleet.remote import Remote

    transport = RayTransport(options.address)
    try:
        yield Remote(transport, {"": range(len(transport.hosts))})
    finally:
        transport.close()


def describe_hosts(fleet: Remote, *, is_checked: bool) -> list[dict[str, Any]]:
    """A row for each host; `problems` lists the reasons why the host is unfit."""
    from loadstone.format import units

    errors = fleet.survey(is_examined=is_checked)
    rows = []
    for link in fleet.links:
        host, facts = link.host, link.facts
        row: dict[str, Any] = {
            "host": host.name,
            "address": host.address,
            "labels": dict(host.labels),
            "head": host.is_head,
            "problems": [errors[link.number]] if link.number in errors else [],
        }
        if hardware := next(iter(facts.get("hosts", ())), None):
            row |= {
                "processors": hardware.get("cpu", {}).get("processors"),
                "memory_bytes": hardware.get("memory", {}).get("bytes"),
                "limits": hardware.get("limits", {}),
                "kernel": hardware.get("kernel"),
                "loadstone": facts["loadstone"],
                "machine": facts["machine"],
                "libc": facts["libc"],
            }
        if link.clock.latest is not None:
            estimate = link.clock.estimate(fleet.clock.unix_ns())
            row |= {"clock_offset_ns": round(estimate.offset_ns), "clock_bound_ns": round(estimate.bound_ns)}
            if is_checked and estimate.bound_ns > BOUND_NS_MAX:
                bound = units.format_duration(estimate.bound_ns)
                row["problems"].append(f"its clock is known only to within ±{bound}")
        if is_checked:
            row["problems"] += list(doctor_problems(facts))
        rows.append(row)
    return rows


def doctor_problems(facts: Any) -> Iterator[str]:
    """The checks of `loadstone doctor` that failed on a host."""
    for check in facts.get("doctor", {}).get("checks", ()):
        if check["state"] == "fail":
            yield f"doctor: {check['check']}: {check['found']}; required: {check['wanted']}"


def render_row(row: dict[str, Any]) -> str:
    """The line that `status` prints for a host."""
    from loadstone.format import units

    parts = [row["host"], row["address"], *(f"{key}={text}" for key, text in sorted(row["labels"].items()))]
    if row["head"]:
        parts.append("head")
    if "kernel" in row:
        parts += [units.count_noun(row["processors"], "processor"), units.format_size(row["memory_bytes"])]
        # A limit is a number or `unlimited`.
        limits = {name: limit for name, limit in row["limits"].items() if name in LIMITS}
        parts += [
            f"{limit:,} {LIMITS[name]}" if isinstance(limit, int) else f"{limit} {LIMITS[name]}"
            for name, limit in limits.items()
        ]
        parts += [f"Linux {row['kernel']}", f"Loadstone {row['loadstone']}"]
    if "clock_offset_ns" in row:
        offset, bound = row["clock_offset_ns"], units.format_duration(row["clock_bound_ns"])
        parts.append(f"clock {'-' if offset < 0 else '+'}{units.format_duration(abs(offset))} ± {bound}")
    return "  ".join(map(str, parts))
