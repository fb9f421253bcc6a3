"""Site files: the XML in which Hadoop and HBase read their properties."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path


def write(path: Path, properties: Mapping[str, str]) -> None:
    """Writes properties as a site file; nobody ever sees half of it."""
    configuration = ElementTree.Element("configuration")
    for name, value in properties.items():
        entry = ElementTree.SubElement(configuration, "property")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "value").text = value
    ElementTree.indent(configuration)
    write_text(path, ElementTree.tostring(configuration, encoding="unicode", xml_declaration=True) + "\n")


def read(path: Path) -> dict[str, str]:
    """The properties of a site file; the last of several with one name holds, as for Hadoop."""
    entries = ElementTree.parse(path).getroot().iter("property")
    return {entry.findtext("name", "").strip(): entry.findtext("value", "").strip() for entry in entries}


def write_text(path: Path, text: str) -> None:
    """Writes a file of a configuration directory, and the directory if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    os.replace(partial, path)
