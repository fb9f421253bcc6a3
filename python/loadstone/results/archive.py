"""Archives a result folder as one zip file, which opens like the folder, and exports all its data in open formats."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from loadstone.errors import LoadstoneError
from loadstone.results.folder import UNDER_WAY, Folder
from loadstone.results.redaction import Redaction
from loadstone.results.result_set import ResultSet

SUFFIX = ".zip"
# Files that an archive omits, in addition to the files of trials in progress.
OMITTED = ("lock",)
# A redacted archive omits reports: their charts contain names, and they can be generated again.
REPORT = ("report.html", "report.md", "report")
# The time of every member, so that equal folders give equal archives: the first instant that a zip file can represent.
EPOCH = (1980, 1, 1, 0, 0, 0)
# Unpacked archives, which are deleted when this process exits.
_unpacked: list[tempfile.TemporaryDirectory[str]] = []


def list_files(folder: Folder) -> Iterator[Path]:
    """The files of a folder that belong in its archive, in a fixed order."""
    home = folder.path.resolve()
    for path in sorted(folder.path.rglob("*")):
        parts = path.relative_to(folder.path).parts
        if parts[0] in OMITTED or any(part.endswith(UNDER_WAY) for part in parts):
            continue
        # A link in a foreign folder must not add a file from another directory.
        if path.is_file() and path.resolve().is_relative_to(home):
            yield path


def write_archive(folder: Folder, path: Path, *, redact: bool) -> list[str]:
    """Writes a folder as a zip file, with members below `<experiment>/<time>/`. Returns the names of omitted files.

    With `redact`, host names and absolute paths are replaced, and reports and binary files are omitted. Raises
    LoadstoneError if a file cannot be read or written.
    """
    every = list(list_files(folder))
    omitted: list[str] = []
    if redact:
        every = [file for file in every if file.relative_to(folder.path).parts[0] not in REPORT]
    try:
        redaction = Redaction(every) if redact else None
        root = PurePosixPath(folder.path.parent.resolve().name, folder.path.resolve().name)
        new = path.with_name(f".{path.name}.new")
        try:
            with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
                for file in every:
                    name = str(root / file.relative_to(folder.path).as_posix())
                    data = file.read_bytes()
                    if redaction is not None:
                        text = redaction.redact_file(file, data)
                        if text is None:
                            omitted.append(name)
                            continue
                        name, data = redaction.redact_member(name), text
                    archive.writestr(zipfile.ZipInfo(name, EPOCH), data, zipfile.ZIP_DEFLATED)
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except UnicodeEncodeError as error:
        message = f"cannot archive {folder.path}: the name of a file is not valid UTF-8"
        raise LoadstoneError(message, "rename the file") from error
    except OSError as error:
        where = error.filename or path
        raise LoadstoneError(f"cannot write {where}: {error.strerror}", "name a writable file with --output") from error
    return omitted


def is_archive(path: Path) -> bool:
    """Whether a file is a zip file."""
    return path.is_file() and zipfile.is_zipfile(path)


def unpack_archive(path: Path) -> Folder:
    """Unpacks the result folder in an archive to a temporary directory.

    Raises LoadstoneError if the archive is damaged, or does not contain exactly one result folder.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            headers = [name for name in archive.namelist() if PurePosixPath(name).name == "folder.json"]
            if len(headers) != 1:
                message = f"{path} has {len(headers)} result folders instead of one"
                raise LoadstoneError(
                    message, "create an archive of a result folder with `loadstone export DIR -o FILE.zip`"
                )
            for member in archive.infolist():
                check_member(path, member)
            directory = tempfile.TemporaryDirectory(prefix="loadstone-")
            _unpacked.append(directory)
            total = sum(member.file_size for member in archive.infolist())
            if total > shutil.disk_usage(directory.name).free:
                message = f"{path} unpacks to {total:,} B, but {directory.name} has less free space"
                raise LoadstoneError(message, "set TMPDIR to a directory with more space")
            # Members usually lie below `<experiment>/<time>/`; `archive/1` replaces missing parents.
            depth = len(PurePosixPath(headers[0]).parts) - 1
            target = Path(directory.name, *("archive", "1")[: max(0, 2 - depth)])
            archive.extractall(target)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise LoadstoneError(f"cannot read {path}: {error}", "the archive is damaged: copy it again") from error
    return Folder(Path(target, headers[0]).parent)


def check_member(path: Path, member: zipfile.ZipInfo) -> None:
    """Raises LoadstoneError for a member outside the archive's directory."""
    name = PurePosixPath(member.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts:
        message = f'{path} has a member outside its directory: "{member.filename}"'
        raise LoadstoneError(message, "do not trust this archive")


def write_everything(results: ResultSet, directory: Path) -> None:
    """Writes each table as Parquet and each histogram log below a directory. Raises LoadstoneError."""
    # Imported on demand, because every command that opens a folder imports this module.
    import pyarrow.parquet as pq

    from loadstone.results import export

    tables = {
        "figures": export.figures_table,
        "trials": export.trials_table,
        "intervals": export.intervals_table,
        "facts": export.facts_table,
    }
    tables |= {"hosts": export.hosts_table, "samples": export.host_samples}
    try:
        (directory / "histograms").mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            pq.write_table(table(results), directory / f"{name}.parquet")
        for trial in results.trials:
            source = results.files(trial.trial)
            for log in sorted(source.glob("*.hlog")) if source is not None else ():
                shutil.copyfile(log, directory / "histograms" / f"{trial.trial.replace(':', '.')}.{log.name}")
    except OSError as error:
        hint = "name a writable directory with --output"
        raise LoadstoneError(f"cannot write {directory}: {error.strerror}", hint) from error
