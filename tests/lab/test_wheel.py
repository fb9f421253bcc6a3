"""The wheel: built from the installed engine, and used without cargo and a JDK."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from lab_support import ROOT

ENGINE = ROOT / ".venv/bin/loadstone-engine"
# The libraries that PEP 600 assumes to be present, as far as a Rust program uses them.
ALLOWED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1"}


def copy_sources(home: Path) -> None:
    """Copies the sources of a wheel, because setuptools leaves files in build/."""
    for name in ("pyproject.toml", "setup.py", "LICENSE"):
        shutil.copy(ROOT / name, home)
    shutil.copytree(ROOT / "python", home / "python", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without network access from a copy of the sources."""
    home = tmp_path_factory.mktemp("wheel")
    copy_sources(home)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(home), "."]
    subprocess.run([*pip, *options], cwd=home, env={**os.environ, "LOADSTONE_ENGINE": str(ENGINE)}, check=True)
    (built,) = home.glob("*.whl")
    return built


class Bare:
    """A virtual environment with the wheel and its dependencies, and a PATH without any other program."""

    def __init__(self, home: Path, wheel: Path) -> None:
        self.home, environment = home, home / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(environment / "bin/python")]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
        # Uses the dependencies of this environment, because the package index may be unreachable.
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = environment / "lib" / version / "site-packages"
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
        self.path = environment / "bin"

    def run(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Runs `loadstone`, which must exit with this status."""
        done = subprocess.run(
            [self.path / "loadstone", *arguments],
            cwd=self.home,
            env={"PATH": str(self.path), "HOME": str(self.home), "TMPDIR": str(self.home), "LOADSTONE_SHARE_HOST": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stderr
        return done


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Bare:
    return Bare(tmp_path_factory.mktemp("bare"), wheel)


def test_wheel_is_tagged_with_needed_glibc(wheel: Path) -> None:
    symbols = subprocess.run(["objdump", "-T", ENGINE], capture_output=True, text=True, check=True).stdout
    needed = max(tuple(map(int, version)) for version in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))
    assert f"-py3-none-manylinux_{needed[0]}_{needed[1]}_" in wheel.name
    headers = subprocess.run(["objdump", "-p", ENGINE], capture_output=True, text=True, check=True).stdout
    libraries = {name for name in re.findall(r"NEEDED +(\S+)", headers) if not name.startswith("ld-linux")}
    assert libraries <= ALLOWED


def test_editable_installation_has_engine(tmp_path: Path) -> None:
    copy_sources(tmp_path)
    build = "import sys; from setuptools import build_meta; build_meta.build_editable(sys.argv[1])"
    environment = {**os.environ, "LOADSTONE_ENGINE": str(ENGINE)}
    done = subprocess.run([sys.executable, "-c", build, tmp_path], cwd=tmp_path, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as packed:
        assert [name for name in packed.namelist() if name.endswith("scripts/loadstone-engine")]


def test_wheel_holds_stripped_engine(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith("scripts/loadstone-engine")]
        program = packed.extract(name, tmp_path)
    sections = subprocess.run(["objdump", "-h", program], capture_output=True, text=True, check=True).stdout
    assert ".text" in sections
    assert ".debug" not in sections
    symbols = subprocess.run(["objdump", "-t", program], capture_output=True, text=True, check=True).stdout
    assert "no symbols" in symbols


def test_wheel_runs_first_experiment_alone(bare: Bare) -> None:
    (bare.path / "cp").symlink_to(shutil.which("cp") or "/bin/cp")
    (bare.home / "first.yaml").write_text(bare.run("example", "embedded-stores").stdout)
    settings = ["--set", "repeats=2", "--set", "measure.warmup=0", "--set", "measure.duration=200ms"]
    done = bare.run("run", "first.yaml", "--scale", "quick", *settings)
    for store in ("lmdb", "redb", "fjall"):
        assert store in done.stdout
    (report,) = bare.home.glob("results/first/*/report.html")
    assert "Which of LMDB, redb and fjall" in report.read_text()


def test_missing_rocksdb_names_both_sources(bare: Bare) -> None:
    error = bare.run("ycsb", "load", "rocksdb", "-p", "recordcount=1", "-p", "rocksdb.dir=data", code=1).stderr
    assert "hint: fetch it with Maven: mvn dependency:get " in error
    assert "; or name a library that you have: -p rocksdb.library=/path/to/librocksdb.so" in error


def test_unknown_example_is_refused(bare: Bare) -> None:
    assert "embedded-stores" in bare.run("example").stdout
    error = bare.run("example", "embeded-stores", code=2).stderr
    assert error.startswith('error: there is no example "embeded-stores"\nhint: did you mean "embedded-stores"?')
