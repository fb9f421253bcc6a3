"""The version and the release notes: `python scripts/release.py version|sync|check|notes`.

Cargo.toml has the version. `sync` copies it into the other files, `check` reports obstacles to a release of this
checkout, and `notes` writes the section of CHANGELOG.md into dist/.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Semantic versions (https://semver.org) without build metadata.
VERSION = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?")
# The copies of the version: a file, and a pattern whose only group is the version.
COPIES = (
    ("python/loadstone/__init__.py", r'(?m)^__version__ = "([^"]+)"$'),
    ("java/pom.xml", r"(?s)<artifactId>loadstone-host</artifactId>\s*<version>([^<]+)</version>"),
    ("deploy/rayjob.yaml", r"image: loadstone-ray:(\S+)"),
    ("Cargo.lock", r'(?m)^name = "loadstone-[\w-]+"\nversion = "([^"]+)"$'),
)


def read_version(root: Path) -> str:
    """The version of the Rust workspace."""
    document = tomllib.loads((root / "Cargo.toml").read_text())
    return str(document["workspace"]["package"]["version"])


def replace_versions(text: str, pattern: str, version: str) -> str:
    """Replaces every copy of the version in text."""
    return re.sub(pattern, lambda match: match[0].replace(match[1], version), text)


def write_copies(root: Path) -> None:
    """Copies the version into every file that repeats it."""
    for name, pattern in COPIES:
        path = root / name
        path.write_text(replace_versions(path.read_text(), pattern, read_version(root)))


def read_notes(root: Path, version: str) -> str:
    """The section of a version in CHANGELOG.md; empty if the version has no section."""
    match = re.search(
        rf"^## {re.escape(version)}\b.*\n((?:(?!## ).*\n?)*)", (root / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    return match[1].strip() if match else ""


def find_obstacles(root: Path) -> Iterator[str]:
    """Problems that prevent the release of this checkout, each with the next step."""
    version = read_version(root)
    if not VERSION.fullmatch(version):
        yield f'error: "{version}" is not a semantic version (Cargo.toml)\nhint: write MAJOR.MINOR.PATCH'
    for name, pattern in COPIES:
        copies = set(re.findall(pattern, (root / name).read_text()))
        if copies != {version}:
            present = ", ".join(sorted(copies)) or "no version"
            yield f"error: {name} has {present}, Cargo.toml {version}\nhint: run python3 scripts/release.py sync"
    headings = re.findall(r"^## (\S+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    if headings[:1] != [version] or not read_notes(root, version):
        hint = f"describe the release below a first heading `## {version} (DATE)`"
        yield f"error: CHANGELOG.md does not begin with {version}\nhint: {hint}"
    git = ["git", "-C", str(root), "status", "--porcelain"]
    if changes := subprocess.run(git, capture_output=True, text=True, check=True).stdout.splitlines():
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        yield f"error: {changes[0][3:]}{more} is not committed\nhint: commit, or remove it"


def main(arguments: list[str]) -> int:
    """Runs one command; returns its exit status."""
    version = read_version(ROOT)
    match arguments:
        case ["version"]:
            print(version)
        case ["sync"]:
            write_copies(ROOT)
        case ["check"]:
            obstacles = list(find_obstacles(ROOT))
            print("\n".join(obstacles), file=sys.stderr, end="\n" if obstacles else "")
            return 1 if obstacles else 0
        case ["notes"]:
            path = ROOT / f"dist/release-notes-{version}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"# Loadstone {version}\n\n{read_notes(ROOT, version)}\n")
            print(path.relative_to(ROOT))
        case _:
            print("usage: python3 scripts/release.py version|sync|check|notes", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
