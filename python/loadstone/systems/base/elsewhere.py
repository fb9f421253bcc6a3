"""Directories that a system has outside of its own.

Some are on storage that the user named. They go with the system's data; their names are drawn anew with those, so that
no server ever finds what one of an earlier life has left.

Others are for a server that refuses to be root. root's home is closed to everybody else, and so is what is below it:
for the user that this server runs as, files go to where the file system hierarchy has them for programs of the machine.
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
from loadstone.systems.base.files.cache import READABLE
from loadstone.systems.base.files.program import run_as
from loadstone.systems.base.system import Place, SystemsError

CACHE, DATA = Path("/var/cache/loadstone"), Path("/var/lib/loadstone")


def user(*preferred: str) -> str | None:
    """The first of these users that there is, else `nobody`; None when we are not root. None is ever made."""
    if os.geteuid() != 0:
        return None
    for name in (*preferred, "nobody"):
        try:
            if pwd.getpwnam(name).pw_uid != 0:
                return name
        except KeyError:
            continue
    raise SystemsError(
        "there is no unprivileged user to run the server as", "start it as another user than root, or make `nobody`"
    )


def reaches(name: str | None, directory: Path) -> bool:
    """Whether a user can enter a directory, or its nearest parent that is there; None is ourselves."""
    if name is None:
        return True
    near = directory
    while not near.exists():
        near = near.parent
    # Asked of the kernel, which knows more than mode bits: access lists, mount options, name spaces.
    return subprocess.run(["test", "-x", near], stdin=subprocess.DEVNULL, **run_as(name)).returncode == 0


def cache_for(name: str | None, cache: Path) -> Path:
    """The cache if that user reaches it, else one that everybody does."""
    return cache if reaches(name, cache) else CACHE


def directory_for(name: str | None, place: Place, what: str) -> Path:
    """A directory of a system's data for its server `what`, which belongs to that user; made if it is not there.

    Where the user does not reach the system's own, it is elsewhere, and a link in `place.data` leads to it.
    """
    inside = place.data / what
    directory = inside.resolve() if inside.is_symlink() else inside
    if not directory.exists():
        if not reaches(name, place.data):
            directory = DATA / f"{hashlib.sha256(str(inside).encode()).hexdigest()[:16]}-{what}"
            if not inside.is_symlink():
                inside.symlink_to(directory)
        directory.mkdir(parents=True)
        for made in (DATA, directory):
            if made.exists():
                made.chmod(READABLE)
    if name is not None:
        shutil.chown(directory, name)
    return directory


def remove(place: Place) -> None:
    """Removes what `directory_for` made that is not in `place.data`."""
    if not place.data.is_dir():
        return
    for inside in place.data.iterdir():
        if inside.is_symlink() and inside.readlink().parent == DATA and inside.readlink().exists():
            shutil.rmtree(inside.readlink())


def label(place: Place) -> str:
    """What a system's directories outside are called: `loadstone-hdfs-5f0c2a91`, the same until its data go."""
    path = place.data / "label"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        lines.replace(path, f"loadstone-{place.root.name}-{secrets.token_hex(4)}".encode())
    return path.read_text()
