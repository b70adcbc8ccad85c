"""What pods take from nodes with GPUs, from watches that tell of it in any order, and from lists beside them."""

from dataclasses import replace

import msgspec
import pytest

from gputally.accounting.waiting import live_room
from gputally.accounting.waiting.bound_pods import other_pod
from gputally.accounting.waiting.live_room import MOST_UNKNOWN, YOUNG_US, LiveRoom
from gputally.model.kube.kinds import Kind
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import Pod
from gputally.model.needs import Taken
from gputally.model.observation import ListedSeparately, OtherPod
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND
from tests.core.manifests import NodeForm, PodForm, as_node, as_pod, us
from tests.core.replay import Replay

LATE = 3600
"""Nodes that are older than this without GPUs are not expected to have any."""
GPU = "nvidia.com/gpu"
NODE = NodeForm(name="n1", gpus=8, created=0)
PLAIN = NodeForm(name="n1", capacity={}, created=0)
POD = PodForm(name="a", gpus=2, node="n1", scheduled=20, started=21)
HALF_A_CPU = Taken((("cpu", 500), ("pods", 1)), 0)


def new_replay() -> Replay:
    replay = Replay(opened=0)
    replay.relist(Kind.NODES, NODE, at=10, since=None)
    replay.relist(Kind.PODS, POD, at=20, since=None)
    return replay


def live(replay: Replay) -> LiveRoom:
    return replay.fleet.waiting.live


def free(replay: Replay, resource: str = GPU) -> int:
    return live(replay).room.nodes["n1"].free[resource]


def tell_other(replay: Replay, uid: str, taken: Taken | None, *, node: str = "n1", at: float = 30) -> None:
    replay.apply(OtherPod(uid=uid, node=node, taken=taken, version="7", at_us=us(at), since_us=us(at)))


def test_a_pod_takes_its_gpus_from_its_binding_to_its_terminal_phase() -> None:
    replay = new_replay()
    assert free(replay) == 6

    replay.see(replace(POD, phase="Succeeded", finished=40, version=3), at=40)

    assert free(replay) == 8


def test_a_deleted_pod_takes_nothing() -> None:
    replay = new_replay()

    replay.lose(POD, at=40)

    assert free(replay) == 8


def test_pods_without_gpus_take_cpu_until_they_end() -> None:
    replay = new_replay()
    cpu = free(replay, "cpu")

    tell_other(replay, "b", HALF_A_CPU)
    assert free(replay, "cpu") == cpu - 500

    tell_other(replay, "b", None)
    assert free(replay, "cpu") == cpu


def test_pods_of_nodes_without_gpus_are_not_kept() -> None:
    replay = Replay(opened=0)
    replay.relist(Kind.NODES, NODE, replace(PLAIN, name="old", uid="old"), at=LATE, since=None)

    tell_other(replay, "b", HALF_A_CPU, node="old", at=LATE)

    assert "old" not in live(replay).room.nodes


def test_pods_of_a_young_node_are_known_once_it_offers_gpus() -> None:
    replay = Replay(opened=0)
    replay.relist(Kind.NODES, PLAIN, at=10, since=None)
    replay.relist(Kind.PODS, at=10, since=None)
    tell_other(replay, "b", HALF_A_CPU, at=11)

    replay.see(replace(NODE, version=2), at=60)

    assert free(replay, "cpu") == 63_000
    assert live(replay).is_complete


def test_a_node_that_gets_gpus_late_needs_a_list_that_completes_it() -> None:
    replay = Replay(opened=0)
    replay.relist(Kind.NODES, PLAIN, at=LATE, since=None)
    replay.relist(Kind.PODS, at=LATE, since=None)
    tell_other(replay, "b", HALF_A_CPU, at=LATE)
    replay.see(replace(NODE, version=2), at=LATE + 10)
    assert live(replay).needs_list
    assert not live(replay).is_complete

    listed = as_pod(PodForm(name="b", gpus=0, node="n1", scheduled=5))
    replay.apply(ListedSeparately(at_us=us(LATE + 11), nodes=("n1",), begins=True))
    replay.apply(ListedSeparately(at_us=us(LATE + 11), nodes=("n1",), objects=(listed,)))
    replay.apply(ListedSeparately(at_us=us(LATE + 11), nodes=("n1",), ends=True))

    assert "uid-b" in live(replay).room.nodes["n1"].taken
    assert not live(replay).needs_list
    assert live(replay).is_complete


def test_names_that_nodes_do_not_have_leave_no_pod_of_a_new_node_unknown() -> None:
    replay = new_replay()
    replay.see(replace(PLAIN, name="n2", uid="n2", created=25), at=25)
    make_up_nodes(replay, at=30)

    for name in ("n2", "n3"):
        replay.see(replace(PLAIN, name=name, uid=name, created=31), at=31)
        tell_other(replay, f"of-{name}", HALF_A_CPU, node=name, at=32)
        replay.see(replace(NODE, name=name, uid=name, created=31, version=2), at=60)

    assert [live(replay).room.nodes[name].taken.keys() for name in ("n2", "n3")] == [{"of-n2"}, {"of-n3"}]
    assert live(replay).late == {"n3"}  # pods may have named it before it was reported
    assert not live(replay).is_complete


def test_made_up_names_are_forgotten_and_later_nodes_need_no_list() -> None:
    replay = new_replay()
    make_up_nodes(replay, at=30)
    known = len(live(replay).room.nodes)

    replay.fleet.advance(us(31) + YOUNG_US)  # their pods are forgotten
    at = 32 + 2 * YOUNG_US // US_PER_SECOND
    replay.fleet.advance(us(at))
    replay.see(replace(NODE, name="n3", uid="n3", created=at), at=at)

    assert known == 1 + MOST_UNKNOWN
    assert live(replay).room.nodes.keys() == {"n1", "n3"}
    assert live(replay).is_complete


def test_a_node_that_is_reported_after_its_pods_were_forgotten_needs_a_list() -> None:
    replay = new_replay()
    tell_other(replay, "b", HALF_A_CPU, node="n3", at=30)
    at = 31 + YOUNG_US // US_PER_SECOND
    replay.fleet.advance(us(at))
    assert "n3" not in live(replay).room.nodes

    replay.see(replace(NODE, name="n3", uid="n3", created=at), at=at)

    assert live(replay).late == {"n3"}


def test_a_young_node_beyond_the_limit_needs_a_list_once_it_offers_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_room, "MOST_NODES", 1)
    replay = new_replay()
    for name in ("n2", "n3"):
        replay.see(replace(PLAIN, name=name, uid=name, created=30), at=30)
        tell_other(replay, f"of-{name}", HALF_A_CPU, node=name, at=31)
        assert (name in live(replay).room.nodes) is (name == "n2")

    replay.see(replace(NODE, name="n2", uid="n2", created=30, version=2), at=60)
    assert live(replay).is_complete
    replay.see(replace(PLAIN, name="n3", uid="n3", created=30, version=2), at=61)  # there is room for it again
    replay.see(replace(NODE, name="n3", uid="n3", created=30, version=3), at=62)

    assert live(replay).late == {"n3"}
    assert live(replay).needs_list
    assert not live(replay).is_complete


def make_up_nodes(replay: Replay, *, at: float) -> None:
    """More pods than names are kept, each on a node that does not exist."""
    replay.fleet.advance(us(at))
    for number in range(2 * MOST_UNKNOWN):
        tell_other(replay, f"made-up-{number}", HALF_A_CPU, node=f"no-such-{number}", at=at)


def test_a_restart_knows_gpus_at_once_and_the_rest_from_a_list() -> None:
    replay = new_replay()
    replay.flush()

    replay.restart()

    assert live(replay).needs_list
    assert live(replay).room.nodes["n1"].taken.keys() == {"uid-a"}
    replay.apply(ListedSeparately(at_us=us(30), begins=True))
    others = as_pod(PodForm(name="b", gpus=0, node="n1", scheduled=5))
    replay.apply(ListedSeparately(at_us=us(31), objects=(as_node(NODE), as_pod(POD), others)))
    assert not live(replay).is_complete
    replay.apply(ListedSeparately(at_us=us(32), ends=True))
    assert live(replay).is_complete
    assert live(replay).room.nodes["n1"].taken.keys() == {"uid-a", "uid-b"}
    assert free(replay) == 6


def test_what_a_watch_told_since_a_list_began_is_newer_than_the_list() -> None:
    replay = new_replay()
    replay.apply(ListedSeparately(at_us=us(30), begins=True))
    replay.lose(POD, at=31)
    tell_other(replay, "uid-b", None, at=31)

    stale = as_pod(PodForm(name="b", gpus=0, node="n1", scheduled=5))
    replay.apply(ListedSeparately(at_us=us(32), objects=(as_pod(POD), stale)))
    replay.apply(ListedSeparately(at_us=us(32), ends=True))

    assert live(replay).room.nodes["n1"].taken == {}


def test_a_relist_forgets_pods_that_are_gone() -> None:
    replay = new_replay()
    tell_other(replay, "b", HALF_A_CPU)

    replay.relist(Kind.PODS, POD, at=50, since=40)

    assert live(replay).room.nodes["n1"].taken.keys() == {"uid-a"}


def test_a_node_that_registers_again_has_its_pods() -> None:
    replay = new_replay()

    replay.lose(NODE, at=40)
    replay.see(replace(NODE, uid="again", created=41), at=41)

    assert free(replay) == 6


def test_the_brief_form_of_a_pod_has_what_it_takes() -> None:
    pod = as_pod(PodForm(name="b", gpus=0, node="n1", scheduled=5, started=6))

    brief = other_pod(pod, us(7), us(7), rules=Rules(), matters=lambda node: node == "n1")

    assert brief
    assert (brief.uid, brief.node, brief.taken) == ("uid-b", "n1", Taken((("pods", 1),), 0))
    assert other_pod(pod, us(7), us(7), rules=Rules(), matters=lambda _: False) is None
    ended = as_pod(PodForm(name="b", gpus=0, node="n1", phase="Failed"))
    brief = other_pod(ended, us(7), us(7), rules=Rules(), matters=lambda _: True)
    assert brief
    assert brief.taken is None


def resized(gpus: int, spec: str, allocated: str, actual: str, *conditions: tuple[str, str]) -> PlaceablePod:
    """A running pod as its kubelet writes it during a resize in place, with types and reasons of conditions."""
    manifest = PodForm(name="c", gpus=gpus, node="n1", scheduled=20, started=21).manifest()
    container, status = manifest["spec"]["containers"][0], manifest["status"]["containerStatuses"][0]
    container["name"] = status["name"] = "main"
    container["resources"] = {"requests": {"cpu": spec} | ({GPU: f"{gpus}"} if gpus else {})}
    status |= {"allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": actual}}}
    manifest["status"]["conditions"] += [
        {"type": kind, "status": "True", "reason": reason} for kind, reason in conditions
    ]
    return msgspec.convert(manifest, PlaceablePod)


@pytest.mark.parametrize("gpus", [1, 0])
def test_a_pod_takes_what_the_scheduler_counts_of_it_at_each_step_of_a_resize(gpus: int) -> None:
    replay, at = new_replay(), 40
    before = free(replay, "cpu")

    def taken(pod: PlaceablePod) -> int:
        if gpus:
            replay.see_pod(pod, at=at)
        else:
            brief = other_pod(pod, us(at), us(at), rules=Rules(), matters=lambda _: True)
            assert brief
            replay.apply(brief)
        return before - free(replay, "cpu")

    assert taken(resized(gpus, "2", "2", "2")) == 2000
    assert taken(resized(gpus, "6", "2", "2")) == 6000
    assert taken(resized(gpus, "6", "2", "2", ("PodResizePending", "Deferred"))) == 6000
    assert taken(resized(gpus, "99", "2", "2", ("PodResizePending", "Infeasible"))) == 2000
    assert taken(resized(gpus, "1", "1", "2", ("PodResizeInProgress", ""))) == 2000
    assert taken(resized(gpus, "1", "1", "1")) == 1000


def nominated(form: PodForm) -> Pod:
    manifest = form.manifest()
    manifest["status"]["nominatedNodeName"] = "n1"
    return as_pod(manifest)


def list_beside(replay: Replay, *, found: Pod, lost: PodForm | None = None) -> None:
    """A list with a pod that may have been deleted after the list began."""
    replay.apply(ListedSeparately(at_us=us(30), begins=True))
    if lost:
        replay.lose(lost, at=31)
    replay.apply(ListedSeparately(at_us=us(32), objects=(found,)))
    replay.apply(ListedSeparately(at_us=us(33), ends=True))


def test_a_pending_pod_that_was_deleted_during_a_list_is_not_nominated_by_it() -> None:
    replay = new_replay()
    pending = PodForm(name="b", created=20)
    replay.see_pod(nominated(pending), at=21)
    assert live(replay).room.nodes["n1"].nominated.keys() == {"uid-b"}

    list_beside(replay, found=nominated(pending), lost=pending)

    assert live(replay).room.nodes["n1"].nominated == {}


def test_a_pod_with_gpus_that_its_watch_does_not_know_is_not_taken_from_a_list() -> None:
    replay = new_replay()

    list_beside(replay, found=nominated(PodForm(name="b", created=20)))
    assert live(replay).room.nodes["n1"].nominated == {}

    list_beside(replay, found=nominated(PodForm(name="c", created=20, gpus=0)))
    assert live(replay).room.nodes["n1"].nominated.keys() == {"uid-c"}


def test_what_a_listed_pod_says_is_read_at_once() -> None:
    replay = new_replay()
    pending = PodForm(name="b", created=20)
    replay.see(pending, at=21)
    replay.fleet.waiting.situations.statuses.clear()  # as after a restart

    list_beside(replay, found=as_pod(pending))

    assert replay.fleet.waiting.situations.statuses.keys() == {"uid-b"}
