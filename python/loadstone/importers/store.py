"""Writes imported runs to a result folder, where they can be used like Loadstone's own trials."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.importers.read import Imported
from loadstone.results.folder import IMPORTED, Folder, new_path
from loadstone.results.result_set import Question

# Logs larger than this are not copied: folder.json contains only their names.
COPIED_MAX = 100_000_000


def store_runs(imported: Sequence[Imported], root: Path, name: str, question: str, sources: Sequence[Path]) -> Folder:
    """Creates `<root>/imported/<UTC time>` from trials, each with a unique name."""
    folder = Folder.create_folder(
        new_path(root, IMPORTED),
        name,
        Question(text=question),
        interleaved=False,
        sources=[os.path.basename(source) for source in sources],
    )
    for entry in imported:
        with folder.open_attempt(entry.result.trial) as files:
            if entry.series is not None:
                (files / "series.json").write_text(json.dumps(entry.series.to_json()) + "\n")
        folder.append_trial(entry.result)
    copy_sources(sources, folder.path / "sources")
    return folder


def copy_sources(sources: Sequence[Path], directory: Path) -> None:
    """Copies the source files and their facts files, so that each figure can be traced. Raises LoadstoneError."""
    facts = [source.with_name(f"{source.name}.facts.yaml") for source in sources]
    try:
        directory.mkdir()
        for number, file in enumerate([*sources, *facts]):
            if file.exists() and file.stat().st_size <= COPIED_MAX:
                target = directory / file.name
                shutil.copyfile(file, target if not target.exists() else directory / f"{number}-{file.name}")
    except OSError as error:
        raise LoadstoneError(
            f"cannot copy to {directory}: {error.strerror}", "free some space, then import again"
        ) from error
