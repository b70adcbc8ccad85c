"""Deletion of objects: immediate, after a grace period, or when all finalizers are removed.

Source: k8s.io/apiserver pkg/registry/rest/delete.go BeforeDelete, pkg/registry/generic/registry/store.go, and the pod
strategy's CheckGracefulDelete.
"""

from gputally_sim.api.admission import DEFAULT_GRACE_SECONDS
from gputally_sim.documents import Doc
from gputally_sim.instants import SECOND_US, parse_instant, rfc3339
from gputally_sim.node.pods import is_terminal, node_of


def pod_grace(pod: Doc, wanted: int | None) -> int:
    """The grace period in seconds: the requested one, else the pod's; 0 if it is unbound or has ended."""
    if not node_of(pod) or is_terminal(pod):
        return 0
    if wanted is None:
        own: int = pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
        return own
    return wanted if wanted >= 0 else 1


def requested(meta: Doc, grace_seconds: int, now_us: int) -> Doc:
    """Metadata after a deletion request; equal to `meta` if nothing changes.

    The timestamp is the request time plus the grace period. A later request may only shorten the grace period.
    """
    if "deletionTimestamp" not in meta:
        due_us = now_us + grace_seconds * SECOND_US
        grown = {"generation": meta["generation"] + 1} if "generation" in meta else {}
        return {**meta, **grown, "deletionTimestamp": rfc3339(due_us), "deletionGracePeriodSeconds": grace_seconds}
    former: int = meta["deletionGracePeriodSeconds"]
    if grace_seconds >= former:
        return meta
    due_us = parse_instant(meta["deletionTimestamp"]) - (former - grace_seconds) * SECOND_US
    return {**meta, "deletionTimestamp": rfc3339(due_us), "deletionGracePeriodSeconds": grace_seconds}


def is_due(meta: Doc) -> bool:
    """Whether the object can be removed now."""
    return meta.get("deletionGracePeriodSeconds") == 0 and not meta.get("finalizers")
