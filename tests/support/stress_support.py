"""Command lines of cassandra-stress on a scripted server; and the original tool."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadstone.systems.base.files.cache import cache_root, fill_entry
from loadstone.systems.cassandra.node import module_options
from scripted_cassandra import Answer, Execution, FakeCassandra


@dataclass(frozen=True)
class Outcome:
    """The exit status and output of a command."""

    code: int
    stdout: str
    stderr: str

    def totals(self, label: str) -> dict[str, int]:
        """A count from `Results:` by operation, and the sum under `total`."""
        match = re.search(rf"^Total {label} +: +([\d,]+) \[(.*)\]$", self.stdout, re.MULTILINE)
        assert match, self.stdout + self.stderr
        counts = dict(part.split(": ") for part in re.split(r", (?=[A-Z])", match[2]))
        return {name: int(count.replace(",", "")) for name, count in {**counts, "total": match[1]}.items()}

    def latency_ms(self, label: str) -> float:
        """A latency from `Results:`, over all operations."""
        match = re.search(rf"^Latency {label} +: +([\d.]+) ms", self.stdout, re.MULTILINE)
        assert match, self.stdout
        return float(match[1])

    def check_end(self) -> None:
        """Exit status and output report success."""
        assert self.code == 0, self.stderr
        assert self.stdout.endswith("\n\nEND\n")

    def check_failure(self) -> None:
        """Exit status and output report a failure, without results."""
        assert self.code == 1, self.stderr
        assert "\nFAILURE\n" in self.stdout
        assert "Results:" not in self.stdout


@dataclass(frozen=True)
class Stress:
    """Runs command lines with the engine."""

    program: Path

    def __call__(
        self,
        server: FakeCassandra,
        line: str,
        *,
        nodes: str = "127.0.0.1",
        interrupt: tuple[int, signal.Signals] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Runs a command line to its end, or sends a signal at the execution with this number."""
        arguments = [str(self.program), "cassandra-stress", *line.split(), "-node", nodes]
        pipe, reached = subprocess.PIPE, threading.Event()

        def script(execution: Execution) -> Answer:
            if interrupt is not None and execution.number == interrupt[0]:
                reached.set()
            return None

        if interrupt is not None:
            server.script = script
        with subprocess.Popen(
            [*arguments, "-port", f"native={server.port}"],
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env=environment,
        ) as process:
            if interrupt is not None:
                assert reached.wait(30)
                process.send_signal(interrupt[1])
            stdout, stderr = process.communicate(timeout=60)
        return Outcome(process.returncode, stdout, stderr)


def fail_every(count: int, answer: Answer) -> Callable[[Execution], Answer]:
    """A script in which the first of every `count` executions has this answer."""
    return lambda execution: answer if execution.number % count == 0 else None


def count_retries(outcome: Outcome) -> int:
    """The number of failed attempts that were retried, from the note on standard error."""
    match = re.search(r"(\d+) failed attempts? (?:was|were) retried", outcome.stderr)
    return int(match[1]) if match else 0


def tool_command(version: str, work: Path, *options: str) -> list[str]:
    """The command of the original cassandra-stress, which is downloaded once. It writes its files below `work`."""

    def fill(draft: Path) -> None:
        artifact = f"org.apache.cassandra:apache-cassandra:{version}:tar.gz:bin"
        copy = ["mvn", "-B", "-q", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={draft}"]
        subprocess.run(copy, check=True)
        (tarball,) = draft.glob("*.tar.gz")
        subprocess.run(["tar", "xzf", tarball, "-C", draft, "--strip-components=1"], check=True)
        tarball.unlink()

    home = fill_entry(cache_root() / "maven" / f"apache-cassandra-{version}", fill)
    java = ["java", *options, *module_options(), f"-Dcassandra.storagedir={work}/stress"]
    # The tool reads defaults from a cassandra.yaml.
    java += ["-Dlogback.configurationFile=logback-tools.xml", f"-Dcassandra.config=file://{home}/conf/cassandra.yaml"]
    jars = f"{home}/conf:{home}/tools/lib/stress.jar:{home}/lib/*"
    return [*java, "-cp", jars, "org.apache.cassandra.stress.Stress"]
