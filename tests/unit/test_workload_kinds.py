"""The keys of workload kinds: allowed values, templates, and several workloads."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiment_support import load_text, mistakes, warnings
from loadstone.experiment.plan.plan import plan_experiment
from loadstone.workloads.fio import Fio, place_of

JOB = "[write]\\nrw=write\\nbs={bs}\\n"
FIO = f'systems: {{disk: {{}}}}\nworkload: {{fio: {{job: "{JOB}"}}}}\nvary: {{bs: [4k, 64k]}}\n'
DFSIO = """
systems: {local: {store: file}}
workload: {dfsio: {operation: "{what}", files: "{count}", file_size: 1MB, direct: "{past}"}}
vary: {what: [write, read], count: [2, 4], past: [true, false]}
"""


def test_section_without_a_required_key_reports_further_mistakes(tmp_path: Path) -> None:
    text = "systems: {rocksdb: {}}\nworkloads: {slow: {fio: {5s: a}}, fast: {sort: {row: 1}}}\n"
    assert mistakes(tmp_path, text) == [
        "`workloads.slow.fio.job` is missing",
        'there is no key "5s" in workloads.slow.fio',
        "`workloads.fast.sort.rows` is missing",
        'there is no key "row" in workloads.fast.sort',
    ]


def test_values_of_any_kind_may_be_templates(tmp_path: Path) -> None:
    jobs = {variant.work.job for variant in plan_experiment(load_text(tmp_path, FIO).experiment).variants}
    assert jobs == {"[write]\nrw=write\nbs=4k\n", "[write]\nrw=write\nbs=64k\n"}
    variants = plan_experiment(load_text(tmp_path, DFSIO).experiment).variants
    assert {(entry.work.operation, entry.work.files, entry.work.direct) for entry in variants} == {
        (what, count, past) for what in ("write", "read") for count in (2, 4) for past in (True, False)
    }
    assert {entry.work.file_size for entry in variants} == {1 << 20}


def test_rendered_value_must_be_valid_for_its_key(tmp_path: Path) -> None:
    (mistake,) = mistakes(tmp_path, DFSIO.replace("[2, 4]", "[2, 0]"))
    assert mistake == "workload.dfsio.files must be a whole number of at least 1, got 0"


def test_a_resolved_experiment_is_read_as_equal(tmp_path: Path) -> None:
    for text in (FIO, DFSIO):
        first = load_text(tmp_path, text)
        again = load_text(tmp_path, first.text_with_defaults)
        assert again.text_with_defaults == first.text_with_defaults
        assert again.experiment == first.experiment


def test_finite_work_has_neither_pilot_nor_warm_up(tmp_path: Path) -> None:
    definition = load_text(tmp_path, FIO).experiment
    assert (definition.pilot, definition.measure.warmup, definition.measure.duration) == (False, 0.0, None)
    (mistake,) = mistakes(tmp_path, FIO, "measure.duration=5s")
    assert mistake == "measure.duration has no effect: fio ends when its work is done"


def test_job_figures_are_compared_by_default(tmp_path: Path) -> None:
    assert load_text(tmp_path, FIO).experiment.compare.metrics == ("write.bandwidth", "write.throughput", "write.p99")
    two = FIO.replace("bs={bs}\\n", "bs={bs}\\n[a b]\\nrw=randrw\\n")
    assert load_text(tmp_path, two).experiment.compare.metrics[:4] == (
        "write.write.bandwidth",
        "write.write.throughput",
        "write.write.p99",
        "a_b.read.bandwidth",
    )
    definition = load_text(tmp_path, FIO.replace("[4k, 64k]", "[4k]")).experiment
    assert definition.compare.metrics == ("write.bandwidth", "write.throughput", "write.p99")


@pytest.mark.parametrize("option", ["filename=/dev/shm/x", "directory=/dev/shm"])
def test_fio_job_with_its_place_keeps_directory_constant(tmp_path: Path, option: str) -> None:
    varied = FIO.replace("rw=", f"{option}\\nrw=").replace("{bs: [4k, 64k]}", "{bs: [4k], disk: [/a, /b]}")
    assert mistakes(tmp_path, varied) == []
    (mistake,) = mistakes(tmp_path, varied + 'directory: "{disk}"\n')
    assert mistake == f"the jobs use {option.partition('=')[2]}, so varying `directory` has no effect"
    assert place_of(Fio(job=f"[job]\n{option}\n"), tmp_path) == Path("/dev/shm")


def test_options_for_the_output_of_fio_are_refused(tmp_path: Path) -> None:
    (mistake,) = mistakes(tmp_path, FIO.replace("{fio: {", "{fio: {options: [--thread, --status-interval=1], "))
    assert mistake == "--status-interval=1 cannot be used here"


SEVERAL = """
systems: {local: {store: file}, disk: {store: fio}}
workloads:
  write: {dfsio: {operation: write, files: 2}}
  job: {fio: {job: "[w]\\nrw=write\\n"}}
vary:
  matrix: {system: [local], workload: [write], copy: [1, 2]}
  include: [{system: disk, workload: job, copy: 1}]
"""


def test_several_workloads_are_a_dimension(tmp_path: Path) -> None:
    variants = plan_experiment(load_text(tmp_path, SEVERAL).experiment).variants
    results = [(variant.kind, variant.config["workload"], variant.store) for variant in variants]
    assert results == [("dfsio", "write", "file")] * 2 + [("fio", "job", "fio")]
    assert (
        load_text(tmp_path, load_text(tmp_path, SEVERAL).text_with_defaults).experiment
        == load_text(tmp_path, SEVERAL).experiment
    )


def test_workloads_of_different_kinds_are_not_compared(tmp_path: Path) -> None:
    assert load_text(tmp_path, SEVERAL).experiment.compare.by == "copy"
    (mistake,) = mistakes(tmp_path, SEVERAL, "compare.by=workload")
    assert mistake == "workloads of different kinds cannot be compared: dfsio, fio"


def test_workload_on_an_unsupported_store_is_refused(tmp_path: Path) -> None:
    crossed = SEVERAL.replace("system: [local], workload: [write]", "system: [local, disk], workload: [write, job]")
    messages = mistakes(tmp_path, crossed.replace("  include: [{system: disk, workload: job, copy: 1}]\n", ""))
    assert sorted(messages) == ["dfsio cannot use the store fio", "fio cannot use the store file"]


def test_single_workload_may_vary_by_dimension_workload(tmp_path: Path) -> None:
    text = "systems: [lmdb]\nworkload: {file: 'WORKLOADS/workload{workload}'}\nvary: {workload: [a, c]}\n"
    variants = plan_experiment(load_text(tmp_path, text).experiment).variants
    assert [Path(variant.work.file).name for variant in variants] == ["workloada", "workloadc"]
    assert warnings(tmp_path, text) == []


def test_undroppable_cache_is_a_warning(tmp_path: Path) -> None:
    text = "systems: {far: {store: hdfs}}\nworkload: {dfsio: {operation: read, cold: true}}\n"
    assert warnings(tmp_path, text) == ["`cold` has no effect on far, because the lab does not start its data nodes"]
    assert warnings(tmp_path, text.replace("store: hdfs", "store: hdfs, start: hdfs")) == []
