"""ResourceQuotas: which pods one applies to, what these use of it, and the rejection of a pod beyond it.

Of scopes, PriorityClass is known. Source: k8s.io/apiserver plugin/pkg/admission/resourcequota, CheckRequest.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from gputally_sim.api import refusals
from gputally_sim.api.resources import BY_PLURAL
from gputally_sim.api.store import Store
from gputally_sim.documents import Doc, key_of
from gputally_sim.node.pods import is_terminal, scheduled_requests
from gputally_sim.quantities import amount_of

_REQUESTS: Final = "requests."


def check_quotas(store: Store, pod: Doc) -> None:
    """Raises: StatusError if a quota of the namespace does not admit the pod."""
    namespace, name = key_of(pod)
    for quota in store.docs("resourcequotas"):
        if quota["metadata"]["namespace"] != namespace or not applies(quota, pod):
            continue
        if exceeded := _exceeded(quota, used(quota, _pods(store, namespace)), _of_pod(quota, pod)):
            text = f"exceeded quota: {quota['metadata']['name']}, {exceeded}"
            raise refusals.forbidden(BY_PLURAL["pods"], name, text)


def used(quota: Doc, pods: Iterable[Doc]) -> Counter[str]:
    """What these pods use of the quota."""
    total = Counter[str]()
    for pod in pods:
        if not is_terminal(pod) and applies(quota, pod):
            total += _of_pod(quota, pod)
    return total


def hard_limits(quota: Doc) -> Doc:
    """The limits of the quota by resource; empty for one without any."""
    found: Doc = quota["spec"].get("hard") or {}
    return found


def applies(quota: Doc, pod: Doc) -> bool:
    """Whether the quota counts the pod."""
    terms = (quota["spec"].get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_selects(term, pod) for term in terms if term["scopeName"] == "PriorityClass")


def _selects(term: Doc, pod: Doc) -> bool:
    """Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core/pods.go, podMatchesSelector."""
    name, values = pod["spec"].get("priorityClassName", ""), term.get("values") or ()
    match term["operator"]:
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "Exists":
            return bool(name)
        case _:
            return not name


def _pods(store: Store, namespace: str) -> Iterable[Doc]:
    return (pod for pod in store.docs("pods") if pod["metadata"]["namespace"] == namespace)


def _of_pod(quota: Doc, pod: Doc) -> Counter[str]:
    requests = scheduled_requests(pod["spec"])
    return Counter({key: requests.get(key.removeprefix(_REQUESTS), 0) for key in hard_limits(quota)})


def _exceeded(quota: Doc, before: Counter[str], more: Counter[str]) -> str:
    """What the API server says of the resources that are exceeded; "" if none is."""
    limits = {key: amount_of(key.removeprefix(_REQUESTS), limit) for key, limit in hard_limits(quota).items()}
    over = sorted(key for key, limit in limits.items() if more[key] and before[key] + more[key] > limit)
    columns = (("requested", more), ("used", before), ("limited", limits))
    parts = (f"{what}: {','.join(f'{key}={amounts[key]}' for key in over)}" for what, amounts in columns)
    return ", ".join(parts) if over else ""
