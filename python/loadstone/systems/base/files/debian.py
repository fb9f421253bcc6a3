"""Downloads Debian packages and unpacks them below the cache: nothing is installed, and root is not required."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from loadstone.systems.base.files import cache, program
from loadstone.systems.base.system import SystemsError

MISSING = "check PATH; on systems other than Debian, install the server and set its path with --set binary=PATH"
HINT = "check that the mirrors in /etc/apt can be reached, or name an installed server with --set binary=PATH"
# `Inst redis-tools (5:7.0.15-1 Debian:12 [amd64])`; for an upgrade, the old version in brackets comes first.
INSTALLATION = re.compile(r"Inst (\S+) (\[\S+\] )?\((\S+)")
# The machine's own loader and C library are used, because one process cannot mix two versions.
OF_THE_MACHINE = re.compile(r"libc6|libc-bin|.*-dev|.*-doc")


def unpack_packages(packages: Sequence[str], version: str = "", base: Path | None = None) -> Path:
    """The directory into which these packages, and their dependencies that are not installed, are unpacked.

    The version of the first package must begin with `version`. The packages are fetched once, below `base`, by default
    the cache. Raises SystemsError.
    """
    name = "-".join([packages[0], *([version] if version else [])])
    digest = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    where = (base or cache.cache_root()) / "debian"

    def fill(draft: Path) -> None:
        for name in ("apt-get", "apt-cache"):
            program.find_program(name, MISSING)
        dpkg = program.find_program("dpkg-deb", MISSING)
        fetched = draft / "packages"
        fetched.mkdir()
        fetch_packages(packages, version, where / "apt", fetched)
        for file in sorted(fetched.glob("*.deb")):
            program.run_program([dpkg, "-x", str(file), str(draft)], f"cannot unpack {file.name}", HINT)
            file.unlink()
        fetched.rmdir()

    return cache.fill_entry(where / f"{name}-{digest}", fill)


def library_path(root: Path) -> str:
    """The directories of unpacked shared libraries, in the form of LD_LIBRARY_PATH."""
    directories = {path.parent for pattern in ("usr/lib/*/*.so*", "lib/*/*.so*") for path in root.glob(pattern)}
    # Libraries are in directories that are named after an architecture; other directories contain plug-ins of programs.
    return ":".join(str(path) for path in sorted(directories) if "-linux-" in path.name)


def fetch_packages(packages: Sequence[str], version: str, private: Path, into: Path) -> None:
    """Downloads packages with the machine's package lists, or with newly fetched lists if that fails."""
    try:
        download_packages(packages, version, [], into)
    except SystemsError:
        for part in ("lists/partial", "archives/partial"):
            (private / part).mkdir(parents=True, exist_ok=True)
        options = ["-o", f"Dir::State::Lists={private / 'lists'}", "-o", f"Dir::Cache={private}"]
        run_apt(["update"], options, "cannot fetch the lists of packages", into)
        download_packages(packages, version, options, into)


def download_packages(packages: Sequence[str], version: str, options: list[str], into: Path) -> None:
    """Downloads packages and their dependencies, with the package lists that `options` name."""
    run_apt(["download", *list_dependencies(packages, version, options)], options, f"cannot fetch {packages[0]}", into)


def list_dependencies(packages: Sequence[str], version: str, options: list[str]) -> list[str]:
    """The packages and their missing dependencies, each with its version: `redis-tools=5:7.0.15-1`."""
    first = f"{packages[0]}={newest_version(packages[0], version, options)}"
    pinned = [first, *packages[1:]]
    simulated = run_apt(
        ["--simulate", "--no-install-recommends", "install", *pinned], options, f"cannot resolve {first}"
    )
    versions: dict[str, str] = {}
    for line in simulated.splitlines():
        match = INSTALLATION.match(line)
        if match and not OF_THE_MACHINE.fullmatch(match[1].partition(":")[0]):
            versions[match[1]] = f"{match[1]}={match[3]}"
    # Requested packages are downloaded even if that version is already installed.
    return [*versions.values(), *(package for package in pinned if package.partition("=")[0] not in versions)]


def newest_version(package: str, version: str, options: list[str]) -> str:
    """A package's newest version that begins with `version`, apart from an epoch. Raises SystemsError."""
    listed = program.run_program(["apt-cache", *options, "madison", package], f"cannot look up {package}", HINT)
    versions = [line.split("|")[1].strip() for line in listed.splitlines() if line.count("|") >= 2]
    for candidate in versions:
        upstream = candidate.partition(":")[2] or candidate
        if not version or upstream == version or re.match(re.escape(version) + r"(?![0-9])", upstream):
            return candidate
    raise SystemsError(
        f"there is no package {package} {version}".rstrip(),
        f"the known versions are {', '.join(versions)}" if versions else HINT,
    )


def run_apt(arguments: Sequence[str], options: list[str], what: str, directory: Path | None = None) -> str:
    """Runs `apt-get`."""
    # If root runs apt, it downloads as a user who cannot access a private cache.
    quiet = ["-q", "-y", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=true"]
    return program.run_program(["apt-get", *quiet, *options, *arguments], what, HINT, directory)
