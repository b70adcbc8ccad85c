from dataclasses import replace

from gputally.catalog.aggregator.pending_metrics import pending_gpus, pending_oldest, pending_pods
from gputally.catalog.metric import Row
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay

PENDING = PodForm(tier="gold", created=5, gpus=2)
RUNNING = replace(PENDING, name="b", node="n1", scheduled=10, started=12)


def test_who_ever_had_gpus_is_told_to_wait_with_none() -> None:
    replay = Replay()
    replay.see(NodeForm(), RUNNING, at=13)
    snapshot = replay.scrape(14)

    assert list(pending_pods(snapshot)) == [Row(("gold", "ml"), 0)]
    assert list(pending_gpus(snapshot)) == [Row(("gold", "ml"), 0)]
    assert list(pending_oldest(snapshot)) == []


def test_who_waits_is_told_of_once_whether_it_had_gpus_or_not() -> None:
    replay = Replay()
    replay.see(NodeForm(), RUNNING, PENDING, replace(PENDING, name="c", tier="lead", gpus=1), at=13)
    snapshot = replay.scrape(14)

    assert list(pending_pods(snapshot)) == [Row(("gold", "ml"), 1), Row(("lead", "ml"), 1)]
    assert list(pending_gpus(snapshot)) == [Row(("gold", "ml"), 2), Row(("lead", "ml"), 1)]


def test_groups_follow_when_others_join() -> None:
    replay = Replay()
    replay.see(NodeForm(), RUNNING, at=13)
    before = list(pending_pods(replay.scrape(14)))
    replay.see(replace(RUNNING, name="d", tier="lead"), at=15)

    assert [row.labels for row in before] == [("gold", "ml")]
    assert [row.labels for row in pending_pods(replay.scrape(16))] == [("gold", "ml"), ("lead", "ml")]
