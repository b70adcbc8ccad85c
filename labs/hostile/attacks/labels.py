"""Label values: hundreds of pending pods with unique values, and one pod that changes its labels constantly."""

from string import ascii_letters

from labs.hostile.tenant import Tenant
from tests.cluster.manifests import Json

JUNK, TOGGLING = "junk labels", "toggling"
LONGEST = 63
TEAMS = ("red", "blue", "green", "yellow")
KEYS = (
    "tenant",
    "kueue.x-k8s.io/queue-name",
    "batch.kubernetes.io/job-name",
    "ray.io/cluster",
    "pod-template-hash",
    "nvidia.com/gpu.product",
)


async def junk(tenant: Tenant) -> None:
    """Create pending pods, each with a unique team, queue and job; far more than any limit."""
    for number in tenant.many(700):
        await tenant.create(JUNK, labelled(tenant.pod("junk"), number))


def labelled(pod: Json, number: int) -> Json:
    value = f"junk-{number}-{ascii_letters}"[:LONGEST]
    return {**pod, "metadata": pod["metadata"] | {"labels": dict.fromkeys(("team", *KEYS), value)}}


async def toggling(tenant: Tenant) -> None:
    """Run a pod with a GPU whose team label changes continuously."""
    pod = tenant.running_pod("toggled")
    await tenant.create(TOGGLING, pod)
    for number in tenant.many(2000):
        team = TEAMS[number % len(TEAMS)]
        await tenant.patch(TOGGLING, pod, {"metadata": {"labels": {"team": team, KEYS[1]: f"queue-{number % 2}"}}})
