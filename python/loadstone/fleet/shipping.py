"""Installs the lab's engine on this host, and checks it. The lab sends it only to hosts with a different engine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from pathlib import Path

from loadstone.engine import program
from loadstone.errors import LoadstoneError
from loadstone.systems.base.files.cache import cache_root as cache

VERSION_SECONDS = 30.0
# The field e_machine of an ELF header, keyed by the machine's name in uname(2).
ELF_MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21, "s390x": 22, "riscv64": 243}


def engine_hash() -> str | None:
    """The SHA-256 of the engine that this process would start; None if there is no engine."""
    try:
        return hash_file(Path(program.find_engine()))
    except (LoadstoneError, OSError):
        return None


def hash_file(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def install_engine(data: bytes, sha256: str) -> str:
    """Stores an engine in the cache and selects it for this process. Returns the reason why it cannot run here, or an
    empty string if it can."""
    if hashlib.sha256(data).hexdigest() != sha256:
        return "the load generator was damaged in transit"
    if reason := elf_mismatch(data, platform.machine()):
        return reason
    folder = cache() / "engines" / sha256
    path = folder / program.NAME
    if not path.exists() or hash_file(path) != sha256:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"part.{os.getpid()}"
        part.write_bytes(data)
        part.chmod(0o755)
        # The file is renamed, because another agent may be starting the same engine.
        part.replace(path)
    try:
        run = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        return f"the load generator does not run on this host: {error}"
    if run.returncode:
        # The dynamic linker names the missing version of libc.
        return (
            f"the load generator does not run on this host: {(run.stderr.strip().splitlines() or ['no message'])[-1]}"
        )
    os.environ[program.VARIABLE] = str(path)
    return ""


def elf_mismatch(data: bytes, machine: str) -> str:
    """The reason why a program cannot run on this processor; empty if it can, or if the processor is not in the
    table."""
    if data[:4] != b"\x7fELF":
        # In tests, the engine is a script.
        return "" if data[:2] == b"#!" else "the load generator is not a program for Linux"
    number = int.from_bytes(data[18:20], "little")
    if ELF_MACHINES.get(machine, number) != number:
        names = {value: name for name, value in ELF_MACHINES.items()}
        return f"the load generator is built for {names.get(number, f'machine {number}')}, but this host is {machine}"
    return ""
