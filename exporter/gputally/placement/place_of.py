"""What a node offers."""

from gputally.model.kube import Node
from gputally.model.placement.needs import Place


def place_of(node: Node) -> Place:
    """`node` as the scheduler sees it. Raises: MalformedObject for an invalid quantity."""
    raise NotImplementedError
