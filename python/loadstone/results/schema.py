"""The format of result folders as JSON Schema: `python -m loadstone.results.schema` writes it to docs/reference.

Readers leave alone what they do not know, so a version may add fields; one that changes or removes any is the next.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from loadstone.results.folder import VERSION
from loadstone.results.trial_result import SERIES_FIELDS, SERIES_OPTIONAL
from loadstone.statistics.percentile import BOUNDS

PATH = Path("docs/reference/schemas/results.json")

SCALAR = {"type": ["string", "number", "boolean"]}
NUMBERS = {"type": "array", "items": {"type": ["number", "null"]}}


def text(description: str) -> dict[str, Any]:
    """A text field."""
    return {"type": "string", "description": description}


def scalars(description: str) -> dict[str, Any]:
    """A mapping of names to single values."""
    return {"type": "object", "additionalProperties": SCALAR, "description": description}


def fields(description: str, required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object."""
    return {
        "type": "object",
        "description": description,
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


VALUE = fields(
    "One figure.",
    {
        "metric": text("`throughput`, `read.p99`, `load.insert.mean`, `device.written_per_operation` …"),
        "value": {"type": "number", "description": "In the base unit."},
        "unit": text("op/s, ns, B, B/op, B/s, share (0 to 1), × …"),
        "n": {"type": "integer", "description": "Samples that it rests on: operations, for a latency."},
    },
    {
        "bound": {
            "enum": list(BOUNDS),
            "description": "`at_least`: the figure is a lower bound, as operations never ended. `failed`: it is beyond "
            "every number, as its rank falls on failed operations; `value` is then the slowest of the others and ranks "
            "nothing. Absent: the figure is exact.",
        },
        "resolution": {
            "type": "number",
            "description": "The step in which the figure was read, in its unit: the last digit that a tool prints.",
        },
    },
)
NOTE = fields("The engine's own word.", {name: {"type": "string"} for name in ("name", "message", "hint")})
QUESTION = fields(
    "What was asked, as far as judges and reports need it.",
    {"text": {"type": "string"}},
    {
        "by": {"type": ["string", "null"], "description": "The dimension that is compared."},
        "baseline": {"type": ["string", "number", "boolean", "null"]},
        "metrics": {"type": "array", "items": {"type": "string"}},
        "promises": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Promises that the compared values differ in on purpose.",
        },
        "at_least": {"type": "integer"},
        "at_most": {"type": ["integer", "null"]},
        "until": {"type": ["number", "null"], "description": "Width of the interval asked for, as a share."},
        "matters": {"type": "number", "description": "The least difference that matters, as a share."},
        "claims": {"type": ["string", "null"]},
        "verify": {"type": "boolean"},
        "checks": {"type": "object", "description": "Thresholds that differ from the defaults, by check."},
        "find": {
            "type": ["object", "null"],
            "description": "What was searched for: `such_that`, `over`, `from`, `to`.",
        },
    },
)
FOLDER = fields(
    "folder.json: what the folder is.",
    {
        "results": {"const": VERSION, "description": "Version of this format."},
        "name": text("The experiment's name."),
        "question": QUESTION,
        "interleaved": {"type": "boolean", "description": "Whether variants took turns in random order, in blocks."},
    },
    {
        "seed": {"type": "integer", "description": "Order and workload follow from it."},
        "command": text("How it was started."),
        "workloads": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "SHA-256 of each workload file, by its path.",
        },
        "sources": {"type": "array", "items": {"type": "string"}, "description": "Imported files."},
    },
)
BLOCK = fields(
    "A line of plan.jsonl: a block, every variant once, in the order in which they were run.",
    {
        "block": {"type": "integer", "minimum": 1},
        "trials": {
            "type": "array",
            "items": fields("A planned trial.", {"trial": {"type": "string"}, "config": scalars("Its variant.")}),
        },
    },
)
TRIAL = fields(
    "A line of values.jsonl: an attempt at a trial. Of several lines of one trial the last counts.",
    {
        "trial": text("Its name, and that of its folder in trials/; a later attempt has `.<attempt>` behind."),
        "config": scalars("The variant: each dimension's value."),
        "repeat": {"type": "integer", "description": "Which repeat of its variant, from 1; its block."},
        "end": {"enum": ["done", "stopped", "lease", "failed", "lost"], "description": "How it ended."},
        "values": {"type": "array", "items": VALUE},
    },
    {
        "attempt": {"type": "integer", "description": "Which attempt at this trial, from 1."},
        "order": {"type": ["integer", "null"], "description": "Its place in the order of the run, from 0."},
        "start_unix_ns": {"type": ["integer", "null"]},
        "clients": {"type": ["integer", "null"]},
        "loop": {"enum": ["closed", "open", None]},
        "facts": scalars("Guarantees, versions, file system, hosts."),
        "statuses": {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer"}},
            "description": "How often each operation ended how; CENSORED: it never did.",
        },
        "notes": {"type": "array", "items": NOTE},
    },
)
SERIES = fields(
    "trials/<trial>/series.json: the measured window in intervals, one number of each field for each of them.",
    {name: NUMBERS for name in SERIES_FIELDS if name not in SERIES_OPTIONAL},
    {name: NUMBERS for name in SERIES_FIELDS if name in SERIES_OPTIONAL},
)


def document() -> dict[str, Any]:
    """The whole schema."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Loadstone's result folders",
        "description": f"Version {VERSION}. Each definition is one file, or one line of a .jsonl file.",
        "$defs": {"folder": FOLDER, "block": BLOCK, "trial": TRIAL, "series": SERIES},
    }


def render() -> str:
    """The schema as it is checked in."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(render())
