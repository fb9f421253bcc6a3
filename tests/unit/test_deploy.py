"""The Kubernetes manifest in `deploy/`: fixed hosts, no second attempt, one client pod per node."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml

from lab_support import ROOT

MANIFEST = ROOT / "deploy/rayjob.yaml"


def fields(*closed: str, **required: dict[str, Any]) -> dict[str, Any]:
    """A schema for a mapping with these fields; if `closed` names optional fields, no further fields are allowed."""
    properties = {**{name: {} for name in closed}, **required}
    extra = {"additionalProperties": False} if closed else {}
    return {"type": "object", "properties": properties, "required": [*required], **extra}


def constant(value: object) -> dict[str, Any]:
    return {"const": value}


TOKEN = {
    "type": "array",
    "allOf": [
        {"contains": constant({"name": "RAY_AUTH_MODE", "value": "token"})},
        {"contains": fields(name=constant("RAY_AUTH_TOKEN"), valueFrom=fields(secretKeyRef=fields(name={}, key={})))},
    ],
}
CONTAINERS = {
    "type": "array",
    "minItems": 1,
    "maxItems": 1,
    "items": fields("volumeMounts", name={}, image={}, env=TOKEN, resources=fields(requests={}, limits={})),
}
APART = fields(
    podAntiAffinity=fields(
        requiredDuringSchedulingIgnoredDuringExecution={
            "contains": fields(
                topologyKey=constant("kubernetes.io/hostname"),
                labelSelector=fields(matchLabels=constant({"loadstone": "clients"})),
            )
        }
    )
)
# Fields of a RayJob (ray.io/v1) of KubeRay 1.7. Its schema drops unknown fields silently, so they are refused here.
SCHEMA = fields(
    "metadata",
    apiVersion=constant("ray.io/v1"),
    kind=constant("RayJob"),
    spec=fields(
        "activeDeadlineSeconds",
        "submitterPodTemplate",
        backoffLimit=constant(0),
        submissionMode={"enum": ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"]},
        shutdownAfterJobFinishes=constant(True),
        entrypoint={"type": "string", "pattern": "^loadstone run "},
        rayClusterSpec=fields(
            "rayVersion",
            enableInTreeAutoscaling=constant(False),
            headGroupSpec=fields(
                "labels",
                rayStartParams={"additionalProperties": {"type": "string"}},
                template=fields(spec=fields("volumes", containers=CONTAINERS)),
            ),
            workerGroupSpecs={
                "type": "array",
                "minItems": 1,
                "items": fields(
                    groupName={},
                    replicas={"type": "integer"},
                    minReplicas={"type": "integer"},
                    maxReplicas={"type": "integer"},
                    labels=constant({"role": "clients"}),
                    rayStartParams={},
                    template=fields(
                        metadata=fields(labels=constant({"loadstone": "clients"})),
                        spec=fields("hostNetwork", affinity=APART, containers=CONTAINERS),
                    ),
                ),
            },
        ),
    ),
)


def complaints(document: Any) -> list[str]:
    """Violations of the schema, and groups whose size may change."""
    messages = [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)]
    for group in document["spec"]["rayClusterSpec"]["workerGroupSpecs"]:
        if len({group.get(name) for name in ("replicas", "minReplicas", "maxReplicas")}) != 1:
            messages.append(f"{group['groupName']}: its size may change")
    return messages


def test_ray_job_is_valid() -> None:
    assert complaints(yaml.safe_load(MANIFEST.read_text())) == []


@pytest.mark.parametrize(
    ("text", "damage"),
    [
        ("backoffLimit: 0", "backoffLimit: 2"),
        ("backoffLimit: 0", "backofLimit: 0"),
        ("maxReplicas: 3", "maxReplicas: 5"),
        ("enableInTreeAutoscaling: false", "enableInTreeAutoscaling: true"),
        ("podAntiAffinity", "podAffinity"),
        ("value: token", "value: disabled"),
    ],
)
def test_damaged_ray_job_is_invalid(text: str, damage: str) -> None:
    document = yaml.safe_load(MANIFEST.read_text().replace(text, damage))
    assert complaints(document)
