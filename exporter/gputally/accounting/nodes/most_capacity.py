"""The most GPUs that the cluster ever had: of each model and of all, together and on one node."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from gputally.accounting.state_part import KeyedPart
from gputally.model.node import NodeRecord

ALL: Final = ""
"""The key of all models together."""
MOST_MODELS: Final = 256
"""GPU models that are known apart; whoever sets labels of nodes names them."""


class ModelCapacity(Struct, frozen=True, kw_only=True, gc=False):
    """The most µGPU that the nodes of a GPU model (`ALL` for all nodes) ever had at once, and the most of one node."""

    gpu_model: str
    quantity: int
    on_one_node: int


class MostCapacity(KeyedPart[ModelCapacity]):
    """The maxima by GPU model. They never decrease and outlast a restart, since pools scale to zero."""

    name = "most_capacity"
    kinds = ()

    def __init__(self) -> None:
        super().__init__()
        self._present = Counter[str]()
        """µGPU of the existing nodes, by model."""
        self._nodes: dict[str, tuple[str, int]] = {}
        """Model and µGPU of these nodes, by name."""

    def of(self, gpu_model: str) -> ModelCapacity:
        """The maxima of a model; 0 for one that no node ever had."""
        return self.known.get(gpu_model) or ModelCapacity(gpu_model=gpu_model, quantity=0, on_one_node=0)

    def put(self, record: NodeRecord) -> None:
        """The latest node of its name is new, has changed or is deleted; an earlier one does not exist any more."""
        was, now = self._nodes.get(record.name), _present(record)
        if was == now:
            return
        if was:
            self._present.subtract(dict.fromkeys((ALL, was[0]), was[1]))
            del self._nodes[record.name]
        if now:
            model, quantity = self._nodes[record.name] = now
            self._present.update(dict.fromkeys((ALL, model), quantity))
            for each in (ALL, model):
                self._keep(each, quantity)

    def restore(self, documents: Iterable[ModelCapacity], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.restore`; comes before the nodes."""
        self.known = {each.gpu_model: each for each in documents}

    def _keep(self, model: str, on_one_node: int) -> None:
        known, quantity = self.of(model), self._present[model]
        if quantity <= known.quantity and on_one_node <= known.on_one_node:
            return
        if model in self.known or len(self.known) < MOST_MODELS:
            most = max(known.quantity, quantity), max(known.on_one_node, on_one_node)
            self._store(model, ModelCapacity(gpu_model=model, quantity=most[0], on_one_node=most[1]))


def _present(record: NodeRecord) -> tuple[str, int] | None:
    """The GPU model of an existing node with GPUs, and its µGPU."""
    if record.gone_us is not None or not record.facts:
        return None
    facts = record.facts[-1][1]
    return (facts.gpu_model, facts.physical) if facts.physical else None
