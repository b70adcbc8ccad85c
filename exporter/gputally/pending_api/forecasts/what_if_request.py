"""A request for a forecast: its parameters, as a pod that does not exist yet."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gputally.accounting.facts.gpu_model import LABELS
from gputally.pending_api.forecasts.manifest_pods import MOST_PODS, PlannedPods, plain_pod
from gputally.pending_api.words.amount_words import GPU_RESOURCE
from gputally.placement.room import Room
from gputally.report_api.report_request import InvalidRequest, expect_known, number, only

PARAMETERS: Final = ("gpus", "model", "class", "cpu", "memory", "namespace", "count")
_MOST_GPUS: Final = 10_000
_QUANTITY: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?(m|k|Ki|[MGTP]i?)?")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def planned_by_parameters(query: Mapping[str, Sequence[str]], room: Room) -> list[PlannedPods]:
    """The pods with these parameters. Raises: InvalidRequest, also for a GPU model that no node has."""
    expect_known(query, PARAMETERS)
    single = {name: only(name, values) for name, values in query.items()}
    if "gpus" not in single:
        raise InvalidRequest("gpus is missing; name the GPUs of a pod, such as gpus=8")
    gpus = _positive(single, "gpus", _MOST_GPUS)
    requests: dict[str, str] = {GPU_RESOURCE: str(gpus)}
    requests |= {name: quantity_parameter(name, single[name]) for name in ("cpu", "memory") if name in single}
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": requests}}]}
    if name := single.get("class", ""):
        spec["priorityClassName"] = _named("class", name)
    if model := single.get("model", ""):
        spec["affinity"] = _affinity(model, room)
    namespace = _named("namespace", single.get("namespace", "default"))
    return [PlannedPods("", plain_pod({"metadata": {"namespace": namespace}, "spec": spec}), _count(single))]


def _count(single: Mapping[str, str]) -> int:
    return _positive(single, "count", MOST_PODS) if "count" in single else 1


def _positive(single: Mapping[str, str], name: str, most: int) -> int:
    if found := number(single, name, 0, most):
        return found
    raise InvalidRequest(f"{name} '{single[name]}' is not valid; use a number from 1 to {most}")


def quantity_parameter(name: str, text: str) -> str:
    """The parameter, if it is a quantity. Raises: InvalidRequest."""
    if not _QUANTITY.fullmatch(text):
        raise InvalidRequest(
            f"{name} '{text[:40]}' is not a quantity; use one such as {'4' if name == 'cpu' else '32Gi'}"
        )
    return text


def _named(what: str, text: str) -> str:
    if not _NAME.fullmatch(text):
        raise InvalidRequest(
            f"{what} '{text[:40]}' is not a name in Kubernetes; use lower-case letters, digits, - and ."
        )
    return text


def _affinity(model: str, room: Room) -> dict[str, Any]:
    """Requires nodes whose label for the GPU model contains `model`, whatever its case."""
    by_key: dict[str, set[str]] = {}
    for node in room:
        assert node.place
        labels = dict(node.place.labels)
        if key := next((each for each in LABELS if labels.get(each)), None):
            by_key.setdefault(key, set()).add(labels[key])
    known = sorted({value for values in by_key.values() for value in values})
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": matching}]}
        for key, values in by_key.items()
        if (matching := sorted(each for each in values if model.lower() in each.lower()))
    ]
    if not terms:
        raise InvalidRequest(f"no node has a GPU model like '{model[:60]}'; there are {', '.join(known) or 'none'}")
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
