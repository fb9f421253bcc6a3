"""New and changed code follows STYLE.md; `--shrink` deletes obsolete entries from the baseline."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASELINE = ROOT / "tests/fixtures/style_baseline.txt"
HEADER = """\
# Occurrences of words that STYLE.md replaces, by file. `python tests/unit/test_style.py --shrink` deletes entries, and
# nothing adds any. A phrase is named by its first alternatives.
# A file that moves keeps its entries: change its heading.
"""
SUFFIXES = {".py", ".rs", ".md", ".java", ".yaml", ".yml", ".toml", ".sh", ".js", ".json"}
TOPS = ("python", "crates", "java/src", "tests", "docs", "experiments", "benchmarks", "scripts", "deploy", ".github")
# Output of older tools, and data.
# The generated types repeat the comments of the Rust types.
EXCLUDED = ("tests/fixtures/", "tests/unit/test_style.py", "python/loadstone/engine/event_types.py")
TEST_WORDS_MAX = 8
# The maximum share of one-word names among the lab's functions.
ONE_WORD_SHARE_MAX = 0.3
# Verbs, nouns and conventional names that end like participles.
NO_PARTICIPLES = {"embed", "exceed", "elapsed", "expected", "feed", "need", "proceed", "seed", "speed", "succeed"}

# Code in Markdown, and the strings of a line that is neither a comment nor a docstring.
CODE = re.compile(r"(?ms:^```.*?^```)|(?m:^    .*$)|`[^`]*`")
MESSAGE = re.compile(r'(?m)^(?!\s*(?:#|//|"""))[^"\n]*("(?!"").*)$')
ENGINE = re.compile(r"(?i)\b(?:the|this|an|its|each|several|another|other|of|one) engines?\b[^=]?")
NO_PAGES = {"decisions", "reports", "writing-a-store.md"}

# The text before `beside` as a value of the key `placement`.
PLACEMENT = re.compile(r'(?:["`|]|apart(?:, |\W{1,4}or | or )|placement: )\Z')

# "test", "function", "variable" or "phrase", and the name or phrase itself.
Offender = tuple[str, str]


@dataclass
class Rules:
    """STYLE.md's tables of replacements. Keys are names and patterns, values the replacements."""

    variables: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    phrases: dict[str, str] = field(default_factory=dict)
    pattern: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        self.functions = self.variables | self.functions
        # No capturing groups: with them `re` cannot compare first letters, and takes three times as long.
        alternatives = "|".join(map(phrase_pattern, self.phrases))
        self.pattern = re.compile(rf"\b(?<!there )(?:{alternatives})\b", re.IGNORECASE)

    def find_phrase(self, text: str) -> str:
        """The first form of the phrase that matches a text."""
        return next(first_form(phrase) for phrase in self.phrases if re.fullmatch(phrase_pattern(phrase), text, re.I))

    def refuses_function(self, name: str) -> bool:
        """Whether the first word of a function's name is a participle or another word of the tables."""
        first = re.sub(r"(?<=[a-z])[A-Z].*", "", name).lstrip("_").split("_")[0]
        return first in self.functions or (first.endswith("ed") and first not in NO_PARTICIPLES)


def phrase_pattern(text: str) -> str:
    """A phrase of STYLE.md as a regular expression; a line break and the sign of a comment count as a space."""
    words = ("(?:" + re.escape(word).replace("/", "|").replace(r"\*", r"\w*") + ")" for word in text.split())
    return r"(?:\s+(?:#|///?!?|\*)?\s*)".join(words)


def first_form(phrase: str) -> str:
    """The name of a phrase in the baseline, which a further alternative does not change."""
    return " ".join(word.split("/")[0] for word in phrase.split())


def parse_rules(text: str) -> Rules:
    rules = Rules()
    sections = re.split(r"^### ", text.split("\n## Replacements\n")[1], flags=re.MULTILINE)[1:]
    for section, target in zip(sections, (rules.variables, rules.functions, rules.phrases), strict=True):
        for left, right in re.findall(r"^\| (.+?) \| (.+?) \|$", section, flags=re.MULTILINE):
            if left == "instead of" or left.startswith("a participle"):
                continue
            names = re.findall(r"`(\w+)`", left) if target is not rules.phrases else left.split(", ")
            target.update(dict.fromkeys(names, right))
    return Rules(rules.variables, rules.functions, rules.phrases)


@cache
def load_rules() -> Rules:
    return parse_rules((ROOT / "STYLE.md").read_text())


def source_files() -> Iterator[Path]:
    """Every file that is written by hand."""
    for top in TOPS:
        yield from (path for path in (ROOT / top).rglob("*") if path.suffix in SUFFIXES)
    yield from (path for path in ROOT.iterdir() if path.suffix in SUFFIXES)


def python_items(source: str) -> Iterator[tuple[int, str, str]]:
    """Functions, tests, and names bound by assignments, parameters, fields, imports or pytest's parameters."""
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        pending.extend(ast.iter_child_nodes(node))
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, "test" if name.startswith("test_") else "function", name
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, "variable", name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, "variable", name
            case ast.alias(name=name, asname=alias):
                yield node.lineno, "variable", alias or name
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[first, *_]):
                for constant in ast.walk(first):
                    if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                        yield from ((constant.lineno, "variable", name.strip()) for name in constant.value.split(","))


RUST_TEST = re.compile(r"#\[(?:tokio::)?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub |async )*fn (\w+)")
# `let …` and `for … in`, `|…|`, and parameters and fields: `name: Type`.
RUST_BINDING = re.compile(
    r"\b(?:let|for)\s+(?:Some|Ok|Err|mut|ref)?\s*(?P<pattern>[\w\s,&()]*?)\s*(?:=|:|\bin\b)"
    r"|\|(?P<closure>[\w\s,&()]+)(?:\||:)"
    r"|(?<=[({,\n])\s*(?:pub(?:\(\w+\))?\s+)?(?:mut\s+)?(?P<typed>\w+)\s*:(?!:)"
)
JAVA_FUNCTION = re.compile(
    r"^\s+(?:(?:public|private|protected|static|final|synchronized) )*[\w<>\[\], ?]+ (\w+)\([^;]*$", re.MULTILINE
)
# Comments and strings. A Rust character may be a quotation mark.
SLASHES = re.compile(
    r'//[^\n]*|/\*.*?\*/|r(?P<marks>#+)".*?"(?P=marks)|"(?:[^"\\]|\\.)*"|(?P<code>\'(?:\\.|[^\'\\])\')', re.DOTALL
)
HASHES = re.compile(r'#[^\n]*|"""(?:.*?)"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
PROSE = {".py": HASHES, ".rs": SLASHES, ".java": SLASHES}
COMMENT = ("#", "//", "/*", '"""')
# A file of Loadstone in a comment. Other projects' files have no folder, and `report.md` is the name of an output.
FILE_NAME = re.compile(
    r"(?<![\w./<>{}*-])(?:\.\./)*((?:[\w.-]+/)*[\w-]+\.(?:py|rs|sh)|(?:[\w.-]+/)+[\w-]+\.(?:md|java))\b"
)
MODULE_NAME = re.compile(r"(?<!import )(?<!from )\bloadstone((?:\.[A-Za-z_]\w*){2,})\b")


def line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def blank(text: str) -> str:
    """Replaces a text with spaces, so that subsequent text keeps its line."""
    return re.sub(r"[^\n]+", lambda match: " " * len(match[0]), text)


def split_prose(suffix: str, text: str) -> tuple[str, str]:
    """The code and the prose (comments and strings) of a source text. Both keep the line numbers of the text."""
    if suffix not in PROSE:
        return "", text
    code, prose, end = [], [], 0
    for match in PROSE[suffix].finditer(text):
        if match.groupdict().get("code"):
            continue
        before = text[end : match.start()]
        code += [before, blank(match[0])]
        prose += [blank(before), match[0]]
        end = match.end()
    return "".join([*code, text[end:]]), "".join(prose)


def named_items(suffix: str, text: str, code: str) -> Iterator[tuple[int, str, str]]:
    """Functions, tests and variables of a source text, each with its line."""
    if suffix == ".py":
        yield from python_items(text)
    elif suffix == ".rs":
        tests = {match.start(1) for match in RUST_TEST.finditer(code)}
        for match in re.finditer(r"\bfn (\w+)", code):
            yield line_at(code, match.start()), "test" if match.start(1) in tests else "function", match[1]
        for match in RUST_BINDING.finditer(code):
            line = line_at(code, match.end())
            yield from ((line, "variable", name) for name in re.findall(r"\w+", match[str(match.lastgroup)]))
    elif suffix == ".java":
        yield from ((line_at(code, match.start(1)), "function", match[1]) for match in JAVA_FUNCTION.finditer(code))


def offenders(suffix: str, text: str, rules: Rules) -> Iterator[tuple[int, Offender]]:
    """Everything in a text that STYLE.md replaces, with its line."""
    code, prose = split_prose(suffix, text)
    for line, item, name in named_items(suffix, text, code):
        match item:
            case "test" if len(name.removeprefix("test_").split("_")) > TEST_WORDS_MAX:
                yield line, (item, name)
            case "function" if rules.refuses_function(name):
                yield line, (item, name)
            case "variable" if (lower := name.lstrip("_").lower()) in rules.variables:
                yield line, (item, lower)
    for match in rules.pattern.finditer(prose):
        if match[0] == "beside" and PLACEMENT.search(prose, 0, match.start()):
            continue
        yield line_at(prose, match.start()), ("phrase", rules.find_phrase(match[0]))


def advice(offender: Offender, rules: Rules) -> str:
    item, name = offender
    match item:
        case "test":
            return f"test `{name}`: name subject and outcome in at most {TEST_WORDS_MAX} words"
        case "function":
            first = re.sub(r"(?<=[a-z])[A-Z].*", "", name).lstrip("_").split("_")[0]
            return f"function `{name}`: write {rules.functions.get(first, 'a verb and its object')}"
        case "variable":
            return f"variable `{name}`: write {rules.variables[name]}"
    instead = next(instead for phrase, instead in rules.phrases.items() if first_form(phrase) == name)
    return f'"{name}": write {instead}'


@cache
def present() -> dict[str, list[tuple[int, Offender]]]:
    """The offenders of every file, by its path."""
    occurrences = {}
    for path in source_files():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(EXCLUDED):
            continue
        text = path.read_text(errors="replace")
        if name == "STYLE.md":
            # The first columns of the tables in STYLE.md are the words to replace.
            text = re.sub(r"^\|.*?\|", "|", text, flags=re.MULTILINE)
        if lines := sorted(offenders(path.suffix, text, load_rules())):
            occurrences[name] = lines
    return occurrences


Counts = dict[str, Counter[Offender]]


def count(occurrences: dict[str, list[tuple[int, Offender]]]) -> Counts:
    return {name: Counter(offender for _, offender in lines) for name, lines in occurrences.items()}


def parse_baseline(text: str) -> Counts:
    counts: Counts = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(" "):
            item, *words = line.split()
            number = int(words.pop()) if words[-1].isdigit() else 1
            counts[name][item, " ".join(words)] = number
        elif line and not line.startswith("#"):
            name = line
            counts[name] = Counter()
    return counts


def render_baseline(counts: Counts) -> str:
    lines = []
    for name, offenders in sorted(counts.items()):
        entries = [
            f" {item} {text}" + (f" {number}" if number > 1 else "")
            for (item, text), number in sorted(offenders.items())
            if number
        ]
        lines += [name, *entries] if entries else []
    return HEADER + "\n".join(lines) + "\n"


def additions(occurrences: dict[str, list[tuple[int, Offender]]], baseline: Counts, rules: Rules) -> list[str]:
    """A message for each offender that occurs in a file more often than in the baseline."""
    messages = []
    for name, counts in count(occurrences).items():
        for offender in counts - baseline.get(name, Counter()):
            lines = [line for line, present in occurrences[name] if present == offender]
            more = f" (one of lines {', '.join(map(str, lines))})" if len(lines) > 1 else ""
            messages.append(f"{name}:{lines[0]}: {advice(offender, rules)}{more}")
    return messages


def shrink(baseline: Counts, counts: Counts) -> Counts:
    """The baseline without obsolete entries."""
    return {name: offenders & counts.get(name, Counter()) for name, offenders in baseline.items()}


def test_changed_code_follows_style() -> None:
    messages = additions(present(), parse_baseline(BASELINE.read_text()), load_rules())
    assert not messages, "see STYLE.md:\n" + "\n".join(messages)


def missing_files(text: str, files: set[str]) -> Iterator[str]:
    """The files and modules that a comment names, but that do not exist; `files` are paths that begin with a slash."""
    for match in FILE_NAME.finditer(text):
        if not any(file.endswith(f"/{match[1]}") for file in files):
            yield match[1]
    for match in MODULE_NAME.finditer(text):
        place = f"/python/loadstone{match[1].replace('.', '/')}"
        # The last part may be a name in the module.
        if not {f"{place}.py", f"{place}/__init__.py", f"{place.rpartition('/')[0]}.py"} & files:
            yield match[0]


def test_comments_name_existing_files() -> None:
    files = {f"/{path.relative_to(ROOT).as_posix()}" for top in TOPS for path in (ROOT / top).rglob("*")}
    messages = []
    for path in source_files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in PROSE or name.startswith(EXCLUDED):
            continue
        text = path.read_text()
        for match in PROSE[path.suffix].finditer(text):
            if match[0].startswith(COMMENT):
                messages += [
                    f"{name}:{line_at(text, match.start())}: {file}" for file in missing_files(match[0], files)
                ]
    assert not messages, "these files do not exist:\n" + "\n".join(messages)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("# see judge/checks/rate.py and `tests/unit/test_style.py`", []),
        ("# see judge/checks/slow.py", ["judge/checks/slow.py"]),
        ("/// As in `StressYaml.java`, see crates/load/src/zipf.rs.", []),
        ("/// tests/gone.rs", ["tests/gone.rs"]),
        ("# loadstone.judge.settings.DEFAULTS", []),
        ("# loadstone.judge.thresholds.DEFAULTS", ["loadstone.judge.thresholds.DEFAULTS"]),
    ],
)
def test_missing_file_of_comment_is_listed(text: str, missing: list[str]) -> None:
    names = ("judge/checks/rate.py", "judge/settings.py", "judge/__init__.py")
    files = {"/tests/unit/test_style.py", "/crates/load/src/zipf.rs", *(f"/python/loadstone/{name}" for name in names)}
    assert [*missing_files(text, files)] == missing


def test_engine_means_storage_engine_to_users() -> None:
    """In docs and messages, Loadstone's process is the load generator. The guide to stores is for developers."""
    pages = {path: CODE.sub("", path.read_text()) for path in (ROOT / "docs").rglob("*.md")}
    texts = {path: text for path, text in pages.items() if not NO_PAGES & {*path.parts, path.name}}
    for path in (*(ROOT / "python/loadstone").rglob("*.py"), *(ROOT / "crates").glob("*/src/**/*.rs")):
        texts[path] = "\n".join(MESSAGE.findall(path.read_text()))
    wrong = {str(path.relative_to(ROOT)): match[0] for path, text in texts.items() if (match := ENGINE.search(text))}
    assert wrong == {}


def test_most_function_names_have_an_object() -> None:
    sources = [path.read_text() for path in (ROOT / "python/loadstone").rglob("*.py")]
    items = [name for source in sources for _, item, name in python_items(source) if item == "function"]
    names = [name for name in items if not name.startswith("__")]
    one_word = [name for name in names if "_" not in name.strip("_")]
    assert len(one_word) <= ONE_WORD_SHARE_MAX * len(names), Counter(one_word).most_common(20)


def test_baseline_lists_only_present_offenders() -> None:
    baseline = parse_baseline(BASELINE.read_text())
    counts = count(present())
    gone = [
        f"{name}: {item} {text}"
        for name, offenders in baseline.items()
        for item, text in offenders - counts.get(name, Counter())
    ]
    assert not gone, "delete these entries: python tests/unit/test_style.py --shrink\n" + "\n".join(gone)
    assert render_baseline(baseline) == BASELINE.read_text(), "sort it: python tests/unit/test_style.py --shrink"


PYTHON = """
from a import told
@pytest.mark.parametrize("x, said", [])
def moved(y, held=1, **seen): return f(each=each.found)
for each in (): pass
def test_one_two_three_four_five_six_seven_eight(): pass
def test_one_two_three_four_five_six_seven_eight_nine(): pass
def _by_name(): pass
def elapsed(): pass
# It stands
# in front of "one that" fails.
def judged(): pass
"""
RUST = """
/// Whoever asks.
fn found(each: &str) -> u64 { let (words, a) = "each words"; each.held(one, a) }
#[test]
fn one_two_three_four_five_six_seven_eight() { for (i, theirs) in one {} }
#[tokio::test]
async fn one_two_three_four_five_six_seven_eight_nine() { paths.map(|each| each) }
pub fn from_text(held: u64) {}
"""


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [
        (
            ".py",
            PYTHON,
            [
                (2, ("variable", "told")),
                (3, ("variable", "said")),
                (4, ("function", "moved")),
                (4, ("variable", "held")),
                (4, ("variable", "seen")),
                (5, ("variable", "each")),
                (7, ("test", "test_one_two_three_four_five_six_seven_eight_nine")),
                (8, ("function", "_by_name")),
                (10, ("phrase", "stand in")),
                (11, ("phrase", "one that")),
                (12, ("function", "judged")),
            ],
        ),
        (
            ".rs",
            RUST,
            [
                (2, ("phrase", "whoever")),
                (3, ("function", "found")),
                (3, ("variable", "each")),
                (3, ("variable", "words")),
                (5, ("variable", "theirs")),
                (7, ("test", "one_two_three_four_five_six_seven_eight_nine")),
                (7, ("variable", "each")),
                (8, ("variable", "held")),
            ],
        ),
        (".java", "class A {\n    static int movedBy(int a) {\n", [(2, ("function", "movedBy"))]),
        (".md", "There in turns. It is so, in turns.", [(1, ("phrase", "in turns"))]),
    ],
)
def test_offenders_are_listed_by_line(suffix: str, text: str, expected: list[tuple[int, Offender]]) -> None:
    assert sorted(offenders(suffix, text, load_rules())) == expected


VAGUE = [
    *("found", "moved", "turned", "shown", "told", "said", "known", "given", "made", "taken", "kept", "asked", "left"),
    *("lost", "noted", "weighed", "excused", "held", "seen", "looked", "one", "each", "those", "other", "same"),
]


@pytest.mark.parametrize("name", VAGUE)
def test_vague_function_name_is_refused(name: str) -> None:
    assert load_rules().refuses_function(name)


def test_baseline_admits_no_addition() -> None:
    baseline = parse_baseline("a.py\n variable each 2\n function moved\n")
    lines = [(number, ("variable", "each")) for number in (1, 2, 5)]
    (message,) = additions({"a.py": lines}, baseline, load_rules())
    assert message.startswith("a.py:1: variable `each`: write ")
    assert message.endswith("(one of lines 1, 2, 5)")


def test_shrinking_deletes_and_never_adds() -> None:
    baseline = parse_baseline("a.py\n function moved\n variable each 2\nb.py\n phrase one that\n")
    counts = {"a.py": Counter({("variable", "each"): 1, ("variable", "found"): 1})}
    assert render_baseline(shrink(baseline, counts)) == HEADER + "a.py\n variable each\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--shrink"]:
        sys.exit("usage: python tests/unit/test_style.py --shrink")
    counts = count(present())
    # Without a baseline, the present offenders become the first baseline.
    baseline = parse_baseline(BASELINE.read_text()) if BASELINE.exists() else counts
    BASELINE.write_text(render_baseline(shrink(baseline, counts)))
