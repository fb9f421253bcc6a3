"""A file downloaded from a real mirror is either complete or absent, and concurrent requests fetch it only once."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path

import pytest

from loadstone.systems.base.files import cache, debian, maven, program
from loadstone.systems.base.system import SystemsError


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOADSTONE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOADSTONE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/x")
    assert cache.cache_root() == Path("/home/x/.cache/loadstone")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.cache_root() == Path("/xdg/loadstone")
    monkeypatch.setenv("LOADSTONE_CACHE", "here")
    assert cache.cache_root() == Path.cwd() / "here"


def test_concurrent_requests_create_an_entry_once(tmp_path: Path) -> None:
    result, gate = [], threading.Barrier(8)

    def fill(draft: Path) -> None:
        result.append(draft)
        (draft / "file").write_text("whole")

    def want() -> None:
        gate.wait()
        assert (cache.fill_entry(tmp_path / "a/b", fill) / "file").read_text() == "whole"

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(result) == 1


def test_an_entry_that_fails_is_not_there(tmp_path: Path) -> None:
    def fail(draft: Path) -> None:
        (draft / "file").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.fill_entry(tmp_path / "b", fail)
    assert [path.name for path in tmp_path.iterdir()] == [".b.lock"]
    cache.fill_entry(tmp_path / "b", lambda draft: None)
    assert (tmp_path / "b").is_dir()


def test_jars_include_dependencies_without_exclusions(own_cache: Path) -> None:
    jars = maven.class_path("probe", ["ch.qos.logback:logback-classic:1.4.14"], ["ch.qos.logback:logback-core"])
    assert [jar.name for jar in jars] == ["logback-classic-1.4.14.jar", "slf4j-api-2.0.7.jar"]
    assert all(zipfile.is_zipfile(jar) for jar in jars)
    more = maven.class_path("probe", ["ch.qos.logback:logback-classic:1.4.14"])
    assert len(more) == 3
    assert more[0].parent != jars[0].parent


def test_what_is_in_the_cache_takes_no_mvn(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifacts = ["org.slf4j:slf4j-api:2.0.7"]
    first = maven.class_path("probe", artifacts)
    monkeypatch.setenv("PATH", "/nowhere")
    assert maven.class_path("probe", artifacts) == first
    with pytest.raises(SystemsError, match="mvn is not on PATH") as caught:
        maven.class_path("other", artifacts)
    assert caught.value.hint == "apt-get install maven"


def test_an_artifact_that_there_is_not(own_cache: Path) -> None:
    with pytest.raises(SystemsError, match=r"cannot fetch the jars of probe: .*slf4j-api:jar:99"):
        maven.class_path("probe", ["org.slf4j:slf4j-api:99"])
    assert not [path for path in (own_cache / "maven").iterdir() if path.is_dir()]


@pytest.mark.parametrize("wrong", ["", "a:b", "a:b:", "a:b:c:d:e:f"])
def test_coordinates_that_name_nothing(wrong: str, own_cache: Path) -> None:
    with pytest.raises(SystemsError, match="is not an artifact"):
        maven.class_path("probe", [wrong])


def test_a_package_that_there_is_not(own_cache: Path) -> None:
    with pytest.raises(SystemsError, match="there is no package no-such-package"):
        debian.unpack_packages(["no-such-package"])


def test_why_a_program_failed() -> None:
    assert program.failure_line("Reading\nE: Unable to fetch\nW: more\n") == "Unable to fetch"
    assert program.failure_line("\x1b[0m[ERROR] Failed: a\n[ERROR] more") == "Failed: a"
    assert program.failure_line("one\ntwo\n\n") == "two"
    assert program.failure_line("") == ""
