"""The description of the routes of waiting pods in OpenAPI."""

from typing import Any, Final

from gputally.model.api.fits import FITS_PATH, FitsDocument
from gputally.model.api.pending import PENDING_PATH, PendingDocument
from gputally.model.api.what_if import WHAT_IF_PATH, WhatIfDocument
from gputally.model.api.why import WHY_PATH, WhyDocument
from gputally.pending_api.forecasts.manifest_pods import KIND_NAMES
from gputally.pending_api.pending_request import MOST_PENDING, PENDING_FILTERS, USUAL_PENDING
from gputally.report_api.openapi import Described, document_content, filter_parameters, operation, parameter

_NOT_FOUND: Final = {"404": {"description": "no such pod with GPUs, as far as the user may know"}}
_OF_MANIFEST: Final = f"A manifest of {KIND_NAMES}, or a List of them, as JSON."


def _pending() -> dict[str, Any]:
    parameters = [
        *filter_parameters(PENDING_FILTERS),
        parameter("limit", f"pods of a page, up to {MOST_PENDING}", default=str(USUAL_PENDING)),
        parameter("offset", "pods to skip", default="0"),
        parameter("helps", "true: with the first change that would help each pod", default="false"),
    ]
    return operation(
        "Which pods wait for GPUs, which workloads lack pods, and why.", parameters, document_content("PendingDocument")
    )


def _why() -> dict[str, Any]:
    parameters = [
        parameter("namespace", "of the pod or job; without it, the only pod of that name"),
        parameter("pod", "the name of a pod"),
        parameter("job", "instead of pod: the name of a job"),
    ]
    summary = "Why a pod waits, or when and why it waited; other tenants' pods only as tier and GPUs."
    found = operation(summary, parameters, document_content("WhyDocument"))
    found["get"]["responses"] |= _NOT_FOUND
    return found


def _what_if() -> dict[str, Any]:
    parameters = [
        parameter("gpus", "GPUs of a pod"),
        parameter("model", "GPU model, or a part of its name"),
        parameter("class", "PriorityClass; by default that of the cluster"),
        parameter("cpu", "CPUs of a pod, such as 16"),
        parameter("memory", "memory of a pod, such as 64Gi"),
        parameter("namespace", "of the pods", default="default"),
        parameter("count", "so many equal pods", default="1"),
    ]
    summary = "Whether pods would fit now, where, and whom they would evict. Creates nothing."
    found = operation(summary, parameters, document_content("WhatIfDocument"))
    body = {"description": _OF_MANIFEST, "content": {"application/json": {"schema": {"type": "object"}}}}
    posted = operation(summary, [], document_content("WhatIfDocument"))["get"] | {"requestBody": body}
    return found | {"post": posted}


def _fits() -> dict[str, Any]:
    parameters = [
        parameter("model", "GPU model, or a part of its name"),
        parameter("cpu", "CPUs for each GPU, such as 8", default="1"),
        parameter("memory", "memory for each GPU, such as 64Gi", default="1Gi"),
    ]
    return operation(
        "What pod sizes fit now, and which free GPUs are stranded.", parameters, document_content("FitsDocument")
    )


PENDING_DESCRIBED: Final = Described(
    paths={PENDING_PATH: _pending(), WHY_PATH: _why(), WHAT_IF_PATH: _what_if(), FITS_PATH: _fits()},
    types=(PendingDocument, WhyDocument, WhatIfDocument, FitsDocument),
)
