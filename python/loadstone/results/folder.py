"""A result folder: all data of one run of an experiment, or of one import.

    results/<name>/<UTC time>/
        folder.json        the format's version, the question, how the trials were ordered
        experiment.yaml    the experiment as run, with every default written out
        environment.json   the hosts of the run
        plan.jsonl         the trials in their planned order, a block per line
        pilot.json         the warm-up that the pilot block found; its trials, which do not count, are in pilot.jsonl
        values.jsonl       a trial per line: its variant, its figures, their units and sample counts
        trials/<trial>/    spec.json, events.jsonl, load.hlog, run.hlog, series.json, observed.jsonl, faults.jsonl
        report.html, report.md

A line of values.jsonl is a whole trial, so a damaged line costs only one trial. A trial that had to be repeated has a
line for each attempt, and the files of later attempts are in `trials/<trial>.<attempt>/`. The last attempt that was
not interrupted counts.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import shutil
import stat
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from loadstone.engine.document import read_document
from loadstone.errors import LoadstoneError
from loadstone.format import units
from loadstone.results import lines
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Scalar, Series, TrialName, TrialResult

VERSION = 2
ROOT = Path("results")
IMPORTED = "imported"
UNDER_WAY = ".part"
# The results of all attempts, one per line.
VALUES = "values.jsonl"
# The warm-up that the pilot block found, and the trials of this block.
PILOT, PILOT_TRIALS = "pilot.json", "pilot.jsonl"
# The records of faults, in the files of an attempt; a record is added after each step of a fault.
FAULTS = "faults.jsonl"
# The file of an attempt in progress, with the line that records the attempt as interrupted if the lab exits.
ATTEMPT_START = "begun.json"


class Folder:
    """A result folder on disk."""

    def __init__(self, path: Path) -> None:
        """Opens a folder. Raises LoadstoneError if it is not a result folder, or its version is unknown."""
        require_text(path)
        self.path = path
        try:
            if (special := find_special_file(path)) is not None:
                raise LoadstoneError(f"{path / special} is not a regular file", "the folder is damaged")
            header = lines.parse_json((path / "folder.json").read_bytes())
        except FileNotFoundError:
            log = next((entry for entry in sorted(path.glob("*")) if entry.is_file()), None)
            hint = f"; name the logs of other tools one by one, such as {log}" if log and path != Path() else ""
            raise LoadstoneError(
                f"{path} is not a result folder: it has no folder.json",
                f"`loadstone list` shows all result folders{hint}",
            ) from None
        except (OSError, ValueError) as error:
            raise LoadstoneError(f"cannot read {path / 'folder.json'}: {error}", "the folder is damaged") from error
        version = header.get("results") if isinstance(header, dict) else None
        if not isinstance(version, int) or not 1 <= version <= VERSION:
            raise LoadstoneError(
                f"{path} has results of version {version}, but this loadstone reads versions 1 to {VERSION}",
                "use the version of loadstone that wrote it, or a newer version",
            )
        self.header: dict[str, Any] = header

    @classmethod
    def create_folder(
        cls,
        path: Path,
        name: str,
        question: Question,
        *,
        interleaved: bool,
        experiment: str = "",
        environment: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Folder:
        """Creates a folder; `more` is added to folder.json. Raises LoadstoneError if this fails."""
        require_text(path)
        header = {"results": VERSION, "name": name, "question": asdict(question), "interleaved": interleaved, **more}
        try:
            (path / "trials").mkdir(parents=True)
            # Syncs up to the parent of `results`, which may also be new.
            for directory in path.parents[:3]:
                with contextlib.suppress(PermissionError):
                    lines.sync_directory(directory)
            if experiment:
                lines.replace_file(path / "experiment.yaml", experiment.encode())
            lines.replace_file(path / "environment.json", indent_json(dict(environment or {})))
            # This file is written last: without it, the folder does not count as a result folder.
            lines.replace_file(path / "folder.json", indent_json(header))
        except OSError as error:
            raise LoadstoneError(
                f"cannot create {path}: {error.strerror}", "choose another directory for results with --results DIR"
            ) from error
        return cls(path)

    def record_hosts(self, hosts: Sequence[Mapping[str, Any]]) -> None:
        """Records the hosts of a fleet in environment.json, after the entry for this machine."""
        environment = self._read_json("environment.json", [])
        own = {"role": "lab", **next(iter(environment.get("hosts", ())), {})}
        lines.replace_file(self.path / "environment.json", indent_json({**environment, "hosts": [own, *hosts]}))

    @property
    def name(self) -> str:
        """The folder's name in tables."""
        return str(self.header.get("name") or self.path.name)

    @property
    def identity(self) -> str:
        """A name that distinguishes this folder's data in a data directory. A resumed run has the same name."""
        return f"{self.path.parent.name}-{zlib.crc32(str(self.path.resolve()).encode()):08x}"

    @cached_property
    def question(self) -> Question:
        """The question. Raises LoadstoneError if it is damaged."""
        try:
            question = read_document(Question, self.header.get("question", {}))
            question.require_valid()
        except ValueError as error:
            raise LoadstoneError(
                f"{self.path / 'folder.json'} has an unreadable question: {error.args[0]}", "the folder is damaged"
            ) from error
        return question

    @contextlib.contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Excludes all other labs. However this process exits, the kernel then releases the lock.

        Raises LoadstoneError if another lab is writing to this folder.
        """
        with (self.path / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LoadstoneError(
                    f"another loadstone is writing to {self.path}", "wait until it finishes, or stop it with Ctrl-C"
                ) from None
            # The time at which this lab started: the live page ignores the pause before it.
            os.utime(file.fileno())
            yield

    def repair_lines(self) -> list[str]:
        """Records interrupted attempts and removes damaged lines, so that the run can continue; returns messages."""
        repairs = []
        for name in ("plan.jsonl", VALUES, PILOT_TRIALS):
            if damaged := lines.mend_file(self.path / name):
                repairs.append(f"{name}: moved damaged lines ({', '.join(map(str, damaged))}) to {name}.damaged")
        for marker in sorted((self.path / "trials").glob(f"*/{ATTEMPT_START}")):
            self._record_interrupted(marker)
        for left in (self.path / "trials").glob(f"*{UNDER_WAY}"):
            shutil.rmtree(left, ignore_errors=True)
        return repairs

    def _record_interrupted(self, marker: Path) -> None:
        """Records the attempt that a marker file describes as interrupted, unless the attempt already has a line."""
        try:
            document = lines.parse_json(marker.read_bytes())
            result = TrialResult.from_json(document["line"])
            if document["table"] not in (VALUES, PILOT_TRIALS):
                return
        except (KeyError, TypeError, ValueError, OverflowError):
            return
        known = {(result.trial, result.attempt) for result in self.read_attempts(document["table"])[0]}
        files = self.files_of(result.trial, result.attempt)
        if marker.parent != files:
            shutil.rmtree(files, ignore_errors=True)
            lines.rename_durably(marker.parent, files)
        if (result.trial, result.attempt) not in known:
            self.append_trial(result, document["table"])
        (files / ATTEMPT_START).unlink(missing_ok=True)

    def record_block(
        self, block: int, trials: Mapping[str, Mapping[str, Scalar]], *, expected: int | None = None
    ) -> None:
        """Records a block's trials in their order, before the first of them runs; in a search, also the number of
        trials that the whole run is expected to have."""
        planned = [{"trial": trial, "config": dict(config)} for trial, config in trials.items()]
        more = {} if expected is None else {"expected": expected}
        lines.append_line(self.path / "plan.jsonl", {"block": block, "trials": planned, **more})

    @property
    def blocks(self) -> list[int]:
        """The numbers of the planned blocks, from 1."""
        return [block for block, _ in self.read_plan()]

    def read_plan(self) -> Iterator[tuple[int, dict[str, dict[str, Scalar]]]]:
        """Yields the number of each block, and its trials with their configs; invalid lines are omitted."""
        for document in lines.read_lines(self.path / "plan.jsonl").documents:
            try:
                trials = {trial["trial"]: trial["config"] for trial in document["trials"]}
                yield int(document["block"]), read_document(dict[TrialName, dict[str, Scalar]], trials)
            except (KeyError, TypeError, ValueError, OverflowError):
                continue

    def files_of(self, trial: str, attempt: int) -> Path:
        """The directory of an attempt's files."""
        return self.path / "trials" / (trial if attempt == 1 else f"{trial}.{attempt}")

    @contextlib.contextmanager
    def open_attempt(
        self, trial: str, attempt: int = 1, *, start: TrialResult | None = None, table: str = VALUES
    ) -> Iterator[Path]:
        """A directory for the files of an attempt, which gets its final name when the attempt has finished.

        `repair_lines` adds `start` to the table if the lab exits before the attempt has a line.
        """
        final = self.files_of(trial, attempt)
        part = final.with_name(final.name + UNDER_WAY)
        shutil.rmtree(part, ignore_errors=True)
        try:
            part.mkdir(parents=True)
            if start is not None:
                lines.replace_file(part / ATTEMPT_START, indent_json({"table": table, "line": start.to_json()}))
            yield part
            lines.sync_files(part)
            shutil.rmtree(final, ignore_errors=True)
            lines.rename_durably(part, final)
        except OSError as error:
            raise LoadstoneError(
                f"cannot write {part}: {error.strerror}",
                "free some space, then continue with `loadstone run --resume`: earlier results are kept",
            ) from error

    def append_trial(self, result: TrialResult, table: str = VALUES) -> None:
        """Adds a trial; it is on the device when this function returns. Raises LoadstoneError if there is no space."""
        counts = {"counts": False} if table == PILOT_TRIALS else {}
        lines.append_line(self.path / table, {**result.to_json(), **counts})
        (self.files_of(result.trial, result.attempt) / ATTEMPT_START).unlink(missing_ok=True)

    def load_series(self, trial: str, attempt: int = 1) -> Series | None:
        """A trial's time series; None if it was not written or is damaged."""
        try:
            return Series.from_json(lines.parse_json((self.files_of(trial, attempt) / "series.json").read_bytes()))
        except (OSError, TypeError, ValueError):
            return None

    def read_attempts(self, name: str = VALUES) -> tuple[list[TrialResult], list[str]]:
        """Every attempt at every trial, in the order in which they finished, and warnings about omitted lines."""
        attempts, warnings = [], []
        for number, line in lines.iterate_lines(self.path / name):
            try:
                attempt = parse_attempt(line)
            except (ValueError, OverflowError) as error:
                warnings.append(f"{name}: a line is not a trial and is omitted ({error})")
                continue
            if attempt is None:
                warnings.append(f"{name}:{number} is damaged and is omitted")
            else:
                attempts.append(attempt)
        return attempts, warnings

    def read_pilots(self) -> list[TrialResult]:
        """The trials of the pilot block, which never count; for each, the last attempt that was not interrupted."""
        attempts, _ = self.read_attempts(PILOT_TRIALS)
        return list({result.trial: result for result in attempts if not result.was_interrupted}.values())

    def load_results(self) -> ResultSet:
        """Reads everything except series and histograms. Raises LoadstoneError if the folder cannot be read."""
        with pause_collector():
            return self._load_results()

    def _load_results(self) -> ResultSet:
        attempts, warnings = self.read_attempts()
        trials: dict[str, TrialResult] = {}
        interrupted = Counter(result.trial for result in attempts if result.was_interrupted)
        for result in attempts:
            before = trials.get(result.trial)
            # A line that was copied back, for instance in an editor, belongs to an attempt that has already been read.
            if result.was_interrupted or (before is not None and result.attempt < before.attempt):
                continue
            if before is None and not interrupted[result.trial]:
                trials[result.trial] = result
                continue
            failures = () if before is None else (*before.failures, *([before.reason] if before.is_failure else []))
            trials[result.trial] = replace(result, failures=failures, interruptions=interrupted[result.trial])
        planned = {trial: config for _, block in self.read_plan() for trial, config in block.items()}
        if strange := [name for name, trial in trials.items() if planned and trial.config != planned.get(name)]:
            number = units.count_noun(len(strange), "trial")
            warnings.append(f"plan.jsonl lacks {number}, such as {strange[0]}, which may belong to another run")

        def files_of(trial: str) -> Path:
            return self.files_of(trial, trials[trial].attempt if trial in trials else 1)

        return ResultSet(
            name=self.name,
            trials=sorted(trials.values(), key=lambda trial: (trial.order is None, trial.order or 0)),
            question=self.question,
            planned=planned,
            interleaved=bool(self.header.get("interleaved")),
            environment=self._read_json("environment.json", warnings),
            pilot=self._read_json(PILOT, warnings),
            pilots=self.read_pilots(),
            experiment=self._read_text("experiment.yaml", warnings),
            series=lambda trial: self.load_series(trial, trials[trial].attempt if trial in trials else 1),
            files=files_of,
            path=self.path,
            warnings=tuple(warnings),
        )

    def _read_text(self, name: str, warnings: list[str]) -> str:
        try:
            return (self.path / name).read_text(errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            warnings.append(f"{name} cannot be read and is omitted ({error.strerror})")
            return ""

    def _read_json(self, name: str, warnings: list[str]) -> dict[str, Any]:
        text = self._read_text(name, warnings)
        try:
            document = lines.parse_json(text.encode() or b"{}")
        except ValueError:
            document = None
        if not isinstance(document, dict):
            warnings.append(f"{name} is damaged and omitted")
            return {}
        return document


def parse_attempt(line: bytes) -> TrialResult | None:
    """The attempt in a line; None if the line is damaged. Raises ValueError or OverflowError if it is not a trial."""
    try:
        return TrialResult.from_line(line)
    except (ValueError, OverflowError):
        # Python's JSON reader decides which lines are damaged, and states the reasons.
        document = lines.parse_line(line)
        return None if document is None else TrialResult.from_json(document)


def find_special_file(path: Path) -> str | None:
    """The name of a pipe, socket or device in a directory; reading it could block forever. None if there is none."""
    for entry in os.scandir(path):
        with contextlib.suppress(OSError):
            mode = entry.stat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                return entry.name
    return None


def printable(path: Path) -> str:
    """A path as text that can be printed and sent: bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


def require_text(path: Path) -> None:
    """Raises LoadstoneError for a path that pages, archives and reports cannot contain."""
    if printable(path) != str(path):
        raise LoadstoneError(f"the path {printable(path)} is not valid UTF-8", "rename the directory")


@contextlib.contextmanager
def pause_collector() -> Iterator[None]:
    """Pauses the cyclic garbage collector: for a million new objects, it would take as long as reading them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                # Moves the new objects to the oldest generation; otherwise, the next collection would visit them all.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def indent_json(document: Mapping[str, Any]) -> bytes:
    """A document as indented JSON, for human readers."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def new_path(root: Path, name: str, now: datetime | None = None) -> Path:
    """A folder's path: `<root>/<name>/<UTC time>`, with a number after it if the path is already in use."""
    time = name_time(now or datetime.now(UTC))
    candidates = (root / name / (time if not n else f"{time}-{n}") for n in range(1000))
    return next(path for path in candidates if not path.exists())


def name_time(time: datetime) -> str:
    """A time in UTC as the name of a folder."""
    return time.strftime("%Y-%m-%dT%H-%M-%SZ")


def find_folders(root: Path) -> list[Folder]:
    """Every folder below a root that can be opened, sorted by name and time."""
    return survey_folders(root)[0]


def survey_folders(root: Path) -> tuple[list[Folder], list[str]]:
    """All folders below a root, sorted by name and time, and a message about each folder that cannot be opened."""
    folders, problems = [], []
    for path in list_paths(root):
        try:
            folder = Folder(path)
            # Reads the question here, because a damaged question would otherwise stop the listing.
            _ = folder.question
            folders.append(folder)
        except LoadstoneError as error:
            problems.append(f"omitted: {error.args[0]}")
    return folders, problems


def list_paths(root: Path) -> list[Path]:
    """The directories below a root that are complete or incomplete result folders, sorted by name and time."""
    return sorted(directory for directory in root.glob("*/*") if is_like_folder(directory))


def is_like_folder(path: Path) -> bool:
    """Whether a directory is a complete or incomplete result folder."""
    try:
        return path.is_dir() and any((path / name).exists() for name in ("folder.json", "environment.json", VALUES))
    except OSError:
        return False


def latest_folder(root: Path, name: str) -> Folder | None:
    """The latest run of an experiment."""
    return next((folder for folder in reversed(find_folders(root)) if folder.path.parent.name == name), None)
