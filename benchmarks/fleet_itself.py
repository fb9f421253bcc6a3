"""The fleet measures itself: latency must not depend on the number of hosts. `benchmarks/fleet_itself.py [HOSTS …]`.

A scripted server answers after 20 ms, at 1,000 op/s. Needs root and Ray. The exit status is 1 if p50 or mean
differ by more than 2 %, or p99 by more than 5 %, from the figures for the first number of hosts.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

from measure import ROOT

sys.path.insert(0, str(ROOT / "tests/support"))

from loadstone.results.folder import find_folders
from namespace_support import boot_cluster

RATE, REPEATS, SECONDS = 1000, 6, 10
# The maximum relative difference of each metric.
LIMITS = {"all.p50": 0.02, "all.mean": 0.02, "all.p99": 0.05}
EXPERIMENT = f"""
systems: {{scripted: {{store: redis, properties: {{redis.host: 10.77.0.1, redis.port: "6399"}}}}}}
workload: {{file: {ROOT}/workloads/workloadc, properties: {{recordcount: 200, fieldcount: 2}}}}
clients: 60
rate: {RATE}
measure: {{warmup: 1s, duration: {SECONDS}s, settle: false}}
repeats: {REPEATS}
fleet: {{on: ray, address: "10.77.0.1:6379", engines: ENGINES, hosts: {{clients: {{label: role=clients}}}}}}
"""


def main() -> int:
    """Prints the figures for each number of hosts."""
    counts = [int(text) for text in sys.argv[1:]] or [1, 3, 10]
    figures: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as home, boot_cluster(Path(home), max(counts), 0.02) as cluster:
        for count in counts:
            file = cluster.home / f"hosts-{count}.yaml"
            file.write_text(EXPERIMENT.replace("ENGINES", str(count)))
            cluster.run(file)
            (results,) = [folder for folder in find_folders(cluster.home / "results") if folder.name == file.stem]
            trials = [trial for trial in results.load_results().trials if trial.end == "done"]
            figures[count] = {
                metric: median(value for trial in trials if (value := trial.value(metric)) is not None)
                for metric in LIMITS
            }
    status = 0
    for count, medians in figures.items():
        parts = []
        for metric, limit in LIMITS.items():
            ratio = medians[metric] / figures[counts[0]][metric]
            is_equal = abs(ratio - 1) <= limit
            status |= not is_equal
            parts.append(f"{metric} {medians[metric] / 1e6:.3f} ms ({ratio:.3f}{'' if is_equal else ', differs'})")
        print(f"{count} hosts: {', '.join(parts)}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
