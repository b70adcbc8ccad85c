"""What is said about partial gangs, and to whom."""

from dataclasses import replace

import pytest

from gputally.accounting.fleet.pending_now import PendingNow, read_pending
from gputally.answers.occupants import gang_entries
from gputally.answers.pending_list import pending_list
from gputally.answers.viewer import ALL, Viewer
from gputally.answers.why import why_document
from gputally.model.api.pending import GangEntry
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.partial_gangs import TaskShort
from gputally.model.verdicts import Reason
from gputally.questions.pending import Pending
from gputally.questions.why import Why
from gputally.web.pending_pages import pending_page
from gputally.web.report_requests import plainly_asked
from tests.core.gang_pods import WATCHED
from tests.core.manifests import PodForm, namespace, us
from tests.core.replay import Replay
from tests.fakes.stream import BOOK
from tests.texts import pending_lines, why_lines
from tests.unit.accounting.test_gang_tasks import GROUP, bound, task_pods
from tests.unit.accounting.test_partial_gangs import gang
from tests.unit.answers.pending_world import Past, node

HOUR = 3610
"""An hour after the gangs were bound."""


def pending(*pods: PodForm, gpus: int = 6, group: Object | None = None) -> PendingNow:
    replay = Replay(opened=0, book=BOOK, rules=WATCHED)
    replay.see_namespace(namespace("other"), at=0)
    replay.relist(Kind.NODES, node("n1", gpus), at=1, since=None)
    replay.relist(Kind.PODS, *pods, at=30, since=None)
    if group:
        replay.see_object(Kind.VOLCANO_GROUPS, group, at=31)
    for at in (HOUR - 10, HOUR - 5):
        replay.scrape(at)
    return read_pending(replay.fleet, now_us=us(HOUR), with_room=True)


def two_gangs(*, of: str = "other") -> PendingNow:
    second = [replace(each, namespace=of) for each in gang("b", bound=3, pending=3, at=11)]
    return pending(*gang("a", bound=3, pending=3), *second)


def why(now: PendingNow, pod: str, viewer: Viewer = ALL) -> list[str]:
    document = why_document(now, Why(namespace="ml", pod=pod), viewer, past=Past())
    return [each.strip() for each in why_lines(document, width=200)]


def test_a_member_is_told_what_its_gang_holds_since_when_and_for_what() -> None:
    now = pending(*gang("a", bound=6, pending=2))

    [found] = gang_entries(now, {}, ALL)
    assert found == GangEntry(
        kind="TrainingJob",
        namespace="ml",
        name="a",
        tier="gold",
        tenant="ml",
        bound=6,
        needed=8,
        gpus=6.0,
        since=found.since,
        gpu_hours=6.0,
        cost="13.26",
        cost_per_hour="13.26",
    )
    held = "holding 6 GPUs, 13.26 EUR per hour (13.26 EUR so far)"
    line = f"6 of 8 pods of TrainingJob ml/a have been bound for 1 h, {held}"
    assert f"Gang        {line}" in why(now, "a-7")
    assert f"Gang        {line}" in why(now, "a-0"), "also one that holds GPUs"


def test_a_task_that_lacks_pods_is_named() -> None:
    now = pending(*bound(task_pods(ps=2, worker=3), 4), group=GROUP)

    [found] = gang_entries(now, {}, ALL)
    assert (found.bound, found.needed, found.tasks) == (4, 5, [TaskShort("worker", 2, 3)])
    text = "\n".join(why(now, "worker-2"))
    assert "4 of 5 pods of VolcanoJob ml/v (task worker: 2 of 3) have been bound for 1 h" in text


def test_gangs_that_wait_for_each_other_are_named() -> None:
    now = two_gangs()
    text = "\n".join(pending_lines(pending_list(now, Pending(), ALL), subject="", width=200))

    assert [each.deadlocked_with for each in gang_entries(now, {}, ALL)] == [
        ["TrainingJob other/b"],
        ["TrainingJob ml/a"],
    ]
    headline, *others = why(now, "a-5")
    assert headline.endswith("; its gang is in a deadlock with TrainingJob other/b.")
    assert "; it and TrainingJob other/b wait for each other" in "\n".join(others)
    assert "; it and TrainingJob ml/a wait for each other" in text


def test_the_page_has_a_table_of_gangs_only_if_there_are_any() -> None:
    asked = Pending()
    page = pending_page(pending_list(two_gangs(), asked, ALL), asked)
    quiet = pending_page(pending_list(pending(*gang("a", bound=0, pending=2)), asked, ALL), asked)

    assert "<td>TrainingJob other/b</td>" in page
    assert "3 of 6" in page
    assert "Partial gangs" not in quiet


def test_a_restricted_reader_sees_other_gangs_only_as_tier() -> None:
    viewer, now = Viewer(frozenset({"ml"})), two_gangs()

    [own] = gang_entries(now, {}, viewer)
    assert (own.name, own.deadlocked_with) == ("a", ["a gang of tier gold of another tenant"])
    assert gang_entries(now, {}, Viewer(frozenset({"nobody"}))) == []
    assert [each.name for each in pending_list(now, Pending(), viewer).gangs] == ["a"]


def test_pods_without_a_partial_gang_are_told_of_none() -> None:
    now = pending(*gang("a", bound=0, pending=2), *gang("b", bound=6, pending=0))

    assert not any(line.startswith("Gang") for line in [*why(now, "a-0"), *why(now, "b-0")])


def helps(now: PendingNow, pod: str, viewer: Viewer = ALL) -> list[str]:
    document = why_document(now, Why(namespace="ml", pod=pod), viewer, past=Past())
    return [each.text for answer in document.answers for each in answer.helps]


def test_gangs_that_wait_for_each_other_are_told_to_suspend_one_not_to_wait() -> None:
    now = two_gangs()

    assert helps(now, "a-5") == ["suspend TrainingJob other/b", "add an empty node like n1"]
    assert [each.helps for each in pending_list(now, Pending(limit=1, helps=True), ALL).pods] == [
        "suspend TrainingJob other/b (an admin of the cluster)"
    ]
    assert not any("suspend" in each for each in helps(now, "a-5", Viewer(frozenset({"ml"})))), "it may not know which"


def test_a_pod_of_a_partial_gang_is_not_told_to_wait_for_its_own_gang() -> None:
    now = pending(*gang("a", bound=6, pending=2))

    assert helps(now, "a-7") == ["add an empty node like n1"]


def test_whoever_asks_is_told_that_nobody_knows_whether_a_gang_is_deadlocked() -> None:
    pods = gang("a", bound=3, pending=5)
    now = pending(*[each if each.node else replace(each, gpus=2 + i) for i, each in enumerate(pods)])

    [found] = gang_entries(now, {}, ALL)
    assert found.not_compared == "unknown"
    text = "whether it is in a deadlock is not known: what it waits for is not known"
    assert any(text in each for each in why(now, "a-5"))
    asked = Pending()
    assert text in "\n".join(pending_lines(pending_list(now, asked, ALL), subject="", width=200))
    assert "<td>not known</td>" in pending_page(pending_list(now, asked, ALL), asked)


def test_deadlocked_gangs_come_before_those_that_only_wait_for_a_longer_time() -> None:
    old = [each for i in range(5) for each in gang(f"old-{i}", bound=1, pending=0, at=5)]
    waiting = [replace(each, name=f"{each.name}-x", node="", scheduled=None, started=None, gpus=9) for each in old]
    now = pending(*old, *waiting, *gang("a", bound=3, pending=3), *gang("b", bound=3, pending=3), gpus=11)

    assert [each.name for each in gang_entries(now, {}, ALL)] == ["a", "b", *(f"old-{i}" for i in range(5))]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"tenant": ["ml"]}, ["a"]),
        ({"namespace": ["other"]}, ["b"]),
        ({"job": ["a"]}, ["a"]),
        ({"tier": ["gold"]}, ["a", "b"]),
        ({"tenant": ["ml"], "job": ["b"]}, []),
        ({"reason": ["quota"]}, []),
        ({"reason": ["capacity", "fragmented", "gang"]}, ["a", "b"]),
    ],
)
def test_a_list_with_filters_names_only_the_gangs_that_match_them(
    query: dict[str, list[str]], names: list[str]
) -> None:
    asked = plainly_asked(Pending, query)
    document = pending_list(two_gangs(), asked, ALL)

    assert [each.name for each in document.gangs] == names
    text = "\n".join(pending_lines(document, subject="", width=200))
    page = pending_page(document, asked)
    for gang_name in {"ml/a", "other/b"} - {f"{each.namespace}/{each.name}" for each in document.gangs}:
        assert f"pods of TrainingJob {gang_name}" not in text
        assert f'<th scope="row">TrainingJob {gang_name}' not in page


@pytest.mark.parametrize("name", ["tenant", "namespace", "tier", "job"])
def test_a_value_that_nothing_has_is_named_on_every_surface(name: str) -> None:
    asked = plainly_asked(Pending, {name: ["visoin"]})
    document = pending_list(two_gangs(), asked, ALL)

    assert document.unknown == [f"{name} visoin"]
    assert f"No pod with GPUs is known of {name} visoin: check the spelling." in pending_page(document, asked)
    assert pending_list(two_gangs(), Pending(reason=(Reason.QUOTA,)), ALL).unknown == []
