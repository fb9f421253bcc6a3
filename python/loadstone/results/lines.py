"""Append-only files of JSON lines: a reader sees either a complete line or none.

A process that is killed while it appends leaves a partial line, and so does a full device. A partial line must not
damage earlier lines, or make the next line unreadable.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.engine.document import DIGITS_MAX
from loadstone.errors import LoadstoneError

# An escaped half of a surrogate pair; two halves are one character.
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class Lines:
    """The contents of a file: its documents, and the numbers (from 1) of the lines that cannot be read."""

    documents: list[dict[str, Any]]
    damaged: list[int]


def read_lines(path: Path) -> Lines:
    """Reads every line; a missing file has no lines. Raises LoadstoneError if the file cannot be read."""
    parsed_lines = [(number, parse_line(line)) for number, line in iterate_lines(path)]
    documents = [document for _, document in parsed_lines if document is not None]
    return Lines(documents, [number for number, document in parsed_lines if document is None])


def iterate_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields the non-empty lines, each with its number from 1; none if the file is missing. Raises LoadstoneError."""
    try:
        with path.open("rb") as file:
            yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())
    except FileNotFoundError:
        return
    except OSError as error:
        raise LoadstoneError(f"cannot read {path}: {error.strerror}", "check the folder's permissions") from error


def number_lines(data: bytes) -> list[tuple[int, bytes, dict[str, Any] | None]]:
    """The non-empty lines, each with its number from 1 and its document, which is None if the line is damaged."""
    every = enumerate(data.split(b"\n"), 1)
    return [(number, line, parse_line(line)) for number, line in every if line.strip()]


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The document in a line; None if the line is damaged."""
    try:
        document = parse_json(line, parse_constant=refuse_constant)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def parse_json(data: bytes, **options: Any) -> Any:
    """A JSON document. Raises ValueError if it is damaged or nested too deeply, or has an integer that no float can
    represent, or text that cannot be written as UTF-8."""
    try:
        document = json.loads(data, parse_int=parse_integer, **options)
        if SURROGATE.search(data):
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return document


def parse_integer(digits: str) -> int:
    """An integer. Raises ValueError if it has too many digits for a float."""
    if len(digits) > DIGITS_MAX:
        raise ValueError(f"an integer with {len(digits)} digits is damaged")
    return int(digits)


def refuse_constant(constant: str) -> float:
    """Raises ValueError: NaN and Infinity are neither JSON nor figures."""
    raise ValueError(f"{constant} is not a number")


def append_line(path: Path, document: dict[str, Any]) -> None:
    """Appends a line and waits until it is on the device.

    Raises LoadstoneError if there is no space; the file is then unchanged.
    """
    line = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    try:
        with path.open("ab", buffering=0) as file:
            length = file.seek(0, os.SEEK_END)
            try:
                write_all(file.fileno(), line)
                os.fsync(file.fileno())
                if not length:
                    sync_directory(path.parent)
            except OSError:
                os.ftruncate(file.fileno(), length)
                raise
    except OSError as error:
        raise LoadstoneError(
            f"cannot write {path}: {error.strerror}",
            "free some space, then continue with `loadstone run --resume`: earlier results are kept",
        ) from error


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all bytes: a single system call may write only some of them."""
    while data:
        data = data[os.write(descriptor, data) :]


def mend_file(path: Path) -> list[int]:
    """Moves damaged lines into `<name>.damaged` next to the file, so that lines can be appended again.

    Returns the numbers of the damaged lines, from 1. Adds a newline to a complete last line that has none.
    """
    if not path.exists():
        return []
    data = path.read_bytes()
    parsed_lines = number_lines(data)
    damaged = [(number, line) for number, line, document in parsed_lines if document is None]
    repaired = b"".join(line + b"\n" for _, line, document in parsed_lines if document is not None)
    if repaired != data:
        if damaged:
            with path.with_name(path.name + ".damaged").open("ab") as file:
                file.writelines(line + b"\n" for _, line in damaged)
        replace_file(path, repaired)
    return [number for number, _ in damaged]


def replace_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Writes a whole file, or leaves it unchanged. Raises OSError."""
    new = draft_of(path)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        rename_durably(new, path)
    finally:
        new.unlink(missing_ok=True)


def remove_file(path: Path) -> None:
    """Removes a file, if it exists, and the draft of a process that was killed while it replaced the file."""
    draft_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def draft_of(path: Path) -> Path:
    """The file that `replace_file` writes before it renames it."""
    return path.with_name(f".{path.name}.new")


def rename_durably(old: Path, new: Path) -> None:
    """Renames a file or directory so that its new name is on the device when this function returns. Raises OSError."""
    os.replace(old, new)
    sync_directory(new.parent)


def sync_files(directory: Path) -> None:
    """Waits until a directory's files, except unreadable files, are on the device. Raises OSError."""
    for path in directory.iterdir():
        if path.is_file():
            with suppress(PermissionError), path.open("rb") as file:
                os.fsync(file.fileno())
    sync_directory(directory)


def sync_directory(path: Path) -> None:
    """Waits until the names in a directory are on the device. Raises OSError."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
