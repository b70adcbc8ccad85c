"""The answer about a job names its pods that were preempted, and from when on that is known."""

import pytest
from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.answers.past_pods import PastVictims
from gputally.answers.viewer import ALL, Viewer
from gputally.answers.why import NoSuchPods, why_document
from gputally.model.api.why import WhyDocument
from gputally.model.disruptions import Cause, Preemption, Preemptor, VictimRecord
from gputally.model.units import GPU, to_datetime
from gputally.questions.why import Why
from gputally.web.pending_pages import why_page
from tests.core.manifests import PodForm, us
from tests.texts import why_lines
from tests.unit.answers.pending_world import Past, holds, node, waits, world

TRAIN = Why(namespace="ml", job="train")


def victim(name: str, *, at: float, by: str | None = "llm", tenant: str = "ml") -> VictimRecord:
    preemptor = Preemptor(uid="uid-p", namespace="api", name=by, tier="serving") if by else None
    return VictimRecord(
        victim_uid=f"uid-{name}",
        victim_namespace="ml",
        victim_name=name,
        victim_tier="batch",
        victim_tenant=tenant,
        job_kind="Job",
        job="train",
        node="g1",
        node_uid="uid-g1",
        quantity=2 * GPU,
        cause=Cause.PREEMPTION,
        decided_us=us(at),
        requested_us=us(at),
        released_us=us(at),
        by=Preemption(preemptor=preemptor, preemptor_tier="serving") if preemptor else None,
    )


def past(*victims: VictimRecord) -> Past:
    return Past(victims=PastVictims(us(60), victims), from_us=us(30))


def of_job(now: PendingNow) -> PendingNow:
    """All pods are those of the job."""
    waiting = [replace(each, record=replace(each.record, job="train")) for each in now.waiting]
    return now._replace(waiting=waiting, records={uid: replace(each, job="train") for uid, each in now.records.items()})


def text(document: WhyDocument) -> str:
    return "\n".join(why_lines(document, width=200))


def names(document: WhyDocument) -> list[str]:
    return [each.pod for each in document.preempted]


def test_pods_of_a_job_that_were_preempted_are_named_beside_those_that_wait_and_run() -> None:
    now = of_job(world([node("g1")], [waits("train-4", 8), holds("train-3", 1, on="g1")]))
    found = why_document(now, TRAIN, ALL, past=past(*(victim(f"train-{i}", at=600) for i in range(3))))

    assert [each.pod.pod for each in found.answers] == ["train-4"]
    assert (found.bound, found.preempted_count, names(found)) == (1, 3, ["train-2", "train-1", "train-0"])
    assert {(each.gpus, each.by.tier, each.by.pod) for each in found.preempted} == {(2.0, "serving", "llm")}
    assert found.preempted_from == to_datetime(us(60))
    expected = [
        "3 pods of the job were preempted since 00:01 UTC:",
        "- train-0, train-1 and train-2 at 00:10 UTC by api/llm of tier serving",
    ]
    assert text(found).splitlines()[-2:] == expected
    assert all(f"<p>{line}</p>" in why_page(found, TRAIN) for line in expected)


def test_a_job_whose_pods_are_all_gone_is_answered_with_its_preemptions() -> None:
    empty = world([node("g1")], [])
    found = why_document(empty, TRAIN, ALL, past=past(victim("train-0", at=600, by=None), victim("train-1", at=900)))

    assert found.answers == []
    assert names(found) == ["train-1", "train-0"]
    assert [each.by.tier for each in found.preempted] == ["serving", "unknown"]


def test_a_pod_that_still_exists_is_named_once_and_by_what_is_known_now() -> None:
    form = PodForm(name="v", gpus=8, tier="low", priority=1, node="g1", scheduled=1, started=2, marked=60, deleted=60)
    found = why_document(of_job(world([node("g1")], [form])), TRAIN, ALL, past=past(victim("v", at=60)))

    assert (found.preempted_count, [each.by.tier for each in found.preempted]) == (1, ["unknown"])


def test_without_preemptions_the_answer_says_since_when_that_is_known() -> None:
    now = of_job(world([node("g1")], [waits("train-4", 8)]))
    known, unknown = (why_document(now, TRAIN, ALL, past=each) for each in (past(), Past()))

    assert text(known).endswith("No pod of the job was preempted since 00:01 UTC.")
    assert "preempted" not in text(unknown)
    assert why_document(now, Why(namespace="ml", pod="train-4"), ALL, past=past()).preempted_from is None


def test_a_restricted_reader_sees_the_preempted_pods_of_its_tenants_without_their_preemptors() -> None:
    victims = past(victim("train-0", at=600), victim("train-1", at=600, tenant="lab"))
    found = why_document(world([node("g1")], []), TRAIN, Viewer({"ml"}), past=victims)

    assert names(found) == ["train-0"]
    assert (found.preempted[0].by.tier, found.preempted[0].by.pod) == ("serving", None)
    with pytest.raises(NoSuchPods):
        why_document(world([node("g1")], []), TRAIN, Viewer({"other"}), past=victims)


def test_a_name_that_matches_nothing_says_from_when_on_pods_are_known() -> None:
    with pytest.raises(NoSuchPods, match=r"known as ml/nothing; .*; pods are known from 2026-07-01 00:00:30 UTC on$"):
        why_document(world([node("g1")], []), Why(namespace="ml", pod="nothing"), ALL, past=past())


def test_many_preemptions_are_summed_up() -> None:
    victims = [victim(f"train-{number}", at=60 * number) for number in range(10, 18)]
    many = [victim(f"train-{number}", at=6000) for number in range(20, 26)]
    lines = text(why_document(world([node("g1")], []), TRAIN, ALL, past=past(*victims, *many))).splitlines()

    assert lines[0] == "14 pods of the job were preempted since 00:01 UTC:"
    assert lines[1] == "- train-20, train-21, train-22 and 3 more at 01:40 UTC by api/llm of tier serving"
    assert lines[-1] == "- 4 pods before"
