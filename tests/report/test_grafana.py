"""The Grafana dashboard and the Prometheus configuration agree with the metrics that a run serves."""

from __future__ import annotations

import importlib
import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from live_support import parse_families, write_folder
from loadstone.live.metrics import render_metrics
from loadstone.live.run import FollowedRun
from test_expectations import make_run, scatter
from test_live_runs import write_attempt

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
# The requirements of Grafana's JSON model for this schema version, as far as the dashboard uses them.
SCHEMA = {
    "type": "object",
    "required": ["title", "uid", "schemaVersion", "panels", "templating", "time"],
    "properties": {
        "uid": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,40}$"},
        "schemaVersion": {"type": "integer", "minimum": 36},
        "id": {"type": "null"},
        "panels": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["id", "type", "title", "gridPos", "targets", "fieldConfig", "options", "datasource"],
                "properties": {
                    "type": {"enum": ["stat", "timeseries", "heatmap"]},
                    "gridPos": {
                        "required": ["x", "y", "w", "h"],
                        "properties": {"x": {"minimum": 0, "maximum": 23}, "w": {"minimum": 1, "maximum": 24}},
                    },
                    "targets": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"required": ["expr", "refId", "datasource", "legendFormat"]},
                    },
                },
            },
        },
    },
}


def test_dashboard_has_the_structure_that_grafana_reads() -> None:
    jsonschema.validate(DASHBOARD, SCHEMA)
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    variables = {f"${{{variable['name']}}}" for variable in DASHBOARD["templating"]["list"]}
    assert {panel["datasource"]["uid"] for panel in PANELS} <= variables


def is_part_of(part: Any, whole: Any) -> bool:
    """Whether `whole` contains `part`; maps in `whole` may have further fields, such as defaults."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and is_part_of(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(is_part_of, part, whole))
    return bool(part == whole)


def test_dashboard_has_only_fields_of_grafanas_schema() -> None:
    # Grafana generates the package from its schema: reading drops unknown fields, also fields of the panels' options.
    schema = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason="needs grafana-foundation-sdk")
    plugins, encoder = (
        importlib.import_module(f"grafana_foundation_sdk.cog.{name}") for name in ("plugins", "encoder")
    )
    plugins.register_default_plugins()

    def read(dashboard: Any) -> Any:
        return json.loads(encoder.JSONEncoder().encode(schema.Dashboard.from_json(dashboard)))

    assert is_part_of(DASHBOARD, read(DASHBOARD))
    for place in (DASHBOARD, PANELS[0], PANELS[0]["options"], PANELS[0]["fieldConfig"]["defaults"]):
        place["unknown"] = 1
        assert not is_part_of(DASHBOARD, read(DASHBOARD))
        del place["unknown"]


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in PANELS]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for first, second in combinations(places, 2):
        apart = first["x"] + first["w"] <= second["x"] or second["x"] + second["w"] <= first["x"]
        assert apart or first["y"] + first["h"] <= second["y"] or second["y"] + second["h"] <= first["y"]


@pytest.mark.parametrize(
    "target", [target for panel in PANELS for target in panel["targets"]], ids=lambda target: target["expr"]
)
def test_panel_queries_metrics_that_are_served(tmp_path: Path, target: dict[str, Any]) -> None:
    text = render_metrics(
        FollowedRun(write_folder(tmp_path / "a", make_run({"a": scatter(1000)}))), [write_sampled(tmp_path / "t")]
    )
    samples = [sample for family in parse_families(text).values() for sample in family.samples]
    names, labels = {sample.name for sample in samples}, {label for sample in samples for label in sample.labels}
    expression = target["expr"]
    assert set(re.findall(r"loadstone_\w+", expression)) <= names
    used = {name for group in re.findall(r"by \(([^)]*)\)", expression) for name in group.split(", ")}
    used |= set(re.findall(r"[{,]\s*(\w+)\s*(?:=~|!=|=)", expression)) | set(
        re.findall(r"{{(\w+)}}", target["legendFormat"])
    )
    assert used <= labels | {"le"}
    assert expression.count("(") == expression.count(")")


def write_sampled(directory: Path) -> Any:
    """Writes an attempt with a target rate and a sample of the host."""
    attempt = write_attempt(directory)
    for row in attempt.rows["run"].values():
        row.due = 4
    attempt.hosts.append({"unix_ns": 0, "host": 1.0, "engine": 0.5, "servers": 0.0, "steal": 0.0})
    return attempt


def test_prometheus_scrapes_loopback() -> None:
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    assert all(host.startswith("127.0.0.1:") for config in job["static_configs"] for host in config["targets"])
