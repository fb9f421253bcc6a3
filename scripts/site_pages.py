"""A hook for mkdocs: pages from outside docs/, links to files that are not pages, and the list of rendered reports.

mkdocs.yml names this hook; https://www.mkdocs.org/user-guide/configuration/#hooks describes the events.
"""

from __future__ import annotations

import os
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Pages of the repository outside docs/, by their path on the site.
PROJECT = {
    "project/architecture.md": "ARCHITECTURE.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "project/style.md": "STYLE.md",
    "project/changelog.md": "CHANGELOG.md",
    "project/security.md": "SECURITY.md",
    "project/code-of-conduct.md": "CODE_OF_CONDUCT.md",
    "experiments/index.md": "experiments/README.md",
}
# A link to the repository's README.md leads to docs/README.md, which has the same readers.
HOME = "README.md"
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
# A link to another file in HTML.
HREF = re.compile(r' href="(\.\.?/[^"]+)"')
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@cache
def list_experiments() -> dict[str, Path]:
    """Every experiment by the path of its page, in the order of experiments/README.md."""
    folder = ROOT / "experiments"
    listed = re.findall(r"\]\(([\w/-]+\.yaml)\)", (folder / "README.md").read_text())
    return {f"experiments/{Path(name).stem}.md": folder / name for name in listed}


def list_reports() -> dict[str, Path]:
    """The rendered reports by name."""
    return {path.parent.name: path for path in sorted(DOCS.glob("reports/*/report.html"))}


def read_question(path: Path) -> str:
    """The question of an experiment."""
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return str(document["question"])


def render_experiment(path: Path) -> str:
    """The page of an experiment: its question, the comment at its beginning, its report and the file."""
    text = path.read_text()
    comment = re.match(r"(?:#.*\n)*", text)
    assert comment is not None
    description = re.sub(r"^# ?", "", comment[0], flags=re.MULTILINE)
    report = (
        f"\n[The rendered report](../docs/reports/{path.stem}/report.html)\n" if path.stem in list_reports() else ""
    )
    body = text[comment.end() :].strip()
    # Search engines and the menu show the name; readers see the question.
    return f"# {path.stem}\n\n**{read_question(path)}**\n{report}\n{description}\n```yaml\n{body}\n```\n"


def render_reports() -> str:
    """The rendered reports as a table."""
    reports = list_reports()
    questions = {path.stem: read_question(path) for path in list_experiments().values()}
    rows = [f"| [{name}]({name}/report.html) | {questions.get(name, '')} |" for name in reports]
    return "\n".join(["| report | question |", "|---|---|", *rows]) if rows else "No report has been added yet."


def extend_navigation(config: Any) -> Any:
    """Adds the experiments to the navigation."""
    for entry in config["nav"]:
        if "Experiments" in entry:
            entry["Experiments"] += list(list_experiments())
    return config


def add_pages(files: Any, config: Any) -> Any:
    """Adds the pages from outside docs/."""
    from mkdocs.structure.files import File

    for page, source in PROJECT.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for page, path in list_experiments().items():
        files.append(File.generated(config, page, content=render_experiment(path)))
    return files


def source_of(page: str) -> str:
    """The repository path of a site page."""
    if page in PROJECT:
        return PROJECT[page]
    return f"experiments/{Path(page).name}" if page in list_experiments() else f"docs/{page}"


def find_page(target: str) -> str | None:
    """The site path of a repository file; None if the file has no page."""
    pages = {source: page for page, source in PROJECT.items()}
    pages |= {path.relative_to(ROOT).as_posix(): page for page, path in list_experiments().items()}
    if target == HOME:
        return HOME
    if target in pages:
        return pages[target]
    if target.startswith("docs/"):
        inside = target.removeprefix("docs/")
        return f"{inside}/README.md" if (DOCS / inside).is_dir() else inside
    return None


def replace_links(markdown: str, page: Any, **_: Any) -> str:
    """Replaces links to repository files with links to pages.

    A file without a page is linked in the repository LOADSTONE_REPOSITORY, or without this variable not at all.
    """
    own = page.file.src_uri
    base = posixpath.dirname(source_of(own))

    def replace(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(base, target))
        destination = find_page(path)
        if destination is not None:
            return f"]({posixpath.relpath(destination, posixpath.dirname(own) or '.')}{anchor})"
        if repository := os.environ.get("LOADSTONE_REPOSITORY"):
            return f"]({repository.rstrip('/')}/blob/main/{path})"
        return f"]<!-- {path} -->"

    blocks = FENCE.findall(markdown)
    parts = FENCE.split(markdown)
    # A link without a destination becomes plain text.
    linked = [re.sub(r"\[([^\]]*)\]<!-- .*? -->", r"\1", LINK.sub(replace, part)) for part in parts]
    text = "".join(part + block for part, block in zip(linked, [*blocks, ""], strict=True))
    return f"{text}\n{render_reports()}\n" if own == "reports/README.md" else text


def replace_notebook_links(html: str, page: Any, **_: Any) -> str:
    """Replaces a notebook's links to repository files, as in Markdown: mkdocs receives a notebook as HTML."""

    def replace(match: re.Match[str]) -> str:
        link = LINK.search(replace_links(f"[]({match[1]})", page))
        if link is None:
            return ""
        address = re.sub(r"\.(md|ipynb)$", ".html", link[1])
        return f' href="{address}{link[2] or ""}"'

    return HREF.sub(replace, html) if page.file.src_uri.endswith(".ipynb") else html


# The handlers for mkdocs events.
on_config, on_files, on_page_markdown = extend_navigation, add_pages, replace_links
on_page_content = replace_notebook_links
