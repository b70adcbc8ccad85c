"""What is said of a pod whose queue preempted its workload for another one."""

from msgspec.structs import replace

from gputally.pending_api.pending_now import Viewer
from tests.unit.pending_api.pending_world import Past, node, past_pod, world
from tests.unit.pending_api.test_why_answers import GONE, PREEMPTION, why


def test_a_pod_whose_queue_preempted_it_says_for_which_job_as_far_as_the_reader_may_know() -> None:
    queued = replace(PREEMPTION, preemptor_kind="RayJob", preemptor_name="llm", queue_rule="InClusterQueue")
    now, past = world([node("g1")], []), Past(past_pod(*GONE, preemption=queued))
    everybody, owner = why(now, "gone", past=past), why(now, "gone", past=past, viewer=Viewer({"ml"}))

    by, hidden = everybody.answers[0].preempted, owner.answers[0].preempted
    assert by
    assert hidden
    assert (by.tier, by.is_by_queue, by.namespace, by.pod) == ("serving", True, "api", None)
    assert (by.job_kind, by.job) == ("RayJob", "llm")
    assert (hidden.tier, hidden.is_by_queue, hidden.namespace) == ("serving", True, None)
    assert (hidden.job_kind, hidden.job) == (None, None)
