"""Lists all results below a directory: names immediately, verdicts as soon as folders are judged."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.judge.judge import judge_results
from loadstone.live.run import holds_lock, read_locks
from loadstone.results.folder import VALUES, Folder, list_paths, parse_attempt, printable
from loadstone.results.lines import iterate_lines
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar

# The interval between attempts to judge; while a trial may be measured on this host, no folder is judged.
PAUSE_SECONDS = 2.0
# The verdict of a folder that cannot be opened.
UNREADABLE = "unreadable"
SUMMARY = ("verdict", "answer", "trials", "systems", "metrics", "expectations")


@dataclass
class CatalogueEntry:
    """One result folder."""

    folder: Folder
    # The modification time and the size of folder.json.
    stamp: tuple[int, int] = (0, 0)
    # The size of the file of values at the last judgement, and the summary; -1 and empty before the first judgement.
    size: int = -1
    summary: Mapping[str, Any] = field(default_factory=dict)
    # The parts of the summary that need no judgement, so that viewers can search the list while a run is measured.
    sketch: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class UnreadableFolder:
    """A folder that cannot be opened, because it is damaged or incomplete, or was written by a newer version."""

    path: Path
    stamp: tuple[int, int]
    reason: str


class ResultCatalogue:
    """The result folders below a root, which a background thread judges one after another."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries: dict[str, CatalogueEntry] = {}
        self.unreadable: dict[str, UnreadableFolder] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._judge_folders, name="judge", daemon=True)

    def start(self) -> None:
        """Starts judging."""
        self._thread.start()

    def stop(self) -> None:
        """Stops judging after the current folder."""
        self._stop.set()

    def refresh_entries(self) -> None:
        """Finds new folders and forgets deleted ones."""
        entries: dict[str, CatalogueEntry] = {}
        unreadable: dict[str, UnreadableFolder] = {}
        for path in list_paths(self.root):
            name, stamp = identify_folder(path), stamp_header(path)
            entry = self.entries.get(name) or self.unreadable.get(name)
            if entry is None or entry.stamp != stamp:
                entry = open_entry(path, stamp)
            if isinstance(entry, UnreadableFolder):
                unreadable[name] = entry
            else:
                entries[name] = entry
        self.entries, self.unreadable = entries, unreadable

    def find_folder(self, name: str) -> Folder | None:
        """The folder with this identity. Only folders below the root have an identity, so requests cannot name other
        paths."""
        if name not in self.entries:
            self.refresh_entries()
        entry = self.entries.get(name)
        return None if entry is None else entry.folder

    def list_rows(self) -> list[dict[str, Any]]:
        """A row for each folder, with the newest first."""
        self.refresh_entries()
        locks = read_locks()
        rows = [
            {
                "id": name,
                "name": entry.folder.name,
                "time": entry.folder.path.name,
                "question": text_of(entry.folder.header.get("question")),
                "running": holds_lock(entry.folder.path, locks),
                **dict.fromkeys(SUMMARY, ""),
                **(entry.summary or sketch_folder(entry)),
            }
            for name, entry in self.entries.items()
        ]
        rows += [unreadable_row(name, entry) for name, entry in self.unreadable.items()]
        return sorted(rows, key=lambda row: str(row["time"]), reverse=True)

    def _judge_folders(self) -> None:
        # The first refresh takes longer than later refreshes, so it must not happen during the first request.
        self.refresh_entries()
        while not self._stop.wait(PAUSE_SECONDS):
            for entry in self._find_unjudged():
                if self._stop.is_set():
                    return
                entry.summary, entry.size = summarise_folder(entry.folder), size_of(entry.folder)

    def _find_unjudged(self) -> Iterator[CatalogueEntry]:
        """The folders without a judgement of their current values; none while a run is being measured."""
        for entry in [*self.entries.values()][::-1]:
            locks = read_locks()
            if any(holds_lock(other.folder.path, locks) for other in [*self.entries.values()]):
                return
            if size_of(entry.folder) != entry.size:
                yield entry


def stamp_header(path: Path) -> tuple[int, int]:
    """The modification time and the size of a folder's header; zeros if there is no header."""
    try:
        status = os.stat(path / "folder.json")
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def open_entry(path: Path, stamp: tuple[int, int]) -> CatalogueEntry | UnreadableFolder:
    """An entry for a folder, or the reason why it cannot be opened."""
    try:
        folder = Folder(path)
        # Reading the question now detects any damage to it, which would otherwise break the listing.
        _ = folder.question
    except LoadstoneError as error:
        return UnreadableFolder(path, stamp, str(error.args[0]))
    return CatalogueEntry(folder, stamp)


def unreadable_row(name: str, folder: UnreadableFolder) -> dict[str, Any]:
    """The row of a folder that cannot be opened, with the reason in place of the question."""
    experiment, _, time = name.rpartition("/")
    row = {"id": name, "name": experiment, "time": time, "question": folder.reason, "running": False}
    return {**row, **dict.fromkeys(SUMMARY, ""), "verdict": UNREADABLE, "answer": folder.reason}


def identify_folder(path: Path) -> str:
    """The identity of a folder: `experiment/time`."""
    return printable(Path(path.parent.name, path.name))


def size_of(folder: Folder) -> int:
    """The size of a folder's values, B; 0 if the folder has no values."""
    try:
        return (folder.path / VALUES).stat().st_size
    except OSError:
        return 0


def text_of(question: Any) -> str:
    """The text of a recorded question; empty if the question is damaged."""
    return str(question.get("text") or "") if isinstance(question, dict) else ""


def sketch_folder(entry: CatalogueEntry) -> Mapping[str, Any]:
    """The systems of the first block, or else of the first trial, and the metrics of this trial.

    They are read again until the first trial has figures.
    """
    if entry.sketch:
        return entry.sketch
    folder, configs = entry.folder, list[Mapping[str, Scalar]]()
    results = ResultSet(folder.name, [], folder.question)
    with suppress(LoadstoneError, ValueError, OverflowError):
        configs = [config for _, block in islice(folder.read_plan(), 1) for config in block.values()]
        first = [parse_attempt(line) for _, line in islice(iterate_lines(folder.path / VALUES), 1)]
        results = replace(results, trials=[attempt for attempt in first if attempt is not None])
    sketch = {"systems": name_systems(configs, results), "metrics": ", ".join(results.headline_metrics)}
    if results.metrics:
        entry.sketch = sketch
    return sketch


def name_systems(configs: Iterable[Mapping[str, Scalar]], results: ResultSet) -> str:
    """The systems that vary, or else the store of the first trial."""
    systems = dict.fromkeys(config["system"] for config in configs if "system" in config)
    return ", ".join(map(str, systems or [trial.facts.get("store", "") for trial in results.trials[:1]]))


def summarise_folder(folder: Folder) -> dict[str, Any]:
    """The judge's summary of a folder, or an error message if the folder cannot be read or judged."""
    try:
        judgement = judge_results(folder.load_results())
    except LoadstoneError as error:
        return {"verdict": "damaged", "answer": str(error.args[0])}
    except Exception as error:
        # A foreign folder may have any content, but must not prevent the listing of other folders.
        return {"verdict": "damaged", "answer": f"cannot be judged: {error}"}
    results = judgement.results
    answers = [expectation.answer for expectation in judgement.expectations]
    return {
        "verdict": str(judgement.answer_verdict) if results.trials else "empty",
        "answer": judgement.answer,
        "trials": len(results.trials),
        "systems": name_systems((trial.config for trial in results.trials), results),
        "metrics": ", ".join(results.headline_metrics),
        "expectations": ", ".join(f"{answers.count(name)} {name}" for name in dict.fromkeys(answers)),
    }
