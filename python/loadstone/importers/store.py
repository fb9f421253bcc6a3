"""Writes what was imported into a result folder, where everything that works on our own trials works on it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.importers.read import Imported
from loadstone.results.folder import IMPORTED, Folder, new_path
from loadstone.results.result_set import Question


def store(imported: Sequence[Imported], root: Path, name: str, question: str, sources: Sequence[Path]) -> Folder:
    """Makes `<root>/imported/<UTC time>` of trials. Raises LoadstoneError when two of them have the same name."""
    names = [each.result.trial for each in imported]
    for trial in names:
        if names.count(trial) > 1:
            raise LoadstoneError(f'two trials are called "{trial}"', "import the files apart, or rename one of them")
    folder = Folder.create(
        new_path(root, IMPORTED),
        name,
        Question(text=question),
        interleaved=False,
        sources=[os.path.basename(source) for source in sources],
    )
    for each in imported:
        with folder.trial(each.result.trial) as files:
            if each.series is not None:
                (files / "series.json").write_text(json.dumps(each.series.to_json()) + "\n")
        folder.append(each.result)
    return folder
