"""Finds and runs the engine, the Rust program that drives the load.

`loadstone ycsb` and similar commands only run this module, which replaces the process with the engine. The module
therefore imports only modules that are already loaded.
"""

from __future__ import annotations

import os
import sys

from loadstone.errors import LoadstoneError

TYPE_CHECKING = False  # `typing.TYPE_CHECKING` would require the slow import of `typing`
if TYPE_CHECKING:
    from typing import NoReturn

NAME = "loadstone-engine"
VARIABLE = "LOADSTONE_ENGINE"


def find_engine() -> str:
    """The engine's path: LOADSTONE_ENGINE, else the engine installed with this package, else an engine on PATH.

    Raises LoadstoneError if no engine is found, or if LOADSTONE_ENGINE does not name a program.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if is_program(named):
            return named
        raise LoadstoneError(
            f"there is no program at {named} ({VARIABLE})",
            f"name an executable file, or unset {VARIABLE} to use the installed loadstone-engine",
        )
    path = engine_beside()
    if path is None:
        from shutil import which  # slow (5 ms); needed only if the engine is not installed with this package

        path = which(NAME)
    if path is None:
        raise LoadstoneError(
            f"{NAME} is neither next to {sys.argv[0]} nor on PATH",
            f"install the wheel that `make wheel` builds, build it with `make`, or set {VARIABLE}",
        )
    return path


def replace_process(arguments: list[str]) -> NoReturn:
    """Replaces this process with the engine and its `arguments`. Raises LoadstoneError if it cannot be run."""
    path = find_engine()
    try:
        os.execv(path, [path, *arguments])
    except OSError as error:
        raise cannot_run(path, error) from error


def cannot_run(path: str, error: OSError) -> LoadstoneError:
    """The error for an engine that the kernel refuses to run."""
    hint = "the file may be damaged or built for another machine; run `make`"
    return LoadstoneError(f"cannot run {path}: {error.strerror}", hint)


def engine_beside() -> str | None:
    """The engine in the directory of the running script, of the interpreter, or of this interpreter's scripts."""
    # Without a script, `sys.argv[0]` is "-c" or "", which would mean the working directory.
    programs = [program for program in (sys.argv[0], sys.executable) if os.sep in program]
    for program in programs:
        path = os.path.join(os.path.dirname(os.path.abspath(program)), NAME)
        if is_program(path):
            return path
    import sysconfig  # slow (10 ms); needed only if the engine is in neither directory

    path = os.path.join(sysconfig.get_path("scripts"), NAME)
    return path if is_program(path) else None


def is_program(path: str) -> bool:
    """Whether `path` is a file that this user may execute."""
    return os.path.isfile(path) and os.access(path, os.X_OK)
