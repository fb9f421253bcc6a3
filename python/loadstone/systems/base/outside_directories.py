"""Directories of a system outside its data directory.

Some are on storage that the user named. They are removed with the system's data; directories for new data get a new
random name, so that no server ever finds another server's old data.

Other directories are for a server that refuses to run as root. Other users cannot enter root's home directory, so the
files of the server's user go to the standard directories of system programs.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import secrets
import shutil
import subprocess
from pathlib import Path

from loadstone.results import lines
from loadstone.systems.base import disks
from loadstone.systems.base.files.cache import READABLE
from loadstone.systems.base.files.program import run_as
from loadstone.systems.base.system import Place, SystemsError

CACHE, DATA = Path("/var/cache/loadstone"), Path("/var/lib/loadstone")


def choose_user(*preferred: str) -> str | None:
    """The first of these users that exists, otherwise `nobody`; None if this process is not root. Does not create a
    user."""
    if os.geteuid() != 0:
        return None
    for name in (*preferred, "nobody"):
        try:
            if pwd.getpwnam(name).pw_uid != 0:
                return name
        except KeyError:
            continue
    raise SystemsError(
        "there is no unprivileged user to run the server as", "start it as a user other than root, or create `nobody`"
    )


def can_enter(name: str | None, directory: Path) -> bool:
    """Whether a user can enter a directory, or its nearest existing parent; None is the current user."""
    if name is None:
        return True
    near = directory
    while not near.exists():
        near = near.parent
    # The kernel decides, because access also depends on access lists, mount options and namespaces.
    return subprocess.run(["test", "-x", near], stdin=subprocess.DEVNULL, **run_as(name)).returncode == 0


def cache_for(name: str | None, cache: Path) -> Path:
    """The cache if the named user can access it, otherwise the cache for all users."""
    return cache if can_enter(name, cache) else CACHE


def directory_for(name: str | None, place: Place, what: str) -> Path:
    """A directory in a system's data for its server `what`, owned by the user `name`; created if missing.

    If the user cannot reach the system's data, the directory is elsewhere, and a link in `place.data` points to it.
    """
    inside = place.data / what
    directory = inside.resolve() if inside.is_symlink() else inside
    if not directory.exists():
        if not can_enter(name, place.data):
            directory = DATA / f"{hashlib.sha256(str(inside).encode()).hexdigest()[:16]}-{what}"
            if not inside.is_symlink():
                inside.symlink_to(directory)
        directory.mkdir(parents=True)
        for candidate in (DATA, directory):
            if candidate.exists():
                candidate.chmod(READABLE)
    if name is not None:
        shutil.chown(directory, name)
    return directory


def remove_outside(place: Place) -> None:
    """Removes the directories that `directory_for` created outside `place.data`."""
    if not place.data.is_dir():
        return
    for inside in place.data.iterdir():
        if inside.is_symlink() and inside.readlink().parent == DATA and inside.readlink().exists():
            # A node's file system may be mounted there.
            disks.unmount_directory(inside.readlink())
            shutil.rmtree(inside.readlink())


def outside_label(place: Place) -> str:
    """The name of a system's outside directories, such as `loadstone-hdfs-5f0c2a91`; it changes only when the system's
    data is removed."""
    path = place.data / "label"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        lines.replace_file(path, f"loadstone-{place.root.name}-{secrets.token_hex(4)}".encode())
    return path.read_text()
