"""Every pending GPU-second is charged once, whatever happens to the process that charges it."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import cycle

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.totals.total import Total
from gputally.model.kube.pods import ENDED_PHASES
from gputally.model.units import US_PER_SECOND
from tests.core.manifests import us
from tests.core.replay import Replay
from tests.property.crashes import with_crashes
from tests.property.examples import examples
from tests.property.node_lives import HORIZON, OPENED
from tests.property.strategies import Cluster, clusters
from tests.property.test_accounting import RULES
from tests.told import Told
from tests.true_ends import own_end, seconds
from tests.true_nodes import Node, by_uid, is_gpu, nodes_of, weight
from tests.truth import Pod

KNOWN = msgspec.structs.replace(RULES, known_tiers=("none", "gold", "lead"))
"""A tier that is not known is `other` in the counters."""
IMPOSSIBLE = 256 * 10**6
"""No node of these clusters has as many millionths of a GPU; what asks for more is not charged."""
STEPS = st.sampled_from(["", "", "flush", "crash", "scrape", "scrape"])


@given(clusters(outages=True, prompt=True), st.lists(STEPS, min_size=1, max_size=40))
@examples(150)
def test_pods_are_charged_from_their_creation_to_their_binding_or_end_once_over_crashes(
    cluster: Cluster, steps: list[str]
) -> None:
    replay = told_of(cluster, steps)

    assert charged(replay) == expected(cluster.log)
    assert unpriced(replay) == sum(charged(replay).values())


def told_of(cluster: Cluster, steps: Sequence[str]) -> Replay:
    """Fails if a counter falls, or differs from the waits in the ledger."""
    replay = Replay(rules=KNOWN, opened=OPENED)
    for step, told in with_crashes(replay, cluster.log, partial(next, cycle(steps))):
        if step == "scrape":
            replay.fleet.advance(us(told.at))
            replay.fleet.waiting.judge(at_us=replay.fleet.now_us)
            publish(replay.fleet, now_us=us(told.at), ledger={})  # without a flush: only `with_crashes` keeps entries
    replay.scrape(HORIZON)
    replay.scrape(HORIZON)
    return replay


def charged(replay: Replay) -> Counter[str]:
    """Pending seconds times millionths of a GPU, by the tier of the pods that wait."""
    found = Counter[str]()
    for labels, amount in replay.true(Total.PENDING, HORIZON).items():
        assert amount > 0, f"{labels} has {amount}"
        assert amount % US_PER_SECOND == 0
        found[labels[0]] += amount // US_PER_SECOND
    return found


def unpriced(replay: Replay) -> int:
    return sum(replay.true(Total.PENDING_UNPRICED, HORIZON).values()) // US_PER_SECOND


def expected(log: tuple[Told, ...]) -> Counter[str]:
    found, nodes = Counter[str](), nodes_of(log)
    for told in by_uid(log, "pod"):
        pod = Pod(told, nodes)
        meta, container = pod.forms[0]["metadata"], pod.forms[0]["spec"]["containers"][0]
        quantity = sum(int(n) * weight(name) for name, n in container["resources"]["requests"].items() if is_gpu(name))
        begin = max(seconds(meta["creationTimestamp"]), OPENED)
        ends = [end for end in (first_bound(told, nodes), ended_unbound(pod)) if end is not None]
        if quantity <= IMPOSSIBLE:
            found[pod.tier] += quantity * max(0, (ends[0] if ends else HORIZON) - begin)
    return +found


def first_bound(told: Sequence[Told], nodes: list[Node]) -> int | None:
    """When it was bound, as first known: what is charged until then is final."""
    bound = (Pod(told[:count], nodes).bound for count in range(1, len(told) + 1))
    return next((at for at in bound if at is not None), None)


def ended_unbound(pod: Pod) -> int | None:
    """When a pod ended that was never bound, by its own object.

    One that its kubelet rejected ended when that was first seen, even if PodGC has written when it came by.
    """
    if pod.never_held:
        seen = [told for told in pod.told if told.event != "vanished"]
        return min(told.at for told in seen if told.manifest["status"]["phase"] in ENDED_PHASES)
    end = own_end(pod.told)
    return None if end is None else end[1][0]
