"""The lab computes the figures of a trial from the events of real engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab_support import experiment, loadstone, single_folder, trials
from loadstone.runner import phase_result
from loadstone.workloads import ycsb
from results_support import intervals, merge_by_tag

pytestmark = pytest.mark.usefixtures("engine_variable")

LOADED = """
systems: {lmdb: {properties: {lmdb.mapsize: "2097152"}}}
workload:
  file: %s/workloads/workloadc
  properties: {recordcount: 3000}
measure: {warmup: 0, duration: 100ms}
repeats: 2
"""
FEW = """
systems: {lmdb: {}}
workload:
  file: %s/workloads/workloadb
  properties: {recordcount: 100}
measure: {warmup: 0, operations: 1000}
repeats: 2
compare: {metrics: [throughput, read.p99, update.p99]}
"""
NOTHING = """
systems: {"null": {}}
workload: %s/workloads/workloada
measure: {warmup: 0, duration: 100ms}
repeats: 2
"""


@pytest.mark.parametrize("reuse", ["false", "copy"])
def test_a_load_that_ends_early_fails_the_trial(tmp_path: Path, reuse: str) -> None:
    stderr = loadstone(tmp_path, "run", experiment(tmp_path, LOADED), "--set", f"load.reuse={reuse}", code=1).stderr
    assert "the load ended early: insert of user" in stderr
    assert "MDB_MAP_FULL" in stderr
    for trial in trials(single_folder(tmp_path)):
        assert (trial.end, dict(trial.values)) == ("failed", {})


def test_percentile_of_few_operations_is_recorded_but_hidden(tmp_path: Path) -> None:
    result = loadstone(tmp_path, "run", experiment(tmp_path, FEW), "--no-report")
    assert "\nread.p99 " in result.stdout
    assert "withheld" in result.stdout
    for trial in trials(single_folder(tmp_path)):
        assert 0 < trial.values["update.p99"].n < 1000
        assert trial.values["update.p99"].value >= trial.values["update.p95"].value


def test_variants_operations_override_the_workload_file(tmp_path: Path) -> None:
    varied = ("--set", "measure={warmup: 200ms}", "--set", "vary.operations=[500, 30000]")
    loadstone(tmp_path, "run", experiment(tmp_path, FEW), *varied, "--no-report")
    done = [(trial.config["operations"], trial.values["operations"].value) for trial in trials(single_folder(tmp_path))]
    assert sorted(done) == [(500, 500), (500, 500), (30_000, 30_000), (30_000, 30_000)]


def test_engine_memory_excludes_the_lab_at_the_fork(tmp_path: Path) -> None:
    loadstone(tmp_path, "run", experiment(tmp_path, NOTHING), "--no-report")
    for trial in trials(single_folder(tmp_path)):
        # Python with the lab's modules uses several times the memory of an engine without data.
        assert 0 < (trial.value("engine.memory_max") or 0) < 40e6


def test_a_store_without_data_has_no_device_figures(tmp_path: Path) -> None:
    loadstone(tmp_path, "run", experiment(tmp_path, NOTHING), "--no-report")
    folder = single_folder(tmp_path)
    for trial in trials(folder):
        assert [name for name in trial.values if name.startswith("device.")] == []
        assert {"returned", "stored", "write_amplification"} & trial.values.keys() == set()
        assert "device" not in trial.facts
        assert (trial.value("throughput") or 0) > 0
        merged = merge_by_tag(intervals(folder.path / "trials" / trial.trial / "run.hlog"))
        assert merged["READ"].count == trial.value("read.count")


def test_zipfian_length_has_the_mean_of_its_distribution() -> None:
    # Lengths 1 and 2: with a theta of 1, length 2 would be half as frequent as length 1; YCSB's theta is 0.99.
    weight = 2**-0.99
    length = {"distribution": "zipfian", "min": 1, "max": 2}
    assert ycsb.mean_length(length) == pytest.approx((1 + 2 * weight) / (1 + weight))
    assert ycsb.mean_length({"distribution": "uniform", "min": 1, "max": 2}) == 1.5


def test_random_number_of_a_run_is_no_setting() -> None:
    spec = {"run": 2409413782708497, "seed": 7, "clients": 4, "store": {"name": "null", "properties": {}}}
    assert phase_result.flatten_spec(spec) == {"clients": 4}


def test_phase_has_the_settings_of_all_stages() -> None:
    job = {"rows": 100, "memory_bytes": 1 << 30}
    specs = [{"work": {"type": "sort", "stage": stage, "job": job}} for stage in ("prepare", "sample", "commit")]
    assert phase_result.select_common_settings(specs) == {
        "work.type": "sort",
        "work.job.rows": 100,
        "work.job.memory_bytes": 1 << 30,
    }
