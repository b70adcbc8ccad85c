"""Pods that hold GPUs or wait for them, as one read of the fleet shows them."""

from decimal import Decimal

from gputally.accounting.fleet.active_pods import Active, read_active
from gputally.catalog.aggregator.pod_metrics import METRICS, view_of
from gputally.exposition.text_format import render
from gputally.model.rules import Limits, Rules
from gputally.model.units import GPU
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.fakes.stream import BOOK

NODE = NodeForm(gpus=4, labels={"nvidia.com/gpu.product": "H100"})
WAITING = PodForm(name="w", created=5, gpus=2, tier="low")
RUNNING = PodForm(name="r", created=5, gpus=3, tier="high", node="n1", scheduled=6, started=8)


def read(replay: Replay, at: float) -> Active:
    return read_active(replay.fleet, now_us=us(at))


def text(active: Active) -> set[str]:
    view = view_of(active)
    lines = render(((metric, metric.rows(view)) for metric in METRICS), openmetrics=False).decode().splitlines()
    return {line for line in lines if not line.startswith("#")}


def test_each_pod_shows_its_classification_and_its_gpus() -> None:
    replay = Replay()
    replay.see(NODE, RUNNING, WAITING, at=10)

    assert text(read(replay, 20)) == {
        'gputally_pod_info{job_kind="Pod",job_name="r",namespace="ml",node="n1",pod="r",tenant="ml",tier="high"} 1.0',
        'gputally_pod_info{job_kind="Pod",job_name="w",namespace="ml",node="",pod="w",tenant="ml",tier="low"} 1.0',
        'gputally_pod_gpus{gpu_model="H100",namespace="ml",pod="r",state="running",tenant="ml",tier="high"} 3.0',
        'gputally_pod_gpus{gpu_model="any",namespace="ml",pod="w",state="pending",tenant="ml",tier="low"} 2.0',
        'gputally_pod_pending_timestamp_seconds{namespace="ml",pod="w",tenant="ml",tier="low"} 1.782864005e+09',
        'gputally_node_gpus{gpu_model="H100",node="n1",pool="none",state="allocated"} 3.0',
        'gputally_node_gpus{gpu_model="H100",node="n1",pool="none",state="free"} 1.0',
    }


def test_a_pod_that_ended_is_gone_and_its_gpus_are_free() -> None:
    replay = Replay()
    replay.see(NODE, RUNNING, at=10)
    replay.lose(PodForm(**{**vars(RUNNING), "phase": "Succeeded", "finished": 15}), at=16)

    active = read(replay, 20)

    assert active.pods() == []
    assert active.nodes[0].parts == (("free", 4 * GPU),)


def test_of_two_pods_of_the_same_name_the_existing_one_is_shown() -> None:
    replay = Replay()
    replay.see(NODE, RUNNING, at=10)
    replay.see(PodForm(name="r", uid="second", created=15, gpus=1, tier="low"), at=16)

    [pod] = read(replay, 20).pods()

    assert (pod.uid, pod.state) == ("second", "pending")


def test_the_state_of_a_pod_is_shown_since_it_began() -> None:
    replay = Replay()
    replay.see(NODE, RUNNING, at=10)
    replay.see(PodForm(**{**vars(RUNNING), "deleted": 20}), at=20)

    [pod] = read(replay, 21).pods()

    assert (pod.state, pod.since_us) == ("terminating", us(20))


def test_limited_labels_are_exported_and_complete_ones_are_kept() -> None:
    replay = Replay(rules=Rules(limits=Limits(tiers=1)))
    replay.see(NODE, RUNNING, WAITING, at=10)

    pods = {pod.name: pod for pod in read(replay, 20).pods()}

    assert (pods["w"].tier, pods["w"].shown) == ("low", ("other", "ml", "any"))


def test_a_pod_has_the_price_that_applies_now() -> None:
    replay = Replay(book=BOOK)
    replay.see(NODE, RUNNING, WAITING, at=10)

    pods = {pod.name: pod for pod in read(replay, 20).pods()}
    [(quantity, price)] = pods["r"].prices

    assert (quantity, price and price.per_gpu_hour) == (3 * GPU, Decimal("2.21"))
    assert pods["w"].prices == ()


def test_a_pending_pod_names_the_model_that_it_requires_and_metrics_only_known_ones() -> None:
    replay = Replay()
    selected = {"h": {"nvidia.com/gpu.product": "H100"}, "x": {"nvidia.com/gpu.product": "never-seen"}, "any": {}}
    pods = (PodForm(name=name, created=5, node_selector=labels) for name, labels in selected.items())
    replay.see(NODE, *pods, at=10)

    snapshot, active = replay.scrape(20), read(replay, 20)

    assert {pod.name: pod.gpu_model for pod in active.pods()} == {"h": "H100", "x": "never-seen", "any": "any"}
    assert {pod.name: pod.shown[2] for pod in active.pods()} == {"h": "H100", "x": "other", "any": "any"}
    assert (
        'gputally_pod_gpus{gpu_model="other",namespace="ml",pod="x",state="pending",tenant="ml",tier="none"} 1.0'
        in (text(active))
    )
    assert snapshot.wanted == {"H100": GPU, "other": GPU, "any": GPU}


def test_a_node_that_is_not_known_yet_is_not_shown() -> None:
    replay = Replay()
    replay.see(RUNNING, at=10)

    assert read(replay, 20).nodes == ()


def test_a_node_that_lost_a_gpu_under_a_pod_shows_how_many_are_overcommitted() -> None:
    replay = Replay()
    replay.see(NODE, RUNNING, at=10)
    replay.see(NodeForm(gpus=2, labels=NODE.labels), at=15)

    shown = {line for line in text(read(replay, 20)) if line.startswith("gputally_node_")}

    assert shown == {
        'gputally_node_gpus{gpu_model="H100",node="n1",pool="none",state="allocated"} 3.0',
        'gputally_node_gpus{gpu_model="H100",node="n1",pool="none",state="free"} 0.0',
        'gputally_node_overcommitted_gpus{gpu_model="H100",node="n1",pool="none"} 1.0',
    }
