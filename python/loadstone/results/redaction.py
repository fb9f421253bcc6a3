"""Redacts a result folder: replaces host names, addresses and absolute paths with numbered names.

Equal names get equal replacements, so equal facts stay equal. Names are collected where files state them (hosts
of the environment, settings such as `hosts=…`, URLs, addresses), and are replaced everywhere.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

# A setting with hosts, in command lines and other text: `-p hosts=a,b`, `-node a`, `hosts: [a, b]`.
WORD = r"(?:hosts?|host_?names?|address(?:es)?|nodes?|quorum|contact_points)"
SETTING = re.compile(
    rf"(?i)(?:(?<![a-z]){WORD}[\"']?\s*[=:]|(?<!\S)--?{WORD}\s)\s*\[?[\"']?"
    r"([\w.:-]+(?:[\"']?\s*,\s*[\"']?[\w.:-]+)*)"
)
# A list of hosts in YAML with one host per line.
BLOCK = re.compile(rf"(?im)^[ -]*(?:[\w.-]*[._-])?{WORD}:[ \t]*\n((?:[ \t]*-[ \t]+\S+[ \t]*(?:#.*)?(?:\n|\Z))+)")
ITEM = re.compile(r"(?m)^[ \t]*-[ \t]+[\"']?([\w.:-]+)")
# Settings whose value is a host only if it has a domain: `servers: 3` has none.
DOMAIN = r"[A-Za-z0-9][\w-]*(?:\.[\w-]+)*\.[A-Za-z][\w-]*"
ROLE = re.compile(
    r"(?i)(?<![a-z])(?:name_?nodes?|(?:bootstrap[._])?servers?|seeds?|brokers?|zookeeper|jdbc)[\"']?\s*[=:]\s*\[?[\"']?"
    rf"({DOMAIN}(?::\d+)?(?:[\"']?\s*,\s*[\"']?{DOMAIN}(?::\d+)?)*)"
)
KEY = re.compile(rf"(?:.*[._-])?{WORD}", re.IGNORECASE)
URL = re.compile(r"([a-z][a-z0-9+.-]*://)([^/\s\"'<>]*)(/[^\s\"'`,;()<>|]*)?", re.IGNORECASE)
ADDRESS = re.compile(
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]|\.\d)|(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])",
    re.IGNORECASE,
)
# An absolute path in text, also after an option's letter (`-I/srv/x`), but not part of a word, a fraction or a rate.
PATH = re.compile(
    r"(?:(?<![\w.+/@%~-])|(?<=\s-[A-Za-z]))(?:~[\w.-]*)?/[^\s\"'`,;:()<>|&*?\\\[\]{}=]+|/(?:home|Users)/[^\s\"'`,;:()<>|&*?=]+"
)
# Paths with spaces in text, in quotes or as the whole value of a key; and Windows paths.
QUOTED_PATH = re.compile(r"(?<=')/[^'\n]+(?=')|(?<=\")/[^\"\n]+(?=\")")
VALUE_PATH = re.compile(r"(?m)(?<=: )/[^\n,#\[\]{}'\"]* [^\n,#\[\]{}'\"]*$")
WINDOWS_PATH = re.compile(r"(?<!\w)[A-Za-z]:\\[^\s\"'<>|]+")
# The kernel's files are the same everywhere.
PUBLIC_PATH = re.compile(r"/(?:proc|sys|dev)(?:/|$)")
# Words that are not names of hosts, and the names of stores, which are also the names of facts and systems.
PUBLIC_NAME = re.compile(
    r"(?i)localhost(?:\.localdomain)?|\d+|none|null|true|false|all|cassandra|hbase|hdfs|postgres|redis|scylla"
)
# The vocabulary of the result format, which is not redacted: keys, and the values of some keys.
FORMAT_KEY = re.compile(r"[a-z_]+")
FORMAT_VALUES = frozenset({"end", "loop", "unit", "metric", "bound", "kind", "mark", "version"})
# The keys of a mapping from hosts to their figures.
HOSTS_KEY = re.compile(r"(?:[a-z]+_)?(?:hosts?|nodes?|servers?|engines?)")
# A figure of one host: `host.worker-7.throughput`. Other names of figures have no host.
HOST_FIGURE = re.compile(r"((?:[\w.]+\.)?host\.)(.+?)(\.[a-z_]\w*(?:\.\d+)?)")
# The files and directories of the result format, which keep their names even if a host has the same name.
FORMAT_FILE = re.compile(r"trials|sources|[a-z]+(?:\.\d+)?(?:\.[a-z]+)?\.(?:hlog|jsonl?|yaml|log)")
# The beginning of every base64-encoded histogram.
HISTOGRAM = "HISTF"


class Redaction:
    """The names in some files, and their replacements."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Collects the names. Raises OSError."""
        self._names: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        # If a path is a whole value, it may contain spaces.
        blanks: dict[str, None] = {}
        names: dict[str, None] = {}
        for name in (socket.gethostname(), socket.getfqdn()):
            names.update(dict.fromkeys(find_hosts(name)))
        for file in files:
            content = decode_text(file.read_bytes()) or ""
            for match in BLOCK.finditer(content):
                names.update(dict.fromkeys(host for item in ITEM.findall(match[1]) for host in find_hosts(item)))
            for key, text in list_strings(content, file.suffix):
                names.update(dict.fromkeys(names_in(key, text)))
                if is_path(text) and " " in text:
                    blanks[text] = None
        for name in sorted(names, key=lambda name: (-len(name), name)):
            self._names.setdefault(name.lower(), f"host-{len(self._names) + 1}")
        self._name_pattern = any_of(self._names, r"(?i)(?<![A-Za-z0-9])(?:{})(?![A-Za-z0-9])")
        self._blank_pattern = any_of(blanks, "(?:{})")

    def redact_file(self, path: Path, data: bytes) -> bytes | None:
        """A file's redacted content; None for a binary file."""
        text = decode_text(data)
        if text is None:
            return None
        if path.suffix == ".json":
            document = parse_json(text)
            if document is not None:
                return (json.dumps(self._redact_part(document), indent=2, ensure_ascii=False) + "\n").encode()
        return "".join(self._redact_line(line) for line in text.splitlines(keepends=True)).encode()

    def redact_member(self, name: str) -> str:
        """A file's name below its folder, with host names and paths replaced."""
        return "/".join(part if FORMAT_FILE.fullmatch(part) else self.redact_text(part) for part in name.split("/"))

    def redact_text(self, text: str) -> str:
        """Text with host names and paths replaced."""
        for pattern in (self._blank_pattern, QUOTED_PATH, VALUE_PATH, WINDOWS_PATH):
            text = pattern.sub(lambda match: self._redact_path(match[0]), text)
        text = URL.sub(lambda match: match[1] + match[2] + (self._redact_path(match[3]) if match[3] else ""), text)
        text = PATH.sub(lambda match: self._redact_path(match[0]), text)
        return self._name_pattern.sub(lambda match: self._names[match[0].lower()], text)

    def _redact_line(self, line: str) -> str:
        document = parse_json(line) if line.lstrip().startswith("{") else None
        if document is not None:
            return json.dumps(self._redact_part(document), separators=(",", ":"), ensure_ascii=False) + "\n"
        # The tag of a histogram, before its encoded counts, may contain a name.
        tag, mark, histogram = line.partition(f",{HISTOGRAM}")
        return self.redact_text(tag) + mark + histogram

    def _redact_part(self, part: Any, key: str = "") -> Any:
        if isinstance(part, dict):
            return {self._redact_key(name, key): self._redact_part(value, name) for name, value in part.items()}
        if isinstance(part, list):
            return [self._redact_part(value, key) for value in part]
        if key == "metric" and isinstance(part, str) and (figure := HOST_FIGURE.fullmatch(part)) is not None:
            return figure[1] + self.redact_text(figure[2]) + figure[3]
        if not isinstance(part, str) or part.startswith(HISTOGRAM) or key in FORMAT_VALUES:
            return part
        return self._redact_path(part) if is_path(part) else self.redact_text(part)

    def _redact_key(self, name: str, parent: str) -> str:
        """The redacted form of a key in the mapping that is stored under the key `parent`."""
        is_host = HOSTS_KEY.fullmatch(parent) is not None and name.lower() in self._names
        return name if FORMAT_KEY.fullmatch(name) and not is_host else str(self._redact_part(name))

    def _redact_path(self, path: str) -> str:
        if path == "/" or PUBLIC_PATH.match(path):
            return path
        return self._paths.setdefault(path, f"/redacted/{len(self._paths) + 1}")


def is_path(text: str) -> bool:
    """Whether a whole value is an absolute path."""
    return re.match(r"(?:~[\w.-]*)?/[^\n]", text) is not None and "\n" not in text and " /" not in text


def decode_text(data: bytes) -> str | None:
    """A file's text; None for a binary file."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def parse_json(text: str) -> Any:
    """A JSON document; None if the text is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def list_strings(text: str, suffix: str) -> Iterator[tuple[str, str]]:
    """Yields each string in a file with its key: the values of JSON documents, and the lines of all other content."""
    document = parse_json(text) if suffix == ".json" else None
    for part in text.splitlines() if document is None else [document]:
        value = part if document is not None else (parse_json(part) if part.lstrip().startswith("{") else None)
        if value is not None:
            yield from list_leaves(value)
        else:
            yield "", part.partition(f",{HISTOGRAM}")[0]


def list_leaves(part: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yields each string in a document with its key; the names in a list of hosts have the key of the list."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield "", name
            yield from list_leaves(value, key if name == "name" and key else name)
    elif isinstance(part, list):
        for value in part:
            yield from list_leaves(value, key)
    elif isinstance(part, str) and not part.startswith(HISTOGRAM):
        yield key, part


def names_in(key: str, text: str) -> Iterator[str]:
    """The host names and addresses in a string."""
    if KEY.fullmatch(key):
        yield from find_hosts(text)
    for match in SETTING.finditer(text):
        yield from find_hosts(match[1])
    for match in ROLE.finditer(f"{key}: {text}"):
        yield from find_hosts(match[1])
    for match in URL.finditer(text):
        yield from find_hosts(match[2].rpartition("@")[2])
    if key not in FORMAT_VALUES:
        for match in ADDRESS.finditer(text):
            yield from find_hosts(match[0])


def find_hosts(text: str) -> Iterator[str]:
    """Yields the hosts in a list such as `db-1.example.com:9042, 10.0.0.2`.

    A name with a digit or hyphen is also yielded without its domain.
    """
    for word in re.split(r"[\s,;\[\]\"']+", text):
        if is_address(word):
            if not ipaddress.ip_address(word).is_loopback and not ipaddress.ip_address(word).is_unspecified:
                yield word
            continue
        name = word.partition(":")[0]
        if is_address(name):
            yield from find_hosts(name)
        elif re.fullmatch(r"[A-Za-z0-9][\w.-]*", name) and not PUBLIC_NAME.fullmatch(name):
            yield name.rstrip(".-")
            first, dot, _ = name.partition(".")
            if dot and re.search(r"[\d-]", first) and not first.isdigit():
                yield first


def is_address(text: str) -> bool:
    """Whether a string is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def any_of(texts: Iterable[str], pattern: str) -> re.Pattern[str]:
    """A pattern that matches any of the texts, preferably the longest; without texts, it matches nothing."""
    escaped = [re.escape(text) for text in sorted(texts, key=lambda text: (-len(text), text))]
    return re.compile(pattern.format("|".join(escaped)) if escaped else "(?!)")
