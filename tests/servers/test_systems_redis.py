"""Starts, stops, pauses and kills a real Redis through the command line."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadstone.systems.base.files import debian
from loadstone.systems.redis.client import RedisClient, RedisError
from loadstone.systems.redis.system import allow_connections
from systems_support import Up, free_port, systems, temporary_root, up

# Characters that need quotes in a configuration file or a shell.
PASSWORD = "a\"b c\\d'é#"


@pytest.fixture(scope="module")
def redis() -> Iterator[Up]:
    with up("redis", password=PASSWORD, appendonly="yes", appendfsync="always", maxmemory="64mb") as server:
        yield server


def client(redis: Up, password: str | None = None) -> RedisClient:
    """A connection with the properties of the system."""
    properties = redis.properties
    word = properties.get("redis.password", "") if password is None else password
    return RedisClient(properties["redis.host"], int(properties["redis.port"]), word)


def read_setting(redis: Up, name: str) -> object:
    """The server's value of a setting."""
    with client(redis) as connection:
        answer = connection.send_command("CONFIG", "GET", name)
    assert isinstance(answer, list)
    return answer[1]


def test_it_serves_as_its_properties_tell(redis: Up) -> None:
    with client(redis) as connection:
        assert connection.send_command("PING") == "PONG"
    assert redis.properties["redis.password"] == PASSWORD
    for wrong, error in (("", "NOAUTH"), ("wrong", "WRONGPASS")):
        with pytest.raises(RedisError, match=error), client(redis, wrong) as connection:
            connection.send_command("PING")


def test_its_settings_are_the_servers(redis: Up) -> None:
    expected = {
        "appendonly": "yes",
        "appendfsync": "always",
        "maxmemory": str(64 << 20),
        "maxmemory-policy": "noeviction",
        "maxclients": "10100",
        "save": "",
        "bind": "127.0.0.1",
    }
    assert {name: read_setting(redis, name) for name in expected} == expected
    assert redis.running.server_version() == "7.0.15"
    facts = redis.running.read_facts()
    assert (facts["appendfsync"], facts["no_appendfsync_on_rewrite"]) == ("always", "no")


def test_data_that_are_synced_survive_a_crash(redis: Up) -> None:
    with client(redis) as connection:
        connection.send_command("SET", "kept", "value")
    redis.systems("kill", "redis")
    assert redis.systems("status", "redis", code=1).stdout.startswith("redis dead 127.0.0.1:")
    command = [word for name, value in redis.running.plan.settings.items() for word in ("--set", f"{name}={value}")]
    assert redis.systems("up", "redis", *command).stdout.startswith("redis up ")
    with client(redis) as connection:
        assert connection.send_command("GET", "kept") == "value"


def test_restarted_it_has_its_data(redis: Up) -> None:
    with client(redis) as connection:
        connection.send_command("SET", "kept", "again")
    (before,) = redis.running.running_processes()
    redis.systems("restart", "redis")
    (after,) = redis.running.running_processes()
    assert after.pid != before.pid
    with client(redis) as connection:
        assert connection.send_command("GET", "kept") == "again"


def test_killed_and_paused_servers_have_their_states(redis: Up) -> None:
    (process,) = redis.running.running_processes()
    os.kill(process.pid, signal.SIGSTOP)
    assert redis.systems("status", code=1).stdout == f"redis paused {process.address} {process.pid}\n"
    with pytest.raises(TimeoutError):
        RedisClient("127.0.0.1", int(redis.properties["redis.port"]), PASSWORD, timeout_s=0.5)
    redis.systems("resume", "redis")
    assert redis.systems("status").stdout == f"redis up {process.address} {process.pid}\n"
    os.kill(process.pid, signal.SIGKILL)
    redis.systems("restart", "redis")
    assert redis.systems("status").stdout.startswith("redis up ")


def test_snapshots_are_counted_from_its_log(redis: Up) -> None:
    before = redis.running.read_figures()["redis.snapshots"]
    with client(redis) as connection:
        connection.send_command("BGSAVE")
    assert redis.running.read_figures()["redis.snapshots"] == before + 1


def test_fresh_leaves_no_key(redis: Up) -> None:
    with client(redis) as connection:
        connection.send_command("HSET", "user1", "field0", "x")
        # YCSB's index for scans.
        connection.send_command("ZADD", "_indices", "1", "user1")
        assert redis.running.read_figures()["redis.keys"] >= 2
        redis.systems("fresh", "redis")
        assert connection.send_command("DBSIZE") == 0
    assert redis.running.read_figures()["redis.keys"] == 0


def test_ten_thousand_clients(redis: Up) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    allow_connections(10_100)
    clients = []
    try:
        for _ in range(10_000):
            clients.append(client(redis))
        assert clients[0].send_command("PING") == clients[-1].send_command("PING") == "PONG"
        assert redis.running.read_figures()["redis.connections"] == 10_001
    finally:
        for connection in clients:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[0], resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def test_more_clients_than_the_system_has_files_for() -> None:
    with temporary_root() as root:
        stderr = systems(root, "up", "redis", "--set", "maxclients=4000000000", code=1).stderr
        assert "error: 4000000000 connections take 4000000096 open files, but a process may have only " in stderr


def test_setting_refused_by_redis_is_reported_with_message() -> None:
    with temporary_root() as root:
        stderr = systems(root, "up", "redis", "--set", f"port={free_port()}", "--set", "maxmemory=lots", code=1).stderr
        assert "error: redis: redis exited with status 1 before it was ready" in stderr
        assert "maxmemory" in stderr
        assert "argument must be a memory value" in stderr
        assert {path.name for path in (root / "redis").iterdir()} == {"logs", "lock"}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("appendfsync=sometimes", 'appendfsync cannot be "sometimes"'),
        ("appendonly=1", 'appendonly must be yes or no, got "1"'),
        ("port=99999", "redis cannot have port 99999"),
        ("binary=/nowhere/redis-server", "there is no program /nowhere/redis-server"),
        ("version=3.1", "there is no package redis-server 3.1"),
    ],
)
def test_settings_that_make_no_sense(setting: str, message: str) -> None:
    with temporary_root() as root:
        assert f"error: {message}" in systems(root, "up", "redis", "--set", setting, code=1).stderr
        assert not (root / "redis/data").exists()


def test_without_lists_of_packages_and_then_without_apt(tmp_path: Path) -> None:
    """As in a new container: the lists are fetched into the cache, and cached packages need no apt."""
    lists, cache = tmp_path / "lists/partial", tmp_path / "cache"
    lists.mkdir(parents=True)
    configuration = tmp_path / "apt.conf"
    configuration.write_text(f'Dir::State::Lists "{lists.parent}";\n')
    # `Any`, because keywords are of several types.
    variables: dict[str, Any] = {"LOADSTONE_CACHE": str(cache), "APT_CONFIG": str(configuration)}
    no_apt: dict[str, Any] = {"LOADSTONE_CACHE": str(cache), "PATH": str(tmp_path)}
    port = f"port={free_port()}"
    with temporary_root() as root:
        stderr = systems(root, "up", "redis", "--set", port, code=1, **no_apt).stderr
        assert "error: apt-get is not on PATH" in stderr
        assert "--set binary=PATH" in stderr
        for environment in (variables, no_apt):
            assert systems(root, "up", "redis", "--set", port, **environment).stdout.startswith("redis up ")
            systems(root, "down", "redis", **environment)
        # `binary` may name a server from any source, not only from the package.
        (binary,) = cache.glob("debian/redis-server-*/usr/bin/redis-server")
        libraries: dict[str, Any] = {"LD_LIBRARY_PATH": debian.library_path(binary.parents[2])}
        command = ["up", "redis", "--set", port, "--set", f"binary={binary}"]
        assert "error while loading shared libraries" in systems(root, *command, code=1, **no_apt).stderr
        assert systems(root, *command, **no_apt, **libraries).stdout.startswith("redis up ")
        systems(root, "down", "redis", **no_apt)


def test_a_disk_that_fills_while_files_are_fetched(tmp_path: Path) -> None:
    with temporary_root() as root:
        limited = ("prlimit", "--fsize=100000", "--")
        stderr = systems(root, "up", "redis", code=1, prefix=limited, LOADSTONE_CACHE=str(tmp_path)).stderr
        assert "error: cannot " in stderr
        # No directory remains that a later command would mistake for a complete package.
        assert [path.name for path in (tmp_path / "debian").iterdir() if path.is_dir()] in ([], ["apt"])
