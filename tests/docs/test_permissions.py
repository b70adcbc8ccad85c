import re
from typing import Any

import pytest
import yaml

from gputally.accounting.terms.job import unknown_owner
from gputally.kube.watched import ON_REQUEST, resources
from gputally.model.kube.kinds import OPTIONAL_RESOURCES
from gputally.model.kube.meta import Owner, OwnerReference
from gputally.model.rules import Rules
from tests.docs.pages import ROOT, TEXTS, table

DOCUMENTS = list(yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text()))
WATCHED = frozenset({"list", "watch"})
WALKED = {
    ("apps", "replicasets"): ("apps/v1", "ReplicaSet"),
    ("apps", "deployments"): ("apps/v1", "Deployment"),
    ("apps", "statefulsets"): ("apps/v1", "StatefulSet"),
    ("apps", "daemonsets"): ("apps/v1", "DaemonSet"),
}
"""API group and plural of each resource, and its version and kind in owner references."""

Rights = dict[tuple[str, str], frozenset[str]]


def document(kind: str) -> dict[str, Any]:
    [found] = [document for document in DOCUMENTS if document["kind"] == kind]
    assert isinstance(found, dict)
    return found


def granted() -> Rights:
    rules = document("ClusterRole")["rules"]
    return {
        (group, resource): frozenset(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_the_manifest_grants_exactly_what_the_aggregator_requests() -> None:
    watched = {_resource(resource.path): WATCHED for resource in resources(Rules())}
    walked = dict.fromkeys(WALKED, frozenset({"get"}))

    assert granted() == watched | walked


@pytest.mark.parametrize(("version", "kind"), WALKED.values())
def test_an_owner_with_read_permission_is_requested(version: str, kind: str) -> None:
    assert unknown_owner({}, _owner(version, kind), {}) is not None


@pytest.mark.parametrize(("version", "kind"), [("batch/v1", "Job")])
def test_an_owner_at_which_the_walk_ends_is_not_requested(version: str, kind: str) -> None:
    assert unknown_owner({}, _owner(version, kind), {}) is None


def test_exactly_the_granted_permissions_are_explained() -> None:
    rows = table(TEXTS["docs/permissions.md"], "API group")
    explained: Rights = {
        ("" if group == "core" else group, resource): frozenset(verbs.split(", ")) for group, resource, verbs, _ in rows
    }

    assert explained == granted()
    assert all(re.search(r"\w", why) for *_, why in rows)


def test_exactly_the_optional_watches_are_explained() -> None:
    rows = table(TEXTS["docs/permissions.md"], "Group")
    explained = {("" if group == "core" else group, resource): verbs for group, resource, verbs, *_ in rows}

    assert explained == {_resource(each.path): "list, watch" for each in ON_REQUEST}
    assert [each.kind.value for each in ON_REQUEST] == [*OPTIONAL_RESOURCES]
    assert all(re.search(r"\w", why) for *_, why in rows)


def test_the_role_is_bound_to_the_service_account_of_the_manifest() -> None:
    account, binding = document("ServiceAccount")["metadata"], document("ClusterRoleBinding")

    assert binding["roleRef"]["name"] == document("ClusterRole")["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount"} | account]
    assert document("Namespace")["metadata"]["name"] == account["namespace"]


def _owner(version: str, kind: str) -> Owner:
    return Owner("ml", OwnerReference(kind=kind, name="a", uid="uid-a", api_version=version))


def _resource(path: str) -> tuple[str, str]:
    """API group and resource of a path such as /apis/scheduling.k8s.io/v1/priorityclasses."""
    root, *rest = path.strip("/").split("/")
    group = rest.pop(0) if root == "apis" else ""
    return group, rest[1]
