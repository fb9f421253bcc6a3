"""The lab's cost for a fleet of many hosts, without Ray: `python benchmarks/fleet_scale.py [HOSTS [ENGINES]]`.

Merges intervals of every host as the lab does, and simulates agents (tests/support/fleet_support.py).
docs/concepts/scale.md has the figures.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from typing import Any

from measure import ROOT

sys.path.insert(0, str(ROOT / "tests/support"))

from event_support import interval, outcome, ready, summary
from fleet_support import ScriptedHost, Simulation, specs
from loadstone.engine import program
from loadstone.engine.trial import EngineError
from loadstone.fleet.merge import Merger
from loadstone.fleet.remote import Remote

INTERVALS = 5
# Operations per interval on one host, over all the host's engines.
OPERATIONS = 2000


def latencies(draw: random.Random) -> list[int]:
    """Latencies of one host's interval, ns: a lognormal body and a tail."""
    return [round(draw.lognormvariate(13.8, 0.7)) for _ in range(OPERATIONS)]


def lines_of(k: int, templates: list[list[dict[str, Any]]]) -> list[str]:
    """The k-th interval of each host; the hosts share a few sets of latencies, which does not speed up merging."""
    return [json.dumps(interval(k, outcomes), separators=(",", ":")) for outcomes in templates]


def merge_intervals(hosts: int) -> dict[str, float]:
    """The CPU time to merge one interval of all hosts, s, and the merger's peak memory, B."""
    draw = random.Random(1)
    pool = []
    for _ in range(20):
        reads = outcome("READ", "OK", latencies(draw), latencies(draw))
        updates = outcome("UPDATE", "OK", latencies(draw), latencies(draw))
        pool.append([reads, updates])
    templates = [pool[host % len(pool)] for host in range(hosts)]
    command = [program.find_engine(), "merge", str(hosts)]
    pipe = subprocess.PIPE
    texts = [f"{host}\t{json.dumps(ready())}" for host in range(hosts)]
    for k in range(INTERVALS):
        texts += [f"{host}\t{line}" for host, line in enumerate(lines_of(k, templates))]
    texts += [f"{host}\t{json.dumps(summary(templates[host]))}" for host in range(hosts)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    subprocess.run(command, input="\n".join(texts) + "\n", stdout=pipe, check=True, text=True)
    elapsed = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    # The summary contains as much data as an interval.
    parts = INTERVALS + 1
    return {
        "line_bytes": len(lines_of(0, templates)[0]),
        "cpu_s": cpu / parts,
        "elapsed_s": elapsed / parts,
        "memory_bytes": after.ru_maxrss * 1024,
    }


def simulate(hosts: int, engines: int, lost: int) -> dict[str, float]:
    """A launch on simulated hosts: 0.2 to 20 ms in each direction, clocks off by up to 1 s, drift of up to 100 ppm."""
    draw = random.Random(lost)
    scripts = [
        ScriptedHost(
            there=draw.uniform(0.0002, 0.02),
            back=draw.uniform(0.0002, 0.02),
            offset=draw.uniform(-1, 1),
            drift=draw.uniform(-1e-4, 1e-4),
        )
        for _ in range(hosts)
    ]
    simulation = Simulation(scripts, seconds=60 if lost else 5)
    fleet = Remote(simulation, {"": range(hosts)}, simulation.clock)
    lose_at = simulation.now + 20
    for script in scripts[:lost]:
        script.silent_from = lose_at
    begin = time.process_time()
    losses = 0
    with (
        fleet.launch(specs(hosts * engines), lambda part, line: merger.hear(part, line)) as running,
        Merger([part.title for part in running.parts]) as merger,
    ):
        for part, event in running.events():
            if isinstance(event, EngineError):
                losses += 1
                merger.lose(part, event)
            for _ in merger.take(event):
                pass
        operations = merger.result().summary.operations
    cpu = time.process_time() - begin
    starts = [script.started_at or 0 for script in scripts]
    stops = [script.stopped_at or 0 for script in scripts[lost:]]
    figures = {"start_skew_s": max(starts) - min(starts), "lab_cpu_s": cpu, "operations": operations, "lost": losses}
    return {**figures, "stopped_after_s": max(stops) - lose_at} if lost else figures


def main() -> None:
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    engines = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    print("merge", json.dumps(merge_intervals(hosts)))
    # The work of a host's agent.
    print("merge of a host", json.dumps(merge_intervals(engines)))
    for lost in (0, 3):
        print(f"{lost} lost", json.dumps(simulate(hosts, engines, lost)))


if __name__ == "__main__":
    main()
