"""How many files a process may have open: each connection of a server is one."""

from __future__ import annotations

import resource

from loadstone.systems.base.system import SystemsError

# What a server has open beside its connections.
OTHERS = 96


def allow(connections: int) -> None:
    """Lets servers that we start have so many connections. Raises SystemsError when the system does not.

    Raises our own limit, which they inherit.
    """
    needed = connections + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        above = hard != resource.RLIM_INFINITY and hard < needed
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, needed if above else hard))
    except (ValueError, OSError) as error:
        raise SystemsError(
            f"{connections} connections take {needed} open files, and a process may have {hard}",
            f"`ulimit -Hn {needed}` as root before, or ask for fewer with --set",
        ) from error
