"""The examples of the guides work: their experiments load, and their commands exist."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml

from lab_support import ROOT
from loadstone.cli import commands
from loadstone.engine.describe import describe_engine
from loadstone.experiment.file import load_experiment

GUIDES = sorted(
    [
        *(ROOT / "docs").glob("**/*.md"),
        *ROOT.glob("*.md"),
        *(ROOT / "experiments").glob("*.md"),
        *ROOT.glob(".github/*.md"),
    ]
)
FIRST = ROOT / "docs/guides/first-experiment.md"


def blocks(file: Path, language: str) -> list[str]:
    """The code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", file.read_text(), re.MULTILINE | re.DOTALL)


def test_the_first_experiment_grows_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    smallest, *steps = blocks(FIRST, "yaml")
    document = yaml.safe_load(smallest)
    for step in [{}, *map(yaml.safe_load, steps)]:
        properties = {**document["workload"]["properties"]}
        document |= step
        document["workload"] = {"properties": properties, **document["workload"]}
        if "clients" in document.get("vary", {}):
            document.pop("clients", None)
        if "{block}" in str(document) and "block" not in document["vary"]:
            document["vary"]["block"] = [4096]
        file = tmp_path / "compression.yaml"
        file.write_text(yaml.safe_dump(document))
        assert load_experiment(file).warnings == (), step


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))
def test_documented_commands_exist(guide: Path) -> None:
    matches = re.findall(r"^    (?:\$ )?loadstone ([a-z-]+)", guide.read_text(), re.MULTILINE)
    assert set(matches) <= set(commands()), guide


@cache
def read_prose(guide: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", guide.read_text(), flags=re.MULTILINE | re.DOTALL)


@cache
def find_anchors(guide: Path) -> set[str]:
    """The anchors of a page's headings: lower case, hyphens for spaces, no punctuation; repeats are numbered."""
    anchors: Counter[str] = Counter()
    names = set()
    for heading in re.findall(r"^#+ (.*)$", read_prose(guide), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", text.lower().strip()).replace(" ", "-")
        names.add(f"{anchor}-{anchors[anchor]}" if anchors[anchor] else anchor)
        anchors[anchor] += 1
    return names


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(guide: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", read_prose(guide)):
        if "://" in target:
            continue
        path = guide.parent / target if target else guide
        assert path.exists(), f"{guide.name} links to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in find_anchors(path), f"{guide.name} links to {target}#{anchor}"


@pytest.mark.parametrize("store", sorted(describe_engine().stores))
def test_page_of_store_names_every_property(store: str) -> None:
    page = (ROOT / f"docs/reference/stores/{store}.md").read_text()
    # The store jvm accepts every property.
    missing = [name for name in describe_engine().store_properties(store) if name != "*" and f"`{name}`" not in page]
    assert missing == []
