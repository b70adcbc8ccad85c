"""What templates of any size leave behind: whoever may create a workload chooses its template."""

import gc
import tracemalloc
from collections.abc import Callable

import msgspec
import pytest

from gputally.accounting.uncreated.missing_pods import Lacking, lacking_of_job
from gputally.model.kube.workloads import Job
from gputally.model.rules import Rules
from tests.core.manifests import GPU_NAME, Json
from tests.core.refusals import pod_template

MOST_BYTES = 8_000
"""Of one template."""


def lacking(number: int, spec: Json) -> Lacking | None:
    """What a Job lacks, decoded from JSON as a watch delivers it."""
    meta = {"name": f"job-{number}", "namespace": "ml", "uid": f"uid-{number}"}
    template = pod_template()
    manifest = {"metadata": meta, "spec": {"template": template | {"spec": template["spec"] | spec}}}
    return lacking_of_job(msgspec.json.decode(msgspec.json.encode(manifest), type=Job, strict=False), Rules(), at_us=0)


def resources(number: int, length: int, count: int = 14) -> Json:
    limits = {f"{number}-{each}-" + "x" * length: "1" for each in range(count)}
    return {"containers": [{"name": "c", "resources": {"limits": {GPU_NAME: "8"} | limits}}]}


def requirements(number: int, count: int) -> Json:
    found = [{"key": f"{number}-{each}", "operator": "In", "values": [f"v{each}"]} for each in range(count)]
    required = {"nodeSelectorTerms": [{"matchExpressions": found}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def tolerations(number: int, count: int) -> Json:
    return {"tolerations": [{"key": f"{number}-{each}", "operator": "Exists"} for each in range(count)]}


def traced() -> int:
    """Bytes that are in use."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(lambda number: resources(number, 60_000), id="names-that-no-resource-can-have"),
        pytest.param(lambda number: resources(number, 290, 60), id="long-names"),
        pytest.param(lambda number: requirements(number, 10), id="requirements"),
        pytest.param(lambda number: requirements(number, 127), id="many-requirements"),
        pytest.param(lambda number: tolerations(number, 32), id="tolerations"),
        pytest.param(lambda number: tolerations(number, 250), id="many-tolerations"),
    ],
)
def test_a_template_takes_little_memory_and_none_that_matters_once_it_is_gone(spec: Callable[[int], Json]) -> None:
    tracemalloc.start()
    try:
        for number in range(300):  # fill the caches of what the names mean
            lacking(-number, resources(-number, 290, 30))
        before = traced()
        kept = [lacking(number, spec(number)) for number in range(60)]
        each = (traced() - before) / 60
        del kept
        left = (traced() - before) / 60
    finally:
        tracemalloc.stop()

    assert each < MOST_BYTES
    assert left < MOST_BYTES / 10


def test_a_template_that_says_more_than_is_kept_lacks_its_pods_and_nobody_knows_the_nodes() -> None:
    few, many = lacking(1, requirements(1, 10)), lacking(2, requirements(2, 30))

    assert few
    assert many
    assert few.needs is not None
    assert (many.pods, many.quantity, many.needs) == (few.pods, few.quantity, None)


def test_no_pod_comes_of_a_template_with_a_resource_that_cannot_exist() -> None:
    assert lacking(1, resources(1, 300))
    assert lacking(1, resources(1, 318)) is None
