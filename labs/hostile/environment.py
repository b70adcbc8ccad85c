"""The environment of a run: a control plane with nodes, namespaces and accounts, but without load."""

from pathlib import Path

import yaml

from labs.hostile import honest
from labs.hostile.audit import ACCOUNTS
from tests.behaviour.conftest import RBAC
from tests.behaviour.product import Product
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import Json, gpu_node, metadata, namespace
from tests.e2e.rights import grant, logged_in, rights_of, until_granted

HOSTILE = "hostile"
HOSTILE_NODES = 4
FOREIGN_NODE = "honest-0"
WATCHED = "poddisruptionbudgets"
"""What the aggregators watch on request."""
WATCHED_RULE = {"apiGroups": ["policy"], "resources": [WATCHED], "verbs": ["list", "watch"]}
RIGHTS = [
    {"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": ["create", "patch", "delete"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "patch", "delete"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["create", "patch", "delete"]},
]
"""All permissions of the hostile tenant, in its own namespace."""


class Environment:
    """A control plane, and the objects created in it before the load."""

    def __init__(self, plane: ControlPlane, api: Api, scratch: Path) -> None:
        self.plane = plane
        self.api = api
        self.scratch = scratch

    async def furnish(self) -> None:
        """Create nodes, namespaces, and the hostile tenant's account."""
        await honest.create_objects(self.api)
        for number in range(HOSTILE_NODES):
            await self.api.create(gpu_node(f"{HOSTILE}-{number}", pool=HOSTILE))
        await self.api.create(namespace(ACCOUNTS))
        await self.api.create(namespace(HOSTILE, labels={"team": HOSTILE}))
        for manifest in account(HOSTILE):
            await self.api.create(manifest)

    async def product(self, name: str, configuration: str) -> Product:
        """An aggregator with the documented RBAC rules, that for `WATCHED`, and its own ServiceAccount."""
        documents = yaml.safe_load_all(RBAC.read_text())
        [rules] = [document["rules"] for document in documents if document["kind"] == "ClusterRole"]
        rights = rights_of([*rules, WATCHED_RULE])
        await grant(self.api, name, ACCOUNTS, rights)
        await until_granted(self.api, name, ACCOUNTS, rights)
        folder = self.scratch / name
        folder.mkdir()
        login = await logged_in(self.api, self.plane, name, ACCOUNTS, folder / "kubeconfig")
        return Product(folder, login, configuration=configuration, environment={"GPUTALLY_WATCH": WATCHED})

    async def token(self, account: str, place: str) -> str:
        """A token of a ServiceAccount."""
        path = f"/api/v1/namespaces/{place}/serviceaccounts/{account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = (await self.api.call("POST", path, json=request))["status"]["token"]
        return token


def account(name: str) -> list[Json]:
    """A ServiceAccount with RIGHTS in the namespace of the same name."""
    group = "rbac.authorization.k8s.io"
    meta = metadata(name, name)
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": RIGHTS},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": name}],
        },
    ]
