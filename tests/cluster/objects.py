"""Accessors for API objects."""

from datetime import datetime

from tests.cluster.manifests import Json

Items = list[Json]


def named(items: Items, name: str) -> Json | None:
    """The item with that name, if it exists."""
    return next((item for item in items if item["metadata"]["name"] == name), None)


def uids(items: Items) -> set[str]:
    return {item["metadata"]["uid"] for item in items}


def in_phase(items: Items, phase: str) -> Items:
    """The pods in `phase`."""
    return [item for item in items if item["status"].get("phase") == phase]


def condition(item: Json, kind: str) -> Json:
    """The condition of type `kind`; empty if the object has none."""
    return next((each for each in item["status"].get("conditions") or [] if each["type"] == kind), {})


def container_state(pod: Json, state: str) -> Json:
    """The first container's `running` or `terminated` state; empty if it is in another state."""
    found: Json = pod["status"]["containerStatuses"][0]["state"].get(state, {})
    return found


def seconds(timestamp: str) -> float:
    """An API timestamp as seconds since the epoch."""
    return datetime.fromisoformat(timestamp).timestamp()
