"""How often does the judge claim a false difference, and how often does it find a true one?

In twenty experiments without a difference, each claim is false; at 5 %, three or fewer of twenty are expected in 98 %
of all cases (binomial). In twenty more, one side takes 10 % longer for each operation: at least 15 differences
must be found. Both use the store `null`, whose `null.delay` sets the time of an operation. The exit status is 1 if
either part fails. Run this on an idle machine: on a busy machine, the judge refuses more claims and finds fewer
differences.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOADSTONE = Path(sys.executable).with_name("loadstone")
EXPERIMENT = """
systems: {{"null": {{properties: {{null.delay: "{{delay}}"}}}}}}
workload: {{file: {workload}, properties: {{recordcount: 1000}}}}
vary: {vary}
measure: {{warmup: 500ms, duration: 3s}}
repeats: {repeats}
compare: {{by: {by}, metrics: [throughput]}}
"""
# Name: dimensions, compared by, repeats, expected number of claims in twenty (minimum, maximum).
SERIES = {
    "same": ("{copy: [first, second], delay: [50]}", "copy", 6, (0, 3)),
    "slower": ("{delay: [50, 55]}", "delay", 10, (15, 20)),
}


def main() -> int:
    """Runs the experiments in sequence and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=20, help="how many of each kind (default: %(default)s)")
    parser.add_argument("--only", choices=SERIES, help="one kind")
    options = parser.parse_args()
    is_as_expected = True
    with tempfile.TemporaryDirectory() as directory:
        for name in [options.only] if options.only else SERIES:
            least, most = (bound * options.experiments / 20 for bound in SERIES[name][-1])
            claims = sum(
                claims_difference(Path(directory), name, number) for number in range(1, options.experiments + 1)
            )
            print(f"{name}: {claims} of {options.experiments} claimed; wanted {least:g} to {most:g}", flush=True)
            is_as_expected &= least <= claims <= most
    return int(not is_as_expected)


def claims_difference(directory: Path, name: str, seed: int) -> bool:
    """Runs one experiment, prints its result, and returns whether it claims a difference in throughput.

    A different seed gives a different order of trials and a different sequence of operations.
    """
    vary, by, repeats, _ = SERIES[name]
    file = directory / f"{name}-{seed}.yaml"
    file.write_text(EXPERIMENT.format(workload=ROOT / "workloads/workloada", vary=vary, by=by, repeats=repeats))
    results = ["--results", str(directory)]
    run = [str(LOADSTONE), "run", str(file), *results, "--no-report", "--set", f"seed={seed}"]
    done = subprocess.run(run, capture_output=True, text=True)
    # Exit status 1 means that only a part is valid. The judgement below states this part.
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    process = subprocess.run([str(LOADSTONE), "show", file.stem, *results, "--json"], capture_output=True, text=True)
    answer = json.loads(process.stdout)
    (comparison,) = answer["comparisons"]
    claim = comparison["claim"] in ("better", "worse")
    low, high = comparison["low"], comparison["high"]
    print(
        f"{name} {seed:3}  {comparison['ratio']:.3f} [{low:.3f}, {high:.3f}]  p={comparison['p']:.3f}"
        f"  {comparison['claim']}  {answer.get('verdict', '')}",
        flush=True,
    )
    return claim


if __name__ == "__main__":
    sys.exit(main())
