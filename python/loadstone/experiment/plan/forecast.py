"""How long a plan takes and how much room it needs: guesses from stated assumptions, not measurements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from loadstone.engine.describe import description
from loadstone.experiment.plan.servers import Asked, Started
from loadstone.format import units, wording
from loadstone.search.rule import Rule

if TYPE_CHECKING:
    from loadstone.experiment.kind import Data
    from loadstone.experiment.plan.plan import Plan, Variant

# Each the fast and the slow guess.
BYTES_PER_SECOND = (200e6, 50e6)
# A synchronous write took 0.1 to 0.5 ms on the SSDs that we tried; stores without group commit do one at a time.
DEVICE_WRITES_PER_SECOND = (10_000.0, 2_000.0)
OPERATIONS_PER_SECOND = (200_000.0, 20_000.0)
# Servers answer a client in as long: Redis here in 0.1 ms, HBase with its log synced to three data nodes in 5.
ANSWER_SECONDS = (100e-6, 10e-3)
COPY_BYTES_PER_SECOND = (1e9, 200e6)
# Starting two engines, opening and closing the store, flushing the file system, settling.
BESIDE_SECONDS = (0.7, 3.0)
# Until servers serve, and their end before; those that are not named here run in Java.
START_SECONDS = {"redis": (0.5, 5.0), "postgres": (2.0, 15.0)}
START_SECONDS_JAVA = (15.0, 120.0)
# Starts depend on the order of trials; this many repeats tell how many there are in more.
START_BLOCKS = 20
# A log-structured store keeps old and new files while it compacts, beside its logs.
SPACE_FACTOR, SPACE_BESIDE_BYTES = 4, 200_000_000
KEPT_FACTOR = 2
# A search sees at least this many loads.
PROBES_LEAST = 3


def estimate(plan: Plan) -> tuple[float, float]:
    """Seconds that the whole takes, from a fast system that needs no extra repeats to a slow one that needs all."""
    repeats = plan.experiment.repeats
    least, most = repeats.at_least, repeats.at_most or repeats.at_least
    if (rule := rule_of(plan)) is not None:
        least, most = least * PROBES_LEAST, most * rule.probes_most
    return seconds(plan, least, 0), seconds(plan, most, 1)


def rule_of(plan: Plan) -> Rule | None:
    """What is searched for."""
    find, repeats = plan.experiment.find, plan.experiment.repeats
    return None if find is None else Rule.of(find.model_dump(), repeats.at_least, repeats.at_most)


def assumptions(plan: Plan) -> str:
    """What the guess rests on, in words that follow "if a system"."""
    said = [f"loads at {between(BYTES_PER_SECOND, units.bandwidth)}"]
    if any(variant.durability == "device" for variant in plan.variants):
        said.append(f"writes {between(DEVICE_WRITES_PER_SECOND, units.count)} records/s to the device")
    if any(map(is_copied, plan.variants)) and plan.experiment.load.reuse:
        said.append(f"is copied at {between(COPY_BYTES_PER_SECOND, units.bandwidth)}")
    if any(variant.operations is not None for variant in plan.variants):
        said.append(f"does {between(OPERATIONS_PER_SECOND, units.rate)} unless a rate is set")
    if any(description().networked(variant.store) for variant in plan.variants):
        fast, slow = ANSWER_SECONDS
        said.append(f"answers a client across a network in {fast * 1e3:g} to {slow * 1e3:g} ms")
    if systems := sorted({start.system for start in starts(plan, 1)}):
        fast, slow = (min(start_seconds(each, 0) for each in systems), max(start_seconds(each, 1) for each in systems))
        said.append(f"starts in {fast:g} to {slow:g} s")
    fast, slow = BESIDE_SECONDS
    return ", ".join([*said, f"takes {fast:g} to {slow:g} s for the rest of a trial"])


def between(guesses: tuple[float, float], write: Callable[[float], str]) -> str:
    """The slow guess and the fast one: `50 to 200 MB/s`."""
    fast, slow = guesses
    return wording.joined(write(slow), write(fast), " to ")


def seconds(plan: Plan, repeats: int, slow: int) -> float:
    """Seconds at the fast (0) or the slow (1) of each guess."""
    measure = plan.experiment.measure
    total, loaded = 0.0, set()
    for variant in plan.variants:
        # A pilot takes three windows, and finds a warm-up of one at most.
        pilot = 3 * (measure.duration or 0.0) + BESIDE_SECONDS[slow] if plan.experiment.pilot else 0.0
        warmup = measure.warmup if measure.warmup is not None else slow * (measure.duration or 0.0)
        each = warmup + BESIDE_SECONDS[slow]
        if measure.duration is not None:
            each += measure.duration
        elif variant.operations is not None:
            each += variant.operations / (variant.rate or operations_per_second(variant, slow))
        data = variant.data
        each += data.seconds + data.moved_bytes / BYTES_PER_SECOND[slow]
        writing = load_seconds(variant.loading, data, slow)
        if not plan.experiment.load.reuse:
            each += writing
        else:
            each += data.size / COPY_BYTES_PER_SECOND[slow] if is_copied(variant) else 0.0
            if variant.load_key not in loaded:
                loaded.add(variant.load_key)
                total += writing
        total += each * repeats + pilot
    drawn = min(repeats, START_BLOCKS)
    return total + sum(start_seconds(start.system, slow) for start in starts(plan, drawn)) * repeats / drawn


def starts(plan: Plan, repeats: int) -> list[Asked]:
    """Every start of a system, in its order: one serves the next trials as long as these want the same."""
    found: list[Asked] = []
    if not any(variant.servers for variant in plan.variants):
        return found
    up: tuple[Asked, ...] = ()
    for _, block in zip(range(repeats), plan.blocks(), strict=False):
        for trial in block:
            servers = trial.variant.servers
            wanted = servers.how.asked if servers and isinstance(servers.how, Started) else ()
            anew = servers is not None and servers.fresh == "system" and not plan.experiment.load.reuse
            found += wanted if anew else wanted[shared(up, wanted) :]
            up = wanted
    return found


def shared(up: Sequence[Asked], wanted: Sequence[Asked]) -> int:
    """How many of the systems that are up serve the next trial as well: the first ones that are equal."""
    same = (before == after for before, after in zip(up, wanted, strict=False))
    return sum(1 for _ in itertools.takewhile(bool, same))


def start_seconds(system: str, slow: int) -> float:
    """How long a system takes to be up."""
    return START_SECONDS.get(system, START_SECONDS_JAVA)[slow]


def operations_per_second(variant: Variant, slow: int) -> float:
    """What a closed loop does: across a network no more than its clients have answers, unless they wait for none."""
    most = OPERATIONS_PER_SECOND[slow]
    if not description().networked(variant.store) or is_buffered(variant):
        return most
    return min(most, variant.clients / ANSWER_SECONDS[slow])


def is_buffered(variant: Variant) -> bool:
    """Whether what a client writes goes many records at once."""
    given: dict[str, str] = {**getattr(variant.work, "properties", {}), **variant.store_properties}
    return given.get("clientbuffering", "").lower() == "true"


def is_copied(variant: Variant) -> bool:
    """Whether data that are used again are copied for each trial: what servers hold is read where it is."""
    return not description().networked(variant.store)


def load_seconds(variant: Variant, data: Data, slow: int) -> float:
    """How long a load takes."""
    by_bytes = data.size / BYTES_PER_SECOND[slow]
    if not description().keeps_data(variant.store):
        return 0.0
    if data.moved_bytes:
        # Files and rows go many to a request.
        return by_bytes
    if description().networked(variant.store):
        return max(by_bytes, data.records / operations_per_second(variant, slow))
    if variant.durability == "device":
        return max(by_bytes, data.records / DEVICE_WRITES_PER_SECOND[slow])
    return by_bytes


def space(plan: Plan) -> int:
    """Bytes that the directory must have free: one trial's data at their largest, and what is kept for copies."""
    largest = max((variant.data.size for variant in plan.variants), default=0)
    copied = filter(is_copied, plan.variants) if plan.experiment.load.reuse else ()
    kept = {variant.load_key: variant.data.size for variant in copied}
    return largest * SPACE_FACTOR + SPACE_BESIDE_BYTES + KEPT_FACTOR * sum(kept.values())
