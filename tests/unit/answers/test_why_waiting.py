"""Why pods wait, or waited, as one document."""

import dataclasses

import pytest
from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.waiting.packing import JobNodes
from gputally.answers.viewer import ALL, Viewer
from gputally.answers.why import NoSuchPods, NotYetJudged, why_document
from gputally.model.advice import PriorityChoice
from gputally.model.api.why import WhyAnswer, WhyDocument
from gputally.model.disruptions import Cause, Preemption, Preemptor, VictimRecord
from gputally.model.needs import QuotaState, Situation
from gputally.model.verdicts import Reason
from gputally.model.waits import PendingHistory
from gputally.questions.why import Why
from tests.core.manifests import PodForm, us
from tests.unit.answers.pending_world import Past, holds, node, past_pod, wait, waited, waits, world

NOTHING = Past()


def why(
    now: PendingNow, pod: str = "a", *, namespace: str = "ml", viewer: Viewer = ALL, past: Past = NOTHING
) -> WhyDocument:
    return why_document(now, Why(namespace=namespace, pod=pod), viewer, past=past)


def answer(now: PendingNow, pod: str = "a", *, past: Past = NOTHING) -> WhyAnswer:
    [found] = why(now, pod, past=past).answers
    return found


def test_the_request_and_what_it_waited_for_are_in_units_of_people() -> None:
    found = answer(world([node("g1", 4)], [waits("a", 8, node_selector={"pool": "train"})]))

    assert found.needs
    assert (found.needs.devices, found.needs.node_selector) == ({"nvidia.com/gpu": 8}, {"pool": "train"})
    assert [(each.text, each.seconds, each.end is None) for each in found.waits] == [
        ("quota", 1740.0, False),
        ("a larger node", 1800.0, True),
    ]
    assert found.waited_seconds == 3540.0


def test_each_suggestion_is_in_words_with_its_victims() -> None:
    classes = [PriorityChoice("top", 9000), PriorityChoice("batch", 400)]
    now = world([node("g1", 4)], [holds("b", 4, on="g1"), waits("a", 4)], classes=classes)

    found = answer(now)
    assert found.pod.reason == "capacity"
    assert [(each.text, each.by, [victim.pod for victim in each.victims]) for each in found.helps] == [
        ("wait until ml/b on g1 ends", ["nobody"], []),
        ("add an empty node like g1", ["admin"], []),
        ("ask for PriorityClass top", ["owner"], ["b"]),
    ]
    assert [victim.may_be_preempted for victim in found.helps[2].victims] == [True], "by that class"
    assert not any(each.changes_job for each in found.helps)


def test_a_pod_that_serves_no_users_is_not_advised_to_take_a_class_that_does() -> None:
    classes = [PriorityChoice("gpu-serving", 9000), PriorityChoice("top", 9001)]
    now = world([node("g1", 4)], [holds("b", 4, on="g1"), waits("a", 4)], classes=classes)
    of_users = world(
        [node("g1", 4)],
        [holds("b", 4, on="g1"), waits("a", 4)],
        classes=classes,
        situations={"a": Situation(is_serving=True)},
    )

    assert [each.text for each in answer(now).helps][-1] == "ask for PriorityClass top"
    assert [each.text for each in answer(of_users).helps][-1] == "ask for PriorityClass gpu-serving"


def test_a_quota_that_refuses_it_is_the_answer() -> None:
    quota = QuotaState(name="gpus", what="requests.nvidia.com/gpu", hard=6, used=6, needed=4)
    now = world([node("g1", 4)], [waits("a", 4)], situations={"a": Situation(quota=quota)})

    found = answer(now)
    assert found.pod.text == "its quota gpus is used up: 4 GPUs needed, 6 of 6 used"
    assert [each.text for each in found.helps] == ["raise quota gpus by 4 GPUs"]


def test_pods_of_lower_priority_that_it_cannot_preempt_are_noted_as_far_as_the_reader_may_know() -> None:
    low = PodForm(name="low", namespace="lab", gpus=4, tier="low", priority=1, node="g1", scheduled=90, started=95)
    now = world([node("g1", 4), node("g2", 8)], [low, holds("b", 8, on="g2"), waits("a", 8)])
    never = world([node("g1", 4)], [low, waits("a", 2, preemption_policy="Never")])

    assert answer(now).priorities == [], "it could not use that node"
    [note] = answer(never).priorities
    assert note.text == "pods of lower priority got 4 GPUs after it had begun to wait, such as lab/low"
    [hidden] = why(never, viewer=Viewer({"ml"})).answers[0].priorities
    assert hidden.text == "other tenants hold 4 GPUs where it could run, although it should precede them"


def test_others_like_it_are_those_of_its_tier_and_request() -> None:
    bound = [holds(f"b{number}", 1, on="g1") for number in range(3)]
    late = [PodForm(name="late", gpus=1, tier="batch", priority=400, node="g1", scheduled=100, started=110)]
    other = [holds("other", 2, on="g1"), holds("low", 1, on="g1", tier="low", priority=1)]
    gone = [finished("gone", 1, waited=1000), finished("gone-too-large", 2, waited=5000)]
    now = world([node("g1")], [*bound, *late, *other, waits("a", 1)], finished=gone)

    similar = answer(now).similar
    assert similar
    assert (similar.tier, similar.gpus, similar.pods) == ("batch", 1.0, 5)
    assert (similar.median_seconds, similar.p90_seconds) == (10.0, 1000.0)
    [restricted] = why(now, viewer=Viewer({"ml", "none"})).answers
    assert restricted.similar == similar, "all of them are of its tenant"


def test_pods_of_other_tenants_are_not_compared_with_for_a_restricted_reader() -> None:
    now = world([node("g1")], [holds("b", 1, on="g1", namespace="lab"), waits("a", 1)])

    assert why(now).answers[0].similar
    assert why(now, viewer=Viewer({"ml"})).answers[0].similar is None


def finished(name: str, gpus: int, *, waited: int) -> PendingHistory:
    form = waits(name, gpus)
    last = wait(Reason.CAPACITY, us(600), us(600 + waited), form)
    return PendingHistory(uid=f"uid-{name}", namespace="ml", name=name, waits=(last,))


def test_a_pod_that_runs_says_how_long_it_waited_and_for_what() -> None:
    form = PodForm(name="b", gpus=2, tier="batch", priority=400, node="g1", created=10, scheduled=40, started=50)
    past = Past(past_pod(waited("b", 2, Reason.FRAGMENTED, start=10, end=40)))
    found = answer(world([node("g1")], [form]), "b", past=past)

    assert (found.state, found.node, found.waited_seconds, found.pod.gpus) == ("running", "g1", 30.0, 2.0)
    assert [(each.text, each.seconds) for each in found.waits] == [("fragmentation", 30.0)]
    assert found.pod.reason == ""


def test_a_preempted_pod_says_by_whom_as_far_as_the_reader_may_know() -> None:
    form = PodForm(name="v", gpus=8, tier="low", priority=1, node="g1", scheduled=1, started=2, marked=60, deleted=60)
    now = world([node("g1")], [form])
    by = now.preempted["uid-v"].by
    assert by
    assert by.preemptor is None

    found = answer(now, "v")
    assert found.preempted
    assert (found.preempted.tier, found.preempted.pod) == ("unknown", None)


GONE = [
    waited("gone", 4, Reason.QUOTA, start=100, end=160),
    waited("gone", 4, Reason.CAPACITY, start=160, end=190),
]
PREEMPTOR = Preemptor(uid="uid-p", namespace="api", name="llm-2", tier="serving")
BY = Preemption(preemptor=PREEMPTOR, preemptor_tier="serving")


def preempted_by(by: Preemption) -> VictimRecord:
    return VictimRecord(
        victim_uid="uid-gone",
        victim_namespace="ml",
        victim_name="gone",
        victim_tier="batch",
        victim_tenant="ml",
        job_kind="Job",
        job="train",
        node="g1",
        node_uid="uid-g1",
        quantity=4_000_000,
        cause=Cause.PREEMPTION,
        decided_us=us(300),
        released_us=us(330),
        by=by,
    )


def test_a_pod_that_is_gone_has_its_waits_and_no_class_that_is_made_up() -> None:
    found = answer(world([node("g1")], []), "gone", past=Past(past_pod(*GONE)))

    assert (found.state, found.waited_seconds, found.pod.gpus) == ("gone", 90.0, 4.0)
    assert [(each.text, each.seconds) for each in found.waits] == [("quota", 60.0), ("capacity", 30.0)]
    assert (found.pod.class_name, found.pod.priority, found.pod.may_preempt) == (None, None, None)


def test_a_pod_that_is_gone_says_who_preempted_it_as_far_as_the_reader_may_know() -> None:
    now, past = world([node("g1")], []), Past(past_pod(*GONE, preempted=preempted_by(BY)))
    everybody, owner = why(now, "gone", past=past), why(now, "gone", past=past, viewer=Viewer({"ml"}))

    by, hidden = everybody.answers[0].preempted, owner.answers[0].preempted
    assert by
    assert hidden
    assert (by.tier, by.namespace, by.pod) == ("serving", "api", "llm-2")
    assert (hidden.tier, hidden.namespace, hidden.pod) == ("serving", None, None)
    with pytest.raises(NoSuchPods):
        why(now, "gone", past=past, viewer=Viewer({"lab"}))


@pytest.mark.parametrize(
    ("pod", "namespace", "text"),
    [
        ("b", "ml", "no pod with GPUs is known as ml/b; check the name, and that it requests GPUs"),
        ("a", "lab", "no pod with GPUs is known as lab/a; did you mean ml/a?"),
        ("train", "ml", "no pod with GPUs is known as ml/train; did you mean ml/train-0 or ml/train-1?"),
        ("twin", "", "pods of 2 namespaces are named twin; use lab/twin or ml/twin"),
    ],
)
def test_a_name_that_matches_nothing_gets_a_hint(pod: str, namespace: str, text: str) -> None:
    twins = [replace_namespace(waits("twin", 1), "lab", "uid-twin-2"), waits("twin", 1)]
    now = world([node("g1")], [waits("a", 1), waits("train-0", 1), holds("train-1", 1, on="g1"), *twins])

    with pytest.raises(NoSuchPods) as error:
        why(now, pod, namespace=namespace)

    assert str(error.value) == text


def replace_namespace(form: PodForm, namespace: str, uid: str) -> PodForm:
    return dataclasses.replace(form, namespace=namespace, uid=uid)


def test_a_pod_that_nobody_has_judged_yet_is_not_taken_for_one_that_is_bound() -> None:
    now = world([node("g1")], [waits("a", 1)])._replace(waiting=[])

    with pytest.raises(NotYetJudged, match="ml/a"):
        why(now)


def test_a_pod_of_which_nobody_has_judged_is_of_the_tenant_that_the_rules_say() -> None:
    now = world([node("g1")], [waits("a", 1)])._replace(waiting=[])

    with pytest.raises(NotYetJudged, match="ml/a"):
        why(now, viewer=Viewer({"ml"}))
    with pytest.raises(NoSuchPods):
        why(now, viewer=Viewer({"unassigned"}))


def test_a_hint_names_no_pod_of_another_tenant() -> None:
    now = world([node("g1")], [waits("a", 1)])

    with pytest.raises(NoSuchPods, match="known as lab/a; check the name"):
        why(now, "a", namespace="lab", viewer=Viewer({"lab"}))


def test_pods_of_a_job_with_one_verdict_share_an_answer() -> None:
    now = world([node("g1", 4)], [waits("a", 8), waits("b", 8), waits("c", 2), holds("d", 1, on="g1")])
    renamed = [replace(each, record=replace(each.record, job="train")) for each in now.waiting]
    records = {uid: replace(each, job="train") for uid, each in now.records.items()}
    now = now._replace(waiting=renamed, records=records)

    found = why_document(now, Why(namespace="ml", job="train"), ALL, past=NOTHING)
    assert [(each.pod.pod, each.pods, each.pod.reason) for each in found.answers] == [
        ("a", 2, "impossible"),
        ("c", 1, "schedulable"),
    ]
    assert found.bound == 1


def test_a_job_that_has_its_gpus_is_answered_with_its_nodes() -> None:
    now = world([node("g1"), node("g2")], [holds("a", 1, on="g1"), holds("b", 1, on="g2"), holds("c", 1, on="g1")])
    records = {uid: replace(each, job_kind="Job", job="train") for uid, each in now.records.items() if uid != "uid-c"}
    jobs = {("ml", "Job", "train"): JobNodes("batch", 2, 1), ("lab", "Job", "train"): JobNodes("batch", 9, 9)}
    now = now._replace(records=records, packing=jobs)

    found = why_document(now, Why(namespace="ml", job="train"), ALL, past=NOTHING)
    assert (found.bound, found.nodes_used, found.nodes_needed) == (2, 2, 1)

    single = why_document(now, Why(namespace="ml", pod="a"), ALL, past=NOTHING)
    assert (single.bound, single.nodes_used) == (0, None)


def test_a_wait_does_not_begin_anew_when_its_occupants_change() -> None:
    now = world([node("g1", 4)], [waits("a", 8)])
    [waiting] = now.waiting
    first, last = waiting.waits
    halves = (first, replace(last, to_us=us(2000)), replace(last, from_us=us(2000)))
    changed = now._replace(waiting=[replace(waiting, waits=halves)])

    assert answer(changed).pod.since == answer(now).pod.since


def test_a_restricted_reader_is_not_told_to_change_nodes_and_sees_no_value_of_a_taint() -> None:
    taint = {"key": "team", "value": "rivals", "effect": "NoSchedule"}
    now = world([node("g1", taints=(taint,))], [waits("a", 8)])

    everything = [each.text for each in why(now).answers[0].helps]
    [restricted] = why(now, viewer=Viewer({"ml"})).answers

    assert everything == [
        "tolerate the taint team=rivals:NoSchedule",
        "remove the taint team=rivals:NoSchedule from g1",
    ]
    assert [each.text for each in restricted.helps] == ["tolerate the taint team:NoSchedule"]
    assert [each.text for each in restricted.obstacles] == ["taint team:NoSchedule is not tolerated"]


def test_what_others_hold_is_named_by_gpus_to_a_restricted_reader() -> None:
    held = [holds("b", 2, on="g1", namespace="lab"), holds("c", 2, on="g1", namespace="lab")]
    now = world([node("g1", 4)], [*held, waits("a", 4)])

    [first, *_] = why(now, viewer=Viewer({"ml"})).answers[0].helps
    assert first.text == "wait until other tenants' pods with 4 GPUs end"
