"""The most GPUs that the cluster ever had: of each model and of all, together and on one node.

They are weighed as pods without a node are, so that both can be compared: shares of GPUs count as if nothing was
shared. A node with 8 GPUs of 50 replicas each can hold a pod that asks for 400.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from gputally.accounting.base.compact import shared
from gputally.accounting.base.state_part import KeyedPart
from gputally.accounting.facts.gpu_model import model_values
from gputally.model.kube.kinds import Limit
from gputally.model.node_record import NodeRecord
from gputally.model.rules import Rules
from gputally.shares.schemes import requested

ALL: Final = ""
"""The key of all models together."""


class ModelCapacity(Struct, frozen=True, kw_only=True, gc=False):
    """The most µGPU that the nodes of a GPU model (`ALL` for all nodes) ever had at once, and the most of one node.

    A model is also any value that such a node has in a label for GPU models: by each of them, a pod may select it.
    """

    gpu_model: str
    quantity: int
    on_one_node: int


class MostCapacity(KeyedPart[ModelCapacity]):
    """The maxima by GPU model. They never decrease and outlast a restart, since pools scale to zero."""

    name = "most_capacity"
    document_limit = Limit(None, 256)
    """Whoever sets labels of nodes names GPU models. Beyond it, the capacity of `ALL` counts."""
    kinds = ()

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self._rules = rules
        self._present = Counter[str]()
        """µGPU of the existing nodes, by model."""
        self._nodes: dict[str, tuple[tuple[str, ...], int]] = {}
        """Models, with `ALL`, and µGPU of these nodes, by name."""

    def of(self, gpu_model: str) -> ModelCapacity:
        """The maxima of a model; 0 for one that no node ever had."""
        if gpu_model not in self.known and len(self.known) >= self.document_limit.most:
            gpu_model = ALL
        return self.known.get(gpu_model) or ModelCapacity(gpu_model=gpu_model, quantity=0, on_one_node=0)

    def put(self, record: NodeRecord) -> None:
        """The latest node of its name is new, has changed or is deleted; an earlier one does not exist any more."""
        was, now = self._nodes.get(record.name), self._present_of(record)
        if was == now:
            return
        if was:
            self._present.subtract(dict.fromkeys(*was))
            del self._nodes[record.name]
        if now:
            self._nodes[record.name] = now
            self._present.update(dict.fromkeys(*now))
            for each in now[0]:
                self._keep(each, now[1])

    def restore(self, documents: Iterable[ModelCapacity], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.restore`; comes before the nodes."""
        self.known = {each.gpu_model: each for each in documents}

    def _keep(self, model: str, on_one_node: int) -> None:
        known = self.known.get(model) or ModelCapacity(gpu_model=model, quantity=0, on_one_node=0)
        quantity = self._present[model]
        if quantity <= known.quantity and on_one_node <= known.on_one_node:
            return
        if model in self.known or len(self.known) < self.document_limit.most:
            most = max(known.quantity, quantity), max(known.on_one_node, on_one_node)
            self._store(model, ModelCapacity(gpu_model=model, quantity=most[0], on_one_node=most[1]))

    def _present_of(self, record: NodeRecord) -> tuple[tuple[str, ...], int] | None:
        """The GPU models and µGPU of a node; None if the node is gone or has no GPUs."""
        if record.gone_us is not None or not record.facts:
            return None
        facts = record.facts[-1][1]
        offer = tuple([(name, max(amounts)) for name, *amounts in facts.units])
        quantity = max(facts.physical, requested(offer, self._rules))
        models = {ALL, facts.gpu_model, *model_values(facts.labels)}
        return shared((tuple(sorted(models)), quantity)) if quantity else None
