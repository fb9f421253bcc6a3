"""Twenty experiments in which nothing differs: how often does the judge claim a difference in throughput?

Each claim is a false one; at 5 % three or fewer of twenty are to be expected in 98 % of all cases (binomial). Exit
status 1 if there are more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXPERIMENT = ROOT / "experiments/same-vs-same.yaml"
LOADSTONE = Path(sys.executable).with_name("loadstone")
CLAIMS_MAX = 3


def main() -> int:
    """Runs them one after the other and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=20, help="how many (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], help="passed on to `loadstone run`")
    options = parser.parse_args()
    changes = [word for each in options.set for word in ("--set", each)]
    claims = 0
    with tempfile.TemporaryDirectory() as results:
        for number in range(1, options.experiments + 1):
            common = ["--results", results]
            # Another seed, another order, another sequence of operations.
            run = [LOADSTONE, "run", EXPERIMENT, *common, "--no-report", "--set", f"seed={number}", *changes]
            subprocess.run(run, check=True, capture_output=True)
            shown = subprocess.run(
                [LOADSTONE, "show", EXPERIMENT.stem, *common, "--json", "--rank-invalid"],
                check=True,
                capture_output=True,
                text=True,
            )
            (comparison,) = json.loads(shown.stdout)["comparisons"]
            claims += comparison["claim"] in ("better", "worse")
            print(
                f"{number:3}  {comparison['ratio']:.3f} [{comparison['low']:.3f}, {comparison['high']:.3f}]"
                f"  p={comparison['p']:.3f}  {comparison['claim']}",
                flush=True,
            )
    print(f"{claims} of {options.experiments} claim a difference in throughput (at most {CLAIMS_MAX} of 20 expected)")
    return int(claims > CLAIMS_MAX * options.experiments / 20)


if __name__ == "__main__":
    sys.exit(main())
