"""API discovery: groups, versions and resources."""

from gputally_sim.api.requests import resources_of
from gputally_sim.api.resources import RESOURCES, Resource
from gputally_sim.documents import Doc

_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def discovery(path: str) -> Doc | None:
    """The document at `/api`, `/apis`, `/api/v1` or `/apis/GROUP/VERSION`; None for any other path."""
    match path.strip("/").split("/"):
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            groups = dict.fromkeys(resource.group for resource in RESOURCES if resource.group)
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in groups]}
        case ["api", version]:
            return _resource_list("", version)
        case ["apis", group, version]:
            return _resource_list(group, version)
        case _:
            return None


def _group(name: str) -> Doc:
    names = dict.fromkeys(each.version for each in RESOURCES if each.group == name)
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in names]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(group: str, version: str) -> Doc | None:
    found = resources_of(group, version)
    if not found:
        return None
    resources = [entry for resource in found for entry in _entries(resource)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].api_version,
        "resources": resources,
    }


def _entries(resource: Resource) -> list[Doc]:
    own = {
        "name": resource.served,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
    }
    status = {**own, "name": f"{resource.served}/status", "singularName": "", "verbs": ["get", "patch"]}
    return [own, status] if resource.has_status else [own]
