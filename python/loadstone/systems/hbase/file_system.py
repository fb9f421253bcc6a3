"""The file system under HBase: this machine's HDFS, which is started if needed, and HBase's files in it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from loadstone.systems.base import outside_directories
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.base.system import Place, SystemPlan
from loadstone.systems.hbase import site
from loadstone.systems.hdfs import hadoop

HDFS = "hdfs"
# HDFS permissions are disabled, so this user name has no effect.
USER = "loadstone"


def file_system(place: Place, plan: SystemPlan) -> Mapping[str, str]:
    """The properties of the HDFS on which HBase runs; empty if it runs on another file system.

    Starts HDFS if needed, with its defaults or on its kept data. A running HDFS is left unchanged, even if data nodes
    are dead.
    """
    if site.deployment_mode(plan) == site.STANDALONE or plan.settings["hbase.rootdir"]:
        return {}
    hdfs = RunningSystem(HDFS, place.root.parent)
    there = hdfs.load_state
    if there is None:
        owner_file(place).touch()
        hdfs.up()
    elif not hdfs.running_processes():
        hdfs.up(there.plan.nodes, there.plan.settings, owner=there.owner)
    return hdfs.store_properties()


def owner_file(place: Place) -> Path:
    """The file that marks an HDFS as started for this HBase; such an HDFS is stopped with HBase."""
    return place.data / "brought-hdfs"


def clear_leftovers(place: Place, conf: Path) -> None:
    """Removes HBase's files outside its directory; an HDFS that was started for it is removed completely."""
    if (conf / "hbase-site.xml").exists():
        site = hadoop.read_site(conf / "hbase-site.xml")
        for uri in {site["hbase.rootdir"], site["hbase.wal.dir"]}:
            # The label distinguishes Loadstone's directory from the user's.
            if uri.endswith(f"/{outside_directories.outside_label(place)}"):
                remove_directory(uri, conf)
    if owner_file(place).exists():
        RunningSystem(HDFS, place.root.parent).down()


def remove_directory(uri: str, conf: Path) -> None:
    """Removes a directory on a local file system, or in the HDFS of a configuration if that HDFS still answers."""
    if site.is_local(uri):
        shutil.rmtree(hadoop.local_path(uri), ignore_errors=True)
    elif (conf / "hdfs-site.xml").exists():
        hdfs = hadoop.read_site(conf / "hdfs-site.xml")
        if hdfs.get("dfs.namenode.rpc-address") == urlsplit(uri).netloc:
            host, _, port = hdfs["dfs.namenode.http-address"].partition(":")
            hadoop.remove_directory(host, int(port), urlsplit(uri).path, USER)
