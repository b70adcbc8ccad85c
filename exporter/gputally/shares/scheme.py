"""The interface of sharing schemes, which allocate GPUs or shares of GPUs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from gputally.model.kube.pods import Pod
from gputally.model.rules import ResourceRule, Rules

Labels = Mapping[str, str]
"""Labels of a node."""
Amounts = dict[str, int]
"""Units by resource of one container."""
GPUS: Final = "nvidia.com/gpu"
_MOST_DIGITS: Final = 6
"""Labels may contain anything; a number with more digits counts nothing that a node has."""


class ResourceAmount(NamedTuple):
    """Units of a `resource`, which is a GPU or a share of one by `rule`."""

    resource: str
    amount: int
    rule: ResourceRule


def number(text: str | None) -> int:
    """The number in a label; 0 without one."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else 0


class Scheme:
    """One way to allocate GPUs.

    If it `is_configurable`, the configuration selects it by `name` for any resource. `patterns` are globs of the
    resources that use it by default. With `describes`, these resources are not devices, but define how much of each
    device a pod has. With `adjusts`, `effective` may return other requests.
    """

    name: ClassVar[str]
    patterns: ClassVar[tuple[str, ...]] = ()
    is_configurable: ClassVar[bool] = False
    describes: ClassVar[bool] = False
    adjusts: ClassVar[bool] = False

    def reads(self, key: str) -> bool:
        """Whether quantities depend on the label `key` of a node."""
        return False

    def labels(self, annotations: Labels) -> Labels:
        """The properties of a node's GPUs in its annotations, as labels."""
        return {}

    def may_request(self, pod: Pod, rules: Rules) -> bool:
        """Whether the pod may request GPUs other than by its containers; constant over the pod's lifetime."""
        return False

    def effective(self, pod: Pod, containers: list[Amounts], rules: Rules) -> list[Amounts]:
        """The effective requests of the containers, init containers first; `containers` are those in their specs.

        Raises: ValueError for an invalid request.
        """
        return containers

    def governs(self, requested: Sequence[ResourceAmount], node: Labels) -> bool:
        """Whether it allocates `nvidia.com/gpu` to a pod with these requests, on a node with these labels."""
        return False

    def parts(self, resource: str, node: Labels) -> int:
        """Units on one GPU while none is shared; 0 if labels do not say how a node divides its GPUs."""
        return 0

    def replicas(self, resource: str, node: Labels) -> int:
        """The number of units that share each of these, by the labels."""
        return 1

    def unit(self, requested: ResourceAmount, node: Labels, rules: Rules) -> int:
        """µGPU of one unit of a resource, rounded down."""
        raise NotImplementedError

    def quantities(self, requested: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """µGPU by resource of all requests of one pod."""
        return ((each.resource, each.amount * self.unit(each, node, rules)) for each in requested)

    def offers(self, offered: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """µGPU by resource of everything that a node offers."""
        return self.quantities(offered, node, rules)
