"""The time and space that a plan needs: estimates from stated assumptions, not measurements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from loadstone.engine.describe import describe_engine
from loadstone.experiment.model.experiment import PILOT_CAP, PILOT_WINDOWS
from loadstone.experiment.plan.required_servers import StartedSystems, StartRequest
from loadstone.format import units, wording
from loadstone.search.rule import CONFIRMATIONS, Rule
from loadstone.systems.registry import estimate_start

if TYPE_CHECKING:
    from loadstone.experiment.kind import Data
    from loadstone.experiment.plan.plan import Plan, Variant

# In this and the following pairs: a fast and a slow estimate.
BYTES_PER_SECOND = (200e6, 50e6)
# A synchronous write took 0.1 to 0.5 ms on the SSDs measured; stores without group commit do one write at a time.
DEVICE_WRITES_PER_SECOND = (10_000.0, 2_000.0)
OPERATIONS_PER_SECOND = (200_000.0, 20_000.0)
# The response time of servers. Measured: 0.1 ms for Redis, and 5 ms for HBase with its log synced to 3 data nodes.
ANSWER_SECONDS = (100e-6, 10e-3)
COPY_BYTES_PER_SECOND = (1e9, 200e6)
# The overhead of a trial: starting two engines, opening and closing the store, flushing the file system, settling and
# judging.
# Measured with the quickstart: 0.6 s on two idle processors, and 8 s with 25 competing processes.
OVERHEAD_SECONDS = (0.4, 8.0)
# The number of starts depends on the order of trials. It is counted for this number of repeats, and extrapolated.
START_BLOCKS = 20
# A log-structured store needs space for its logs and, during compactions, for old and new files.
SPACE_FACTOR, SPACE_OVERHEAD_BYTES = 4, 200_000_000
KEPT_FACTOR = 2
# A search tries at least this many loads.
PROBES_LEAST = 3


def estimate_seconds(plan: Plan) -> tuple[float, float]:
    """The duration of the run, s: for a fast system with the fewest repeats, and for a slow system with the most."""
    repeats = plan.experiment.repeats
    least, most = repeats.at_least, repeats.at_most or repeats.at_least
    if (rule := rule_of(plan)) is not None:
        least, most = least * PROBES_LEAST, rule.trials_most
    return plan_seconds(plan, least, 0), plan_seconds(plan, most, 1)


def trial_seconds(plan: Plan) -> float:
    """The duration of a trial with its share of loads and starts, s: the geometric mean of the two estimates of
    `plan_seconds`."""
    repeats = plan.experiment.repeats.at_least
    return math.sqrt(math.prod(plan_seconds(plan, repeats, slow) for slow in (0, 1))) / (repeats * len(plan.variants))


def rule_of(plan: Plan) -> Rule | None:
    """The rule of the search, if there is one."""
    find, repeats = plan.experiment.find, plan.experiment.repeats
    if find is None:
        return None
    return Rule.from_find({**find.model_dump(), "confirmations": CONFIRMATIONS}, repeats.at_least, repeats.at_most)


def describe_assumptions(plan: Plan) -> str:
    """The assumptions of the estimate, worded to follow "if a system"."""
    parts = []
    if any(variant.data.operation_bytes for variant in plan.variants):
        parts.append(f"loads, reads and writes rows at {range_text(BYTES_PER_SECOND, units.format_bandwidth)}")
    elif any(variant.data.size or variant.data.moved_bytes for variant in plan.variants):
        parts.append(f"loads at {range_text(BYTES_PER_SECOND, units.format_bandwidth)}")
    if any(variant.durability == "device" for variant in plan.variants):
        parts.append(f"writes {range_text(DEVICE_WRITES_PER_SECOND, units.format_count)} records/s to the device")
    if any(map(is_copied, plan.variants)) and plan.experiment.load.reuse:
        parts.append(f"is copied at {range_text(COPY_BYTES_PER_SECOND, units.format_bandwidth)}")
    if any(variant.operations is not None for variant in plan.variants):
        parts.append(f"does {range_text(OPERATIONS_PER_SECOND, units.format_rate)} unless a rate is set")
    if any(describe_engine().is_networked(variant.store) for variant in plan.variants):
        fast, slow = ANSWER_SECONDS
        parts.append(f"answers a client over the network in {fast * 1e3:g} to {slow * 1e3:g} ms")
    if systems := sorted({start.system for start in list_starts(plan, 1)}):
        fast, slow = (
            min(start_seconds(system, 0) for system in systems),
            max(start_seconds(system, 1) for system in systems),
        )
        parts.append(f"starts in {fast:g} to {slow:g} s")
    fast, slow = OVERHEAD_SECONDS
    return ", ".join([*parts, f"takes {fast:g} to {slow:g} s for the other phases of a trial"])


def range_text(guesses: tuple[float, float], write: Callable[[float], str]) -> str:
    """The slow and the fast estimate: `50 to 200 MB/s`."""
    fast, slow = guesses
    return wording.join_ends(write(slow), write(fast), " to ")


def plan_seconds(plan: Plan, repeats: int, slow: int) -> float:
    """The duration of the whole run, s, for a number of repeats, in the fast (0) or the slow (1) estimate."""
    measure = plan.experiment.measure
    total, loaded = 0.0, set()
    for variant in plan.variants:
        window, data = measure.duration or 0.0, variant.data
        pilot = (PILOT_CAP + PILOT_WINDOWS) * window + OVERHEAD_SECONDS[slow] if plan.experiment.pilot else 0.0
        # The pilot block finds a warm-up of at most PILOT_CAP windows.
        warmup = measure.warmup if measure.warmup is not None else slow * PILOT_CAP * window
        trial_seconds = warmup + OVERHEAD_SECONDS[slow]
        if measure.duration is not None:
            trial_seconds += measure.duration
        elif variant.operations is not None:
            seconds = 1 / (variant.rate or operations_per_second(variant, slow))
            trial_seconds += variant.operations * max(seconds, data.operation_bytes / BYTES_PER_SECOND[slow])
        trial_seconds += data.seconds + data.moved_bytes / BYTES_PER_SECOND[slow]
        writing = load_seconds(variant.loading, data, slow) if data.loaded else 0.0
        if not plan.experiment.load.reuse:
            trial_seconds += writing
        else:
            trial_seconds += data.size / COPY_BYTES_PER_SECOND[slow] if is_copied(variant) else 0.0
            if variant.load_key not in loaded:
                loaded.add(variant.load_key)
                total += writing
        total += trial_seconds * repeats + pilot
    sampled = min(repeats, START_BLOCKS) if plan.experiment.find is None else repeats
    return total + sum(start_seconds(start.system, slow) for start in list_starts(plan, sampled)) * repeats / sampled


def list_starts(plan: Plan, repeats: int) -> list[StartRequest]:
    """Every start of a system, in order. A system stays up while the next trials need the same system."""
    started: list[StartRequest] = []
    if not any(variant.servers for variant in plan.variants):
        return started
    up: tuple[StartRequest, ...] = ()
    for variant in order_trials(plan, repeats):
        servers, needed = variant.servers, systems_of(variant)
        replaced = servers is not None and servers.fresh == "system" and not plan.experiment.load.reuse
        started += needed if replaced else needed[count_shared(up, needed) :]
        up = needed
    return started


def order_trials(plan: Plan, repeats: int) -> Iterator[Variant]:
    """The variant of each trial, in the order of the run."""
    if plan.experiment.find is None:
        for _, block in zip(range(repeats), plan.plan_blocks(), strict=False):
            yield from (trial.variant for trial in block)
        return
    for group in group_searches(plan):
        for _ in range(repeats):
            yield from group


def group_searches(plan: Plan) -> Iterator[list[Variant]]:
    """The variants in groups whose searches run concurrently, in the order in which the groups run."""
    remaining, measure = list(plan.variants), plan.experiment.measure
    while remaining:
        chosen = share_servers(remaining, (measure.warmup or 0.0) + (measure.duration or 0.0))
        yield [remaining[at] for at in chosen]
        remaining = [variant for at, variant in enumerate(remaining) if at not in chosen]


def systems_of(variant: Variant) -> tuple[StartRequest, ...]:
    """The systems that the lab starts for a variant."""
    return variant.servers.how.systems if variant.servers and isinstance(variant.servers.how, StartedSystems) else ()


def share_servers(variants: Sequence[Variant], trial_seconds: float) -> list[int]:
    """The indexes of the variants whose searches run concurrently: the variants with the servers of the first variant,
    or all variants if starting servers takes no longer than a trial."""
    requests = [systems_of(variant) for variant in variants]
    start_s = max(sum(start_seconds(start.system, 1) for start in systems) for systems in requests)
    return [at for at, systems in enumerate(requests) if start_s <= trial_seconds or systems == requests[0]]


def count_shared(up: Sequence[StartRequest], needed: Sequence[StartRequest]) -> int:
    """The number of running systems that the next trial can use: both lists begin with this many equal systems."""
    same = (before == after for before, after in zip(up, needed, strict=False))
    return sum(1 for _ in itertools.takewhile(bool, same))


def start_seconds(system: str, slow: int) -> float:
    """The time to stop the last servers and to start a system, in the fast (0) or the slow (1) estimate."""
    estimate = estimate_start(system)
    return estimate.slow_s if slow else estimate.fast_s


def operations_per_second(variant: Variant, slow: int) -> float:
    """The throughput of a closed loop. Over a network, response times limit it unless writes are buffered."""
    most = OPERATIONS_PER_SECOND[slow]
    if not describe_engine().is_networked(variant.store) or is_buffered(variant):
        return most
    return min(most, variant.clients / ANSWER_SECONDS[slow])


def is_buffered(variant: Variant) -> bool:
    """Whether a client buffers its writes and sends many records at once."""
    properties: dict[str, str] = {**getattr(variant.work, "properties", {}), **variant.store_properties}
    return properties.get("clientbuffering", "").lower() == "true"


def is_copied(variant: Variant) -> bool:
    """Whether reused data is copied for each trial: data on servers is used in place."""
    return not describe_engine().is_networked(variant.store)


def load_seconds(variant: Variant, data: Data, slow: int) -> float:
    """The duration of a load."""
    by_bytes = data.size / BYTES_PER_SECOND[slow]
    if not describe_engine().keeps_data(variant.store):
        return 0.0
    if data.moved_bytes:
        # Requests contain many files or rows.
        return by_bytes
    if describe_engine().is_networked(variant.store):
        return max(by_bytes, data.records / operations_per_second(variant, slow))
    if variant.durability == "device":
        return max(by_bytes, data.records / DEVICE_WRITES_PER_SECOND[slow])
    return by_bytes


def estimate_space(plan: Plan) -> int:
    """The bytes that must be free in the directory: for the largest data set of a trial, and for originals to copy."""
    largest = max((variant.data.size for variant in plan.variants), default=0)
    created = max((variant.data.created_bytes for variant in plan.variants), default=0)
    copied = filter(is_copied, plan.variants) if plan.experiment.load.reuse else ()
    sizes = {variant.load_key: variant.data.size for variant in copied}
    return created + largest * SPACE_FACTOR + SPACE_OVERHEAD_BYTES + KEPT_FACTOR * sum(sizes.values())
