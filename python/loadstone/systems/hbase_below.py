"""The file system below HBase: the HDFS of this machine, brought up if it is not, and what HBase leaves in it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from loadstone.systems import hadoop_http, hadoop_site, hbase_site, outside
from loadstone.systems.running import Running
from loadstone.systems.system import Place, Plan

HDFS = "hdfs"
# Permissions are off, so this is only a name.
USER = "loadstone"


def file_system(place: Place, plan: Plan) -> Mapping[str, str]:
    """The properties of the HDFS that HBase is to be over; none if it is over another file system.

    Brings it up with its defaults if it is not, or over the data that were kept of it. One that is up stays as it is,
    dead data nodes and all.
    """
    if hbase_site.mode(plan) == hbase_site.STANDALONE or plan.settings["hbase.rootdir"]:
        return {}
    hdfs = Running(HDFS, place.root.parent)
    there = hdfs.known
    if there is None:
        brought(place).touch()
        hdfs.up()
    elif not hdfs.processes():
        hdfs.up(there.plan.nodes, there.plan.settings, owner=there.owner)
    return hdfs.properties()


def brought(place: Place) -> Path:
    """The mark of an HDFS that was brought up for this HBase, and goes with it."""
    return place.data / "brought-hdfs"


def clear(place: Place, conf: Path) -> None:
    """Removes what HBase left outside of its own directory; an HDFS that came with it goes as a whole."""
    if (conf / "hbase-site.xml").exists():
        site = hadoop_site.read(conf / "hbase-site.xml")
        for uri in {site["hbase.rootdir"], site["hbase.wal.dir"]}:
            # The label tells ours from what is the user's.
            if uri.endswith(f"/{outside.label(place)}"):
                remove(uri, conf)
    if brought(place).exists():
        Running(HDFS, place.root.parent).down()


def remove(uri: str, conf: Path) -> None:
    """Removes a directory, on a local file system or in the HDFS of a configuration, if that still answers."""
    if hbase_site.is_local(uri):
        shutil.rmtree(hbase_site.local_path(uri), ignore_errors=True)
    elif (conf / "hdfs-site.xml").exists():
        hdfs = hadoop_site.read(conf / "hdfs-site.xml")
        if hdfs.get("dfs.namenode.rpc-address") == urlsplit(uri).netloc:
            host, _, port = hdfs["dfs.namenode.http-address"].partition(":")
            hadoop_http.remove(host, int(port), urlsplit(uri).path, USER)
