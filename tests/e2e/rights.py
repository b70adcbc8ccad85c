"""ServiceAccounts on the real API server, each with exactly the permissions that a test grants."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.credentials import kubeconfig
from tests.cluster.manifests import Json, cluster_role, cluster_role_binding, metadata, path

Right = tuple[str, str, str]
"""API group, resource and verb."""


def rights_of(rules: Sequence[Json]) -> list[Right]:
    """The single permissions in the rules of a role."""
    return [
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


async def grant(api: Api, name: str, place: str, rights: Sequence[Right]) -> list[Json]:
    """Create a ServiceAccount with these permissions; returns the created objects."""
    account = await api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name, place)})
    return [account, *await bind(api, name, place, rights, role=name)]


async def bind(api: Api, account: str, place: str, rights: Sequence[Right], *, role: str) -> list[Json]:
    """Grant these permissions to a ServiceAccount with a separate role; returns the created objects."""
    rules = [{"apiGroups": [group], "resources": [resource], "verbs": [verb]} for group, resource, verb in rights]
    binding = cluster_role_binding(role)
    binding["subjects"] = [{"kind": "ServiceAccount", "name": account, "namespace": place}]
    return [await api.create(each) for each in (cluster_role(role, rules), binding)]


async def logged_in(api: Api, control_plane: ControlPlane, account: str, place: str, file: Path) -> Path:
    """Write a kubeconfig for the ServiceAccount to `file`; returns it."""
    there = f"/api/v1/namespaces/{place}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = (await api.call("POST", there, json=request))["status"]["token"]
    config = json.dumps(kubeconfig(control_plane.url, control_plane.ca_file, token))
    await asyncio.to_thread(file.write_text, config)
    return file


async def until_granted(api: Api, account: str, place: str, rights: Sequence[Right]) -> None:
    """Wait until the API server applies new permissions, which is shortly after it stores them."""
    async with asyncio.timeout(10):
        for right in rights:
            while not await allowed(api, account, place, right):  # noqa: ASYNC110 - a server sends no signal
                await asyncio.sleep(0.05)


async def allowed(api: Api, account: str, place: str, right: Right) -> bool:
    group, resource, verb = right
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {
            "user": f"system:serviceaccount:{place}:{account}",
            "resourceAttributes": {"group": group, "resource": resource, "verb": verb},
        },
    }
    return bool((await api.create(review))["status"]["allowed"])


async def revoke(api: Api, made: Sequence[Json]) -> None:
    for each in made:
        await api.delete(path(each))
