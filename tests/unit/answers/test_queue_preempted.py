"""What is said of a pod whose queue preempted its workload for another one, or its scheduler for a whole group."""

from msgspec.structs import replace

from gputally.answers.viewer import Viewer
from tests.unit.answers.pending_world import Past, node, past_pod, world
from tests.unit.answers.test_why_waiting import BY, GONE, PREEMPTOR, preempted_by, why


def test_a_pod_whose_queue_preempted_it_says_for_which_job_as_far_as_the_reader_may_know() -> None:
    job = replace(PREEMPTOR, kind="RayJob", name="llm")
    queued = preempted_by(replace(BY, preemptor=job, queue_rule="InClusterQueue"))
    now, past = world([node("g1")], []), Past(past_pod(*GONE, preempted=queued))
    everybody, owner = why(now, "gone", past=past), why(now, "gone", past=past, viewer=Viewer({"ml"}))

    by, hidden = everybody.answers[0].preempted, owner.answers[0].preempted
    assert by
    assert hidden
    assert (by.tier, by.is_by_queue, by.namespace, by.pod) == ("serving", True, "api", None)
    assert (by.job_kind, by.job) == ("RayJob", "llm")
    assert (hidden.tier, hidden.is_by_queue, hidden.namespace) == ("serving", True, None)
    assert (hidden.job_kind, hidden.job) == (None, None)


def test_a_pod_that_was_preempted_for_a_group_names_the_group_instead_of_a_pod() -> None:
    for_group = preempted_by(replace(BY, preemptor=replace(PREEMPTOR, kind="PodGroup", name="llm")))
    now, past = world([node("g1")], []), Past(past_pod(*GONE, preempted=for_group))

    by = why(now, "gone", past=past).answers[0].preempted

    assert by
    assert (by.is_by_queue, by.pod, by.namespace, by.job_kind, by.job) == (False, None, "api", "PodGroup", "llm")
