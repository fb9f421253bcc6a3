"""Where a trial's data lie: a directory of its own that is gone afterwards, or a copy of what was loaded once."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from loadstone.errors import LoadstoneError

PREFIX = "loadstone-"


class DataSpace:
    """The data of one experiment's run, below the directory that the experiment names."""

    def __init__(self, directory: Path, run: str) -> None:
        """`run` tells this run from others that share the directory. Raises LoadstoneError when it cannot be used."""
        self.path = directory / f"{PREFIX}{run}"
        try:
            # What a run that was killed has left behind.
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LoadstoneError(
                f"cannot use {directory}: {error.strerror}", "name a directory that is there in the file's `directory`"
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise LoadstoneError(f"{directory} cannot be written to", "name another in the file's `directory`")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def fresh(self) -> Path:
        """The trial's directory, empty."""
        path = self.path / "trial"
        remove(path)
        path.mkdir()
        return path

    def loaded(self, key: str) -> Path:
        """Where data that several trials share are kept."""
        return self.path / f"loaded-{key}"

    def copy(self, source: Path, target: Path) -> None:
        """Copies loaded data; where the file system can share blocks, it does. Raises LoadstoneError."""
        remove(target)
        copied = subprocess.run(
            ["cp", "--archive", "--reflink=auto", "--sparse=always", "--", source, target],
            capture_output=True,
            text=True,
        )
        if copied.returncode:
            raise LoadstoneError(
                f"cannot copy the loaded data: {copied.stderr.strip().splitlines()[-1:] or 'cp failed'}",
                "make room in the file's `directory`, or take fewer records",
            )


class DataSpaces:
    """The data spaces of a run, one for each directory that its variants name; gone when the run ends."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._spaces: dict[Path, DataSpace] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def at(self, directory: Path) -> DataSpace:
        """The space below a directory. Raises LoadstoneError when it cannot be used."""
        if directory not in self._spaces:
            self._spaces[directory] = self._stack.enter_context(DataSpace(directory, self._run))
        return self._spaces[directory]


def remove(path: Path) -> None:
    """Removes a directory. Raises LoadstoneError when something of it stays: the next trial would find it."""
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        raise LoadstoneError(f"cannot remove {path}", "end the processes that still use it; `fuser -v` shows them")
