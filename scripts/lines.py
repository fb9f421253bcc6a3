"""Lines of Rust code by crate, without blank lines, comments and tests: `python scripts/lines.py [ROOT]`."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path


def count_lines(text: str) -> int:
    """The lines of code of a source file, without blank lines, comments and the module of tests."""
    lines = re.split(r"#\[cfg\(test\)\]\n(?:pub\S* )?mod \w+ \{", text)[0].splitlines()
    return sum(1 for line in lines if line.strip() and not line.lstrip().startswith("//"))


def is_test(path: Path) -> bool:
    """Whether a file is compiled for tests only, by its name or the name of its folder."""
    return any("test" in part for part in path.parts) or path.stem in {"simulation", "allocations", "scripted_cluster"}


def main() -> None:
    """Prints a line for each crate, and the sum."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "crates"
    lines: Counter[str] = Counter()
    for file in sorted(root.glob("*/src/**/*.rs")):
        path = file.relative_to(root)
        if not is_test(Path(*path.parts[2:])):
            lines[path.parts[0]] += count_lines(file.read_text())
    for crate, count in lines.items():
        print(f"{crate:<10}{count:>8,}")
    print(f"{'sum':<10}{lines.total():>8,}")


if __name__ == "__main__":
    main()
