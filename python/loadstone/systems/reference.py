"""Generates the tables of settings in the reference page on systems.

`python -m loadstone.systems.reference` writes them to the page; the text around them is written by hand.
"""

from __future__ import annotations

from pathlib import Path

from loadstone.systems import registry
from loadstone.systems.base.plan import list_nodes
from loadstone.systems.base.system import System

PAGE = Path("docs/reference/systems.md")
BEGIN, END = "<!-- generated: settings -->", "<!-- end of generated -->"


def render_settings() -> str:
    """The settings of every system, with a heading and a table for each."""
    return "\n".join(render_system(registry.load_system(name)) for name in registry.SYSTEMS)


def render_system(system: System) -> str:
    """The section of one system."""
    defaults = [(setting, f"`{setting.default}`" if setting.default else "") for setting in system.settings]
    rows = [f"| `{setting.name}` | {default} | {setting.meaning} |" for setting, default in defaults]
    head = ["| setting | default | meaning |", "|---|---|---|"]
    return "\n".join(
        [f"### {system.name}", "", f"{system.title}. Nodes: {list_nodes(system.nodes)}.", "", *head, *rows, ""]
    )


def renew_page(page: str) -> str:
    """A page with regenerated tables."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no markers for the tables: {BEGIN} … {END}")
    return f"{head}{BEGIN}\n\n{render_settings()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(renew_page(PAGE.read_text()))
