"""Cases of facts that users state or tools leave out, and of failures in the logs of other tools."""

from __future__ import annotations

from judge_support import facts
from known_truth_expected import Case, favours, fires, says, silent, unsure, verdict
from known_truth_imports import compare_files
from liar_cases_tools import HONEST, INVALID, SUSPECT, UNCHECKED, pair_fio, pair_ycsb
from liar_support import KNOWN, alternating, logs, noise, plant_difference, side, table, ycsb
from loadstone.results.result_set import ResultSet
from tool_logs import memtier


def count_errors(errors: float, unit: str) -> ResultSet:
    """A table with the throughput of two systems, and the errors of one."""
    rows = [
        row
        for n, factor in enumerate(noise("errors"), 1)
        for row in (
            f"plain,{n},throughput,op/s,{1000 * factor:.3f}",
            f"tuned,{n},throughput,op/s,{1300 / factor:.3f}",
            f"tuned,{n},errors,{unit},{errors}",
        )
    ]
    return table(rows, "variant,repeat,metric,unit,value", by="variant", metrics=("throughput",))


# Facts that are stated and contradict the log, or that one side lacks.
STATED = [
    Case(
        "logs with different numbers of records, but the same stated number",
        lambda: pair_ycsb("-p recordcount=1000", "-p recordcount=100000"),
        (SUSPECT, says(r"number of records in the log \(1,000 against 100,000\)")),
    ),
    Case(
        "a stated number of records that contradicts one log",
        lambda: pair_ycsb("", "-p recordcount=100000"),
        (SUSPECT, says(r"number of records in the log \(1,000 against 100,000\)")),
    ),
    Case(
        "a stated number of records that contradicts all logs equally",
        lambda: pair_ycsb("-p recordcount=5000", "-p recordcount=5000"),
        (*HONEST, says(r"stated facts override the log: records \(1000 instead of 5000\)")),
    ),
    Case(
        "a stated rate on one side only",
        lambda: compare_files(
            side("plain", ycsb(1000, "a"), "log", alternating(0), KNOWN),
            side("tuned", ycsb(1300, "b"), "log", alternating(1), {**KNOWN, "target": 1300}),
        ),
        (unsure(), INVALID, says(r"loop \(closed against open\)")),
    ),
    Case(
        "a fact that changes between the repeats of the only side that states it",
        lambda: plant_difference(
            1.3, alter_second=lambda trial: facts(raid="raid0" if trial.repeat > 3 else "raid5")(trial)
        ),
        (SUSPECT, says("the raid changed between repeats: raid5 and raid0")),
    ),
    Case(
        "YCSB with the hot spot of its requests on one side",
        lambda: pair_ycsb("", "-p hotspotdatafraction=0.01"),
        (UNCHECKED, says("hotspotdatafraction")),
    ),
    Case(
        "YCSB with other exponential requests",
        lambda: pair_ycsb("-p exponential.percentile=95", "-p exponential.percentile=50"),
        (SUSPECT, says(r"exponential\.percentile \(95 against 50\)")),
    ),
    Case("fio with the size of its file on one side", lambda: pair_fio({}, {"size": "10g"}), (UNCHECKED, says("size"))),
    Case(
        "memtier with reads that find no value on one side",
        lambda: logs(memtier(1, "a"), memtier(1.3, "b", hits=0.0), suffix="json"),
        (SUSPECT, says(r"found no value \(0 % against 100 %\)")),
    ),
    Case(
        "memtier with the same share of reads that find no value",
        lambda: logs(memtier(1, "a", hits=0.9), memtier(1.3, "b", hits=0.9), suffix="json"),
        (favours("tuned"), verdict("valid"), silent("sides-differ")),
    ),
    Case(
        "memtier with lost connections on one side",
        lambda: logs(memtier(1, "a"), memtier(1.3, "b", lost=900), suffix="json"),
        (unsure(), INVALID, fires("errors")),
    ),
    Case("a share of errors in a table", lambda: count_errors(0.2, "share"), (unsure(), INVALID, says("20 % of the"))),
    Case(
        "a number of errors in a table without the number of operations",
        lambda: count_errors(20_000, "operations"),
        (SUSPECT, fires("errors"), says("the total is unknown")),
    ),
]
