"""Generates watch lines as an API server writes them."""

import json

from labs.bench import workload
from tests.cluster.manifests import Json

MANAGED_FIELDS = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-07-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {f"f:{part}": {f"f:field-{number:02d}": {".": {}} for number in range(32)} for part in parts},
    }
    for manager, parts in (("kube-controller-manager", ("metadata", "spec")), ("kubelet", ("status",)))
]
"""About 2.3 kB that clients skip."""
CREATED = "2026-07-01T00:00:00Z"
BOUND = "2026-07-01T00:00:01Z"
STARTED = "2026-07-01T00:00:05Z"


def event(manifest: Json, *, number: int, version: int, kind: str = "ADDED", **more: Json) -> bytes:
    """A watch event for an object with server-set fields, and `more` fields such as its status."""
    added = {
        "uid": f"{number:08d}-0000-4000-8000-000000000000",
        "resourceVersion": str(version),
        "creationTimestamp": CREATED,
    }
    found = manifest | {"metadata": added | manifest["metadata"] | {"managedFields": MANAGED_FIELDS}} | more
    return json.dumps({"type": kind, "object": found}, separators=(",", ":")).encode()


def running_pod(number: int, version: int) -> bytes:
    return event(
        workload.pod(number),
        number=number,
        version=version,
        **workload.running(number, bound=BOUND, started=STARTED),
    )


def ended_pod(number: int, version: int) -> bytes:
    return event(
        workload.pod(number),
        number=number,
        version=version,
        kind="MODIFIED",
        **workload.succeeded(number, bound=BOUND, started=STARTED),
    )
