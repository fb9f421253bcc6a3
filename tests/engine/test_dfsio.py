"""DFSIO on local files: it accepts Hadoop's command line, and detects damaged files and faulty disks."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dfsio_support import MEGABYTE, DfsioResult, blocks, dfsio, trial
from tera_support import small_disks

WRITE = "-write -nrFiles 3 -fileSize 1MB"
READ = "-read -nrFiles 3 -fileSize 1MB"
HOW = [
    "",
    "--direct -bufferSize 65536",
    "--io uring --depth 4 -bufferSize 65536",
    "--io uring --direct -bufferSize 65536",
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "bench"


def hint_of(result: DfsioResult) -> str:
    """The hint of a one-line error."""
    lines = result.err.splitlines()
    assert len(lines) >= 2, result.err
    assert lines[-2].startswith("error: "), result.err
    assert lines[-1].startswith("hint: "), result.err
    return lines[-1]


def spec_of(program: Path, home: Path, line: str, place: Path) -> dict[str, Any]:
    result = dfsio(program, home, f"{line} --print-spec", place)
    assert result.code == 0, result.err
    spec: dict[str, Any] = json.loads(result.out)
    return spec


@pytest.mark.parametrize("how", HOW)
def test_read_back_compares_every_written_byte(program: Path, tmp_path: Path, place: Path, how: str) -> None:
    result = dfsio(program, tmp_path, f"{WRITE} {how}", place)
    assert result.code == 0, result.err
    files = sorted((place / "io_data").iterdir())
    assert [(file.name, file.stat().st_size) for file in files] == [(f"test_io_{n}", MEGABYTE) for n in range(3)]
    assert len({file.read_bytes() for file in files}) == 3
    for order in ("", "-random", "-backward", "-skip"):
        result = dfsio(program, tmp_path, f"{READ} {order} {how}", place)
        assert result.code == 0, result.err
        assert result.engine_figure("files done, failed, unfinished, not started") == "3, 0, 0, 0"
        assert result.count_steps("VERIFY") == result.count_steps("READ") > 0
        assert "unverified" not in result.out
    written = blocks((tmp_path / "TestDFSIO_results.log").read_text())
    assert [line["test"] for line in written] == ["write", "read", "random read", "backward read", "skip read"]
    assert written[0]["Number of files"] == "3"
    assert written[0]["Total MBytes processed"] == "3"


def test_content_is_independent_of_write_settings(program: Path, tmp_path: Path, place: Path) -> None:
    contents = set()
    for how in HOW:
        assert dfsio(program, tmp_path, f"{WRITE} --seed 7 {how}", place).code == 0
        contents.add((place / "io_data/test_io_2").read_bytes())
    assert dfsio(program, tmp_path, f"{WRITE} --seed 7 -random -bufferSize 65536", place).code == 0
    contents.add((place / "io_data/test_io_2").read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("how", HOW)
def test_length_needs_no_multiple_of_the_buffer(program: Path, tmp_path: Path, place: Path, how: str) -> None:
    result = dfsio(program, tmp_path, f"-write -nrFiles 2 -fileSize 150001B {how}", place)
    assert result.code == 0, result.err
    assert [file.stat().st_size for file in (place / "io_data").iterdir()] == [150_001] * 2
    result = dfsio(program, tmp_path, f"-read -nrFiles 2 -fileSize 150001B {how}", place)
    assert (result.code, result.engine_figure("files done")) == (0, "2, 0, 0, 0"), result.err


@pytest.mark.parametrize(
    ("codec", "decompress"),
    [("GzipCodec", gzip.decompress), ("org.apache.hadoop.io.compress.DefaultCodec", zlib.decompress)],
)
@pytest.mark.parametrize("how", ["", "--io uring --depth 2 -bufferSize 65536"])
def test_compressed_files_match_the_codec_and_are_readable(
    program: Path, tmp_path: Path, place: Path, codec: str, decompress: Callable[[bytes], bytes], how: str
) -> None:
    size, files = f"-nrFiles 2 -fileSize 1500001B {how}", [place / f"io_data/test_io_{number}" for number in range(2)]
    plain = dfsio(program, tmp_path, f"-write {size} --seed 7 --compressible", place)
    assert plain.code == 0, plain.err
    contents = [file.read_bytes() for file in files]
    result = dfsio(program, tmp_path, f"-write {size} --seed 7 --compressible -compression {codec}", place)
    assert (result.code, result.engine_figure("files done")) == (0, "2, 0, 0, 0"), result.err
    # Hadoop also counts bytes before they are compressed.
    assert blocks(result.out)[0]["Total MBytes processed"] == blocks(plain.out)[0]["Total MBytes processed"]
    assert [decompress(file.read_bytes()) for file in files] == contents
    assert all(0.4 < file.stat().st_size / 1_500_001 < 0.6 for file in files)
    result = dfsio(program, tmp_path, f"-read {size} -compression {codec}", place)
    assert (result.code, result.count_steps("VERIFY")) == (0, result.count_steps("READ")), result.err
    with files[1].open("r+b") as file:
        file.truncate(files[1].stat().st_size // 2)
    result = dfsio(program, tmp_path, f"-read {size} -compression {codec}", place)
    assert (result.code, result.engine_figure("files done")) == (1, "1, 1, 0, 0")
    assert f"cannot read {files[1]} at byte" in result.err


def test_compressible_content_is_compared_and_recognised(program: Path, tmp_path: Path, place: Path) -> None:
    assert dfsio(program, tmp_path, f"{WRITE} --compressible", place).code == 0
    content = (place / "io_data/test_io_0").read_bytes()
    assert 0.45 < len(zlib.compress(content)) / len(content) < 0.55
    result = dfsio(program, tmp_path, READ, place)
    assert (result.code, result.count_steps("VERIFY")) == (0, result.count_steps("READ")), result.err


def test_empty_files_are_written_and_read(program: Path, tmp_path: Path, place: Path) -> None:
    for test in ("-write", "-read"):
        result = dfsio(program, tmp_path, f"{test} -nrFiles 2 -fileSize 0B", place)
        assert (result.code, result.engine_figure("files done")) == (0, "2, 0, 0, 0"), result.err
    assert [file.stat().st_size for file in (place / "io_data").iterdir()] == [0, 0]


@pytest.mark.parametrize("how", HOW)
def test_flipped_bit_is_named_by_file_and_offset(program: Path, tmp_path: Path, place: Path, how: str) -> None:
    assert dfsio(program, tmp_path, WRITE, place).code == 0
    victim, offset = place / "io_data/test_io_1", 700_003
    with victim.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 4]))
    results = tmp_path / "read.log"
    result = dfsio(program, tmp_path, f"{READ} {how}", place, "-resFile", results)
    assert result.code == 1
    assert f"{victim} at byte {offset}: found {byte ^ 4:#04x}, expected {byte:#04x}" in result.err
    assert result.engine_figure("files done") == "2, 1, 0, 0"
    # The bytes of a failed file do not count as throughput; Hadoop would have printed nothing.
    assert not results.exists()
    result = dfsio(program, tmp_path, f"{READ} {how} --no-verify", place)
    assert result.code == 0
    assert result.count_steps("VERIFY") == 0


@pytest.mark.parametrize("how", HOW)
def test_truncated_file_is_named_by_file_and_offset(program: Path, tmp_path: Path, place: Path, how: str) -> None:
    assert dfsio(program, tmp_path, WRITE, place).code == 0
    os.truncate(place / "io_data/test_io_2", 600_000)
    result = dfsio(program, tmp_path, f"{READ} {how}", place)
    assert result.code == 1
    assert f"cannot read {place}/io_data/test_io_2 at byte 600000: the file ends there" in result.err
    assert result.engine_figure("files done") == "2, 1, 0, 0"


def test_missing_file_fails_while_remaining_files_are_read(program: Path, tmp_path: Path, place: Path) -> None:
    assert dfsio(program, tmp_path, WRITE, place).code == 0
    (place / "io_data/test_io_0").unlink()
    result = dfsio(program, tmp_path, READ, place)
    assert (result.code, result.engine_figure("files done")) == (1, "2, 1, 0, 0")
    assert "OPEN failed with NOT_FOUND" in result.err


def test_failure_is_reported_once(program: Path, tmp_path: Path, place: Path) -> None:
    assert dfsio(program, tmp_path, WRITE, place).code == 0
    (place / "io_data/test_io_0").unlink()
    result = dfsio(program, tmp_path, READ, place)
    (warning,) = [line for line in result.err.splitlines() if "test_io_0" in line]
    assert warning.startswith("warning: 1 OPEN failed with NOT_FOUND: ")
    assert "steps failed" not in result.err
    spec = dfsio(program, tmp_path, f"{READ} --print-spec", place).out
    done = subprocess.run([program, "trial"], input=spec, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    (note,) = [line for line in done.stdout.splitlines() if '"errors"' in line and "failed" in line and "note" in line]
    assert "1 step failed, the first: " in note


def hadoops_file(place: Path, number: int) -> None:
    """Writes a file with the content that TestDFSIO's WriteMapper writes."""
    (place / "io_data").mkdir(parents=True, exist_ok=True)
    content = bytes(ord("0") + number % 50 for number in range(1_000_000))
    (place / f"io_data/test_io_{number}").write_bytes((content * 2)[:MEGABYTE])


def test_foreign_files_are_read_and_not_compared(program: Path, tmp_path: Path, place: Path) -> None:
    hadoops_file(place, 0)
    result = dfsio(program, tmp_path, "-read", place)
    assert (result.code, result.engine_figure("files not compared"), result.count_steps("VERIFY")) == (0, "1, 0", 0)
    assert "warning: no content was verified: Loadstone did not write these files\nhint: " in result.err


@pytest.mark.parametrize("replaced", ["by Hadoop", "by zeros"])
def test_a_replaced_file_among_ours_fails_the_test(program: Path, tmp_path: Path, place: Path, replaced: str) -> None:
    assert dfsio(program, tmp_path, WRITE, place).code == 0
    if replaced == "by Hadoop":
        hadoops_file(place, 1)
    else:
        (place / "io_data/test_io_1").write_bytes(bytes(MEGABYTE))
    result = dfsio(program, tmp_path, READ, place)
    assert (result.code, result.engine_figure("files not compared")) == (1, "1, 0")
    assert (
        f"error: 1 of 3 files lack Loadstone's mark, unlike other files, and are unverified: {place}/io_data/test_io_1"
        in result.err
    )
    hint_of(result)
    assert not blocks(result.out)


@pytest.mark.parametrize("buffer", [4_096, 100_000, MEGABYTE])
def test_a_lost_beginning_is_found(program: Path, tmp_path: Path, place: Path, buffer: int) -> None:
    """The file has lost the mark at its beginning, but later sectors still identify its content."""
    assert dfsio(program, tmp_path, "-write", place).code == 0
    with (place / "io_data/test_io_0").open("r+b") as file:
        file.write(bytes(30 * 4_096))
    result = dfsio(program, tmp_path, f"-read -bufferSize {buffer}", place)
    assert result.code == 1
    assert "test_io_0 at byte 0: found 0x00, expected 0x89" in result.err


def test_test_without_results_leaves_no_result_file(program: Path, tmp_path: Path, place: Path) -> None:
    assert dfsio(program, tmp_path, READ, place).code == 1
    assert not (tmp_path / "TestDFSIO_results.log").exists()
    result = dfsio(program, tmp_path, WRITE, place, "-resFile", "/dev/full")
    assert result.code == 1
    assert hint_of(result).startswith("hint: copy the results from above")
    assert Path("/dev/full").exists()


def test_clean_retains_foreign_files(program: Path, tmp_path: Path, place: Path) -> None:
    assert dfsio(program, tmp_path, WRITE, place).code == 0
    (place / "io_control").mkdir()
    (place / "letters").write_text("precious")
    result = dfsio(program, tmp_path, "-clean", place)
    deleted = [
        f"deleted {place}/io_data: 3 files",
        f"deleted {place}/io_control: 0 files",
        f"kept {place}: it also contains letters",
    ]
    assert (result.code, result.err.splitlines()) == (0, deleted)
    assert [path.name for path in place.iterdir()] == ["letters"]


@pytest.mark.parametrize("test", ["-clean", WRITE])
def test_foreign_files_in_a_test_directory_are_named(program: Path, tmp_path: Path, place: Path, test: str) -> None:
    """Like Hadoop, the test deletes the directory with all of its content."""
    assert dfsio(program, tmp_path, WRITE, place).code == 0
    (place / "io_data/letters").write_text("precious")
    result = dfsio(program, tmp_path, test, place)
    assert f"deleted {place}/io_data: 4 files, including letters (not from a test)" in result.err.splitlines()
    assert not (place / "io_data/letters").exists()
    assert place.exists() == (test == WRITE)
    assert (f"deleted {place}" in result.err.splitlines()) == (test == "-clean")


@pytest.mark.parametrize("test", ["-read", "-append", "-write -random", "-truncate -fileSize 0B"])
def test_a_fifo_is_refused_not_waited_for(program: Path, tmp_path: Path, place: Path, test: str) -> None:
    (place / "io_data").mkdir(parents=True)
    os.mkfifo(place / "io_data/test_io_0")
    result = dfsio(program, tmp_path, test, place)
    assert (result.code, result.engine_figure("files done")) == (1, "0, 1, 0, 0")
    assert "test_io_0: it is not a regular file" in result.err


def test_an_append_continues_an_existing_file(program: Path, tmp_path: Path, place: Path) -> None:
    assert dfsio(program, tmp_path, "-write -fileSize 150001B --seed 1", place).code == 0
    assert dfsio(program, tmp_path, "-append -fileSize 150001B --seed 2", place).code == 0
    result = dfsio(program, tmp_path, "-read -fileSize 300002B", place)
    assert (result.code, result.count_steps("VERIFY")) == (0, result.count_steps("READ")), result.err


def test_truncate_cuts_and_clean_deletes(program: Path, tmp_path: Path, place: Path) -> None:
    assert dfsio(program, tmp_path, WRITE, place).code == 0
    result = dfsio(program, tmp_path, "-truncate -nrFiles 3 -fileSize 1000B", place)
    assert result.code == 0, result.err
    assert [file.stat().st_size for file in (place / "io_data").iterdir()] == [1_000] * 3
    # Hadoop reads truncated files in the same way.
    (block,) = blocks(result.out)
    assert block["Total MBytes processed"] == "3"
    assert dfsio(program, tmp_path, "-clean", place).code == 0
    assert not place.exists()


def test_write_guarantees_have_separate_figures(program: Path, tmp_path: Path, place: Path) -> None:
    spec = spec_of(program, tmp_path, f"{WRITE} --sync close", place)
    files = trial(program, spec)["files"]
    assert files["durable"]["files"] == files["closed"]["files"] == files["returned"]["files"] == 3
    assert files["returned"]["ns"] < files["durable"]["ns"] <= files["closed"]["ns"] == files["task_ns"]
    assert files["flushed"]["files"] == 0
    assert (
        "durability of writes: on the device, by a sync" in dfsio(program, tmp_path, f"{WRITE} --sync close", place).err
    )
    assert "in the page cache, without a sync" in dfsio(program, tmp_path, WRITE, place).err
    result = dfsio(program, tmp_path, f"{WRITE} --sync buffer", place)
    assert result.count_steps("SYNC") == result.count_steps("WRITE") == 6
    result = dfsio(program, tmp_path, f"{WRITE} --sync flush", place)
    assert (result.count_steps("FLUSH"), result.count_steps("SYNC")) == (3, 0)


def test_segments_add_up_to_the_whole(program: Path, tmp_path: Path, place: Path) -> None:
    spec = spec_of(program, tmp_path, "-write -nrFiles 5 -fileSize 300000B -bufferSize 65536 --seed 3", place)
    whole = trial(program, spec)
    before = {file.name: file.read_bytes() for file in (place / "io_data").iterdir()}
    assert dfsio(program, tmp_path, "-clean", place).code == 0
    halves = [trial(program, spec | {"segment": {"k": k, "n": 2}}) for k in range(2)]
    assert {file.name: file.read_bytes() for file in (place / "io_data").iterdir()} == before
    for name in ("done", "bytes"):
        assert sum(half["files"][name] for half in halves) == whole["files"][name]
    assert [half["files"]["done"] for half in halves] == [3, 2]
    assert sum(half["operations"] for half in halves) == whole["operations"] == 25


def test_only_reads_from_the_page_cache_are_reported(program: Path, tmp_path: Path, place: Path) -> None:
    kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True)
    if kind.stdout == "tmpfs\n":
        pytest.skip("a tmpfs is nothing but page cache")
    assert dfsio(program, tmp_path, f"{WRITE} --sync close", place).code == 0
    assert "came from the page cache" in dfsio(program, tmp_path, READ, place).err
    for cold in ("--cold", "--direct -bufferSize 65536"):
        result = dfsio(program, tmp_path, f"{READ} {cold}", place)
        assert (result.code, "page cache" in result.err.partition("warning")[2]) == (0, False), result.err
        read = int(result.engine_figure("bytes read from").partition(",")[0])
        assert read >= 3 * MEGABYTE


def test_memory_is_bounded_for_many_small_files(program: Path, tmp_path: Path, place: Path) -> None:
    peaks: dict[str, list[int]] = {"-write": [], "-read": []}
    # Runs with few and with many files have equal numbers of buffers: a run with more buffers would use more memory for
    # histograms.
    for files in (1_000, 100_000):
        buffers = 100_000 // files
        for test, of_test in peaks.items():
            line = f"{test} -nrFiles {files} -fileSize {4 * buffers}KB -bufferSize 4096 --clients 2"
            summary = trial(program, spec_of(program, tmp_path, line, place))
            done = summary["files"]
            assert (done["done"], done["failed"], done["unverified"]) == (files, 0, 0)
            assert done["bytes"] == 100_000 * 4096
            assert count_verified(summary) == (100_000 if test == "-read" else 0)
            of_test.append(summary["memory_bytes_max"])
    assert dfsio(program, tmp_path, "-clean", place).code == 0
    # The paths and times of all files would take over 10 MB. Histograms vary by 5 MB with latencies on a busy machine.
    assert all(many < few + 8 * MEGABYTE for few, many in peaks.values()), peaks


def count_verified(summary: dict[str, Any]) -> int:
    """The number of buffers equal to the written data."""
    equal = [
        outcome for outcome in summary["outcomes"] if (outcome["operation"], outcome["status"]) == ("VERIFY", "OK")
    ]
    return sum(outcome["count"] for outcome in equal)


def test_forbidden_io_uring_is_replaced_with_a_warning(program: Path, tmp_path: Path, place: Path) -> None:
    forbidden = [sys.executable, str(Path(__file__).parents[1] / "support/without_uring.py")]
    line = "-nrFiles 3 -fileSize 150001B --seed 7 --io uring --depth 4 -bufferSize 65536"
    contents = []
    for prefix in ([], forbidden):
        for test in ("-write", "-read"):
            result = dfsio(program, tmp_path, f"{test} {line}", place, prefix=prefix)
            assert (result.code, result.engine_figure("files done")) == (0, "3, 0, 0, 0"), result.err
            assert ("warning: io_uring is not available (Operation not permitted" in result.err) == bool(prefix)
            assert ("io io_uring, 4 buffers" in result.err, "io pread, pwrite" in result.err) == (
                not prefix,
                bool(prefix),
            )
        assert result.count_steps("VERIFY") == result.count_steps("READ") > 0
        contents.append([(place / f"io_data/test_io_{number}").read_bytes() for number in range(3)])
    assert contents[0] == contents[1]


def test_rates_and_written_bytes_name_their_units(program: Path, tmp_path: Path, place: Path) -> None:
    out = dfsio(program, tmp_path, WRITE, place).out.partition("Loadstone")[2]
    assert "aggregate mb/sec (2^20), until closed: " in out
    assert "MB/s" not in out
    assert "bytes read from devices, of pages dirtied: " in out
    assert "written to devices" not in out


@pytest.mark.parametrize("line", ["-write -nrFiles 4 -fileSize 1000TB", "-append -nrFiles 4000 -fileSize 1TB"])
def test_files_larger_than_free_space_are_refused(program: Path, tmp_path: Path, place: Path, line: str) -> None:
    assert dfsio(program, tmp_path, WRITE, place).code == 0
    before = sorted(path for path in tmp_path.rglob("*"))
    result = dfsio(program, tmp_path, line, place)
    assert result.code == 2
    assert "need 4" in result.err
    assert f"but {place} has " in result.err
    assert "larger file system" in hint_of(result)
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_space_of_earlier_files_is_free(program: Path, tmp_path: Path, small_disk: Path) -> None:
    assert dfsio(program, tmp_path, "-write -nrFiles 3 -fileSize 1MB", small_disk).code == 0
    assert dfsio(program, tmp_path, "-write -nrFiles 3 -fileSize 1MB", small_disk).code == 0
    assert dfsio(program, tmp_path, "-append -nrFiles 3 -fileSize 1MB", small_disk).code == 2


@pytest.mark.parametrize("option", ["--cold", "--direct -bufferSize 65536"])
def test_an_option_without_effect_on_tmpfs_is_reported(
    program: Path, tmp_path: Path, small_disk: Path, option: str
) -> None:
    assert dfsio(program, tmp_path, "-write", small_disk).code == 0
    result = dfsio(program, tmp_path, f"-read {option}", small_disk)
    if result.code and "this file system lacks O_DIRECT" in result.err:
        # tmpfs supports O_DIRECT since Linux 6.6.
        return
    name = "cold" if option == "--cold" else "o_direct"
    assert f"{name} no effect on tmpfs" in result.err
    assert f"warning: {option.partition(' ')[0]} has no effect" in result.err
    assert "of the bytes read came from the page cache: use a directory on a device" in result.err


def test_files_not_started_at_ctrl_c_are_counted(program: Path, tmp_path: Path, place: Path) -> None:
    command = [str(program), "dfsio", "-write", "-nrFiles", "50", "-fileSize", "100MB", "--clients", "2", str(place)]
    test = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not all((place / f"io_data/test_io_{number}").exists() for number in range(2)):
        assert time.monotonic() < until
        assert test.poll() is None
    test.send_signal(signal.SIGINT)
    out, err = test.communicate(timeout=60)
    result = DfsioResult(test.returncode, out, err)
    assert result.code == 130, err
    counts = [int(count) for count in result.engine_figure("files done, failed, unfinished, not started").split(", ")]
    assert sum(counts) == 50
    assert counts[3] > 0
    assert "the test was stopped" in err
    assert not blocks(out)
    assert dfsio(program, tmp_path, "-clean", place).code == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four MB."""
    with small_disks(tmp_path / "small disk") as mount_disk:
        yield mount_disk(4 << 20)


@pytest.mark.parametrize("how", ["", "--io uring --depth 4 -bufferSize 65536"])
def test_full_disk_fails_only_the_files_beyond_it(program: Path, tmp_path: Path, small_disk: Path, how: str) -> None:
    # The second link retains the space of the file that the next test deletes.
    assert dfsio(program, tmp_path, "-write -fileSize 1MB", small_disk).code == 0
    (small_disk / "link").hardlink_to(small_disk / "io_data/test_io_0")
    result = dfsio(program, tmp_path, f"-write -nrFiles 6 -fileSize 600KB --clients 1 {how}", small_disk)
    assert result.code == 1
    assert "failed with NO_SPACE" in result.err
    assert f"{small_disk}/io_data: delete them with `loadstone dfsio -clean" in hint_of(result)
    done, failed, unfinished, _ = map(int, result.engine_figure("files done").split(", "))
    assert (done + failed, unfinished) == (6, 0)
    assert 1 <= failed <= 3


def test_a_read_only_directory_is_reported(program: Path, tmp_path: Path, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    result = dfsio(program, tmp_path, "-write -nrFiles 2", small_disk)
    assert result.code == 1
    assert "FORBIDDEN" in result.err
    assert result.engine_figure("files done") == "0, 2, 0, 0"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-read -random -backward /x", "cannot be combined"),
        ("-write -nrFiles 0 /x", "files must be at least 1"),
        ("-write -bufferSize 0 /x", "buffer_bytes must be 1"),
        ("-write --direct /x", "multiple of 4096, got 1000000"),
        ("-write -fileSize 1XB /x", "must be a size"),
        ("-write", "no file system"),
        ("-write s3://bucket/x", 'no file system "s3"'),
        ("-write -D dfs.replication=2 /x", "not replicated"),
        ("-write -D dfs.replication=0 hdfs://127.0.0.1:1/x", "dfs.replication must be"),
        ("-write -D dfs.blocksize=1000 hdfs://127.0.0.1:1/x", "multiple of 512"),
        ("-append --sync flush hdfs://127.0.0.1:1/x", "no hflush"),
        ("-truncate hdfs://127.0.0.1:1/x", "no truncate"),
        ("-write --direct hdfs://127.0.0.1:1/x", "--direct is for local files"),
        ("-read --cold hdfs://127.0.0.1:1/x", "--cold is for local files"),
        ("-read --sync close /x", "--sync is for -write"),
        ("-read --executors 2 /x", "--executors is for hdfs://"),
        ("-write -compression org.apache.hadoop.io.compress.SnappyCodec /x", "SnappyCodec is not supported"),
        ("-append -compression GzipCodec /x", "a compressed file can only be written and read from its beginning"),
        (
            "-read -random -compression GzipCodec /x",
            "a compressed file can only be written and read from its beginning",
        ),
        ("-write --direct -bufferSize 4096 -compression GzipCodec /x", "cannot be combined with -compression"),
        ("-read --compressible /x", "--compressible is for -write"),
        ("-write -storagePolicy HOT hdfs://127.0.0.1:1/x", "-storagePolicy HOT is not supported"),
        ("-write -erasureCodePolicy RS-3-2-1024k hdfs://127.0.0.1:1/x", "-erasureCodePolicy RS-3-2-1024k is not"),
        ("-write -nrFiles 2 -resFile /nowhere/x /x", "cannot write to /nowhere/x"),
    ],
)
def test_invalid_command_is_refused_before_any_change(program: Path, tmp_path: Path, line: str, expected: str) -> None:
    result = dfsio(program, tmp_path, line)
    assert result.code == 2, result.err
    hint_of(result)
    assert expected in result.err
    assert list(tmp_path.iterdir()) == []
