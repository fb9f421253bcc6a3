"""Opens results by name: a result folder, the latest folder of an experiment, or a file from another tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from loadstone.errors import LoadstoneError
from loadstone.results.archive import is_archive, unpack_archive
from loadstone.results.folder import Folder, find_folders
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Scalar

EXPERIMENTS = (".yaml", ".yml")


def open_results(name: str, root: Path, facts: Mapping[str, Scalar] = MappingProxyType({})) -> ResultSet:
    """Reads the results at a path, or the latest results of an experiment; `facts` supplies data that a file lacks.

    Raises LoadstoneError if there are no results, or if facts are stated for a result folder.
    """
    if not name.strip():
        raise LoadstoneError("the name of a result is empty", "name a result folder, an experiment or a file")
    path = Path(name)
    if path.is_file() and path.suffix not in EXPERIMENTS and not is_archive(path):
        return from_file(path, facts)
    if facts:
        if not path.exists():
            folder_at(name, root)
        message = f"facts can be stated only for files from other tools: {name} is a result"
        raise LoadstoneError(message, f"import its logs again: `loadstone import --fact {next(iter(facts))}=… LOG`")
    results = folder_at(name, root).load_results()
    return replace(results, path=path) if path.is_file() else results


def folder_at(name: str, root: Path) -> Folder:
    """The result folder for a path, an archive or the name of an experiment. Raises LoadstoneError if there is none."""
    path = Path(name)
    if path.is_dir():
        return open_folder(path)
    if path.suffix in EXPERIMENTS:
        hint = f"name a result folder; `loadstone run {name} --dry-run` shows the experiment's plan"
        raise LoadstoneError(f"{name} is an experiment, not a result", hint)
    if is_archive(path):
        return unpack_archive(path)
    if path.is_file():
        raise LoadstoneError(f"{name} is not a result folder", "import it first with `loadstone import`")
    named = [folder for folder in find_folders(root) if name in (folder.path.parent.name, folder.name)]
    if named:
        return named[-1]
    raise LoadstoneError(f"there are no results at {name}", f"list the results below {root} with `loadstone list`")


def open_folder(path: Path) -> Folder:
    """The result folder at a path, or the latest in an experiment's folder. Raises LoadstoneError if there is none."""
    if not (path / "folder.json").exists():
        inside = sorted(header.parent for header in path.glob("*/folder.json"))
        if inside:
            return Folder(inside[-1])
    return Folder(path)


def from_file(path: Path, facts: Mapping[str, Scalar]) -> ResultSet:
    """Reads a file from another tool as a result set, without writing anything."""
    from loadstone.importers.read import logs_of, read_file

    imported = read_file(path, facts)
    series = {trial_import.result.trial: trial_import.series for trial_import in imported}
    return ResultSet(
        name=path.name,
        trials=[trial_import.result for trial_import in imported],
        question=Question(),
        series=series.get,
        log=logs_of(imported).get,
        path=path,
    )
