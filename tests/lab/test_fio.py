"""fio as a workload kind and as a command: each job has its figures, and failures are reported."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from figure_support import find_conflicts
from lab_support import experiment, loadstone, single_folder, start
from loadstone.engine.histogram import Histogram, Layout, decode_histogram, encode_histogram
from loadstone.importers.run import build_histogram
from loadstone.judge.judge import judge_results

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
JOBS = """[global]
size=2m
bs=16k
ioengine=psync

[seq write]
rw=write
end_fsync=1

[mixed]
stonewall
rw=randrw
rwmixread=50
"""
TWO = """
systems: {disk: {}}
workload: {fio: {job: "[write]\\nrw=write\\nsize=1m\\nbs={bs}\\n"}}
vary: {bs: [4k, 64k]}
repeats: 2
"""


def test_variants_of_a_job_are_compared(tmp_path: Path) -> None:
    loadstone(tmp_path, "run", experiment(tmp_path, TWO), "--no-report")
    folder = single_folder(tmp_path)
    results = folder.load_results()
    assert find_conflicts(judge_results(results)) == []
    assert [trial.end for trial in results.trials] == ["done"] * 4
    for trial in results.trials:
        size = {"4k": 4096, "64k": 65536}[str(trial.config["bs"])]
        assert trial.value("operations") == (1 << 20) / size
        assert trial.value("stored") == 1 << 20
        assert trial.values["throughput"].unit == "B/s"
        assert trial.facts["block_size"] == trial.config["bs"]
        assert trial.value("write.p50")
        assert trial.value("write.bandwidth")
        files = folder.path / "trials" / trial.trial
        assert json.loads((files / "fio.stdout").read_text())["jobs"]
        assert (files / "job.fio").read_text() == f"[write]\nrw=write\nsize=1m\nbs={trial.config['bs']}\n"
        tag, text = (files / "fio.hlog").read_text().splitlines()[-1].split(",", 1)
        assert tag == "Tag=WRITE"
        assert decode_histogram(text.rpartition(",")[2]).count == trial.value("operations")


DERIVED = """
systems: {{disk: {{}}}}
workload: {{fio: {{job: "{job}"}}}}
vary: {vary}
repeats: 2
"""


@pytest.mark.parametrize(
    ("job", "vary"),
    [
        ("[w]\\nrw=write\\nsize={mb}m\\nthinktime={mb}\\nioengine=psync\\n", "{mb: [1, 2]}"),
        ("[global]\\nsize={mb}m\\nbs={mb}k\\n[w]\\nrw=write\\n[r]\\nstonewall\\nrw=read\\n", "{mb: [1, 2]}"),
        ("[w]\\nrw=write\\nsize=1m\\nrate_iops={r}\\n", "{r: [2000, 4000]}"),
        (
            "[w]\\nrw=write\\nsize={s}\\nfsync={f}\\n",
            "{named: {case: {small: {s: 1m, f: 0}, large: {s: 2m, f: 8}}}}",
        ),
    ],
)
def test_options_of_a_dimension_may_differ(job: str, vary: str, tmp_path: Path) -> None:
    loadstone(tmp_path, "run", experiment(tmp_path, DERIVED.format(job=job, vary=vary)), "--no-report")
    judgement = judge_results(single_folder(tmp_path).load_results())
    assert not [finding.message for finding in judgement.all_findings if finding.check == "sides-differ"]


def test_capped_iodepth_of_an_engine_is_reported(tmp_path: Path) -> None:
    job = "[w]\\nrw=write\\nsize=1m\\niodepth=8\\nioengine={engine}\\n"
    vary = "{engine: [psync, libaio]}"
    loadstone(tmp_path, "run", experiment(tmp_path, DERIVED.format(job=job, vary=vary)), "--no-report")
    judgement = judge_results(single_folder(tmp_path).load_results())
    messages = [finding.message for finding in judgement.all_findings if finding.check == "sides-differ"]
    assert messages == ["psync and libaio differ in iodepth (1 against 8)"]


VOLUME = """
systems:
  disk:
    hooks:
      before: ["mount -t tmpfs -o size={mb}m loadstone {directory}"]
      after: ["umount {directory}"]
workload: {fio: {job: "[write]\\nrw=write\\nsize=1m\\n"}}
vary: {mb: [4, 8]}
repeats: 2
"""


def test_fio_works_in_a_volume_mounted_per_trial(tmp_path: Path) -> None:
    """The hooks are as in the scale `volume` of experiments/hdfs-replication.yaml."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    loadstone(tmp_path, "run", experiment(tmp_path, VOLUME), "--no-report")
    results = single_folder(tmp_path).load_results()
    assert [(trial.end, trial.facts["file_system"]) for trial in results.trials] == [("done", "tmpfs")] * 4
    assert "loadstone /" not in Path("/proc/mounts").read_text()
    assert not list((tmp_path / "data").iterdir())


def test_command_prints_fio_jobs_and_saves_the_results(tmp_path: Path) -> None:
    (tmp_path / "two.fio").write_text(JOBS)
    output = loadstone(tmp_path, "fio", "two.fio").stdout
    rows = {line.split()[0]: line for line in output.splitlines() if line.strip().startswith(("seq_", "mixed."))}
    assert rows.keys() == {"seq_write.write", "mixed.read", "mixed.write"}
    # Of 256 operations, too few are above the p99.
    assert all(row.split().count("withheld") == 2 for row in rows.values())
    assert "verdict: " in output
    (trial,) = single_folder(tmp_path).load_results().trials
    assert trial.value("operations") == 256
    assert trial.value(
        "stored",
    ) == trial.value("seq_write.stored") + trial.value("mixed.stored")  # type: ignore[operator]
    assert trial.clients is None
    # fio's files were below a directory that was deleted.
    assert {path.name for path in tmp_path.iterdir()} == {"two.fio", "results", "data"}
    written, page = (next(tmp_path.glob(f"results/*/*/report.{kind}")).read_text() for kind in ("md", "html"))
    for figure in ("seq write write bandwidth", "mixed read p99", "mixed write throughput"):
        assert f"| {figure} | " in written
    assert "<h2>Other headline figures" in page


@pytest.mark.parametrize(("job", "row"), [("[w]\nfsync=1\n", "sync"), (f"{JOBS}[last]\nfsync=1\n", "last.sync")])
def test_syncs_have_a_row_and_figures(job: str, row: str, tmp_path: Path) -> None:
    (tmp_path / "sync.fio").write_text(f"{job}rw=write\nsize=128k\nbs=4k\n")
    output = loadstone(tmp_path, "fio", "sync.fio").stdout
    (line,) = [line for line in output.splitlines() if line.split()[:1] == [row]]
    assert len(line.split()) > len(["sync", "mean", "p50", "p99", "max"])
    folder = single_folder(tmp_path)
    assert {f"{row}.p50", f"{row}.p99"} <= set(folder.load_results().headline_metrics)
    assert f"| {row.replace('.', ' ')} p50 | " in (folder.path / "report.md").read_text()


def test_jobs_of_similar_names_keep_their_figures(tmp_path: Path) -> None:
    names = {"a b": "a_b", "a-b": "a_b_2", "写": "job", "读": "job_2"}
    (tmp_path / "names.fio").write_text("".join(f"[{name}]\nrw=write\nsize=64k\nbs=16k\n" for name in names))
    output = loadstone(tmp_path, "fio", "names.fio", "--no-report").stdout
    results = single_folder(tmp_path).load_results()
    (trial,) = results.trials
    assert [trial.value(f"{name}.operations") for name in names.values()] == [4] * 4
    assert all(f"{name}.write" in output for name in names.values())
    assert trial.value("operations") == 16
    assert {f"{name}.write.p99" for name in names.values()} <= set(results.headline_metrics)


@pytest.mark.parametrize("first", ["", "[global]\nstonewall\n"])
def test_consecutive_jobs_of_one_name_stay_separate(tmp_path: Path, first: str) -> None:
    (tmp_path / "two.fio").write_text(f"{first}[a]\nrw=write\nsize=64k\n[a]\nstonewall\nrw=write\nsize=32k\n")
    loadstone(tmp_path, "fio", "two.fio", "--no-report")
    results = single_folder(tmp_path).load_results()
    assert [results.trials[0].value(f"{name}.stored") for name in ("a", "a_2")] == [64 << 10, 32 << 10]
    assert {"a.write.p99", "a_2.write.p99"} <= set(results.headline_metrics)


def test_failed_job_is_a_failed_trial_with_output(tmp_path: Path) -> None:
    (tmp_path / "full.fio").write_text("[w]\nrw=write\nsize=1m\nfilename=/dev/full\n")
    done = loadstone(tmp_path, "fio", "full.fio", "--no-report", code=1)
    assert "verdict: invalid" in done.stdout
    (trial,) = single_folder(tmp_path).load_results().trials
    assert trial.end == "failed"
    assert trial.value("errors") == 1
    assert any("exited with status" in note.message for note in trial.notes)


@pytest.mark.parametrize(
    ("job", "text", "message"),
    [
        ("[w]\nrw=wrong\n", (), "fio refuses the job"),
        ("[w]\nrw=write\nsize=1m\n", ("--output=x",), "--output=x cannot be used here"),
        ("[w]\nrw=write\nsize=1m\n", ("--status-interval=1",), "--status-interval=1 cannot be used here"),
        ("[w]\nrw=write\nsize=1m\n", ("-status=1",), "-status=1 cannot be used here"),
    ],
)
def test_unusable_job_is_refused_before_the_first_trial(
    tmp_path: Path, job: str, text: tuple[str, ...], message: str
) -> None:
    (tmp_path / "job.fio").write_text(job)
    done = loadstone(tmp_path, "fio", "job.fio", *text, code=1 if not text else 2)
    assert message in done.stderr
    assert not list((tmp_path / "results").glob("*/*/values.jsonl"))


def test_a_missing_job_file_is_named(tmp_path: Path) -> None:
    assert "there is no job file nowhere.fio" in loadstone(tmp_path, "fio", "nowhere.fio", code=2).stderr


def test_an_encoded_histogram_is_read_as_equal() -> None:
    for values in ([(5, 3)], [(1, 1), (1 << 40, 2_000_000)], [(n * n, n) for n in range(1, 500)]):
        histogram = build_histogram(values)
        assert decode_histogram(encode_histogram(histogram)) == histogram
    assert decode_histogram(encode_histogram(Histogram(Layout()))).count == 0


def working_in(directory: Path) -> list[str]:
    """The processes whose working directory is below this directory."""
    results = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The directory of a trial's data.
            at = os.readlink(process / "cwd").removesuffix(" (deleted)")
            if Path(at).is_relative_to(directory) and Path(at) != directory:
                results.append(process.name)
    return results


def waits_for(done: Callable[[], object]) -> None:
    """Waits until a condition holds."""
    until = time.monotonic() + 60
    while not done():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_fio_ends_with_the_lab(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "long.fio").write_text("[a]\nrw=read\nsize=1m\nruntime=600\ntime_based\n[b]\nrw=read\nsize=1m\n")
    lab = start(tmp_path, "fio", "long.fio", "--no-report")
    waits_for(lambda: len(working_in(tmp_path)) >= 2)
    lab.send_signal(number)
    lab.communicate(timeout=60)
    assert lab.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    waits_for(lambda: not working_in(tmp_path))


@pytest.mark.parametrize(
    ("job", "directory", "message"),
    [
        ("[w]\\nrw=write\\nsize=900t\\n", ".", "up to 990 TB will be written below"),
        (
            "[w]\\nrw=write\\nsize=100t\\nnumjobs=9\\n[r]\\nrw=read\\nsize=1k\\n",
            ".",
            "up to 990 TB will be written below",
        ),
        ("[w]\\nrw=write\\nsize=1m\\n", "/proc/nope", "the file system of /proc cannot store files"),
        ("[w]\\nrw=write\\nsize=1m\\ndirectory=/sys\\n", ".", "the file system of /sys cannot store files"),
        ("[w]\\nrw=write\\nsize=1m\\ndirectory=/nonexistent/a\\n", ".", "/nonexistent/a, which is not a directory"),
    ],
)
def test_dry_run_refuses_unusable_places(job: str, directory: str, message: str, tmp_path: Path) -> None:
    file = experiment(
        tmp_path, f'systems: {{disk: {{}}}}\nworkload: {{fio: {{job: "{job}"}}}}\ndirectory: {directory}\n'
    )
    assert message in loadstone(tmp_path, "run", file, "--dry-run", code=1).stderr


def test_plan_of_a_job_lists_only_its_parameters(tmp_path: Path) -> None:
    job = "[w]\\nrw=write\\nsize=3m\\n"
    text = f'systems: {{disk: {{}}}}\nworkload: {{fio: {{job: "{job}"}}}}\ndirectory: {tmp_path}/a/b\n'
    plan = loadstone(tmp_path, "run", experiment(tmp_path, text), "--dry-run").stdout
    assert "up to 203 MB in" in plan
    assert f"warning: {tmp_path}/a/b will be created, on the file system of {tmp_path}" in plan
    assert not [name for name in ("durability", "clients", "loads at") if name in plan]
