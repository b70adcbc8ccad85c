"""PodDisruptionBudgets, ResourceQuotas and PriorityClasses as the watch decodes them; times are seconds."""

import msgspec

from gputally.model.kube.policy import PodDisruptionBudget, PriorityClass, ResourceQuota
from tests.core.manifests import Json, instant


def budget(
    allowed: int,
    name: str = "guard",
    *,
    labels: dict[str, str] | None = None,
    created: int = 0,
    is_computed: bool = True,
) -> PodDisruptionBudget:
    """A budget in namespace ml that selects these labels, by default all pods."""
    meta = {"name": name, "namespace": "ml", "uid": f"uid-{name}", "creationTimestamp": instant(created)}
    manifest = {
        "metadata": meta | {"generation": 2},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels or {}}},
        "status": {"disruptionsAllowed": allowed, "observedGeneration": 2 if is_computed else 1},
    }
    return msgspec.convert(manifest, PodDisruptionBudget)


def quota(
    name: str,
    hard: Json,
    *,
    namespace: str = "ml",
    used: Json | None = None,
    classes: tuple[str, ...] = (),
    operator: str = "In",
) -> ResourceQuota:
    """A quota of resources without their prefix, for all pods or for those of some classes."""
    spec: Json = {"hard": {f"requests.{each}": amount for each, amount in hard.items()}}
    if classes or operator != "In":
        term: Json = {"scopeName": "PriorityClass", "operator": operator}
        spec["scopeSelector"] = {"matchExpressions": [term | ({"values": list(classes)} if classes else {})]}
    status = {} if used is None else {"used": {f"requests.{each}": amount for each, amount in used.items()}}
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, ResourceQuota)


def priority_class(
    name: str, value: int, *, uid: str = "", created: int = 0, policy: str = "", is_default: bool = False
) -> PriorityClass:
    """A class; without a policy, the object has none."""
    meta = {"name": name, "uid": uid or f"uid-{name}", "creationTimestamp": instant(created)}
    manifest: Json = {"metadata": meta, "value": value, "globalDefault": is_default}
    return msgspec.convert(manifest | ({"preemptionPolicy": policy} if policy else {}), PriorityClass)
