"""How much of a physical GPU one unit of a resource is, in µGPU."""

import re
from collections.abc import Mapping

from gputally.accounting.pods.request import count, resource_rule
from gputally.model.node import Sharing
from gputally.model.rules import MigBasis, ResourceRule, Rules, Weighing
from gputally.model.units import GPU

_PROFILE = re.compile(r"(?:(?P<compute>\d+)c\.)?(?P<slices>\d+)g\.(?P<memory>\d+)gb")
_MEMORY_SLICES = 8
_FOUR_SLICES = ("A30", "RTX-PRO-6000")
"""GPU models that MIG cuts into four compute slices; all others have seven."""
_FEW = 4
_EIGHTHS = {1: 1, 2: 2, 3: 4, 4: 4}
"""Of the memory, by compute slices of seven."""
_MIB_PER_GB = 1024
_NAMED_MEMORY = re.compile(r"-(\d+)GB")
_PREFIX = "nvidia.com/"
_WHOLE = "nvidia.com/gpu"
_PRODUCT = "nvidia.com/gpu.product"
_MEMORY = "nvidia.com/gpu.memory"
_STRATEGY = "nvidia.com/mig.strategy"
_REPLICAS = ".replicas"
_RENAMED = ".shared"
"""Added to the name of a resource that is shared, with `renameByDefault`; its labels keep the plain name.

Source: NVIDIA/k8s-device-plugin api/config/v1/consts.go, DefaultSharedResourceNameSuffix.
"""


def sharing_of(labels: Mapping[str, str]) -> Sharing:
    """How a node divides its GPUs, from the labels of GPU Feature Discovery.

    Source: NVIDIA/k8s-device-plugin internal/lm/resource.go, baseLabeler; mig-strategy.go.
    """
    product = labels.get(_PRODUCT, "").removesuffix("-SHARED")
    single = labels.get(_STRATEGY) == "single" and "-MIG-" in product
    replicas = _replicas(labels)
    return Sharing(
        replicas=replicas.pop(_WHOLE, 1),
        others=tuple(sorted(replicas.items())),
        profile=product.split("-MIG-")[1] if single else "",
        slices=_FEW if any(model in product for model in _FOUR_SLICES) else 7,
        memory_mib=_named_mib(product) if single else _integer(labels.get(_MEMORY), default=0),
    )


def is_sharing_label(key: str) -> bool:
    """Whether `sharing_of` looks at the label."""
    return key in (_PRODUCT, _MEMORY, _STRATEGY) or (key.startswith(_PREFIX) and key.endswith(_REPLICAS))


def _replicas(labels: Mapping[str, str]) -> dict[str, int]:
    """How many share one unit, by the name of each resource that is shared; GPUs with MIG on have 0 replicas."""
    counts = {
        key.removesuffix(_REPLICAS): _integer(text, default=1)
        for key, text in labels.items()
        if key.startswith(_PREFIX) and key.endswith(_REPLICAS)
    }
    return {resource: count for resource, count in counts.items() if count > 1}


def _named_mib(product: str) -> int:
    """Memory of a whole GPU by its name: under the single MIG strategy the label tells the memory of a slice."""
    match = _NAMED_MEMORY.search(product)
    return int(match[1]) * _MIB_PER_GB if match else 0


def unit_weight(resource: str, sharing: Sharing, rules: Rules) -> int:
    """µGPU of one unit of `resource` on a node that shares like `sharing`: floor(10^6 x its fraction)."""
    rule = resource_rule(resource, rules.resources)
    if rule is None:
        return 0
    return _weight(resource, rule, sharing, rules.mig_basis)


def _weight(resource: str, rule: ResourceRule, sharing: Sharing, basis: MigBasis) -> int:
    if rule.weighing is Weighing.FIXED:
        return rule.weight
    replicas = dict(sharing.others).get(resource.removesuffix(_RENAMED))
    if rule.weighing is Weighing.MIG:
        return _profile_weight(resource.partition("mig-")[2], sharing, basis) // (replicas or 1)
    whole = _profile_weight(sharing.profile, sharing, basis) if sharing.profile else GPU
    return whole // (replicas or sharing.replicas)


def _profile_weight(profile: str, sharing: Sharing, basis: MigBasis) -> int:
    """By compute slices, or by eighths of memory; an unreadable profile counts as a whole GPU, never as nothing."""
    match = _PROFILE.match(profile)
    if match is None:
        return GPU
    if basis is MigBasis.MEMORY:
        return GPU * _memory_slices(match, sharing) // _MEMORY_SLICES
    return GPU * min(int(match["compute"] or match["slices"]), sharing.slices) // sharing.slices


def _memory_slices(match: re.Match[str], sharing: Sharing) -> int:
    """Eighths of the GPU's memory; where that is unknown, what a profile of so many compute slices has.

    A `1g` may have two eighths, which its name alone does not tell.

    Source: NVIDIA's MIG user guide, supported profiles.
    """
    if sharing.memory_mib:
        eighths = round(_MEMORY_SLICES * int(match["memory"]) * _MIB_PER_GB / sharing.memory_mib)
    else:
        slices = int(match["slices"])
        eighths = 2 * slices if sharing.slices == _FEW else _EIGHTHS.get(slices, _MEMORY_SLICES)
    return min(max(eighths, 1), _MEMORY_SLICES)


def slices_per_gpu(sharing: Sharing) -> int:
    """How many slices of the single MIG strategy's profile one GPU has room for, by compute and by memory."""
    return min(GPU // _profile_weight(sharing.profile, sharing, basis) for basis in MigBasis)


def units_of(quantities: Mapping[str, str | int] | None, rules: Rules) -> dict[str, int]:
    """Units of each GPU resource in a node's capacity or allocatable; ValueError for a broken quantity."""
    return {name: count(amount) for name, amount in (quantities or {}).items() if resource_rule(name, rules.resources)}


def divided(units: Mapping[str, int], sharing: Sharing, rules: Rules) -> bool:
    """Whether any unit offered is a part of a GPU."""
    return any(amount and unit_weight(name, sharing, rules) % GPU for name, amount in units.items())


def covered(units: Mapping[str, int], sharing: Sharing, rules: Rules) -> int:
    """µGPU that these units amount to."""
    return sum(amount * unit_weight(name, sharing, rules) for name, amount in units.items())


def _integer(text: str | None, *, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else default
