"""Pods that impersonate pods of other tenants, or gputally's agents."""

from labs.hostile.tenant import Tenant
from tests.cluster.manifests import Json

NAME = "impostors"
AGENT = {"app.kubernetes.io/name": "gputally", "app.kubernetes.io/component": "agent"}
JOB = {"batch.kubernetes.io/job-name": "job-0", "job-name": "job-0"}


async def attack(tenant: Tenant) -> None:
    """Impersonate by labels, by names, and by the namespace in the manifest."""
    for number in tenant.many(10):
        await tenant.create(NAME, _labelled(tenant.running_pod("agent"), AGENT))
        await tenant.create(NAME, _labelled(tenant.pod("member"), JOB))
        await tenant.create(NAME, _named(tenant.pod(), f"bare-{number}"))
        await tenant.create(NAME, _in(tenant.pod("stray"), tenant.target.foreign_namespace))
        await tenant.create(NAME, _in(tenant.pod("stray"), "kube-system"))


def _labelled(pod: Json, labels: dict[str, str]) -> Json:
    return {**pod, "metadata": pod["metadata"] | {"labels": labels}}


def _named(pod: Json, name: str) -> Json:
    return {**pod, "metadata": pod["metadata"] | {"name": name}}


def _in(pod: Json, namespace: str) -> Json:
    return {**pod, "metadata": pod["metadata"] | {"namespace": namespace}}
