"""Code shared by Hadoop and HBase: site files, and the HTTP interfaces of their servers.

The interfaces provide JMX beans, and the files of a name node (WebHDFS). A request takes milliseconds, whereas an
administration command would have to start a JVM.
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadstone.results import lines

TIMEOUT_S = 3.0
# `java.lang:type=Memory`, which every JVM has.
MEMORY = "java.lang:type=Memory"


def read_bean(host: str, port: int, name: str) -> Mapping[str, Any] | None:
    """The attributes of a server's bean; None if the server does not answer or does not have the bean yet."""
    reply = send_request("GET", host, port, f"/jmx?qry={urllib.parse.quote(name)}")
    beans = reply.get("beans") if reply else None
    return beans[0] if beans else None


def heap_bytes(host: str, port: int) -> int | None:
    """The bytes of heap that a server uses; None if the server does not answer."""
    memory = read_bean(host, port, MEMORY)
    return int(memory["HeapMemoryUsage"]["used"]) if memory else None


def remove_directory(host: str, port: int, path: str, user: str, timeout_s: float = TIMEOUT_S) -> bool | None:
    """Removes a directory in HDFS with its contents; returns whether it existed. `port` is the name node's HTTP port.

    Returns None if the name node does not answer in time; it may still remove the directory later.
    """
    query = urllib.parse.urlencode({"op": "DELETE", "recursive": "true", "user.name": user})
    reply = send_request("DELETE", host, port, f"/webhdfs/v1{urllib.parse.quote(path)}?{query}", timeout_s)
    return None if reply is None else bool(reply.get("boolean"))


def send_request(
    method: str, host: str, port: int, path: str, timeout_s: float = TIMEOUT_S
) -> Mapping[str, Any] | None:
    """Sends a request to a server; returns None if it does not answer with a JSON object."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request(method, path, headers={"Accept": "application/json"})
        response = connection.getresponse()
        reply = json.load(response) if response.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return reply if isinstance(reply, dict) else None


def write_site(path: Path, properties: Mapping[str, str]) -> None:
    """Writes properties as a site file, atomically."""
    configuration = ElementTree.Element("configuration")
    for name, value in properties.items():
        entry = ElementTree.SubElement(configuration, "property")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "value").text = value
    ElementTree.indent(configuration)
    write_text(path, ElementTree.tostring(configuration, encoding="unicode", xml_declaration=True) + "\n")


def read_site(path: Path) -> dict[str, str]:
    """The properties of a site file; if a property has several values, the last value counts, as in Hadoop."""
    entries = ElementTree.parse(path).getroot().iter("property")
    return {entry.findtext("name", "").strip(): entry.findtext("value", "").strip() for entry in entries}


def write_text(path: Path, text: str) -> None:
    """Writes a file in a configuration directory, and creates the directory if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines.replace_file(path, text.encode())


def local_path(uri: str) -> Path:
    """The path in a `file:` URI; escapes are not decoded, because data nodes and HBase do not decode them."""
    return Path(urllib.parse.urlsplit(uri).path)
