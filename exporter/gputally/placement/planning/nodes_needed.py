"""How few nodes would hold the pods of a job."""

from collections.abc import Mapping

from gputally.model.placement.needs import Amounts
from gputally.placement.fit import copies


def nodes_needed(amounts: Amounts, count: int, offers: Mapping[Amounts, int]) -> int | None:
    """The smallest number of nodes that hold `count` pods with these amounts, if they were empty.

    `offers` counts the nodes by their allocatable amounts. None if all of them together are too small.
    """
    sizes = sorted(((copies(amounts, dict(offered)), number) for offered, number in offers.items()), reverse=True)
    needed, rest = 0, count
    for each, number in sizes:
        if not each or rest <= 0:
            break
        nodes = min(number, -(-rest // each))
        needed += nodes
        rest -= nodes * each
    return None if rest > 0 else needed
