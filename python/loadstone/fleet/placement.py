"""Selects the hosts for a placement."""

from __future__ import annotations

from collections.abc import Sequence

from loadstone.errors import LoadstoneError
from loadstone.fleet.transport import Host
from loadstone.format import units

APART, NEXT_TO_SERVERS = "apart", "beside"


def select_hosts(
    hosts: Sequence[Host], placement: str, clients: str | None = None, servers: str | None = None
) -> list[int]:
    """The indexes of the hosts for a placement; `clients` and `servers` are labels `KEY=VALUE`.

    Without a label for clients, the head is reserved for the lab, unless it is the only host. Raises LoadstoneError if
    no host matches.
    """
    if placement == NEXT_TO_SERVERS:
        chosen = [place for place, host in enumerate(hosts) if servers is not None and has_label(host, servers)]
        label = servers
    elif placement == APART:
        free = [place for place, host in enumerate(hosts) if servers is None or not has_label(host, servers)]
        label = clients
        if clients is not None:
            chosen = [place for place in free if has_label(hosts[place], clients)]
        else:
            chosen = [place for place in free if not hosts[place].is_head] or free
    else:
        chosen = [place for place, host in enumerate(hosts) if has_label(host, placement)]
        label = placement
    if not chosen:
        missing = f"with the label {label}" if label else "without servers"
        known = sorted({f"{key}={text}" for host in hosts for key, text in host.labels.items()})
        hint = (
            f"the labels are {', '.join(known)}" if known else "no host has labels: start Ray with `ray start --labels`"
        )
        raise LoadstoneError(f"placement {placement}: the cluster has no host {missing}", hint)
    return chosen


def select_servers(hosts: Sequence[Host], label: str | None, nodes: int) -> list[int]:
    """The indexes of the hosts on which the lab starts servers, one for each of `nodes`. `label` is `KEY=VALUE`.

    Raises LoadstoneError if there are too few hosts.
    """
    chosen = [place for place, host in enumerate(hosts) if label is not None and has_label(host, label)]
    if len(chosen) < nodes:
        raise LoadstoneError(
            f"the servers need {units.count_noun(nodes, 'host')}, "
            f"but the cluster has {len(chosen)} with the label {label}",
            "give more hosts the label, or start fewer nodes: each host runs one node",
        )
    return chosen[:nodes]


def has_label(host: Host, label: str) -> bool:
    """Whether a host has a label `KEY=VALUE`."""
    key, _, text = label.partition("=")
    return host.labels.get(key) == text
