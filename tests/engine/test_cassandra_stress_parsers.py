"""Public parsers of cassandra-stress's output, on the output of a run: scylla-ccm, scylla-cluster-tests, hCassandra."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from scripted_cassandra import FakeCassandra
from stress_support import Stress

LATENCIES = [f"latency {name}" for name in ("mean", "median", "95th percentile", "99th percentile", "max")]
NUMBER = re.compile(r"[\d.]+")


def parse_by_label(stdout: str) -> dict[str, str]:
    """scylla-ccm: labels in lower case before the colon; the value without brackets and commas."""
    lines = stdout[stdout.index("Results:") :].splitlines()
    pairs = (line.split(":", 1) for line in lines if " : " in line)
    return {label.strip().lower(): value.split("[")[0].replace(",", "").split()[0] for label, value in pairs}


def parse_to_end(stdout: str) -> dict[str, str]:
    """scylla-cluster-tests: the first word of each line between `Results:` and `END`, and latencies by operation."""
    lines = [line.strip() for line in stdout.splitlines()]
    results = {}
    for line in lines[lines.index("Results:") + 1 : lines.index("END")]:
        if ":" in line:
            label, value = line.split(":", 1)
            results[label.strip().lower()] = value.split()[0].replace(",", "")
            pair = re.search(r"\[READ:\s([\d,]+\.\d+)\sms,\sWRITE:\s([\d,]+\.\d)\sms\]", line)
            results |= {f"{label.strip().lower()} both": " ".join(pair.groups())} if pair else {}
    assert sum(label.endswith(" both") for label in results) == len(LATENCIES) + 1
    return results


def parse_first_end(stdout: str) -> dict[str, str]:
    """hCassandra (Hydra): lines with a colon between the first `op rate` and the first `END`, without brackets."""
    text = stdout[stdout.index("op rate") : stdout.index("END")]
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {
        re.sub(r"\s{2,}", "", label).lower(): re.sub(r"\[.+\]", "", re.sub(r"\s{2,}", "", value)).strip()
        for label, value in pairs
    }


@pytest.mark.parametrize(
    ("parse", "compat"),
    [
        (parse_by_label, "4"),
        (parse_by_label, "3.0"),
        (parse_to_end, "4"),
        (parse_to_end, "3.11"),
        (parse_first_end, "3.0"),
    ],
)
def test_public_parsers_read_the_results(program: Path, parse: Callable[[str], dict[str, str]], compat: str) -> None:
    stress = Stress(program)
    with FakeCassandra() as server:
        stress(server, f"write n=1500 no-warmup -compat {compat} -rate threads=8").check_end()
        line = "mixed ratio(write=1,read=2) n=1500 no-warmup -pop seq=1..1500 -rate threads=8"
        results = parse(stress(server, f"{line} -compat {compat}").stdout)
    assert (results["total partitions"], results["total errors"]) == ("1500", "0")
    assert all(NUMBER.fullmatch(results[label]) for label in ("op rate", "partition rate", "row rate", *LATENCIES))
    assert re.fullmatch(r"\d\d:\d\d:\d\d", results["total operation time"])


def test_rows_have_the_exporters_positions(program: Path) -> None:
    """scylla-cluster-tests: the keyspace of the settings, and the cells of lines with `total,`."""
    with FakeCassandra() as server:
        line = "write n=60 no-warmup -log interval=100ms -rate threads=1 throttle=200/s"
        stdout = Stress(program)(server, line).stdout
    assert re.findall(r"Keyspace:\s(.*?)$", stdout, re.MULTILINE) == ["keyspace1"]
    rows = [[cell.strip() for cell in line.split(",")] for line in stdout.splitlines() if "total," in line]
    assert rows
    # Operations per second, latencies in increasing order, and errors.
    assert all(float(row[2]) > 0 and int(row[13]) == 0 for row in rows)
    assert all([float(cell) for cell in row[6:11]] == sorted(map(float, row[6:11])) for row in rows)
