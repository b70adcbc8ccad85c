"""API discovery documents for the scripted API server."""

from tests.cluster.manifests import Json
from tests.fakes.scripted_api import Request, ScriptedApi

KINDS: dict[str, dict[str, tuple[str, bool]]] = {
    "v1": {"ConfigMap": ("configmaps", True), "Node": ("nodes", False), "Pod": ("pods", True)},
    "apps/v1": {"ReplicaSet": ("replicasets", True), "Deployment": ("deployments", True)},
    "batch/v1": {"Job": ("jobs", True), "CronJob": ("cronjobs", True)},
    "ml.example/v1": {"Buch": ("buecher", True)},
}
"""For each group-version: its kinds, their plurals, and whether they are namespaced."""


def group_list(*api_versions: str) -> Json:
    """The document at /apis, without the core group."""
    groups = [
        {"name": each.partition("/")[0], "versions": [{"groupVersion": each, "version": "v1"}]}
        for each in api_versions or KINDS
        if "/" in each
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def resource_list(api_version: str) -> Json:
    """The document of one group-version; the subresource `status` precedes each kind."""
    resources = [
        {"name": f"{plural}{subresource}", "kind": kind, "namespaced": namespaced, "verbs": ["get", "list"]}
        for kind, (plural, namespaced) in KINDS[api_version].items()
        for subresource in ("/status", "")
    ]
    return {"kind": "APIResourceList", "groupVersion": api_version, "resources": resources}


def answered(request: Request) -> bool:
    """Answer a discovery request; False for any other request."""
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
    """Answer discovery requests; returns the next other request."""
    while answered(request := await server.request()):
        pass
    return request
