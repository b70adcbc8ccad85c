"""The types of what a random history tells."""

from typing import Final

from gputally.frameworks.coscheduling import CoschedulingPodGroup
from gputally.frameworks.volcano import VolcanoPodGroup
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.nodes import Node
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.workloads import Job

KINDS: Final[dict[str, tuple[Kind, type[Object]]]] = {
    "pod": (Kind.PODS, PlaceablePod),
    "node": (Kind.NODES, Node),
    "job": (Kind.JOBS, Job),
    "coscheduling": (Kind.COSCHEDULING_GROUPS, CoschedulingPodGroup),
    "volcano": (Kind.VOLCANO_GROUPS, VolcanoPodGroup),
}
