"""The text of `gputally what-if` and of lists of pending pods."""

from collections.abc import Sequence

from msgspec.structs import replace

from gputally.model.api.pending import PendingDocument, PendingReason, PendingTenant, QuotaRefusal
from gputally.model.api.what_if import AfterWaiting, PodForecast, WhatIfDocument
from gputally.model.api.why import Help
from tests.texts import pending_lines, what_if_lines
from tests.unit.output.what_if_documents import FORECAST
from tests.unit.output.why_documents import NOON, POD, SWEEP, before


def shown(*forecasts: PodForecast, lost: float | None = 0.0, cost: str | None = "0") -> list[str]:
    document = WhatIfDocument(at=NOON, currency="USD", forecasts=list(forecasts), lost_gpu_hours=lost, lost_cost=cost)
    return list(what_if_lines(document, width=96))


def test_pods_that_fit_say_where() -> None:
    assert shown(FORECAST) == [
        "Job ml/train: 2 pods with 8 GPUs each would be bound now.",
        "Needs       8 GPUs, 32 CPUs and 256 GiB memory, on one node that matches pool=train",
        "Class       gpu-training, priority 1,000, may preempt lower priorities; tier training",
        "Nodes       gpu-1, gpu-3",
    ]


def test_a_priority_that_the_user_may_not_know_is_left_out() -> None:
    assert shown(replace(FORECAST, priority=None))[2] == (
        "Class       gpu-training, may preempt lower priorities; tier training"
    )


def test_an_eviction_says_whom_and_what_that_destroys() -> None:
    lines = shown(replace(FORECAST, name="", pods=1, bound=1, victims=[SWEEP]), lost=2.5, cost="9.375")

    assert lines[0] == "1 pod with 8 GPUs would be bound now, by preempting 1 pod."
    assert lines[4:] == [
        "Evicts      GPUS  TIER         PRIORITY   PER HOUR  PREEMPTIBLE  POD (TENANT)",
        "               4  interactive       200  15.00 USD  yes          lab/sweep-3 (lab)",
        "Destroys    2.50 GPU-hours of work since the last checkpoints, 9.38 USD",
    ]


def test_pods_that_would_wait_say_why_and_what_would_help() -> None:
    waits = replace(FORECAST, bound=1, reason="capacity", text="pods hold it", helps=[Help(text="request only 4 GPUs")])
    lines = shown(waits)

    assert lines[0] == "Job ml/train: 1 of 2 pods with 8 GPUs each fits now; 1 would wait: pods hold it."
    assert lines[-1] == "Would help  - request only 4 GPUs: it then fits"


QUOTA = QuotaRefusal(name="gpus", resource="requests.nvidia.com/gpu", hard=8, used=8, requested=8)


def test_pods_that_a_quota_refuses_are_counted_apart() -> None:
    by_quota = replace(FORECAST, pods=4, bound=1, refused=3, reason="quota", text="its quota is used up", quota=QUOTA)
    both = replace(FORECAST, pods=4, bound=1, refused=2, reason="capacity", text="pods hold it", quota=QUOTA)
    none = replace(by_quota, bound=0, refused=4)

    assert shown(by_quota)[0] == (
        "Job ml/train: 1 of 4 pods with 8 GPUs each fits now; 3 would be refused: its quota is used up."
    )
    assert shown(none)[0] == "Job ml/train: 4 pods with 8 GPUs each would be refused: its quota is used up."
    assert " ".join(shown(both)[:2]) == (
        "Job ml/train: 1 of 4 pods with 8 GPUs each fits now; 1 would wait: pods hold it; 2 would be "
        "refused: quota gpus is used up."
    )
    assert shown(both)[5] == "Quota       gpus, requests.nvidia.com/gpu: 8 requested for each pod, 8 of 8 used"


def test_pods_that_wait_and_go_first_are_part_of_the_answer() -> None:
    late = replace(FORECAST, others_waiting=12, after_waiting=AfterWaiting(placed=5, bound=0, reason="capacity"))
    some = replace(late, after_waiting=AfterWaiting(placed=1, bound=1, reason="capacity", is_complete=False))
    same = replace(late, after_waiting=AfterWaiting(placed=0, bound=2))

    assert " ".join(shown(late)[:2]) == (
        "Job ml/train: 2 pods with 8 GPUs each would be bound now; but 5 pods of the same or a higher "
        "priority wait for such GPUs: after them, none would fit."
    )
    assert (
        shown(late)[-1] == "Others      12 pods of the same or a higher priority wait for such GPUs, of which 5 fit now"
    )
    assert " ".join(shown(some)[:2]).endswith("waits for such GPUs: after it, 1 would fit.")
    assert "of which at least 1 fits now" in " ".join(" ".join(shown(some)[-2:]).split())
    assert shown(same)[0] == "Job ml/train: 2 pods with 8 GPUs each would be bound now."
    assert " ".join(" ".join(shown(same)[-2:]).split()).endswith("wait for such GPUs, and none of them fits now")


def test_budgets_that_a_preemption_breaks_and_what_is_not_known_are_named() -> None:
    unknown = {"resourcequotas": "they are not watched", "poddisruptionbudgets": "they are still being listed"}
    evicting = replace(FORECAST, victims=[replace(SWEEP, budget="lab/sweep")])
    document = WhatIfDocument(
        at=NOON, currency="USD", forecasts=[evicting], lost_gpu_hours=0, lost_cost="0", not_considered=unknown
    )
    harmless = replace(document, forecasts=[FORECAST])

    lines = list(what_if_lines(document, width=120))
    assert "Budgets     1 pod of these is preempted although PodDisruptionBudget lab/sweep does not allow it" in lines
    assert lines[-2:] == [
        "Not known   ResourceQuotas: they are not watched",
        "Not known   PodDisruptionBudgets: they are still being listed",
    ]
    assert [line for line in what_if_lines(harmless, width=120) if "Not known" in line] == [
        "Not known   ResourceQuotas: they are not watched"
    ]


def pending(
    *reasons: PendingReason, count: int = 1, following: str | None = None, tenants: Sequence[PendingTenant] = ()
) -> list[str]:
    document = PendingDocument(
        at=NOON,
        currency="USD",
        reasons=list(reasons),
        tenants=list(tenants),
        pods=[POD] * min(count, 1),
        pod_count=count,
        next=following,
    )
    return list(pending_lines(document, subject="in namespace ml-research", width=100))


CAPACITY = PendingReason(
    reason="capacity",
    meaning="pods of the same or a higher priority hold what they need",
    pods=1,
    gpus=8,
    cost_per_hour="30",
    unpriced_gpus=0,
    oldest=before(26),
)


def test_a_list_begins_with_the_reasons() -> None:
    gated = replace(CAPACITY, reason="gated", meaning="they have scheduling gates", pods=2, gpus=3, cost_per_hour=None)

    assert pending(CAPACITY, gated, count=3, following="/api/v1/pending?offset=1") == [
        "3 pods in namespace ml-research wait for 11 GPUs, mostly for one reason: pods of the same or a",
        "higher priority hold what they need.",
        "",
        "GPUS  PODS   PER HOUR  OLDEST  REASON",
        "   8     1  30.00 USD  26 min  capacity  pods of the same or a higher priority hold what they need",
        "   3     2   unpriced  26 min  gated     they have scheduling gates",
        "",
        "GPUS  TIER   WAITED  REASON    POD",
        "   8  batch  26 min  capacity  ml-research/train-0",
        "and 2 pods more; narrow it down by NAMESPACE or --tenant",
    ]


def test_a_long_meaning_goes_on_below_itself() -> None:
    old = replace(CAPACITY, oldest=before(36 * 60 + 59))

    long = "no node is large enough, and pods of the same or a higher priority hold what they need"

    assert pending(replace(old, meaning=long))[3:6] == [
        "GPUS  PODS   PER HOUR    OLDEST  REASON",
        "   8     1  30.00 USD  1 d 12 h  capacity  no node is large enough, and pods of the same or a higher",
        " " * 43 + "priority hold what they need",
    ]


def test_reasons_of_which_none_has_most_gpus_are_counted() -> None:
    gated = replace(CAPACITY, reason="gated", meaning="they have scheduling gates")

    assert pending(CAPACITY, gated, count=2)[0] == "2 pods in namespace ml-research wait for 16 GPUs, for 2 reasons."


def test_several_tenants_are_summed() -> None:
    first, second = (
        PendingTenant(
            tenant=tenant, reason="capacity", pods=1, gpus=gpus, cost_per_hour=cost, unpriced_gpus=0, oldest=before(26)
        )
        for tenant, gpus, cost in (("research", 6, "22.50"), ("lab", 2, "7.50"))
    )

    lines = pending(CAPACITY, count=1, tenants=[first, second])
    assert lines[6:10] == [
        "GPUS  PODS   PER HOUR  OLDEST  MAIN REASON  TENANT",
        "   6     1  22.50 USD  26 min  capacity     research",
        "   2     1   7.50 USD  26 min  capacity     lab",
        "",
    ]
    assert "TENANT" not in "".join(pending(CAPACITY, count=1, tenants=[first]))


def test_an_empty_list_is_an_answer() -> None:
    assert pending(count=0) == ["No pod in namespace ml-research waits for GPUs."]


def test_work_without_a_known_checkpoint_is_an_upper_bound() -> None:
    unknown = replace(SWEEP, is_lost_upper_bound=True)
    document = WhatIfDocument(
        at=NOON,
        currency="USD",
        forecasts=[replace(FORECAST, pods=1, bound=1, victims=[unknown])],
        lost_gpu_hours=2.5,
        lost_cost="9.375",
        is_lost_upper_bound=True,
    )
    *_, destroys = what_if_lines(document, width=96)

    assert destroys == "Destroys    up to 2.50 GPU-hours of work, up to 9.38 USD"


def test_a_victim_that_saves_no_work_destroys_none() -> None:
    serving = replace(SWEEP, serves_users=True, lost_gpu_hours=None)
    document = WhatIfDocument(
        at=NOON,
        currency="USD",
        forecasts=[replace(FORECAST, pods=1, bound=1, victims=[serving])],
        lost_gpu_hours=0,
        lost_cost="0",
    )
    *_, destroys = what_if_lines(document, width=96)

    assert destroys == "Destroys    no GPU-hours of work, interrupting 1 serving pod"
