"""What every way to give out GPUs, or shares of them, tells."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from gputally.model.kube import Pod
from gputally.model.rules import ResourceRule, Rules

Labels = Mapping[str, str]
"""Those of a node."""
Amounts = dict[str, int]
"""Units by resource of one container."""
GPUS: Final = "nvidia.com/gpu"


class ResourceAmount(NamedTuple):
    """So many units of a `resource`, which is a GPU or a share of one by `rule`."""

    resource: str
    amount: int
    rule: ResourceRule


class Scheme:
    """One way to give out GPUs.

    The configuration calls it `name`, if it `is_configurable` for any resource. `patterns` are globs of resources that
    are given out so where the configuration says nothing. With `describes`, these are no devices themselves, but say
    how much of each device a pod has.
    """

    name: ClassVar[str]
    patterns: ClassVar[tuple[str, ...]] = ()
    is_configurable: ClassVar[bool] = False
    describes: ClassVar[bool] = False

    def reads(self, key: str) -> bool:
        """Whether quantities follow from the label `key` of a node."""
        return False

    def labels(self, annotations: Labels) -> Labels:
        """What the annotations of a node tell of its GPUs, as if labels told it."""
        return {}

    def may_ask(self, pod: Pod, rules: Rules) -> bool:
        """Whether the pod may ask for GPUs though none of its containers does; the same all its life."""
        return False

    def asked(self, pod: Pod, containers: list[Amounts], rules: Rules) -> list[Amounts]:
        """What the containers really ask for, init containers first, by what their own requests come to.

        Raises: ValueError for what cannot be read.
        """
        return containers

    def governs(self, asked: Sequence[ResourceAmount], node: Labels) -> bool:
        """Whether it gives out `nvidia.com/gpu` to who asks so, on a node with such labels."""
        return False

    def unit(self, asked: ResourceAmount, node: Labels, rules: Rules) -> int:
        """µGPU of one unit of a resource, rounded down."""
        raise NotImplementedError

    def quantities(self, asked: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """µGPU by resource of all that one pod asks for."""
        return ((each.resource, each.amount * self.unit(each, node, rules)) for each in asked)

    def offers(self, offered: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """µGPU by resource of all that a node offers."""
        return self.quantities(offered, node, rules)
