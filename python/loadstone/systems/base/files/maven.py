"""Downloads jars from Maven repositories with `mvn`, so that a user's mirrors and proxies apply."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from loadstone.systems.base.files import cache, program
from loadstone.systems.base.system import SystemsError

MISSING = "apt-get install maven"
# Without strict checksums, Maven 3 accepts a corrupt file, which would then remain in the cache.
FETCH = ("-B", "-q", "--strict-checksums")
HINT = "check that the network or the mirror in ~/.m2/settings.xml can be reached, then try again"


def class_path(name: str, dependencies: Sequence[str], exclude: Sequence[str] = ()) -> list[Path]:
    """The jars of these dependencies and of all their run-time dependencies, sorted.

    A dependency is `group:artifact:version`, optionally with `:type` or `:type:classifier`; an exclusion is
    `group:artifact`. The jars are fetched once for each exact list. Raises SystemsError.
    """
    exact = "\n".join([*sorted(dependencies), "", *sorted(exclude)])
    digest = hashlib.sha256(exact.encode()).hexdigest()[:12]

    def fill(draft: Path) -> None:
        mvn = program.find_program("mvn", MISSING)
        pom = draft / "pom.xml"
        pom.write_text(render_project(name, dependencies, exclude))
        goal = [*FETCH, "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={draft / 'lib'}"]
        program.run_program([mvn, *goal, "-f", str(pom)], f"cannot fetch the jars of {name}", HINT, draft)
        if not any((draft / "lib").glob("*.jar")):
            raise SystemsError(f"mvn fetched no jars of {name}", HINT)

    where = cache.fill_entry(cache.cache_root() / "maven" / f"{name}-{digest}", fill)
    return sorted((where / "lib").glob("*.jar"))


def render_project(name: str, dependencies: Sequence[str], exclude: Sequence[str]) -> str:
    """A Maven project that consists only of dependencies."""
    left_out = "".join(
        f"<exclusion><groupId>{escape(group)}</groupId><artifactId>{escape(left)}</artifactId></exclusion>"
        for group, _, left in (item.partition(":") for item in exclude)
    )
    listed = "\n".join(render_dependency(item, left_out) for item in dependencies)
    return f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>loadstone</groupId><artifactId>{escape(name)}</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
{listed}
</dependencies>
</project>
"""


def render_dependency(coordinates: str, exclusions: str) -> str:
    """The XML element of one dependency."""
    names = ("groupId", "artifactId", "version", "type", "classifier")
    values = zip(names, split_coordinates(coordinates), strict=False)
    inside = "".join(f"<{tag}>{escape(value)}</{tag}>" for tag, value in values)
    return f"<dependency>{inside}<exclusions>{exclusions}</exclusions></dependency>"


def split_coordinates(coordinates: str) -> list[str]:
    """The group, artifact, version and optional type and classifier of a dependency. Raises SystemsError."""
    parts = coordinates.split(":")
    if not 3 <= len(parts) <= 5 or not all(parts):
        raise SystemsError(
            f'"{coordinates}" is not an artifact', "write group:artifact:version, then :type and :classifier if needed"
        )
    return parts
