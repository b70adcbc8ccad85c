"""Small API objects and watch lines as the server sends them."""

import json
from typing import Any


def pod(name: str = "a", version: int = 1, **metadata: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """A pod whose UID is derived from its name."""
    meta = {"name": name, "namespace": "ml", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta | metadata, "spec": {}, "status": {}}


def line(kind: str, body: object) -> bytes:
    """A line of a watch stream."""
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


def added(name: str = "a", version: int = 1, **metadata: Any) -> bytes:  # noqa: ANN401 - any JSON
    """An ADDED line."""
    return line("ADDED", pod(name, version, **metadata))


def modified(name: str = "a", version: int = 1, **metadata: Any) -> bytes:  # noqa: ANN401 - any JSON
    """A MODIFIED line."""
    return line("MODIFIED", pod(name, version, **metadata))


def deleted(name: str = "a", version: int = 1, **metadata: Any) -> bytes:  # noqa: ANN401 - any JSON
    """A DELETED line."""
    return line("DELETED", pod(name, version, **metadata))


def bookmark(version: int) -> bytes:
    """A bookmark: everything up to `version` was sent. As on a real server, lists in the spec are null."""
    return line(
        "BOOKMARK",
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": str(version), "creationTimestamp": None},
            "spec": {"containers": None},
            "status": {},
        },
    )


def failure(code: int, reason: str = "", **more: Any) -> bytes:  # noqa: ANN401 - any JSON
    """An ERROR line, which ends the stream."""
    status = {"kind": "Status", "status": "Failure", "metadata": {}, "code": code, "reason": reason}
    return line("ERROR", status | {"message": f"{reason} happened"} | more)


def listing(*pods: dict[str, Any], version: int | str = 1) -> bytes:
    """A list document as the server sends it: metadata first, items without kind."""
    items = [{name: value for name, value in each.items() if name not in ("kind", "apiVersion")} for each in pods]
    return json.dumps(
        {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}, "items": items},
        separators=(",", ":"),
    ).encode()
