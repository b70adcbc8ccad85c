"""What an API server tells of its kinds, for a scripted one."""

from tests.cluster.manifests import Json
from tests.fakes.scripted_api import Request, ScriptedApi

KINDS: dict[str, dict[str, tuple[str, bool]]] = {
    "v1": {"ConfigMap": ("configmaps", True), "Node": ("nodes", False), "Pod": ("pods", True)},
    "apps/v1": {"ReplicaSet": ("replicasets", True), "Deployment": ("deployments", True)},
    "batch/v1": {"Job": ("jobs", True), "CronJob": ("cronjobs", True)},
    "ml.example/v1": {"Buch": ("buecher", True)},
}
"""By group-version: each kind, its plural and whether it is namespaced."""


def group_list(*api_versions: str) -> Json:
    """The document at /apis, which has no core group."""
    groups = [
        {"name": each.partition("/")[0], "versions": [{"groupVersion": each, "version": "v1"}]}
        for each in api_versions or KINDS
        if "/" in each
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def resource_list(api_version: str) -> Json:
    """The document of one group-version: each kind with its subresource `status` before it, which is no resource."""
    resources = [
        {"name": f"{plural}{subresource}", "kind": kind, "namespaced": namespaced, "verbs": ["get", "list"]}
        for kind, (plural, namespaced) in KINDS[api_version].items()
        for subresource in ("/status", "")
    ]
    return {"kind": "APIResourceList", "groupVersion": api_version, "resources": resources}


def answered(request: Request) -> bool:
    """Answer a request for discovery; False for one that is not."""
    match request.target.removeprefix("/").split("/"):
        case ["apis"]:
            request.answer(group_list())
        case ["api", version]:
            request.answer(resource_list(version))
        case ["apis", group, version]:
            request.answer(resource_list(f"{group}/{version}"))
        case _:
            return False
    return True


async def beyond_discovery(server: ScriptedApi) -> Request:
    """The next request that is not for discovery."""
    while answered(request := await server.request()):
        pass
    return request
