"""The text of `gputally why`."""

import pytest
from msgspec.structs import replace

from gputally.model.api.pending import CostRange
from gputally.model.api.why import Help, OccupantPod, PreemptedBy, WhyAnswer
from tests.texts import why_lines
from tests.unit.output.why_documents import ANSWER, POD, SERVING, SWEEP, before, why


def shown(*answers: WhyAnswer, width: int = 96, currency: str = "USD", bound: int = 0) -> list[str]:
    return list(why_lines(why(*answers, currency=currency, bound=bound), width=width))


def line(head: str, answer: WhyAnswer, **more: str) -> str:
    """The first line with this heading."""
    return next(each for each in shown(answer, **more) if each.startswith(head))  # type: ignore[arg-type] # the currency


def test_the_first_line_is_the_answer_and_the_others_are_its_evidence() -> None:
    assert shown(ANSWER) == [
        "ml-research/train-0 has waited 26 min for 8 GPUs, 30.00 USD per hour: pods of the same or a",
        "higher priority hold what it needs.",
        "Needs       8 GPUs of H100, 32 CPUs and 256 GiB memory, on one node that matches pool=train",
        "Class       gpu-batch, priority 400, may preempt lower priorities; tier batch, tenant research",
        "Cost        13.00 USD for the wait so far: what its GPUs would have cost",
        "Blocked by  gpu-3: 8 GPUs needed, 4 available",
        "Nodes       9 held by other pods, 2 tainted, 1 too small; gpu-3 comes closest",
        "Held by     GPUS  TIER         PRIORITY   PER HOUR  PREEMPTIBLE          POD (TENANT)",
        "               4  serving           800  15.00 USD  no, higher priority  api/llm-7f9c (product)",
        "               4  interactive       200  15.00 USD  yes                  lab/sweep-3 (lab)",
        "Priorities  pods of lower priority got 4 GPUs after it had begun to wait, such as lab/sweep-3",
        "Waited for  quota 12 min (11:34 to 11:46), then capacity 14 min (since 11:46 UTC)",
        "Others      the last 37 batch pods with 8 GPUs waited 4 min in the median, 11 min at p90; it has",
        "            waited longer than 90 % of them",
        "Would help  - add an empty node like gpu-3 (an admin of the cluster): it then fits",
        "            - ask for PriorityClass gpu-training (the owner of the pod): it then preempts",
        "            api/llm-7f9c and lab/sweep-3 on gpu-3, interrupting 1 serving pod, destroying 2.50",
        "            GPU-hours of work (9.38 USD)",
        "Change job  - request only 4 GPUs (the owner of the pod): it then preempts lab/sweep-3 on gpu-3,",
        "            destroying 2.50 GPU-hours of work (9.38 USD)",
        "Scheduler   0/12 nodes are available: 10 Insufficient nvidia.com/gpu, 2 node(s) had untolerated",
        "            taint(s).",
    ]


def test_pods_of_a_job_that_wait_alike_have_one_answer() -> None:
    first, *_, last = shown(replace(ANSWER, pods=4), bound=2)

    assert first == "ml-research/train-0 and 3 pods like it have waited up to 26 min for 8 GPUs each, 30.00 USD per"
    assert last == "2 pods of the same job have their GPUs."


@pytest.mark.parametrize(
    ("used", "needed", "end"),
    [
        (8, 1, "GPUs, on 8 nodes; 1 such node would hold them."),
        (2, 2, "GPUs, on 2 nodes."),
        (1, 1, "GPUs, on 1 node."),
    ],
)
def test_the_nodes_of_a_job_are_named_with_how_few_would_do(used: int, needed: int, end: str) -> None:
    document = replace(why(ANSWER, bound=8), nodes_used=used, nodes_needed=needed)
    *_, last = why_lines(document, width=96)

    assert last == f"8 pods of the same job have their {end}"


def test_of_other_tenants_a_restricted_reader_sees_only_tiers_and_gpus() -> None:
    others = replace(
        SERVING,
        pods=3,
        **dict.fromkeys(("tenant", "namespace", "pod", "uid", "node", "state", "priority", "cost_per_hour")),
    )
    lines = shown(replace(ANSWER, occupants=[others], helps=[]))

    assert lines[7:9] == [
        "Held by     GPUS  TIER     PREEMPTIBLE          POD (TENANT)",
        "               4  serving  no, higher priority  3 pods",
    ]


def test_more_occupants_than_a_screen_has_are_counted() -> None:
    lines = shown(replace(ANSWER, occupants=[SERVING] * 9, more_occupants=3))

    assert (
        lines[lines.index("            and 7 more") - 5 : lines.index("            and 7 more")]
        == ["               4  serving       800  15.00 USD  no, higher priority  api/llm-7f9c (product)"] * 5
    )


def test_without_a_price_book_no_cost_is_shown() -> None:
    lines = shown(replace(ANSWER, pod=replace(POD, cost_per_hour=None)), currency="")

    assert not [each for each in lines if "USD" in each or "PER HOUR" in each]


def cost_of(**fields: object) -> str:
    return line("Cost", replace(ANSWER, waited_cost=None, pod=replace(POD, cost_per_hour=None, **fields)), width=200)  # type: ignore[arg-type] # fields of several types


def test_without_a_price_it_says_why_and_what_the_pod_may_cost() -> None:
    both = CostRange(lowest="17.68", highest="30", gpu_models=["A100", "H100"])

    assert cost_of(unpriced="it selects no GPU model, and no node could hold it") == (
        "Cost        unpriced: it selects no GPU model, and no node could hold it"
    )
    assert cost_of(unpriced="it selects no GPU model", cost_range=both) == (
        "Cost        17.68 to 30.00 USD per hour, on A100 or H100: it selects no GPU model"
    )
    assert (
        cost_of(
            unpriced="it selects no GPU model",
            cost_range=replace(both, highest="17.68", gpu_models=["A100"], unpriced_models=["T4"]),
        )
        == "Cost        17.68 USD per hour, on A100, or on T4, which has no price: it selects no GPU model"
    )


def test_what_the_wait_has_cost_is_said() -> None:
    assert line("Cost", replace(ANSWER, waited_cost="13")) == (
        "Cost        13.00 USD for the wait so far: what its GPUs would have cost"
    )


def test_where_more_nodes_would_not_help_it_says_so() -> None:
    assert line("Nodes", replace(ANSWER, nodes={}, more_nodes_help=False)) == (
        "Nodes       more nodes like these would not help"
    )


def test_an_unpriced_pod_says_so() -> None:
    answer = replace(ANSWER, occupants=[replace(SWEEP, cost_per_hour=None)])

    assert "unpriced" in next(each for each in shown(answer) if "lab/sweep-3" in each)


def test_a_pod_that_runs_says_when_and_why_it_waited() -> None:
    waited = replace(ANSWER, state="running", node="gpu-3", waits=ANSWER.waits[:1], waited_seconds=720)
    bare = replace(
        waited,
        needs=None,
        obstacles=[],
        nodes={},
        occupants=[],
        priorities=[],
        similar=None,
        waited_cost="6",
        helps=[],
        scheduler_message="",
    )

    assert shown(bare) == [
        "ml-research/train-0 does not wait: it is running on gpu-3. It waited 12 min for its GPUs.",
        "Class       gpu-batch, priority 400, may preempt lower priorities; tier batch, tenant research",
        "Cost        6.00 USD for the wait: what its GPUs would have cost",
        "Waited for  quota 12 min (11:34 to 11:46)",
    ]


def test_a_wait_within_one_minute_has_one_time() -> None:
    moment = replace(ANSWER.waits[0], start=before(26), end=before(26), seconds=52)

    assert line("Waited for", replace(ANSWER, waits=[moment])) == "Waited for  quota 52 s (at 11:34)"


def test_a_preempted_pod_says_by_whom() -> None:
    by = PreemptedBy(at=before(3), tier="serving", namespace="api", pod="llm-2", is_inferred=True)
    ended = replace(ANSWER, state="ended", preempted=by)
    hidden = replace(ended, preempted=replace(by, namespace=None, pod=None, is_inferred=False))

    assert line("Preempted", ended) == (
        "Preempted   at 11:57 UTC by api/llm-2 of tier serving (inferred: no Event names it)"
    )
    assert line("Preempted", hidden) == "Preempted   at 11:57 UTC by a pod of tier serving"


def test_a_pod_whose_queue_preempted_it_says_for_which_job() -> None:
    by = PreemptedBy(
        at=before(3),
        tier="serving",
        namespace="api",
        pod=None,
        is_inferred=False,
        is_by_queue=True,
        job_kind="RayJob",
        job="llm",
    )
    ended = replace(ANSWER, state="ended", preempted=by)
    hidden = replace(ended, preempted=replace(by, namespace=None, job_kind=None, job=None))

    assert line("Preempted", ended) == "Preempted   at 11:57 UTC by its queue, for RayJob api/llm of tier serving"
    assert line("Preempted", hidden) == "Preempted   at 11:57 UTC by its queue, for a workload of tier serving"


def test_a_pod_that_was_preempted_for_a_whole_group_says_for_which() -> None:
    by = PreemptedBy(
        at=before(3), tier="serving", namespace="api", pod=None, is_inferred=False, job_kind="PodGroup", job="llm"
    )
    ended = replace(ANSWER, state="ended", preempted=by)

    assert line("Preempted", ended) == "Preempted   at 11:57 UTC by PodGroup api/llm of tier serving"


def test_names_and_messages_cannot_control_the_terminal() -> None:
    answer = replace(ANSWER, scheduler_message="\x1b[2Jgone\nagain")

    assert line("Scheduler", answer) == "Scheduler   \\x1b[2Jgone\\nagain"


def test_text_fits_its_width_however_long_the_parts_are() -> None:
    assert max(map(len, shown(replace(ANSWER, occupants=[]), width=72))) <= 72


def test_few_others_have_no_quantiles_and_a_pod_that_is_gone_was_on_its_node() -> None:
    assert ANSWER.similar
    few = replace(ANSWER.similar, pods=9)

    assert "batch pods with 8 GPUs that were bound so far: 9, too few to compare with" in line(
        "Others", replace(ANSWER, similar=few)
    )
    assert line("Others", replace(ANSWER, similar=None)) == (
        "Others      no other batch pods with 8 GPUs were bound so far: nothing to compare with"
    )
    gone = shown(replace(ANSWER, state="gone", node="gpu-1"))[0]
    assert gone.startswith("ml-research/train-0 exists no longer; it was on gpu-1. It waited ")


def test_a_pod_that_is_gone_and_was_never_bound_did_not_get_its_gpus() -> None:
    gone = replace(ANSWER, state="gone", node=None, waited_seconds=29 * 60)

    assert shown(gone)[0] == "ml-research/train-0 exists no longer. It waited 29 min, and never got its GPUs."


def test_requests_beyond_all_clusters_are_no_rows_of_digits() -> None:
    huge = replace(ANSWER, pod=replace(ANSWER.pod, gpus=float(2**63)))

    assert "for more than 1,000,000,000 GPUs" in " ".join(shown(huge)[:2])


def test_pods_that_may_be_bound_first_are_counted() -> None:
    lines = shown(replace(ANSWER, others_waiting=2))

    assert "            2 pods of the same or a higher priority wait for such GPUs" in lines
    assert "            1 pod of the same or a higher priority waits for such GPUs" in shown(
        replace(ANSWER, others_waiting=1, similar=None)
    )


def test_pods_without_gpus_are_counted_and_nothing_is_said_about_preempting_them() -> None:
    unnamed = OccupantPod(tier="", gpus=0, pods=2, may_be_preempted=False, why_not="without GPUs")
    change = Help(text="ask for PriorityClass top", by=["owner"], changes_job=False, victims=[unnamed])
    lines = shown(replace(ANSWER, occupants=[unnamed], helps=[change]))

    assert "               0  not known    2 pods without GPUs" in lines
    assert "it then preempts 2 pods without GPUs" in " ".join(" ".join(lines).split())
    hidden = shown(replace(ANSWER, occupants=[replace(unnamed, pods=None)], helps=[]))
    assert "               0  not known    pods without GPUs" in hidden


def test_a_pod_that_holds_gpus_for_an_incomplete_gang_does_not_wait_for_gpus() -> None:
    held = shown(replace(ANSWER, state="gang_wait", node="gpu-1"))

    assert " ".join(held[:2]).startswith(
        "ml-research/train-0 does not wait for GPUs: its gang is incomplete, but it holds its GPUs on gpu-1."
    )


def test_without_a_checked_suggestion_it_says_what_to_do_first() -> None:
    claim = replace(ANSWER, helps=[], pod=replace(ANSWER.pod, reason="claim"))

    assert "First step  Look at the claim: its devices are not modelled." in shown(claim)
    assert not [line for line in shown(ANSWER) if line.startswith("First step")]
