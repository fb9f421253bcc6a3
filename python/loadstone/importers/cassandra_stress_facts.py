"""Facts about the work of cassandra-stress, from its printed settings and its command line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loadstone.importers.command_line import command_fact, split_command
from loadstone.importers.number import parse_grouped
from loadstone.importers.run import ImportedRun, mix_fact
from loadstone.results.trial_result import Scalar

NAME = "cassandra-stress"
SUFFIXES = {"k": 10**3, "m": 10**6, "b": 10**9}
# The default population if the number of operations is not set (SettingsCommand.java).
POPULATION = 1_000_000
# The defaults of the group `-col`, keyed by the names of the setting and the option (SettingsColumn.java).
COLUMNS = {("Count", "n"): "fixed(5)", ("Size", "size"): "fixed(34)"}
# Groups of options that are read elsewhere, or that do not affect the work. The empty name represents the type
# of the operations.
NOT_OF_WORK = ("", "rate", "col", "node", "log", "port", "graph", "sendto", "jmx", "reporting")


def add_facts(settings: dict[str, str], command: str, clients: int | None, result: ImportedRun) -> None:
    """Adds clients, rate, and facts from the settings and the command line. Raises ValueError for an invalid rate."""
    settings = unify_settings(settings)
    text = command_fact(f"{NAME} {command}") if command else ""
    groups = split_groups(command)
    # Removes quotation marks, and a pipe to another program.
    command = " ".join(split_command(command))
    threads = settings.get("Thread Count") or find_option(command, "threads") or ""
    result.clients = clients or (int(threads) if threads.isdigit() else None)
    fixed, throttle = find_option(command, "fixed"), find_option(command, "throttle") or find_option(command, "limit")
    rate = parse_grouped((settings.get("OpsPer Sec") or throttle or fixed or "0").split("/")[0], 0)
    if rate:
        result.loop = "open"
        result.facts["target"] = int(rate)
        corrected = settings.get("Coordinated-Omission-Fixed Latencies")
        if fixed or throttle or corrected:
            # In cql-stress, `fixed` has no value.
            is_fixed = fixed or corrected == "true" or re.search(r"\s-rate\s[^-]*\bfixed\b", f" {command}")
            result.facts["latency"] = "response" if is_fixed else "service"
    if level := settings.get("Consistency Level") or find_option(command, "cl"):
        # cql-stress prints LocalQuorum, cassandra-stress LOCAL_QUORUM.
        result.facts["consistency"] = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", level).upper()
    options = settings.get("Replication Strategy Options", "") + command
    if match := re.search(r"(?:replication_)?factor(?:=|\": \")(\d+)", options):
        result.facts["replication"] = int(match[1])
    result.facts |= {name: value for name, value in facts_of_work(settings, command) if value}
    if text:
        result.facts |= {f"work.{name}": command_fact(part) for name, part in groups.items() if name not in NOT_OF_WORK}
        result.facts["command"] = text


def unify_settings(settings: dict[str, str]) -> dict[str, str]:
    """Converts settings of cql-stress to the names and values that cassandra-stress prints."""
    result = dict(settings)
    if seeds := settings.get("Partition Key Seed Distribution"):
        result["Sequence" if seeds.lower().startswith("seq") else "Distribution"] = seeds
    if names := re.findall(r'"[^"]*"', settings.get("Column Names", "")):
        result["Count Distribution"] = f"fixed({len(names)})"
    return result


def facts_of_work(settings: dict[str, str], command: str) -> Iterator[tuple[str, Scalar]]:
    """Yields the number and size of records, the mix and the request distribution, as far as they are stated."""
    arguments = command.split()
    stated = settings.get("Type") or (arguments[0] if arguments else settings.get("Running", ""))
    kind = stated.lower().replace("_", "-")
    weights = dict(re.findall(r"(\w+)=([\d.]+)", " ".join(re.findall(r"(?:ops|ratio)\\?\(([^)\\]*)", command))))
    weights = weights or dict(re.findall(r"(\w+)=([\d.]+)", settings.get("Command Ratios", "").lower()))
    if kind and kind not in ("mixed", "user") and "," not in kind:
        weights = {kind: "1"}
    yield "mix", mix_fact({name: float(weight) for name, weight in weights.items()}) if weights else ""
    population = settings.get("Sequence") or find_option(command, "seq") or ""
    if match := re.search(r"\d+\.\.=?(\d+)([kmb]?)", population.lower()):
        yield from (("records", parse_magnitude(match[1], match[2])), ("distribution", "sequential"))
    else:
        population = (settings.get("Distribution") or find_option(command, "dist") or "").lower()
        match = re.search(r"(?:max=|\.\.)(\d+)([kmb]?)", population)
        count = re.match(
            r"(\d+)([kmb]?)$", (settings.get("Count") or find_option(command, "n") or "").lower().replace(",", "")
        )
        default = parse_magnitude(count[1], count[2]) if count else POPULATION
        if match:
            yield from (
                ("records", parse_magnitude(match[1], match[2])),
                ("distribution", re.split(r"\W", population)[0]),
            )
        elif arguments and kind != "user":
            is_write = kind.endswith("write") and count is not None
            yield from (("records", default), ("distribution", "sequential" if is_write else "gaussian"))
    columns = split_groups(command).get("col", "")
    defaults = COLUMNS if arguments and kind != "user" else dict.fromkeys(COLUMNS, "")
    sizes = [
        re.search(r"fixed(?::\s+key=|\\?\()(\d+)", text.lower())
        for text in (
            settings.get(f"{name} Distribution") or find_option(columns, option) or default
            for (name, option), default in defaults.items()
        )
    ]
    if all(sizes):
        yield "record_bytes", int(sizes[0][1]) * int(sizes[1][1])  # type: ignore[index]  # All matched.


def split_groups(command: str) -> dict[str, str]:
    """The options of each group (`-schema …`) in a command line, without quotation marks."""
    groups: dict[str, list[str]] = {}
    name = ""
    for word in split_command(command):
        if re.match(r"-[a-z]", word):
            name = word[1:]
            continue
        groups.setdefault(name, []).append(word)
    return {name: " ".join(options) for name, options in groups.items()}


def parse_magnitude(digits: str, suffix: str) -> int:
    """The value of a count with a suffix, such as 10m."""
    return int(digits) * SUFFIXES.get(suffix, 1)


def find_option(command: str, name: str) -> str | None:
    """The value of an option in a command line, such as n=1000; None if it is not set."""
    match = re.search(rf"(?<![\w(,]){name}=(\S+)", command)
    return match[1] if match else None
