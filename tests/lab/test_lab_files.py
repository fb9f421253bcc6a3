"""Files and sorts as experiments: on local disks here, on a real HDFS in `test_lab_hdfs`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from figure_support import find_conflicts
from lab_support import ROOT, experiment, loadstone, single_folder
from loadstone.importers import testdfsio
from loadstone.importers.source import Source
from loadstone.judge.finding import Severity
from loadstone.judge.judge import judge_results
from loadstone.observe.device import IN_MEMORY, file_system_of
from loadstone.results.trial_result import TrialResult

DFSIO = """
systems: {local: {store: file}}
workload: {dfsio: {operation: "{what}", files: 3, file_size: 2MB, buffer: 64KB, sync: close}}
clients: 2
vary: {what: [write, read]}
repeats: 2
"""


def trials(home: Path, text: str, *settings: str, code: int = 0) -> list[TrialResult]:
    """Runs an experiment, and checks that its report has one value for each figure; returns its trials."""
    more = [word for setting in settings for word in ("--set", setting)]
    loadstone(home, "run", experiment(home, text), "--no-report", *more, code=code)
    results = single_folder(home).load_results()
    assert find_conflicts(judge_results(results)) == []
    return sorted(results.trials, key=lambda trial: (str(trial.config), trial.repeat))


def test_files_are_written_and_read(tmp_path: Path) -> None:
    results = trials(tmp_path, DFSIO)
    assert [trial.end for trial in results] == ["done"] * 4
    for trial in results:
        reads = trial.config["what"] == "read"
        assert trial.value("operations") == 3 * 32
        assert trial.value("errors") == 0
        assert trial.value("returned" if reads else "stored") == 6 << 20
        assert trial.values["throughput"].unit == "B/s"
        assert trial.values["dfsio.task_throughput"].unit == "B/s"
        assert trial.value("read.p50" if reads else "write.p50")
        assert ("load.throughput" in trial.values) == reads
        assert ("dfsio.durable.throughput" in trial.values) == (not reads)
        assert trial.facts["files"] == 3
        assert trial.clients == 2


def test_reads_are_verified_if_requested(tmp_path: Path) -> None:
    read = DFSIO.replace("[write, read]", "[read, random]")
    for trial in trials(tmp_path, read, "measure.verify=true"):
        assert trial.value("verified")
        assert trial.value("wrong") == 0


TRAP = """
systems: {local: {store: file}}
workload: {dfsio: {operation: read, files: 2, file_size: 8MB, buffer: 1MB, cold: "{cold}", direct: "{direct}"}}
clients: 2
vary: {matrix: {cold: [COLD], direct: [DIRECT]}}
repeats: 2
claims: device
"""


@contextlib.contextmanager
def keep_cached(directory: Path) -> Iterator[None]:
    """Reads all files below a directory repeatedly: a kernel short of memory evicts unused pages."""
    done = threading.Event()

    def read() -> None:
        while not done.wait(0.05):
            for path in directory.rglob("test_io_*"):
                # The file of a trial that has ended may have been deleted.
                with contextlib.suppress(OSError):
                    path.read_bytes()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        done.set()
        reader.join()


@pytest.mark.parametrize(
    ("cold", "direct", "cached"), [("true", "false", False), ("false", "true", False), ("false", "false", True)]
)
def test_cached_read_back_is_no_device_read(tmp_path: Path, cold: str, direct: str, cached: bool) -> None:
    """A claim about the device from reads of data just written holds only if the reads bypass the page cache."""
    if file_system_of(tmp_path) in IN_MEMORY:
        pytest.skip("there is no device here")
    severities: list[list[Severity]] = []
    # The device's figures include other processes, which may read as many bytes in some runs, but not in each of five.
    for number in range(5 if cached else 1):
        directory = tmp_path / str(number)
        directory.mkdir()
        with keep_cached(directory / "data") if cached else contextlib.nullcontext():
            results = trials(directory, TRAP.replace("COLD", cold).replace("DIRECT", direct))
        judgement = judge_results(single_folder(directory).load_results())
        assert [trial.value("returned") for trial in results] == [16 << 20] * 2
        findings = [finding for trial in results for finding in judgement.trials[trial.trial]]
        severities.append([finding.severity for finding in findings if finding.check == "page-cache"])
        if cached and [Severity.INVALID] * 2 in severities:
            return
        assert cached or all((trial.value("device.read") or 0) >= 16 << 20 for trial in results)
    assert not cached, severities
    assert severities == [[]]


SORT = """
systems: {local: {store: file}}
workload: {sort: {rows: 50000, parts: 2, memory: "{memory}"}}
vary: {memory: [64MB, 128MB]}
repeats: 2
"""


def test_rows_are_generated_sorted_and_validated(tmp_path: Path) -> None:
    results = trials(tmp_path, SORT)
    assert [trial.end for trial in results] == ["done"] * 4
    assert len({trial.facts["checksum"] for trial in results}) == 1
    for trial in results:
        assert trial.values["throughput"].unit == "B/s"
        assert trial.value("validate.faults") == 0
        assert trial.value("generate.runtime")
        assert trial.facts["durability"] == "device"
        stages = [name for name in trial.values if name.startswith("sort.") and name.endswith(".runtime")]
        assert len(stages) >= 3
        assert trial.value("runtime") == pytest.approx(sum(trial.value(name) or 0 for name in stages), rel=0.01)


def test_scratch_directory_of_a_failed_sort_is_removed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk requires root")
    disk = tmp_path / "data"
    disk.mkdir()
    # Room for the rows, but not for their sorted copy.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
    try:
        results = trials(tmp_path, SORT.replace("[64MB, 128MB]", "[128MB]"), code=1)
    finally:
        subprocess.run(["umount", disk], check=False)
    assert [trial.end for trial in results] == ["failed"] * 2
    assert all("No space left on device" in trial.notes[-1].message for trial in results)
    last = [json.loads(path.read_text().splitlines()[-1]) for path in tmp_path.rglob("*.abandon.events.jsonl")]
    assert [(summary["end"], summary["sort"]["stage"]) for summary in last] == [("done", "abandon")] * 2


def test_files_are_compressed_by_each_codec(tmp_path: Path) -> None:
    compressed = DFSIO.replace("sync: close", 'compression: "{codec}", compressible: true')
    compressed = compressed.replace("[write, read]", "[read], codec: [none, gzip, deflate]")
    results = trials(tmp_path, compressed, "measure.verify=true")
    assert len(results) == 6
    for trial in results:
        codec = trial.config["codec"]
        assert trial.facts.get("compression", "none") == codec
        assert (trial.value("verified"), trial.value("wrong"), trial.value("returned")) == (96, 0, 6 << 20)


def test_only_reads_reuse_a_load(tmp_path: Path) -> None:
    read = DFSIO.replace("[write, read]", "[read, random]") + "load: {reuse: copy}\n"
    results = trials(tmp_path, read)
    assert [trial.end for trial in results] == ["done"] * 4
    assert not [metric for trial in results for metric in trial.values if metric.startswith("load.")]


def test_one_parser_reads_our_result_files_and_hadoops(tmp_path: Path) -> None:
    own_log = tmp_path / "TestDFSIO_results.log"
    arguments = ("-write", "-nrFiles", "2", "-fileSize", "1MB", "-resFile", str(own_log))
    output = loadstone(tmp_path, "dfsio", *arguments, f"file://{tmp_path}/bench").stdout
    hadoops = (ROOT / "tests/fixtures/imports/TestDFSIO_results.log").read_text()
    both = tmp_path / "both.log"
    both.write_text(hadoops + own_log.read_text())
    runs = testdfsio.read_runs(Source(both, both.read_text(), {}))
    retained = testdfsio.read_runs(Source(own_log, own_log.read_text(), {}))
    assert len(retained) == 1
    assert runs[:-1] == testdfsio.read_runs(Source(both, hadoops, {}))
    assert runs[-1] == retained[0]
    assert (runs[-1].dimensions, runs[-1].facts["files"], runs[-1].facts["bytes"]) == ({"test": "write"}, 2, 2 << 20)
    assert [value.metric for value in runs[-1].values] == [value.metric for value in runs[0].values]
    # The block that the command printed contains the same figures as the file.
    assert testdfsio.read_runs(Source(own_log, output, {}))[0].values == retained[0].values
