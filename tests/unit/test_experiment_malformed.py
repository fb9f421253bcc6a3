"""Malformed experiment files: all errors are reported together, each with its line and a correction."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiment_support import FIXTURES, message_of, snapshot

MALFORMED = sorted(path.name for path in (FIXTURES / "malformed").glob("*.yaml"))
# Terms of the underlying libraries, which users need not know.
JARGON = re.compile(
    r"pydantic|input should|input_value|type=|field required|extra inputs|<block|node\b|dict\b|str\b", re.I
)


def test_there_are_thirty_malformed_files() -> None:
    assert len(MALFORMED) >= 30


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_file_gets_all_errors_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES / "malformed")
    message = message_of(Path(name))
    assert message == snapshot(Path(name).with_suffix(".expected"), message)


@pytest.mark.parametrize("name", MALFORMED)
def test_message_names_thing_place_and_next_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES / "malformed")
    lines = message_of(Path(name)).splitlines()
    assert lines
    assert len(lines) % 2 == 0
    places = []
    for error, hint in zip(lines[::2], lines[1::2], strict=True):
        place = re.fullmatch(rf"error: .+ \(({re.escape(name)}(?::(\d+))?|--(?:set|scale) .+)\)", error)
        assert place, error
        assert re.fullmatch(r"hint: .*[^.]", hint), hint
        assert not JARGON.search(error.removesuffix(f"({place[1]})")), error
        places.append(int(place[2] or 0) if place[1].startswith(name) else 10**9)
    assert places == sorted(places)
