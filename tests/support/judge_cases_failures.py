"""Crafted results that do or do not trigger the checks of failed operations, reads, attempts, engines and servers."""

from __future__ import annotations

from dataclasses import replace

from judge_support import Case, asking, both, experiment, failing, noting, rocksdb, set_figures, with_end
from loadstone.engine.events import Note
from loadstone.judge.finding import Severity
from loadstone.results.trial_result import TrialResult

NOTE, WITHHELD, _, SUSPECT, INVALID = Severity


def count_by_statuses(trial: TrialResult) -> TrialResult:
    """Replaces the figures of the verification with counts by status, as in YCSB."""
    retained = set_figures(without=("verified", "wrong"))(trial)
    return replace(retained, statuses={"VERIFY": {"OK": 990, "UNEXPECTED_STATE": 10}})


def note_stall(trial: TrialResult) -> TrialResult:
    """The engine's notes on refused writes, and on a node that its neighbours considered down."""
    refusal = Note("errors", "500 steps failed, the first: Unavailable: Cannot achieve consistency level TWO", "")
    down = Note("server-events", "127.0.0.2:9042 was considered down from 41.0 s to 61.5 s", "")
    return replace(trial, notes=(refusal, down))


CASES = [
    Case("errors", "none", experiment()),
    Case(
        "errors",
        "one",
        experiment(both(set_figures(errors=1), noting("errors", "1 steps failed, the first: IO error"))),
        NOTE,
        "1 of 100,000 operations failed (0.001 %), the first: IO error",
    ),
    Case(
        "errors",
        "0.1 percent",
        experiment(set_figures(errors=100)),
        NOTE,
        "100 of 100,000 operations failed (0.1 %)",
    ),
    Case("errors", "more", experiment(set_figures(errors=101)), INVALID, "101 of 100,000 operations failed (0.101 %)"),
    Case(
        "errors",
        "while loading",
        experiment(set_figures(load__errors=500, load__operations=1000)),
        INVALID,
        "500 of 1,000 operations of the load failed (50 %)",
    ),
    Case(
        "errors",
        "retried",
        experiment(set_figures(attempts__failed=101)),
        INVALID,
        "101 of 100,101 requests failed (0.101 %), retries included; after retries, 0 of 100,000 operations failed",
    ),
    Case("errors", "no attempt failed", experiment(set_figures(attempts__failed=0))),
    Case(
        "errors",
        "unsent",
        experiment(set_figures(errors=500, attempts__failed=500, unsent__unreached=480)),
        INVALID,
        "500 of 100,000 operations failed (0.5 %), 480 of them unsent: no server could be reached",
    ),
    Case(
        "errors",
        "reads of partitions that were not written",
        experiment(set_figures(errors=500, rows_missing=480, partitions_written=1234)),
        INVALID,
        "500 of 100,000 operations failed (0.5 %); 480 reads found no row: the load wrote only partitions 1 to 1,234",
    ),
    Case(
        "errors",
        "reads of the warm-up that found no row",
        experiment(set_figures(errors=500, rows_missing=512, partitions_written=1234, partitions=2000)),
        INVALID,
        "500 of 100,000 operations failed (0.5 %); 512 reads (warm-up included) found no row: the load wrote only"
        " partitions 1 to 1,234",
    ),
    Case(
        "errors",
        "reads of partitions that replicas lack",
        experiment(set_figures(errors=500, rows_missing=480, partitions_written=1234, partitions=1234)),
        INVALID,
        "500 of 100,000 operations failed (0.5 %); 480 reads found no row, although the load wrote all 1,234"
        " partitions: the replicas that answered lack rows",
    ),
    Case(
        "missing-rows",
        "stated with the failures",
        experiment(both(set_figures(errors=500, rows_missing=480), noting("missing-rows", "480 reads found no row"))),
    ),
    Case(
        "errors",
        "a node that was considered down without a requested fault",
        experiment(both(set_figures(errors=500), note_stall)),
        INVALID,
        "500 of 100,000 operations failed (0.5 %), the first: Unavailable: Cannot achieve consistency level TWO;"
        " 127.0.0.2:9042 was considered down from 41.0 s to 61.5 s",
    ),
    Case("errors", "every client closed", experiment(set_figures(unclosed=0, load__unclosed=0))),
    Case(
        "errors",
        "clients that did not close",
        experiment(set_figures(unclosed=2)),
        INVALID,
        "2 clients did not close: writes that they buffered may be lost",
    ),
    Case(
        "errors",
        "a client of the load that did not close",
        experiment(set_figures(load__unclosed=1)),
        INVALID,
        "1 client of the load did not close: writes that it buffered may be lost",
    ),
    Case(
        "errors",
        "unended operations are not failures",
        experiment(
            both(
                set_figures(without=("errors",)),
                lambda trial: replace(trial, statuses={"READ": {"OK": 9, "CENSORED": 3}}),
            )
        ),
    ),
    Case(
        "errors",
        "operations before the store was ready",
        experiment(
            both(
                set_figures(without=("errors",)),
                lambda trial: replace(trial, statuses={"READ": {"OK": 9, "NOT_YET": 3}}),
            )
        ),
    ),
    Case(
        "errors",
        "by statuses",
        experiment(
            both(
                set_figures(without=("errors",)),
                lambda trial: replace(trial, statuses={"READ": {"OK": 99_997, "ERROR": 3}}),
            )
        ),
        NOTE,
        "3 of 100,000 operations failed (0.003 %)",
    ),
    Case("unverified", "requested and done", experiment(question=asking(verify=True))),
    Case("unverified", "neither", experiment(set_figures(without=("verified", "wrong")))),
    Case(
        "unverified",
        "requested and not done",
        experiment(set_figures(without=("verified",)), question=asking(verify=True)),
        INVALID,
        "`verify` was requested, but no value was verified",
    ),
    Case(
        "unverified",
        "requested, but nothing was read",
        experiment(
            both(
                set_figures(without=("verified",)),
                lambda trial: replace(trial, statuses={"WRITE": {"OK": 100_000}, "CLEANUP": {"OK": 4}}),
            ),
            question=asking(verify=True),
        ),
    ),
    Case(
        "unverified",
        "wrong without a request",
        experiment(set_figures(wrong=1)),
        INVALID,
        "1 of 50,000 values read differed from the values written",
    ),
    Case(
        "unverified",
        "wrong by YCSB's statuses",
        experiment(count_by_statuses),
        INVALID,
        "10 of 1,000 values read differed from the values written",
    ),
    Case(
        "unverified",
        "lost writes",
        experiment(set_figures(ledger__acknowledged=1_000, ledger__lost=2)),
        INVALID,
        "2 acknowledged writes are lost (of 1,000 acknowledged)",
    ),
    Case("unverified", "lost as allowed", experiment(set_figures(ledger__acknowledged=1_000, ledger__lost_allowed=2))),
    Case("unverified", "stale", experiment(set_figures(ledger__acknowledged=1_000, ledger__stale=2, ledger__proved=1))),
    Case(
        "unverified",
        "a checker that found nothing",
        experiment(set_figures(ledger__acknowledged=1_000, ledger__proved=0)),
        INVALID,
        "the checker of the ledger missed a fault that it had planted, or could not repair it",
    ),
    Case("unverified", "one percent too early", experiment(set_figures(not_yet=1_000))),
    Case(
        "unverified",
        "more too early",
        experiment(set_figures(not_yet=1_100)),
        SUSPECT,
        "1.1 % of the operations read records whose insert or delete was still in flight",
    ),
    Case("lost-segment", "none", experiment()),
    Case("lost-segment", "one of four", experiment(set_figures(segments__lost=1)), INVALID, "segments lost: 1 of 4"),
    Case(
        "lost-segment",
        "the engine itself",
        experiment(with_end("lost", "lost-segment", "ended by SIGKILL")),
        INVALID,
        "the load generator vanished before it reported its result: ended by SIGKILL",
    ),
    Case(
        "lost-segment",
        "the lab",
        experiment(with_end("lease")),
        INVALID,
        "the load generator stopped because it lost contact with the lab",
    ),
    Case("server-died", "all there", experiment()),
    Case(
        "server-died",
        "one of the system's",
        experiment(noting("server-died", "region-server-2 (127.0.0.2:16020, pid 4711) exited during the trial")),
        INVALID,
        "region-server-2 (127.0.0.2:16020, pid 4711) exited during the trial",
    ),
    Case("retried", "the first attempt", experiment()),
    Case(
        "retried",
        "the second attempt of the slower system",
        experiment(rocksdb(failing("the load generator was killed by SIGKILL"))),
        SUSPECT,
        "1 earlier attempt at this trial failed; last error: the load generator was killed by SIGKILL",
    ),
]
