"""The cost of the JVM host: a YCSB binding that does nothing, minus the store `null`."""

from __future__ import annotations

from measure import ENGINE, ROOT, marginal_cpu_ns, run, verdict

GOAL_NS = 500
FEW, MANY = 1_000_000, 6_000_000


def measure_binding_cost(class_path: str, repeats: int, scale: float = 1) -> None:
    """(h) CPU per operation of `jvm` with BasicDB minus the CPU of `null`, on one thread.

    Medians of interleaved pairs.
    """
    few, many = int(FEW * scale), int(MANY * scale)
    # A small heap: first accesses to pages of a growing heap would count as the host's cost.
    hosted = ["jvm", "-db", "site.ycsb.BasicDB", "-p", "basicdb.verbose=false"]
    hosted += ["-cp", class_path, "-jvm-args", "-Xmx256m"]
    for name, phase, workload in (
        ("empty read", "run", "workloadc"),
        ("insert of 10 fields of 100 bytes", "load", "workloada"),
    ):

        def cpu(n: int, store: list[str], phase: str = phase, workload: str = workload) -> float:
            counts = ["-p", f"recordcount={n if phase == 'load' else 100_000}", "-p", f"operationcount={n}"]
            return run([ENGINE, "ycsb", phase, *store, "-P", str(ROOT / "workloads" / workload), *counts]).cpu_seconds

        pairs = []
        for _ in range(repeats):
            hosted_ns = marginal_cpu_ns(lambda n: cpu(n, hosted), few, many)
            pairs.append((hosted_ns, marginal_cpu_ns(lambda n: cpu(n, ["null"]), few, many)))
        over = sorted(jvm - null for jvm, null in pairs)
        median = over[len(over) // 2]
        print(f"(h) JVM host, {name}: {median:.0f} ns over the binding [{over[0]:.0f}, {over[-1]:.0f}] (n={repeats});")
        print(f"    goal at most {GOAL_NS} ns: {verdict(median <= GOAL_NS)}", flush=True)
