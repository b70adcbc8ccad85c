"""The affinity of pods to nodes."""

from msgspec import Struct, field


class LabelRequirement(Struct, rename="camel", frozen=True, gc=False):
    """A requirement on a label of a node: `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Struct, rename="camel", frozen=True, gc=False):
    """All requirements hold on a node that matches."""

    match_expressions: tuple[LabelRequirement, ...] | None = None


class NodeSelector(Struct, rename="camel", frozen=True, gc=False):
    """A node matches if one of the terms matches."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(Struct, rename="camel", frozen=True, gc=False):
    """Only the required part: preferences decide nothing."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Struct, rename="camel", frozen=True, gc=False):
    """The affinity of a pod to nodes."""

    node_affinity: NodeAffinity | None = None
