"""Servers that the lab started: a system, and below it the one that it works on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from loadstone.engine.describe import SECRET_NAME
from loadstone.errors import LoadstoneError
from loadstone.experiment.plan.forecast import shared
from loadstone.experiment.plan.servers import Asked, Started
from loadstone.observe.servers import Watched
from loadstone.results.trial_result import Scalar
from loadstone.runner import hooks
from loadstone.runner.ownership import OWNER, Mark, TakenError
from loadstone.systems.base import jvm
from loadstone.systems.base.plan import plan_of
from loadstone.systems.base.running import Running, ServerState

# What commands around a system's life may take.
HOOK_SECONDS = 600.0


class Stack:
    """Systems that are up for one another's sake. At most one stack is up: a trial has the host for itself."""

    def __init__(self, run: str, root: Path | None = None) -> None:
        """`run` marks what is started as this run's."""
        self._run = run
        self._root = root
        self._up: list[tuple[Asked, Running, Mark]] = []
        self._keep = False

    def up(self, wanted: Started, *, fresh: bool = False) -> bool:
        """Has these up and no others, and starts again what has died; True if anything was started.

        Those that an earlier run kept are taken over, unless they are to be fresh. Raises TakenError when servers are
        there that no experiment started, LoadstoneError when one does not come up.
        """
        self._keep = wanted.keep
        same = shared([asked for asked, _, _ in self._up], wanted.asked)
        self._end(same)
        anew = bool(self.dead())
        for asked, running, _ in self._up:
            running.up(asked.nodes, asked.settings, owner=OWNER)
        for asked in wanted.asked[same:]:
            self._begin(asked, fresh=fresh)
            anew = True
        return anew

    def again(self) -> None:
        """New servers, without data."""
        asked = [each for each, _, _ in self._up]
        self._end(0)
        self.up(Started(tuple(asked), self._keep))

    def down(self) -> None:
        """Ends all of them."""
        self._end(0)

    def leave(self) -> None:
        """The run is over: they end, unless the file keeps them."""
        if not self._keep:
            self.down()
        for _, _, mark in self._up:
            mark.release()
        self._up.clear()

    def fresh(self, table: str, options: Mapping[str, str]) -> None:
        """Makes the table anew."""
        self._last.fresh(table, options)

    def properties(self) -> Mapping[str, str]:
        """What the store needs to reach them."""
        return self._last.properties()

    def dead(self) -> list[str]:
        """Each server that is not there any more, in words."""
        return [
            f"{process.name} ({process.address}, pid {process.pid})"
            for _, running, _ in self._up
            for process, state in running.status()
            if state is ServerState.DEAD
        ]

    @property
    def directories(self) -> list[Path]:
        """Where servers of ours keep their data."""
        return [each for _, running, _ in self._up for each in running.directories()]

    @property
    def data(self) -> Path | None:
        """A directory on the file system that the data are on; None if they are on several, or none of this host's."""
        return common(self.directories)

    def watched(self) -> Iterator[Watched]:
        """The servers, to be observed."""
        for _, running, _ in self._up:
            logs = running.gc_logs()
            for each in running.processes():
                yield Watched(each.name, each.address, each.pid, each.started_ticks, logs.get(each.name))

    def facts(self) -> dict[str, Scalar]:
        """What results record: the system, its version, nodes, settings that the file gives, promises."""
        found: dict[str, Scalar] = {}
        for asked, running, _ in self._up:
            top = running is self._last
            before = "" if top else f"{asked.system}."
            found[f"{before}system" if top else asked.system] = asked.system if top else running.version()
            if top:
                found["system_version"] = running.version()
            found["data_nodes" if top else f"{before}nodes"] = asked.nodes
            told = running.facts()
            found |= {f"{before}{name}": value for name, value in told.items()}
            if "replication" in told:
                # What the system above promises is kept by the one below.
                found.setdefault("replication", told["replication"])
            given = {
                name: text for name, text in asked.settings.items() if name not in told and not SECRET_NAME.search(name)
            }
            found |= {f"{before}set.{name}": text for name, text in given.items()}
        builds = {jvm.process_release(each.pid) for _, running, _ in self._up for each in running.processes()} - {""}
        if builds:
            found["server_jvm"] = " + ".join(sorted(builds))
        return found

    def figures(self) -> dict[str, float]:
        """What can be counted on them now."""
        found: dict[str, float] = {}
        for _, running, _ in self._up:
            # Of servers that are gone there is nothing to count; what the trial has measured stays.
            with contextlib.suppress(LoadstoneError):
                found |= running.figures()
        return found

    @property
    def _last(self) -> Running:
        return self._up[-1][1]

    def _begin(self, asked: Asked, *, fresh: bool) -> None:
        running = Running(asked.system, self._root)
        mark = Mark(running.place.root)
        mark.take(self._run)
        try:
            there = running.known
            if there is not None and there.owner != OWNER:
                name = running.name
                raise TakenError(
                    f"{name} {'is up' if there.started else 'has data that were kept'}, and no experiment started it",
                    f"`loadstone systems down {name}` ends it with its data; or reach it with `attach`",
                )
            if there is not None and (fresh or not (self._keep and is_so(running, asked))):
                # Those of a run that was killed, or that kept them.
                running.down()
            if not running.status():
                prepare(asked.before, "before", running)
            running.up(asked.nodes, asked.settings, owner=OWNER)
        except BaseException:
            mark.release()
            raise
        self._up.append((asked, running, mark))

    def _end(self, kept: int) -> None:
        """Ends all but the first ones, the last first."""
        while len(self._up) > kept:
            asked, running, mark = self._up[-1]
            running.down()
            mark.release()
            self._up.pop()
            prepare(asked.after, "after", running)


def prepare(commands: Sequence[str], when: str, running: Running) -> None:
    """Runs the commands around a system's life. Raises HookError."""
    if commands:
        log = running.place.root.with_name(f"{running.name}-hooks.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        hooks.run(commands, when, {"system": running.name}, log, HOOK_SECONDS)


def common(directories: Sequence[Path]) -> Path | None:
    """The first of these directories that is there, if all that are there are on one file system."""
    found = [each for each in directories if each.exists()]
    return found[0] if len({each.stat().st_dev for each in found}) == 1 else None


def is_so(running: Running, asked: Asked) -> bool:
    """Whether a system is up as it is asked for."""
    return bool(running.status()) and running.plan == plan_of(running.system, asked.nodes, asked.settings)


def collections(log: Path, since: int) -> tuple[int, int, int]:
    """The pauses of a collector since a place in its log: count, ns, where it ends."""
    found = jvm.collections(log, since)
    return found.count, found.pause_ns, found.offset
