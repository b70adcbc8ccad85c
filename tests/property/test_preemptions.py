from collections import Counter
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.totals.total import Total
from tests.core.manifests import PodForm, preempted_event
from tests.core.replay import Replay
from tests.property.crashes import with_crashes
from tests.property.examples import examples
from tests.property.node_lives import HORIZON
from tests.property.strategies import Cluster, clusters
from tests.property.test_accounting import NO_PRICES, come_to, new_replay, tell
from tests.true_nodes import by_uid, nodes_of
from tests.truth import Pod

EXAMPLES = examples(150)
PATIENCE = 70
"""Seconds after which a preemption that no Event explains is counted as by `unknown`."""


def victims(cluster: Cluster) -> Counter[str]:
    """How many pods of each tier were preempted."""
    nodes = nodes_of(cluster.log)
    pods = [Pod(told, nodes) for told in by_uid(cluster.log, "pod")]
    return Counter(pod.tier for pod in pods if pod.is_preempted)


def counted(replay: Replay) -> Counter[str]:
    """The same as it is counted once no Event is awaited any more."""
    replay.scrape(HORIZON)
    replay.scrape(HORIZON + PATIENCE)
    found = Counter[str]()
    for (tier, _), count in replay.true(Total.PREEMPTIONS, HORIZON + PATIENCE).items():
        found[tier] += count
    return found


def told_of(cluster: Cluster, *, settles: Iterable[bool]) -> Replay:
    replay = new_replay(NO_PRICES)
    for told, settle in zip(cluster.log, settles, strict=True):
        tell(replay, told, settle=settle)
    come_to(replay, HORIZON)
    return replay


@given(clusters(outages=True))
@EXAMPLES
def test_all_that_were_marked_and_deleted_are_counted_and_nobody_else(cluster: Cluster) -> None:
    assert counted(told_of(cluster, settles=[True] * len(cluster.log))) == victims(cluster)


@given(clusters(outages=True), st.data())
@EXAMPLES
def test_victims_are_counted_also_where_much_is_told_at_once(cluster: Cluster, data: st.DataObject) -> None:
    settles = [data.draw(st.booleans()) for _ in cluster.log]

    assert counted(told_of(cluster, settles=settles)) == victims(cluster)


@given(clusters(outages=True), st.data())
@EXAMPLES
def test_victims_are_counted_once_over_crashes_whatever_events_tell(cluster: Cluster, data: st.DataObject) -> None:
    replay = new_replay(NO_PRICES)
    steps = st.sampled_from(["", "", "event", "flush", "crash"])
    for step, told in with_crashes(replay, cluster.log, lambda: data.draw(steps)):
        if step == "event":
            victim, by = (PodForm(name=name, uid=f"uid-{name}") for name in data.draw(st.permutations(["p0", "p1"])))
            replay.see_event(preempted_event(victim, by=by), at=told.at)

    assert counted(replay) == victims(cluster)
