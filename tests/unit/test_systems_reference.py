"""The reference page of systems agrees with the systems' settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadstone.commands.systems import VERBS
from loadstone.systems import reference, registry

PAGE = Path(__file__).parents[2] / reference.PAGE


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert reference.renew_page(page) == page, "run `make docs`"


def test_the_page_has_every_system_and_every_verb() -> None:
    page = PAGE.read_text()
    for name in registry.SYSTEMS:
        assert f"\n### {name}\n" in page
    for verb in VERBS:
        assert f"`{verb} NAME" in page or f"`{verb} [NAME" in page, verb


def test_a_page_without_a_place_for_the_tables() -> None:
    with pytest.raises(ValueError, match="no markers"):
        reference.renew_page("# Systems\n")
