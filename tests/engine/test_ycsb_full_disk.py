"""On a full disk, the YCSB front end reports the failure and keeps the data written so far."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Engine
from tera_support import small_disks
from ycsb_support import FAILED, RUN, STORES, USAGE, A, read_refusal


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB, if the test may mount it."""
    with small_disks(tmp_path / "disk") as mount_disk:
        yield mount_disk(16 << 20)


@pytest.mark.parametrize("store", STORES)
def test_full_disk_ends_a_load_with_its_progress(engine: Engine, small_disk: Path, store: str) -> None:
    result = engine.run(f"load {store} {A} {store}.dir={small_disk}/db recordcount=30000 -threads 3")
    error, hint = read_refusal(result, FAILED)
    loaded = int(result.value("INSERT", "Operations"))
    assert 100 < loaded < 30000
    assert f"stopped after {loaded} of 30000" in error, "the cause, not the later error when the store was closed"
    assert "NO_SPACE" in error or "No space left" in error
    assert "retry" not in hint, "a retry frees no space"


def test_full_export_disk_preserves_the_printed_report(engine: Engine, small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        (small_disk / "filler").write_bytes(bytes(32 << 20))
    result = engine.run(f"{RUN} exportfile={small_disk}/report")
    assert result.code in (FAILED, USAGE)
    read_refusal(result, result.code)
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_a_read_only_file_system_is_named(engine: Engine, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for store in STORES:
        error, _ = read_refusal(engine.run(f"load {store} {A} {store}.dir={small_disk}/db"), FAILED)
        assert "Read-only file system" in error
    assert "Read-only" in read_refusal(engine.run(f"{RUN} exportfile={small_disk}/report"), USAGE)[0]
