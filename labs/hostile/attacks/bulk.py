"""Objects of the maximum size, with all characters that the API server accepts."""

from random import Random

from labs.hostile.tenant import Tenant
from tests.cluster.manifests import Json

NAME = "bulk"
ANNOTATIONS_BYTES = 256 * 1024
NASTY = '"\\\n\r\t\x00\x1b[31m{}=,# HELP gputally_x\ngputally_x 1\n\u2028\ud7ff\ufffe名\U0001f47e'
LONGEST_NAME = 253


async def attack(tenant: Tenant) -> None:
    """Create pods with maximum annotations, thousands of labels, 1 MB environments and hundreds of containers."""
    for number in tenant.many(40):
        pod = _annotated(tenant.pod("large"))
        await tenant.create(NAME, pod)
        await tenant.patch(NAME, pod, {"metadata": {"annotations": {"changed": str(number)}}})
    for _ in tenant.many(6):
        await tenant.create(NAME, _with_labels(tenant.pod("labelled")))
        await tenant.create(NAME, _with_environment(tenant.pod("environment")))
        await tenant.create(NAME, _with_containers(tenant.pod("crowded")))
        await tenant.create(NAME, tenant.pod("n" * (LONGEST_NAME - 8)))


def _annotated(pod: Json) -> Json:
    text = NASTY * (ANNOTATIONS_BYTES // len(NASTY.encode()) - 10)
    return {**pod, "metadata": pod["metadata"] | {"annotations": {"hostile.example/text": text}}}


def _with_labels(pod: Json) -> Json:
    labels = {f"hostile.example/{number}-{'k' * 50}": "v" * 63 for number in range(2000)}
    return {**pod, "metadata": pod["metadata"] | {"labels": labels}}


def _with_environment(pod: Json) -> Json:
    random = Random(0)
    value = "".join(chr(random.randrange(0x20, 0x2000)) for _ in range(10_000))
    return _containers(pod, [{"env": [{"name": f"E{number}", "value": value} for number in range(30)]}])


def _with_containers(pod: Json) -> Json:
    return _containers(pod, [{"name": f"c{number}"} for number in range(500)])


def _containers(pod: Json, changes: list[Json]) -> Json:
    [container] = pod["spec"]["containers"]
    return {**pod, "spec": pod["spec"] | {"containers": [container | change for change in changes]}}
