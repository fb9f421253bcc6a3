"""The files for contributors: steps that name real files and registries, forms, hooks and the hosted workflow."""

from __future__ import annotations

import posixpath
import re
import runpy
import shutil
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import yaml

import loadstone
from lab_support import ROOT
from loadstone.engine import events
from loadstone.results import folder

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", CONTRIBUTING, re.MULTILINE))
STEPS_MAX = 10
FORMS = sorted(path.name for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
TEXT = {"type": "string", "minLength": 1}


def find_file(name: str) -> Path | None:
    """The file for a name in CONTRIBUTING.md: from the root, below python/, or a test file in any folder."""
    places = [ROOT / name, ROOT / "python" / name, *((ROOT / "tests").rglob(name) if "/" not in name else ())]
    return next((place for place in places if place.exists()), None)


def list_named_files() -> set[str]:
    names = set(re.findall(r"`([\w./-]+(?:\.(?:py|rs|md|toml)|/))`", CONTRIBUTING))
    return {name for name in names if "NAME" not in name}


@pytest.mark.parametrize("name", sorted(list_named_files()))
def test_contributing_names_existing_files(name: str) -> None:
    assert find_file(name), name


def test_contributing_names_existing_registries() -> None:
    registries = re.findall(r"`([\w!]+)` in\s+`([\w./-]+)`", CONTRIBUTING.replace("NAME/system.py", "redis/system.py"))
    assert len(registries) >= 10
    for name, file in registries:
        path = find_file(file)
        assert path, file
        assert re.search(rf"\b{re.escape(name.rstrip('!'))}\b", path.read_text()), f"{name} in {file}"


def test_contributing_names_existing_targets() -> None:
    targets = set(re.findall(r"(?m)(?:^    |`)make ([a-z]+)", CONTRIBUTING))
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    assert targets <= set(phony[1].split())


def test_contributing_tasks_have_few_steps() -> None:
    tasks = [name for name in SECTIONS if name.startswith("Add ")]
    assert tasks == [
        "Add a store",
        "Add a property",
        "Add a system",
        "Add an importer",
        "Add a check",
        "Add a workload kind",
        "Add a metric",
        "Add a fault",
        "Add an option to a command",
        "Add a chart",
    ]
    for name in tasks:
        for run in re.split(r"^1\. ", SECTIONS[name], flags=re.MULTILINE)[1:]:
            assert len(re.findall(r"^\d+\. ", f"1. {run}", re.MULTILINE)) <= STEPS_MAX, name


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
ARCHITECTURE_WORDS_MAX = 1600
DOCS_PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")])
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
SOURCES = sorted(
    path
    for top in (
        "crates",
        "python",
        "java/src",
        "scripts",
        "tests",
        "docs",
        "workloads",
        "experiments",
        "benchmarks",
        "deploy",
    )
    for path in (ROOT / top).rglob("*")
    if path.is_file() and "fixtures" not in path.parts
)


@cache
def read_identifiers() -> set[str]:
    """Every identifier of the sources."""
    identifiers: set[str] = set()
    for path in SOURCES:
        if path.suffix in (".py", ".rs", ".java", ".toml", ".sh"):
            identifiers.update(re.findall(r"\w+", path.read_text()))
    return identifiers


@cache
def read_places() -> frozenset[str]:
    """The paths of all sources and their folders: each begins with a slash, and a folder's path also ends with one."""
    names = {f"/{source.relative_to(ROOT).as_posix()}" for source in SOURCES}
    return frozenset(names | {f"{parent}/" for name in names for parent in Path(name).parents})


@pytest.mark.parametrize("path", [ROOT / "ARCHITECTURE.md", *DECISIONS], ids=lambda path: path.stem)
def test_named_code_exists(path: Path) -> None:
    text = path.read_text().partition("| crate | for |")[0]
    for name in re.findall(r"`([\w./-]+\.(?:py|rs|java|sh)|(?:[\w-]+/)+[\w-]*)`", text):
        assert any(place.endswith((f"/{name}", f"/{name}/")) for place in read_places()), name
    for name in re.findall(r"`(?:\w+::)*([a-z]+(?:_[a-z]+)+|[A-Z]+[a-z]\w*)!?`", text):
        assert name in read_identifiers(), name


def test_architecture_is_a_tour() -> None:
    assert len(ARCHITECTURE.split()) <= ARCHITECTURE_WORDS_MAX
    for crate in (ROOT / "crates").iterdir():
        assert f"`crates/{crate.name}`" in ARCHITECTURE
    # The page cites nothing outside the repository.
    assert not re.findall(r"https?://|\.\./\.\.", ARCHITECTURE)


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_decision_record_has_form(path: Path) -> None:
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    assert headings[0].startswith(f"{int(path.name[:4])}. ")
    assert headings[1:] == ["Context", "Decision", "Consequences"]


def test_index_lists_every_decision() -> None:
    rows = re.findall(r"^(\d+)\. \[(.*)\]\((.*)\)$", (ROOT / "docs/decisions/README.md").read_text(), re.MULTILINE)
    titles = [path.read_text().partition("\n")[0].removeprefix("# ") for path in DECISIONS]
    assert [(f"{number}. {title}", name) for number, title, name in rows] == [
        (title, path.name) for title, path in zip(titles, DECISIONS, strict=True)
    ]


def load_yaml(name: str) -> Any:
    # YAML 1.1 reads the key `on` as true.
    return yaml.load((ROOT / name).read_text(), Loader=yaml.BaseLoader)


def mapping(required: list[str], /, **properties: Any) -> dict[str, Any]:
    """The schema of a mapping with these keys only."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


# The subset of the public schema of workflows that this workflow uses.
MAPPING = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}
STEP = mapping([], name=TEXT, uses={"pattern": r"^[\w-]+/[\w-]+@v\d+$"}, run=TEXT, env=MAPPING) | {
    "oneOf": [{"required": ["uses"]}, {"required": ["run"]}]
}
STEP["properties"]["with"] = MAPPING
JOB = mapping(
    ["runs-on", "steps"],
    container=TEXT,
    env=MAPPING,
    needs=TEXT,
    strategy=mapping(["matrix"], matrix={"type": "object", "additionalProperties": {"type": "array", "items": TEXT}}),
    steps={"type": "array", "items": STEP, "minItems": 1},
    **{"runs-on": TEXT, "timeout-minutes": {"pattern": r"^\d+$"}},
)
WORKFLOW = mapping(
    ["name", "on", "jobs"],
    name=TEXT,
    on={"type": "object", "minProperties": 1, "propertyNames": {"enum": ["push", "pull_request"]}},
    permissions=mapping(["contents"], contents={"const": "read"}),
    concurrency=MAPPING,
    jobs={"type": "object", "minProperties": 1, "additionalProperties": JOB},
)


def test_workflow_calls_ci_and_builds_wheels() -> None:
    workflow = load_yaml(".github/workflows/ci.yml")
    jsonschema.validate(workflow, WORKFLOW)
    jobs = workflow["jobs"]
    commands = {name: [step.get("run") for step in job["steps"]] for name, job in jobs.items()}
    assert ".ci/run" in commands["test"]
    assert "make wheel" in commands["wheel"]
    assert {job.get("needs", "test") for job in jobs.values()} <= jobs.keys()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("runs-on:", "run-on:"),
        ("uses: actions/checkout@v4", "uses: actions/checkout"),
        ("run: .ci/run", "runs: .ci/run"),
        ("jobs:", "job:"),
    ],
)
def test_invalid_workflow_is_refused(old: str, new: str) -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    assert old in text
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.load(text.replace(old, new, 1), Loader=yaml.BaseLoader), WORKFLOW)


ATTRIBUTES = mapping(
    [], label=TEXT, description=TEXT, render=TEXT, value=TEXT, options={"type": "array", "items": TEXT}
)
FIELD = mapping(
    ["type", "attributes"],
    type={"enum": ["markdown", "input", "textarea", "dropdown"]},
    id={"pattern": r"^[\w-]+$"},
    attributes=ATTRIBUTES,
    validations=mapping(["required"], required={"enum": ["true", "false"]}),
)
FORM = mapping(
    ["name", "description", "body"],
    name=TEXT,
    description=TEXT,
    labels={"type": "array", "items": TEXT},
    body={"type": "array", "items": FIELD, "minItems": 1},
)


@pytest.mark.parametrize("name", FORMS)
def test_issue_form_is_valid(name: str) -> None:
    form = load_yaml(f".github/ISSUE_TEMPLATE/{name}")
    jsonschema.validate(form, FORM)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(("options" in field["attributes"]) == (field["type"] == "dropdown") for field in fields)


def test_every_kind_of_issue_has_form() -> None:
    assert FORMS == ["bug.yml", "store.yml", "wrong-number.yml"]


def test_hooks_run_local_tools() -> None:
    (repository,) = load_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    recipe = (ROOT / "Makefile").read_text().replace("$(VENV)", ".venv/bin")
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].split(" -q ")[0].removesuffix(" python tests benchmarks") in recipe, hook["id"]


release = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts/release.py")))
# The maximum number of words in the release notes.
NOTES_WORDS_MAX = 700


def test_version_has_one_source() -> None:
    version = release.read_version(ROOT)
    assert loadstone.__version__ == version
    for name, pattern in release.COPIES:
        assert set(re.findall(pattern, (ROOT / name).read_text())) == {version}, (
            f"{name}: python scripts/release.py sync"
        )
    assert 0 < len(release.read_notes(ROOT, version).split()) <= NOTES_WORDS_MAX


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A committed copy of the files that a release check reads."""
    for name in ("Cargo.toml", "CHANGELOG.md", *(name for name, _ in release.COPIES)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "--message", "a"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    return tmp_path


def test_clean_checkout_can_be_released(checkout: Path) -> None:
    assert [*release.find_obstacles(checkout)] == []


@pytest.mark.parametrize(
    ("name", "old", "new", "error"),
    [
        ("Cargo.toml", 'version = "0', 'version = "next-0', "is not a semantic version"),
        ("java/pom.xml", "<version>0.", "<version>9.", "error: java/pom.xml has 9."),
        ("Cargo.lock", 'loadstone-load"\nversion = "0', 'loadstone-load"\nversion = "7', "error: Cargo.lock has 0."),
        ("CHANGELOG.md", "## 0.", "## Unreleased\n\n## 0.", "error: CHANGELOG.md does not begin with "),
        ("deploy/rayjob.yaml", "kind: RayJob", "kind:  RayJob", "error: deploy/rayjob.yaml is not committed"),
    ],
)
def test_release_is_refused(checkout: Path, name: str, old: str, new: str, error: str) -> None:
    text = (checkout / name).read_text()
    assert old in text
    (checkout / name).write_text(text.replace(old, new, 1))
    obstacles = [*release.find_obstacles(checkout)]
    assert any(error in obstacle for obstacle in obstacles)
    assert all("\nhint: " in obstacle for obstacle in obstacles)


def test_copies_follow_new_version(checkout: Path) -> None:
    manifest = checkout / "Cargo.toml"
    version = release.read_version(checkout)
    manifest.write_text(manifest.read_text().replace(f'version = "{version}"', 'version = "3.4.5-rc.1"', 1))
    release.write_copies(checkout)
    for name, pattern in release.COPIES:
        assert set(re.findall(pattern, (checkout / name).read_text())) == {"3.4.5-rc.1"}
    # The crate `crc` has the version of the crate that it replaces.
    assert 'name = "crc"\nversion = "3.4.0"' in (checkout / "Cargo.lock").read_text()


def test_page_states_versions_of_formats() -> None:
    rows = re.findall(r"(?m)^\| ([\w -]+) \| (\d+) \| ([\d, ]+) \|", (ROOT / "docs/reference/versions.md").read_text())
    spec = (ROOT / "crates/wire/src/spec.rs").read_text()
    ledger = (ROOT / "crates/load/src/ledger.rs").read_text()
    current = {
        "TrialSpec": re.findall(r"pub const VERSION: u32 = (\d+)", spec),
        "events": [str(events.VERSION)],
        "result folder": [str(folder.VERSION)],
        "ledger of writes": re.findall(r"const VERSION: u64 = (\d+)", ledger),
    }
    assert {name: [version] for name, version, _ in rows} == current
    read = {name: versions.split(", ") for name, _, versions in rows}
    assert read["TrialSpec"][0] == re.findall(r"const OLDEST: u64 = (\d+)", spec)[0]
    assert read["result folder"] == [path.name[1:] for path in sorted((ROOT / "tests/fixtures/results").iterdir())]


site = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts/site_pages.py")))
SITE_PAGES = sorted(
    {*site.PROJECT, *site.list_experiments(), *(p.relative_to(site.DOCS).as_posix() for p in DOCS_PAGES)}
)


def read_page(page: str) -> str:
    """The Markdown of a page on the docs site, as changed by the hook of mkdocs."""
    experiments = site.list_experiments()
    text = (
        site.render_experiment(experiments[page]) if page in experiments else (ROOT / site.source_of(page)).read_text()
    )
    return str(site.replace_links(text, SimpleNamespace(file=SimpleNamespace(src_uri=page))))


@pytest.mark.parametrize("page", SITE_PAGES)
def test_links_of_site_lead_to_pages(page: str) -> None:
    text = site.FENCE.sub("", read_page(page))
    for target, _ in site.LINK.findall(text):
        if "://" not in target:
            destination = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
            assert destination in SITE_PAGES or (site.DOCS / destination).is_file(), f"{page} links to {target}"


def test_links_of_notebook_lead_to_pages() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="notebooks/cassandra-scale.ipynb"))
    links = {
        "../../experiments/cassandra-scale.yaml": ' href="../experiments/cassandra-scale.html"',
        "../guides/in-a-notebook.md#x": ' href="../guides/in-a-notebook.html#x"',
        "../../Makefile": "",
    }
    for target, attribute in links.items():
        assert site.replace_notebook_links(f'<a href="{target}">x</a>', page) == f"<a{attribute}>x</a>"


def list_paths(entry: Any) -> list[str]:
    """The pages below an entry of the navigation."""
    if isinstance(entry, str):
        return [entry]
    return [path for part in (entry.values() if isinstance(entry, dict) else entry) for path in list_paths(part)]


def test_navigation_has_every_page() -> None:
    navigation = list_paths(site.extend_navigation(load_yaml("mkdocs.yml"))["nav"])
    assert len(set(navigation)) == len(navigation)
    pages = [page for page in SITE_PAGES if not re.match(r"decisions/\d", page)]
    assert sorted(navigation) == pages


def test_added_report_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "reports/cassandra-scale/report.html"
    report.parent.mkdir(parents=True)
    report.write_text("<!doctype html>")
    monkeypatch.setitem(site.list_reports.__globals__, "DOCS", tmp_path)
    question = site.read_question(ROOT / "experiments/cassandra-scale.yaml")
    assert f"| [cassandra-scale](cassandra-scale/report.html) | {question} |" in read_page("reports/README.md")
    assert "(../reports/cassandra-scale/report.html)" in read_page("experiments/cassandra-scale.md")
