"""A restart passes over pods that are as they were: looking at them again would find nothing."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.fleet import fleet
from gputally.accounting.pods.pods import Pods
from gputally.model.pod_record import PodRecord
from tests.core.replay import Replay
from tests.property.examples import examples
from tests.property.price_lists import price_lists
from tests.property.strategies import Cluster, clusters
from tests.property.test_accounting import PARENT, look_up, new_replay, tell
from tests.told import Prices

Found = tuple[dict[str, PodRecord], dict[str, PodRecord | None]]
"""Revisions, and pods as they are now."""


@given(clusters(outages=True), price_lists(), st.data())
@examples(150)
def test_a_restart_that_looks_at_every_pod_again_finds_nothing_else(
    cluster: Cluster, prices: Prices, data: st.DataObject
) -> None:
    replay = new_replay(prices)
    for told in cluster.log[: data.draw(st.integers(1, len(cluster.log)))]:
        tell(replay, told)
        if data.draw(st.booleans()):
            look_up(replay, parent=data.draw(st.sampled_from([None, PARENT])))
    replay.flush()

    found, _ = restarted(replay)
    with patch.object(fleet, "POD_READING", "other"):
        found_of_all, looked_at = restarted(replay)
    assert looked_at >= len(replay.fleet.pods.records)
    assert found == found_of_all


def restarted(replay: Replay) -> tuple[Found, int]:
    """What a new process accounts that is told of namespaces alone, and how many pods it looks at; nothing is kept."""
    with patch.object(Pods, "_derive", autospec=True, side_effect=Pods._derive) as derive:
        replay.restart()
        changes = replay.fleet.drain()
    return (changes.revisions, changes.pods), derive.call_count
