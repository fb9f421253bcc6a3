"""Result folders: written results survive, however the writer ends."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest

from loadstone.engine.events import Note
from loadstone.errors import LoadstoneError
from loadstone.results import lines
from loadstone.results.folder import Folder, find_folders, latest_folder, new_path
from loadstone.results.result_set import Question
from loadstone.results.trial_result import Series, TrialResult, values_by_metric
from loadstone.results.value import Value
from results_support import trial


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty folder of an experiment."""
    return Folder.create_folder(
        tmp_path / "results/demo/now", "demo", Question(text="why?", by="system"), interleaved=True
    )


def test_trial_files_are_synced_before_their_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note_sync(descriptor: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note_sync)
    folder = Folder.create_folder(tmp_path / "results/demo/now", "demo", Question(), interleaved=True)
    assert synced[:3] == ["results/demo", "results", "."]
    assert synced[-1] == "results/demo/now"
    synced.clear()
    with folder.open_attempt("0000-a-r1") as files:
        (files / "series.json").write_text("{}")
    folder.append_trial(TrialResult("0000-a-r1", {"system": "a"}, 1, {}))
    part, now = "results/demo/now/trials/0000-a-r1.part", "results/demo/now"
    assert synced == [f"{part}/series.json", part, f"{now}/trials", f"{now}/values.jsonl", now]
    synced.clear()
    folder.append_trial(TrialResult("0001-a-r2", {"system": "a"}, 2, {}))
    assert synced == [f"{now}/values.jsonl"]


def test_a_trial_is_read_as_it_was_written(folder: Folder) -> None:
    written = TrialResult(
        trial="0000-lmdb-r1",
        config={"system": "lmdb", "clients": 2, "fast": True, "share": 0.5},
        repeat=1,
        values=values_by_metric(
            Value("throughput", 1770.7012685303887, "op/s", 1_000_000), Value("read.p99.9", 1e6, "ns", 10)
        ),
        clients=2,
        loop="closed",
        facts={"durability": "os", "how": "a «quoted», thing"},
        statuses={"READ": {"OK": 1, "NOT_FOUND": 2}},
        notes=(Note("errors", "2 steps failed", "look"),),
        order=0,
        start_unix_ns=1_700_000_000_000_000_000,
    )
    folder.append_trial(written)
    results = Folder(folder.path).load_results()
    assert list(results.trials) == [written]
    assert results.question == Question(text="why?", by="system")
    assert (results.interleaved, results.name, results.warnings) == (True, "demo", ())


def test_later_line_of_a_trial_counts(folder: Folder) -> None:
    folder.append_trial(trial("a", {"system": "lmdb"}, 1.0, end="lost"))
    folder.append_trial(trial("b", {"system": "lmdb"}, 2.0, repeat=2))
    folder.append_trial(trial("a", {"system": "lmdb"}, 3.0))
    assert [(entry.trial, entry.end, entry.value("throughput")) for entry in folder.load_results().trials] == [
        ("a", "done", 3.0),
        ("b", "done", 2.0),
    ]


@pytest.mark.parametrize("tear", range(1, 200, 23))
def test_a_torn_last_line_costs_its_trial_only(folder: Folder, tear: int) -> None:
    folder.append_trial(trial("a", {"system": "lmdb"}, 1.0))
    folder.append_trial(trial("b", {"system": "lmdb"}, 2.0))
    table = folder.path / "values.jsonl"
    table.write_bytes(table.read_bytes()[:-tear])
    results = folder.load_results()
    assert [entry.trial for entry in results.trials] == (["a"] if tear > 1 else ["a", "b"])
    assert results.warnings == (() if tear == 1 else ("values.jsonl:2 is damaged and is omitted",))
    folder.repair_lines()
    folder.append_trial(trial("c", {"system": "lmdb"}, 3.0))
    assert [entry.trial for entry in folder.load_results().trials][-1] == "c"
    assert folder.load_results().warnings == ()


def test_damaged_lines_are_moved_and_preserved(folder: Folder) -> None:
    folder.append_trial(trial("a", {"system": "lmdb"}, 1.0))
    folder.append_trial(trial("b", {"system": "lmdb"}, 2.0))
    table = folder.path / "values.jsonl"
    first, second = table.read_bytes().splitlines()
    table.write_bytes(b"\0\xff garbage \n" + first + b"\n[]\n" + second[:40])
    assert folder.repair_lines() == ["values.jsonl: moved damaged lines (1, 3, 4) to values.jsonl.damaged"]
    assert table.read_bytes() == first + b"\n"
    assert (folder.path / "values.jsonl.damaged").read_bytes() == b"\0\xff garbage \n[]\n" + second[:40] + b"\n"


def test_foreign_line_is_omitted_with_a_message(folder: Folder) -> None:
    lines.append_line(folder.path / "values.jsonl", {"trial": "x"})
    assert folder.load_results().warnings == (
        "values.jsonl: a line is not a trial and is omitted (it has no `config`)",
    )


@pytest.mark.parametrize("figure", ["1e999", "NaN", "-Infinity", "1" + "0" * 400])
def test_figures_beyond_floats_are_omitted(folder: Folder, figure: str) -> None:
    value = f'{{"metric": "m", "value": {figure}, "unit": "ns", "n": 1}}'
    line = f'{{"trial": "x", "config": {{}}, "repeat": 1, "values": [{value}]}}\n'
    (folder.path / "values.jsonl").write_text(line)
    results = folder.load_results()
    assert results.trials == []
    assert len(results.warnings) == 1
    assert "values.jsonl" in results.warnings[0]
    assert "omitted" in results.warnings[0]


def test_full_device_leaves_the_table_unchanged(tmp_path: Path) -> None:
    # A file size limit acts as a full disk for any user: the write that reaches it is short, and the next write fails.
    script = textwrap.dedent("""
        import resource, signal, sys
        from pathlib import Path
        from loadstone.errors import LoadstoneError
        from loadstone.results import lines
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150, 150))
        path = Path(sys.argv[1])
        lines.append_line(path, {"a": "x" * 80})
        try:
            lines.append_line(path, {"b": "y" * 80})
        except LoadstoneError as error:
            print(error.args[0].rpartition(": ")[2])
    """)
    path = tmp_path / "values.jsonl"
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == os.strerror(errno.EFBIG)
    assert lines.read_lines(path) == lines.Lines([{"a": "x" * 80}], [])
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 150


def test_killed_writer_leaves_complete_lines(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import itertools, sys
        from pathlib import Path
        from loadstone.results import lines
        for i in itertools.count():
            lines.append_line(Path(sys.argv[1]), {"i": i, "fill": "x" * 20_000})
            print(i, flush=True)
    """)
    path = tmp_path / "values.jsonl"
    for _ in range(3):
        already = len(lines.read_lines(path).documents)
        with subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            acknowledged = [int(process.stdout.readline()) for _ in range(random.Random(already).randint(1, 40))]
            process.kill()
            acknowledged += [int(line) for line in process.stdout]
        assert process.returncode == -signal.SIGKILL
        lines.mend_file(path)
        retained = [document["i"] for document in lines.read_lines(path).documents[already:]]
        assert retained in (acknowledged, [*acknowledged, len(acknowledged)])


def test_two_labs_do_not_write_to_one_folder(folder: Folder) -> None:
    with folder.hold_lock(), pytest.raises(LoadstoneError, match="another loadstone is writing to"), folder.hold_lock():
        pass
    with folder.hold_lock():
        pass


def test_files_of_an_unended_trial_are_deleted(folder: Folder) -> None:
    def fails() -> None:
        with folder.open_attempt("a") as files:
            (files / "x").write_text("x")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    with folder.open_attempt("b") as files:
        (files / "x").write_text("x")
    folder.repair_lines()
    assert [path.name for path in (folder.path / "trials").iterdir()] == ["b"]


def test_plan_is_read_as_written_before_blocks(folder: Folder) -> None:
    folder.record_block(1, {"a": {"system": "lmdb"}, "b": {"system": "redb"}})
    folder.record_block(2, {"c": {"system": "redb"}})
    assert folder.blocks == [1, 2]
    assert folder.load_results().planned == {"a": {"system": "lmdb"}, "b": {"system": "redb"}, "c": {"system": "redb"}}


def test_series_is_read_back_and_damage_ignored(folder: Folder) -> None:
    series = Series((0.0, 1.0), (1.0, 1.0), (10.0, 20.0), (1.0, None), (2.0, None), (0, 1))
    with folder.open_attempt("a") as files:
        (files / "series.json").write_text(json.dumps(series.to_json()))
    assert folder.load_series("a") == series
    (folder.path / "trials/a/series.json").write_text('{"start_seconds": [0]')
    assert (folder.load_series("a"), folder.load_series("b")) == (None, None)


def test_folder_names_are_unique_and_contain_the_time(tmp_path: Path) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    first = new_path(tmp_path, "demo", now)
    Folder.create_folder(first, "demo", Question(), interleaved=True)
    second = new_path(tmp_path, "demo", now)
    Folder.create_folder(second, "demo", Question(), interleaved=True)
    assert [first.name, second.name] == ["2026-01-02T03-04-05Z", "2026-01-02T03-04-05Z-1"]
    assert [folder.path for folder in find_folders(tmp_path)] == [first, second]
    newest = latest_folder(tmp_path, "demo")
    assert newest is not None
    assert newest.path == second
    assert latest_folder(tmp_path, "other") is None


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "is not a result folder: it has no folder.json"),
        ("{", "cannot read"),
        ('{"results": 99}', "has results of version 99, but this loadstone reads versions 1 to 2"),
        ("[]", "has results of version None"),
    ],
)
def test_foreign_folder_is_refused_by_name(tmp_path: Path, header: str | None, message: str) -> None:
    if header is not None:
        (tmp_path / "folder.json").write_text(header)
    with pytest.raises(LoadstoneError, match=message):
        Folder(tmp_path)


@pytest.mark.parametrize("name", ["../../outside", "..", ".", "a/b", "/etc", "", "a\0b"])
def test_trial_names_cannot_leave_the_folder(folder: Folder, name: str) -> None:
    line = trial("x", {"system": "a"}, 1.0).to_json()
    lines.append_line(folder.path / "values.jsonl", {**line, "trial": name})
    lines.append_line(folder.path / "plan.jsonl", {"block": 9, "trials": [{"trial": name, "config": {}}]})
    results = folder.load_results()
    assert name not in {trial.trial for trial in results.trials}
    assert name not in results.planned
    assert "a line is not a trial and is omitted" in results.warnings[0]


def test_marker_cannot_write_outside_the_folder(folder: Folder) -> None:
    line = trial("x", {"system": "a"}, 1.0).to_json()
    outside = folder.path.parent / "victim"
    outside.mkdir()
    for number, change in enumerate(({"trial": "../../victim"}, {})):
        part = folder.path / "trials" / f"x{number}.part"
        part.mkdir(parents=True)
        document = {"table": "../stolen.jsonl" if not change else "values.jsonl", "line": {**line, **change}}
        (part / "begun.json").write_text(json.dumps(document))
    folder.repair_lines()
    assert outside.is_dir()
    assert not (folder.path.parent / "stolen.jsonl").exists()


@pytest.mark.parametrize("number", [10**400, -(10**400), 1e400])
@pytest.mark.parametrize("name", ["start_unix_ns", "clients", "config"])
def test_number_out_of_range_omits_its_line(folder: Folder, name: str, number: float) -> None:
    folder.append_trial(trial("x", {"system": "a"}, 1.0))
    line = trial("y", {"system": "a"}, 1.0).to_json()
    line[name] = {"system": number} if name == "config" else number
    with (folder.path / "values.jsonl").open("a") as file:
        file.write(json.dumps(line).replace("Infinity", "1e400") + "\n")
    results = folder.load_results()
    assert [trial.trial for trial in results.trials] == ["x"]
    assert "omitted" in results.warnings[0]
    assert "\n" not in results.warnings[0]


def test_header_out_of_range_is_one_error(folder: Folder) -> None:
    header = json.loads((folder.path / "folder.json").read_text())
    (folder.path / "folder.json").write_text(json.dumps({**header, "seed": 10**400}))
    with pytest.raises(LoadstoneError, match="an integer with 401 digits is damaged"):
        Folder(folder.path)


@pytest.mark.parametrize(
    "change",
    [
        *({"at_least": -5}, {"at_most": 0}, {"matters": -1}, {"until": -0.1}),
        {"until": {"throughput": -1}},
    ],
)
def test_impossible_question_is_one_error(folder: Folder, change: dict[str, object]) -> None:
    header = json.loads((folder.path / "folder.json").read_text())
    header["question"].update(change)
    (folder.path / "folder.json").write_text(json.dumps(header))
    with pytest.raises(LoadstoneError, match="has an unreadable question: "):
        Folder(folder.path).load_results()


def test_text_without_unicode_form_is_one_error(folder: Folder) -> None:
    header = json.loads((folder.path / "folder.json").read_text())
    (folder.path / "folder.json").write_text(json.dumps({**header, "name": "\ud800"}))
    with pytest.raises(LoadstoneError, match=r"cannot read .*surrogates not allowed") as refusal:
        Folder(folder.path)
    str(refusal.value).encode()
    with pytest.raises(LoadstoneError, match=r"the path .*caf\\xe9 is not valid UTF-8"):
        Folder(folder.path.parent / os.fsdecode(b"caf\xe9"))
