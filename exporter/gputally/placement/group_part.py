"""A group of nodes without a few of them, which a pod names."""

from collections import Counter
from collections.abc import Iterator, Mapping

from gputally.model.placement.needs import Amounts, Needs
from gputally.placement.fit import fits
from gputally.placement.node_group import Steps, WholeGroup
from gputally.placement.node_room import NodeRoom


class GroupPart:
    """See `NodeGroup`. Nothing is copied: a group may have thousands of nodes."""

    def __init__(self, whole: WholeGroup, without: Mapping[str, NodeRoom]) -> None:
        self.answers = whole.answers
        self.nodes: Mapping[str, NodeRoom] = _Rest(whole.nodes, without)
        self._whole = whole
        self._without = without

    @property
    def offers(self) -> Mapping[Amounts, int]:
        """See `NodeGroup`."""
        return self._whole.offers - Counter(node.offered for node in self._without.values())

    def large(self, needs: Needs) -> int:
        """See `NodeGroup`."""
        fewer = sum(fits(needs.amounts, dict(node.offered)) for node in self._without.values())
        return self._whole.large(needs) - fewer

    def ladder(self, resource: str, priority: int, *, may_preempt: bool) -> Steps:
        """See `NodeGroup`."""
        whole = self._whole.ladder(resource, priority, may_preempt=may_preempt)
        steps = [node.available(priority, may_preempt=may_preempt).get(resource, 0) for node in self._without.values()]
        return _LadderPart(whole, self._without, whole.total - sum(max(step, 0) for step in steps))


class _LadderPart:
    def __init__(self, whole: Steps, without: Mapping[str, NodeRoom], total: int) -> None:
        self.total = total
        self._whole = whole
        self._without = without

    def downwards(self, least: int | None = None) -> Iterator[NodeRoom]:
        return (node for node in self._whole.downwards(least) if node.name not in self._without)


class _Rest(Mapping[str, NodeRoom]):
    """A mapping without some of its keys, all of which it has."""

    def __init__(self, whole: Mapping[str, NodeRoom], without: Mapping[str, NodeRoom]) -> None:
        self._whole = whole
        self._without = without

    def __getitem__(self, name: str) -> NodeRoom:
        if name in self._without:
            raise KeyError(name)
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._whole if name not in self._without)

    def __len__(self) -> int:
        return len(self._whole) - len(self._without)
