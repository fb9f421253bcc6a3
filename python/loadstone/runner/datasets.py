"""The data directories of trials: temporary directories, and copies of data that was loaded only once."""

from __future__ import annotations

import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.systems.base.files import program

PREFIX = "loadstone-"


class DataSpace:
    """The data of one run, in a subdirectory of a directory that the experiment names."""

    def __init__(self, directory: Path, run: str) -> None:
        """`run` distinguishes runs that share the directory. Raises LoadstoneError if the directory cannot be used."""
        self.path = directory / f"{PREFIX}{run}"
        try:
            # Removes the files of an earlier attempt at this run that was killed.
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LoadstoneError(
                f"cannot use {directory}: {error.strerror}",
                "set `directory` in the experiment file to an existing directory",
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise LoadstoneError(
                f"{directory} is not writable", "set `directory` in the experiment file to a writable directory"
            )

    def empty_directory(self) -> Path:
        """An empty directory for the next trial."""
        path = self.path / "trial"
        remove(path)
        path.mkdir()
        return path

    def copy_source(self, key: str) -> Path:
        """The directory of the loaded data that several trials copy."""
        return self.path / f"loaded-{key}"

    def copy(self, source: Path, target: Path) -> None:
        """Copies loaded data, as a reflink if the file system supports it. Raises LoadstoneError."""
        remove(target)
        argv = ["cp", "--archive", "--reflink=auto", "--sparse=always", "--", str(source), str(target)]
        hint = "free space in the experiment's `directory`, or use fewer records"
        program.run_program(argv, "cannot copy the loaded data", hint)


class DataSpaces(AbstractContextManager["DataSpaces"]):
    """The data spaces of a run, one for each directory that its variants name. They are removed when the run ends."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._spaces: dict[Path, DataSpace] = {}

    def __exit__(self, *_: object) -> None:
        for space in self._spaces.values():
            shutil.rmtree(space.path, ignore_errors=True)

    def space_at(self, directory: Path) -> DataSpace:
        """The data space below a directory. Raises LoadstoneError if the directory cannot be used."""
        if directory not in self._spaces:
            self._spaces[directory] = DataSpace(directory, self._run)
        return self._spaces[directory]


def remove(path: Path) -> None:
    """Removes a directory. Raises LoadstoneError if anything remains, because the next trial would use the remains."""
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        raise LoadstoneError(f"cannot remove {path}", "stop the processes that use it: `fuser -v` lists them")
