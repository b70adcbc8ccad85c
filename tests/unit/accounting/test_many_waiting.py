"""Many pods that wait at once."""

import gc
from dataclasses import replace

from gputally.accounting.waiting.verdicts import MOST_CLASSES, MOST_NODE_CHECKS
from gputally.accounting.waiting.waiting import WaitingPods
from gputally.model.kube.kinds import Kind
from gputally.model.needs import Needs
from gputally.model.observation import Deleted
from gputally.model.verdicts import Reason
from gputally.placement.needs import kept, same
from tests.core.manifests import NodeForm, as_pod, us
from tests.unit.accounting.test_waiting import H100, HOLDER, WAITS, new_replay


def test_pods_that_are_all_different_are_judged_in_several_steps() -> None:
    replay = new_replay()
    count = MOST_CLASSES + 50
    replay.see(*(replace(WAITS, name=f"b{number}", priority=-number) for number in range(count)), at=21)
    waiting = replay.fleet.waiting

    steps = 0
    while waiting.is_behind:
        waiting.judge(at_us=us(22))
        steps += 1

    assert steps == 2
    assert {each.verdict.reason for each in waiting.pods()} == {Reason.CAPACITY}
    assert len(waiting.pods()) == count


def test_most_of_many_pods_are_read_before_they_are_judged_since_their_objects_are_large() -> None:
    replay, count = new_replay(), 1000
    replay.see(*(replace(WAITS, name=f"b{number}") for number in range(count)), at=21)

    assert len(replay.fleet.waiting.situations.statuses) > count // 2


def test_a_renewal_looks_at_some_nodes_and_a_pod_that_waits_for_its_turn_keeps_its_verdict() -> None:
    replay, count = new_replay(), 100
    nodes = [NodeForm(name=f"m{number}", gpus=8, labels=H100 | {"serial": str(number)}) for number in range(count)]
    replay.relist(Kind.NODES, *nodes, at=2, since=None)
    replay.see(*(replace(HOLDER, name=f"h{n}", node=f"m{n}", uid=f"uid-h{n}") for n in range(count)), at=10)
    pods = [replace(WAITS, name=f"b{n}", uid=f"uid-b{n}", node_selector={"serial": str(n)}) for n in range(count)]
    replay.see(*pods, at=21)
    waiting = replay.fleet.waiting
    assert max(looks_until_done(waiting)) < MOST_NODE_CHECKS + 20 * count
    assert {each.verdict.reason for each in waiting.pods()} == {Reason.CAPACITY}

    for number in range(count):
        waiting.live.release(f"m{number}", f"uid-h{number}")
    waiting.judge(at_us=us(31))
    assert waiting.is_behind
    assert {each.verdict.reason for each in waiting.pods()} == {Reason.CAPACITY, Reason.SCHEDULABLE}
    looks_until_done(waiting)
    assert {each.verdict.reason for each in waiting.pods()} == {Reason.SCHEDULABLE}


def looks_until_done(waiting: WaitingPods) -> list[int]:
    found = []
    while waiting.is_behind:
        before = waiting.room.answers.looked_at
        waiting.judge(at_us=us(22))
        found.append(waiting.room.answers.looked_at - before)
    return found


def test_nothing_is_kept_of_what_deleted_pods_needed() -> None:
    replay = new_replay()
    gc.collect()
    before = kept()
    for number in range(50):
        pod = as_pod(replace(WAITS, uid=f"uid-{number}", node_selector={"x": str(number)}).manifest())
        replay.see_pod(pod, at=21)
        replay.fleet.waiting.judge(at_us=us(22))
        replay.apply(Deleted(kind=Kind.PODS, object=pod, at_us=us(22), since_us=us(22)))
    replay.fleet.drain()
    gc.collect()

    assert kept() <= before + 1  # the last ones may be at hand


def test_needs_of_pods_in_different_namespaces_share_their_parts() -> None:
    first, second = (
        same(Needs(namespace=namespace, amounts=tuple({"pods": 1}.items()), node_selector=tuple({"x": "y"}.items())))
        for namespace in ("a", "b")
    )

    assert (first.namespace, second.namespace) == ("a", "b")
    assert first.amounts is second.amounts
    assert first.node_selector is second.node_selector


def test_pods_of_one_tenant_that_wait_for_the_same_share_their_waits() -> None:
    replay = new_replay()
    replay.see(*(replace(WAITS, name=f"b{number}") for number in range(2)), at=21)
    replay.scrape(22)
    replay.fleet.waiting.live.release("n1", "uid-a")
    replay.fleet.waiting.judge(at_us=us(31))

    first, second = (replay.fleet.waiting.book.known[f"uid-b{number}"].waits for number in range(2))
    assert [each.reason for each in first] == [Reason.CAPACITY, Reason.SCHEDULABLE]
    assert all(one is another for one, another in zip(first, second, strict=True))
