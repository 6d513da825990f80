"""The documented objects of Kubernetes, as the tests use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_MANIFESTS = Path(__file__).parents[2] / "docs" / "kubernetes"
DOCUMENTED = ("namespace", "airflow", "driver", "spark-applications")
"""Manifests that are applied, in this order."""
POD_TEMPLATE = _MANIFESTS / "pod-template.yaml"
_RBAC = "rbac.authorization.k8s.io"
NAMESPACE = "spark"
WORKER = ("airflow", "airflow-worker")
SPARK_OPERATOR = ("spark-operator", "spark-operator")
"""Namespace and name of accounts."""
ACCOUNTS = {
    "airflow": "airflow:airflow-worker",
    "driver": "spark:spark",
    "spark-applications": "airflow:airflow-worker",
}
"""The accounts to which manifests give rights."""


def documented(name: str) -> list[dict[str, Any]]:
    """Give the objects of a documented manifest."""
    return [*yaml.safe_load_all((_MANIFESTS / f"{name}.yaml").read_text())]


def spark_operator_rights() -> list[dict[str, Any]]:
    """Give the objects that let the Spark operator do everything, as this shows other rights."""
    namespace, name = SPARK_OPERATOR
    kind = "ClusterRoleBinding"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": kind,
            "metadata": {"name": name},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    ]


def without(name: str, resource: str, verb: str) -> list[dict[str, Any]]:
    """Give the objects of a documented manifest with one right less."""
    objects = documented(name)
    [role] = [found for found in objects if found["kind"] == "Role"]
    changed = []
    for rule in role["rules"]:
        for each in rule["resources"]:
            verbs = [v for v in rule["verbs"] if (each, v) != (resource, verb)]
            changed.append({**rule, "resources": [each], "verbs": verbs})
    assert changed != role["rules"]
    role["rules"] = changed
    return objects


def granted(name: str) -> set[tuple[str, str]]:
    """Give the rights of a documented manifest, as pairs of resource and verb."""
    rules = [rule for found in documented(name) for rule in found.get("rules", ())]
    return {(r, v) for rule in rules for r in rule["resources"] for v in rule["verbs"]}
