"""Parses paths and query parameters of API requests."""

from collections.abc import Mapping
from dataclasses import dataclass

from gputally_sim.api import refusals
from gputally_sim.api.resources import RESOURCES, Resource, find
from gputally_sim.api.selectors import Predicate, field_predicate, label_predicate
from gputally_sim.documents import Key

_PARTIAL = ("as=PartialObjectMetadata", "as=PartialObjectMetadataList")
_DEFAULT_WATCH_SECONDS = 1800.0


@dataclass(frozen=True)
class Target:
    """The object or collection of a path."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """Namespace and name of the object."""
        return self.namespace, self.name


def parse_path(path: str) -> Target:
    """Parse `/api/v1/...` or `/apis/GROUP/VERSION/...`. Raises: StatusError 404 for an unknown path."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise refusals.no_such_resource()
    match rest:
        case ["namespaces", namespace, plural, *object_path] if plural != "status":
            pass
        case [plural, *object_path]:
            namespace = ""
        case _:
            raise refusals.no_such_resource()
    resource = find(group, version, plural)
    if resource is None or len(object_path) > len(("name", "subresource")):
        raise refusals.no_such_resource()
    name, subresource = (*object_path, "", "")[:2]
    return Target(resource, namespace, name, subresource)


def resources_of(group: str, version: str) -> list[Resource]:
    """The resources of a group and version, for discovery."""
    return [resource for resource in RESOURCES if (resource.group, resource.version) == (group, version)]


def wants_metadata_only(accept: str) -> bool:
    """Whether the client prefers PartialObjectMetadata."""
    first = accept.split(",", maxsplit=1)[0].replace(" ", "")
    return any(parameter in _PARTIAL for parameter in first.split(";"))


@dataclass(frozen=True)
class ListOptions:
    """Parsed meta/v1 ListOptions."""

    selects: Predicate
    """Whether an object is in the namespace and matches the selectors."""
    selective: bool
    """Whether there are selectors."""
    version: int | None
    match: str
    limit: int
    token: str
    watch: bool
    bookmarks: bool
    initial_events: bool
    timeout_s: float


def parse_options(target: Target, query: Mapping[str, str]) -> ListOptions:
    """Parse the query of a list or watch. Raises: StatusError 400."""
    named = f"metadata.name={target.name}" if target.name else ""
    selectors = ",".join(part for part in (query.get("fieldSelector", ""), named) if part)
    labels = query.get("labelSelector", "")
    return ListOptions(
        selects=_predicate(target, selectors, labels),
        selective=bool(selectors or labels),
        version=_version(query.get("resourceVersion", "")),
        match=query.get("resourceVersionMatch", ""),
        limit=int(_number(query, "limit", 0)),
        token=query.get("continue", ""),
        watch=_flag(query, "watch"),
        bookmarks=_flag(query, "allowWatchBookmarks"),
        initial_events=_flag(query, "sendInitialEvents"),
        timeout_s=_number(query, "timeoutSeconds", _DEFAULT_WATCH_SECONDS),
    )


def _predicate(target: Target, fields: str, labels: str) -> Predicate:
    matches_fields = field_predicate(target.resource.plural, fields)
    matches_labels = label_predicate(labels)
    if not fields and not labels:
        return lambda doc: target.namespace in ("", doc["metadata"].get("namespace"))
    namespaced = target.namespace
    return lambda doc: (
        namespaced in ("", doc["metadata"].get("namespace")) and matches_fields(doc) and matches_labels(doc)
    )


def _version(text: str) -> int | None:
    if text and not text.isdigit():
        raise refusals.bad_request(f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text) if text else None


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("true", "1")


def _number(query: Mapping[str, str], name: str, default: float) -> float:
    try:
        return float(query.get(name) or default)
    except ValueError as error:
        raise refusals.bad_request(f"strconv.ParseInt: {name}: {error}") from error
