"""The nodes on which a pod may run. Shapes: k8s.io/api core/v1."""

from msgspec import field

from gputally.model.objects.camel import Camel


class LabelRequirement(Camel, frozen=True):
    """A requirement on a label of a node: `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Camel, frozen=True):
    """All requirements hold on a node that matches; a term without any matches none.

    `match_fields` are requirements on `metadata.name`, the only field that the API accepts.
    """

    match_expressions: tuple[LabelRequirement, ...] | None = None
    match_fields: tuple[LabelRequirement, ...] | None = None


class NodeSelector(Camel, frozen=True):
    """A node matches if one of the terms matches."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(Camel, frozen=True):
    """Only the required part: preferences decide nothing."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Camel, frozen=True):
    """The affinity of a pod to nodes."""

    node_affinity: NodeAffinity | None = None
