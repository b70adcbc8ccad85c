"""What every way to give out GPUs, or shares of them, tells."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from gputally.model.rules import ResourceRule, Rules, Weighing

Labels = Mapping[str, str]
"""Those of a node."""


class ResourceAmount(NamedTuple):
    """So many units of a `resource`, which is a GPU or a share of one by `rule`."""

    resource: str
    amount: int
    rule: ResourceRule


class Scheme:
    """One way to give out GPUs.

    `weighing` is what the configuration calls it, `resources` are given out so where the configuration says nothing.
    """

    weighing: ClassVar[Weighing]
    resources: ClassVar[tuple[ResourceRule, ...]] = ()

    def reads(self, key: str) -> bool:  # noqa: ARG002 - most read no labels of their own
        """Whether quantities follow from the label `key` of a node."""
        return False

    def unit(self, asked: ResourceAmount, node: Labels, rules: Rules) -> int:
        """µGPU of one unit of a resource, rounded down."""
        raise NotImplementedError

    def quantities(self, asked: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """µGPU by resource of all that one pod asks for, or that a node offers."""
        return ((each.resource, each.amount * self.unit(each, node, rules)) for each in asked)
