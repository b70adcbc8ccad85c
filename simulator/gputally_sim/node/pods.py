"""Accessors for Pod documents."""

from collections import Counter
from collections.abc import Callable, Iterable

from gputally_sim.documents import Doc
from gputally_sim.instants import rfc3339
from gputally_sim.quantities import amount_of

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})
GPU = "nvidia.com/gpu"
PODS = "pods"


def is_terminal(pod: Doc) -> bool:
    """Whether the pod is Succeeded or Failed."""
    return pod.get("status", {}).get("phase") in TERMINAL_PHASES


def is_terminating(pod: Doc) -> bool:
    """Whether deletion was requested."""
    return "deletionTimestamp" in pod["metadata"]


def is_active(pod: Doc) -> bool:
    """Whether controllers count the pod: neither terminal nor terminating."""
    return not is_terminal(pod) and not is_terminating(pod)


def is_running(pod: Doc) -> bool:
    """Whether its containers run or restart, and nobody requested its deletion."""
    return pod.get("status", {}).get("phase") == "Running" and not is_terminating(pod)


def is_ready(pod: Doc) -> bool:
    """Whether the pod is ready."""
    return (condition(pod, "Ready") or {}).get("status") == "True"


def node_of(pod: Doc) -> str:
    """The node the pod is bound to, or ""."""
    name: str = pod["spec"].get("nodeName", "")
    return name


def condition(doc: Doc, kind: str) -> Doc | None:
    """The condition of type `kind`."""
    conditions: list[Doc] = doc.get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), None)


def with_condition(doc: Doc, now_us: int, kind: str, status: str, *, reason: str = "", message: str = "") -> list[Doc]:
    """The conditions of `doc` with this one set; lastTransitionTime changes only with the status."""
    former = condition(doc, kind)
    fresh = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": rfc3339(now_us)}
    if former is not None and former["status"] == status:
        fresh["lastTransitionTime"] = former["lastTransitionTime"]
    fresh |= {name: text for name, text in (("reason", reason), ("message", message)) if text}
    others = [each for each in doc.get("status", {}).get("conditions") or [] if each["type"] != kind]
    return [*others, fresh]


def effective_requests(spec: Doc) -> dict[str, int]:
    """The extended resources that the pod uses from binding to its end."""
    return dict(_effective(spec, extended))


def scheduled_requests(spec: Doc) -> dict[str, int]:
    """All that the pod takes from its node, itself included, in the units of `amount_of`."""
    return dict(_effective(spec, _requested)) | {PODS: 1}


def _effective(spec: Doc, requested: Callable[[Doc], Counter[str]]) -> Counter[str]:
    """The maximum of: all containers with all sidecars; each init container with the sidecars started before it.

    Source: k8s.io/component-helpers resource/helpers.go.
    """
    held = _sum(map(requested, spec["containers"]))
    if not spec.get("initContainers"):
        return held
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in spec["initContainers"]:
        if container.get("restartPolicy") == "Always":
            sidecars += requested(container)
            peak |= sidecars
        else:
            peak |= sidecars + requested(container)
    return peak | (sidecars + held)


def extended(container: Doc) -> Counter[str]:
    """A container's requests for extended resources; ValueError if one is not a whole number."""
    return Counter({name: int(quantity) for name, quantity in _requests(container).items() if "/" in name})


def _requested(container: Doc) -> Counter[str]:
    return Counter({name: amount_of(name, quantity) for name, quantity in _requests(container).items()})


def _requests(container: Doc) -> dict[str, str]:
    return (container.get("resources") or {}).get("requests") or {}


def _sum(parts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total += part
    return total
