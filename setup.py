"""Adds the engine to a wheel or an installation: the program that LOADSTONE_ENGINE names, or cargo's build.

A wheel holds one program for one platform and works with any Python, so its tag is `py3-none-PLATFORM`.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import ClassVar

from setuptools import Command, setup
from setuptools.command.bdist_wheel import bdist_wheel

NAME = "loadstone-engine"
# Versions of glibc's symbols. Other data may match, too, so the result may overstate, but never understate, the
# required version.
GLIBC_SYMBOL = re.compile(rb"\0GLIBC_(\d+)\.(\d+)")


@cache
def engine() -> Path:
    """The engine's program, built by cargo unless LOADSTONE_ENGINE names one."""
    if named := os.environ.get("LOADSTONE_ENGINE"):
        return Path(named)
    subprocess.run(["cargo", "build", "--release", "--locked", "--package", NAME], check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release" / NAME


def platform_tag(program: bytes) -> str:
    """The tag of PEP 600 for the oldest glibc that has every symbol of the program; `linux_…` without glibc."""
    versions = [(int(major), int(minor)) for major, minor in GLIBC_SYMBOL.findall(program)]
    if not versions:
        return f"linux_{platform.machine()}"
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{platform.machine()}"


class BuildScripts(Command):
    """Copies the engine. Replaces setuptools' command of the same name, which treats every file as text."""

    user_options: ClassVar = [
        ("build-dir=", "d", "where scripts are built"),
        ("force", "f", "copy an unchanged file, too"),
    ]

    def initialize_options(self) -> None:
        """Leaves the options to `build`."""
        self.build_dir = self.force = None

    def finalize_options(self) -> None:
        """Takes the options of `build`."""
        self.set_undefined_options("build", ("build_scripts", "build_dir"), ("force", "force"))

    def get_source_files(self) -> list[str]:
        """No file of a source distribution: the engine is built."""
        return []

    def run(self) -> None:
        """Copies the program."""
        target = Path(str(self.build_dir)) / NAME
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_bytes(engine().read_bytes())
        target.chmod(0o755)


class BdistWheel(bdist_wheel):
    """A wheel for one platform and every Python."""

    def finalize_options(self) -> None:
        """Marks the wheel as a wheel for one platform."""
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        """The tags for Python, ABI and platform."""
        # For an editable wheel, setuptools requests the tag before anything is built.
        return "py3", "none", platform_tag(engine().read_bytes())


setup(scripts=[NAME], cmdclass={"bdist_wheel": BdistWheel, "build_scripts": BuildScripts})
