"""The questions about the present that more than one surface answers: GPUs, waits, what fits, who may preempt whom."""

from typing import Final

from tests.surfaces import posture_readers as posture
from tests.surfaces import sql
from tests.surfaces.answer import Question, Reader
from tests.surfaces.now_readers import (
    CENT,
    MINUTE,
    Source,
    amounts,
    api_rows,
    by_state,
    command_rows,
    costliest,
    fitting,
    fitting_in_words,
    full_names,
    growth,
    metric_ages,
    node_states,
    page_rows,
    renamed,
    stranded,
    table_rows,
    top_capacity,
    top_rows,
    waits_so_far,
)
from tests.surfaces.readers import COUNT, HOUR_S, difference, metric

GROUP: Final = ("tier", "tenant")
TIER: Final = ("tier",)
NAME: Final = ("name",)
REASON: Final = ("reason",)
STATE: Final = ("state",)
FINDING: Final = ("finding",)
SIZE: Final = ("gpus",)
WHY: Final = ("tier", "reason")
FITS: Final = ("gpu_model", "pool", "gpus")
STRANDED: Final = ("gpu_model", "pool", "reason")
MOST: Final = "limit=1000"
PODS: Final = "/metrics/pods"
WAITS: Final = {"state": "pending"}
STATES: Final = ("running", "gang_wait", "starting", "terminating")

ALLOCATIONS: Final = api_rows("/api/v1/allocations", "pods")
TOP: Final = command_rows("pods", "top")
PENDING: Final = full_names(api_rows(f"/api/v1/pending?{MOST}", "pods"))
PENDING_REASONS: Final = api_rows(f"/api/v1/pending?{MOST}", "reasons")
PENDING_TENANTS: Final = api_rows(f"/api/v1/pending?{MOST}", "tenants")
FINDINGS: Final = api_rows(f"/api/v1/pending?{MOST}", "findings")
GANGS: Final = api_rows(f"/api/v1/pending?{MOST}", "gangs")
LACKING: Final = api_rows(f"/api/v1/pending?{MOST}", "workloads")
WHY_ALL: Final = full_names(command_rows("pods", "why", "--all"))
_WHY_ALL_COLUMNS: Final = {"gpus": "GPUS", "tier": "TIER", "created_s": "WAITED", "reason": "REASON", "name": "POD"}
WHY_ALL_TEXT: Final = renamed(
    table_rows(("GPUS", "TIER", "WAITED", "REASON", "POD"), "why", "--all"), **_WHY_ALL_COLUMNS
)
WHY_ALL_REASONS: Final = renamed(
    table_rows(("GPUS", "PODS", "PER HOUR", "OLDEST", "REASON"), "why", "--all"),
    gpus="GPUS",
    pods="PODS",
    cost_per_hour="PER HOUR",
    oldest_s="OLDEST",
    reason="REASON",
)
WHY_ALL_LACKING: Final = renamed(
    table_rows(("GPUS", "PODS", "TIER", "SINCE", "REASON", "WORKLOAD"), "why", "--all"),
    gpus="GPUS",
    pods="PODS",
    tier="TIER",
    since_s="SINCE",
    reason="REASON",
)
_PAGE: Final = {
    "name": "Pod",
    "tier": "Tier",
    "tenant": "Tenant",
    "gpus": "GPUs",
    "cost_per_hour": "USD per hour",
    "text": "Why it waits",
    "since_s": "Waited for this reason",
    "created_s": "Waited in all",
}
PAGE_PATH: Final = f"/pending?{MOST}"
PAGE: Final = renamed(page_rows(PAGE_PATH, "Pods, the oldest first"), **_PAGE)
PAGE_FINDINGS: Final = renamed(
    page_rows(PAGE_PATH, "Priority inversions", may_lack=True), finding="Finding", pods="Pods"
)
PAGE_GANGS: Final = renamed(page_rows(PAGE_PATH, "Partial gangs", may_lack=True), tier="Tier", gpus="GPUs")
PAGE_REASONS: Final = renamed(
    page_rows(PAGE_PATH, "Reasons"), reason="Reason", pods="Pods", gpus="GPUs", cost_per_hour="USD per hour"
)
FITS_ROWS: Final = api_rows("/api/v1/fits", "pools")
FITS_COMMAND: Final = command_rows("pools", "fits")


def held(source: Source, value: str = "gpus") -> Reader:
    """Of the rows of pods, those that hold GPUs."""
    return difference(amounts(source, value, GROUP), amounts(source, value, GROUP, where=WAITS))


def held_pods() -> Reader:
    """The GPUs of pods in metrics; those that wait have the state pending."""
    return difference(
        metric("gputally_pod_gpus", GROUP, path=PODS), metric("gputally_pod_gpus", GROUP, path=PODS, where=WAITS)
    )


ALLOCATED: Final = (
    Question(
        "GPUs held now, by tier and tenant",
        {
            "SQL": sql.now(sql.HELD, "gpus", GROUP),
            "/api/v1/allocations": held(ALLOCATIONS),
            "top --output json": held(TOP),
            "metrics": metric("gputally_allocated_gpus", GROUP),
            "growth of metrics": growth("gputally_allocated_gpu_seconds_total", GROUP, per_s=1),
            "metrics of pods": held_pods(),
        },
    ),
    *(
        Question(
            f"GPUs held now, by {what}",
            {
                "SQL": sql.now(sql.HELD, "gpus", (column,)),
                "top": amounts(top_rows(what), "held", ("group",), exact_to=CENT),
                **surfaces,
            },
        )
        for what, column, surfaces in (
            ("tier", "tier", {"metrics": metric("gputally_allocated_gpus", TIER)}),
            ("tenant", "tenant", {"metrics": metric("gputally_allocated_gpus", ("tenant",))}),
            ("model", "gpu_model", {"metrics": metric("gputally_allocated_gpus", ("gpu_model",))}),
            (
                "node",
                "node",
                {
                    "nodes of /api/v1/allocations": amounts(
                        node_states(), "gpus", ("node",), where={"state": "allocated"}
                    ),
                    "metrics of nodes": metric(
                        "gputally_node_gpus", ("node",), path=PODS, where={"state": "allocated"}
                    ),
                },
            ),
        )
    ),
    Question(
        "GPUs held now, by their state",
        {
            "SQL": sql.now(sql.HELD, "gpus", STATE),
            "top": amounts(by_state(top_rows("tier"), STATES), "gpus", STATE, exact_to=CENT),
            "/api/v1/allocations": difference(
                amounts(ALLOCATIONS, "gpus", STATE), amounts(ALLOCATIONS, "gpus", STATE, where=WAITS)
            ),
            "metrics of pods": difference(
                metric("gputally_pod_gpus", STATE, path=PODS),
                metric("gputally_pod_gpus", STATE, path=PODS, where=WAITS),
            ),
            "growth of metrics": growth("gputally_allocated_gpu_seconds_total", STATE, per_s=1),
        },
    ),
    Question(
        "cost per hour of GPUs held now, by tier and tenant",
        {
            "SQL": sql.now(sql.HELD, "cost_per_hour", GROUP),
            "/api/v1/allocations": held(ALLOCATIONS, "cost_per_hour"),
            "top --output json": held(TOP, "cost_per_hour"),
            "growth of metrics": growth("gputally_allocated_cost_total", GROUP, per_s=HOUR_S),
        },
    ),
    Question(
        "cost per hour of GPUs held now, by tier",
        {
            "SQL": sql.now(sql.HELD, "cost_per_hour", TIER),
            "top": amounts(top_rows("tier"), "cost", ("group",), exact_to=CENT),
        },
    ),
    Question(
        "GPUs of nodes now, by state",
        {
            "metrics": metric("gputally_capacity_gpus", STATE),
            "metrics of nodes": metric("gputally_node_gpus", STATE, path=PODS),
            "nodes of /api/v1/allocations": amounts(node_states(), "gpus", STATE),
            "top": amounts(top_capacity(), "gpus", STATE, exact_to=CENT),
            "growth of metrics": growth("gputally_capacity_gpu_seconds_total", STATE, per_s=1),
        },
    ),
)
PODS_THAT_WAIT: Final = (
    Question(
        "pods that wait now, by tier and tenant",
        {
            "SQL": sql.now(sql.PENDING, COUNT, GROUP),
            "metrics": metric("gputally_pending_pods", GROUP),
            "/api/v1/pending": amounts(PENDING, COUNT, GROUP),
            "/api/v1/allocations": amounts(ALLOCATIONS, COUNT, GROUP, where=WAITS),
            "why --all --output json": amounts(WHY_ALL, COUNT, GROUP),
            "page": amounts(PAGE, COUNT, GROUP),
        },
    ),
    Question(
        "pods that wait now, by tier and reason",
        {
            "SQL": sql.now(sql.PENDING, COUNT, WHY),
            "metrics": metric("gputally_pending_reason_pods", WHY),
            "/api/v1/pending": amounts(PENDING, COUNT, WHY),
            "why --all --output json": amounts(WHY_ALL, COUNT, WHY),
            "why --all": amounts(WHY_ALL_TEXT, COUNT, WHY),
        },
    ),
    Question(
        "pods that wait now, by reason",
        {
            "SQL": sql.now(sql.PENDING, COUNT, REASON),
            "reasons of /api/v1/pending": amounts(PENDING_REASONS, "pods", REASON),
            "reasons of why --all": amounts(WHY_ALL_REASONS, "pods", REASON),
            "reasons of the page": amounts(PAGE_REASONS, "pods", REASON),
        },
    ),
    Question(
        "GPUs that pods wait for, by tier and tenant",
        {
            "metrics": metric("gputally_pending_gpus", GROUP),
            "/api/v1/pending": amounts(PENDING, "gpus", GROUP),
            "/api/v1/allocations": amounts(ALLOCATIONS, "gpus", GROUP, where=WAITS),
            "top --output json": amounts(TOP, "gpus", GROUP, where=WAITS),
            "why --all --output json": amounts(WHY_ALL, "gpus", GROUP),
            "page": amounts(PAGE, "gpus", GROUP),
            "metrics of pods": metric("gputally_pod_gpus", GROUP, path=PODS, where=WAITS),
        },
    ),
    Question(
        "GPUs that pods wait for, by tier",
        {
            "metrics": metric("gputally_pending_gpus", TIER),
            "top": amounts(top_rows("tier"), "pending", ("group",), exact_to=CENT),
            "why --all": amounts(WHY_ALL_TEXT, "gpus", TIER),
        },
    ),
    Question(
        "GPUs that pods wait for, by GPU model",
        {
            "/api/v1/pending": amounts(PENDING, "gpus", ("gpu_model",)),
            "/api/v1/allocations": amounts(ALLOCATIONS, "gpus", ("gpu_model",), where=WAITS),
            "metrics": metric("gputally_pending_model_gpus", ("gpu_model",)),
        },
    ),
    Question(
        "GPUs whose wait is charged, by reason",
        {
            "SQL": sql.now(sql.PENDING, "gpus", REASON),
            "metrics": metric("gputally_pending_reason_gpus", REASON),
            "reasons of /api/v1/pending": amounts(PENDING_REASONS, "gpus", REASON),
            "reasons of why --all": amounts(WHY_ALL_REASONS, "gpus", REASON),
            "reasons of the page": amounts(PAGE_REASONS, "gpus", REASON),
        },
    ),
    Question(
        "GPUs whose wait is charged, in all",
        {
            "SQL": sql.now(sql.PENDING, "gpus", ()),
            "tenants of /api/v1/pending": amounts(PENDING_TENANTS, "gpus", ()),
            "growth of metrics": growth("gputally_pending_gpu_seconds_total", (), per_s=1),
        },
    ),
    Question(
        "why pods wait, in words",
        {"/api/v1/pending": amounts(PENDING, COUNT, ("name", "text")), "page": amounts(PAGE, COUNT, ("name", "text"))},
    ),
    Question(
        "seconds that pods have waited",
        {
            "metrics of pods": metric_ages("gputally_pod_pending_timestamp_seconds", PODS),
            "SQL": sql.now(sql.WAITED_SINCE, "since_s", NAME),
            "/api/v1/pending": amounts(PENDING, "created_s", NAME),
            "/api/v1/allocations": amounts(full_names(ALLOCATIONS), "since_s", NAME, where=WAITS),
            "why --all --output json": amounts(WHY_ALL, "created_s", NAME),
            "why --all": amounts(WHY_ALL_TEXT, "created_s", NAME, exact_to=MINUTE),
            "page": amounts(PAGE, "created_s", NAME, exact_to=MINUTE),
        },
    ),
    Question(
        "seconds that pods have waited for their present reason",
        {
            "SQL": sql.now(sql.SAME_REASON_SINCE, "since_s", NAME),
            "/api/v1/pending": amounts(PENDING, "since_s", NAME),
            "why --all --output json": amounts(WHY_ALL, "since_s", NAME),
            "page": amounts(PAGE, "since_s", NAME, exact_to=MINUTE),
        },
    ),
    Question(
        "cost per hour of GPUs that pods wait for, by pod",
        {
            "SQL": sql.now(sql.PENDING, "cost_per_hour", NAME),
            "/api/v1/pending": amounts(PENDING, "cost_per_hour", NAME),
            "why --all --output json": amounts(WHY_ALL, "cost_per_hour", NAME),
            "page": amounts(PAGE, "cost_per_hour", NAME, exact_to=CENT),
        },
    ),
    Question(
        "cost per hour of GPUs that pods wait for, by reason",
        {
            "SQL": sql.now(sql.PENDING, "cost_per_hour", REASON),
            "reasons of /api/v1/pending": amounts(PENDING_REASONS, "cost_per_hour", REASON),
            "reasons of why --all": amounts(WHY_ALL_REASONS, "cost_per_hour", REASON, exact_to=CENT),
            "reasons of the page": amounts(PAGE_REASONS, "cost_per_hour", REASON, exact_to=CENT),
        },
    ),
    Question(
        "cost per hour of GPUs that pods wait for, in all",
        {
            "SQL": sql.now(sql.PENDING, "cost_per_hour", ()),
            "tenants of /api/v1/pending": amounts(PENDING_TENANTS, "cost_per_hour", ()),
            "growth of metrics": growth("gputally_pending_cost_total", (), per_s=HOUR_S),
        },
    ),
    Question(
        "cost of waits so far, by pod",
        {
            "SQL": sql.waited_so_far(),
            "/api/v1/why": waits_so_far(),
            "page of the pod": waits_so_far(on_page=True),
        },
    ),
    Question(
        "cost of the costliest wait so far",
        {
            "SQL": costliest(sql.waited_so_far()),
            "why POD": costliest(sql.waited_so_far(), "why"),
        },
    ),
    Question(
        "pods that others should not precede, by finding",
        {
            "/api/v1/pending": amounts(FINDINGS, "pods", FINDING),
            "page": amounts(PAGE_FINDINGS, "pods", FINDING),
        },  # the metric counts a starved pod as outranked, too, and lags behind by some seconds: docs/pending.md
    ),
    Question(
        "partial gangs now, by tier",
        {
            "metrics": metric("gputally_partial_gangs", TIER),
            "/api/v1/pending": amounts(GANGS, COUNT, TIER),
            "page": amounts(PAGE_GANGS, COUNT, TIER),
        },
    ),
    Question(
        "GPUs that partial gangs hold now, by tier",
        {
            "metrics": metric("gputally_partial_gang_gpus", TIER),
            "/api/v1/pending": amounts(GANGS, "gpus", TIER),
            "page": amounts(PAGE_GANGS, "gpus", TIER),
        },
    ),
    Question(
        "pods that do not exist now, by tier and reason",
        {
            "SQL": sql.now(sql.LACKING, "count", WHY),
            "metrics": metric("gputally_uncreated_pods", WHY),
            "/api/v1/pending": amounts(LACKING, "pods", WHY),
            "why --all": amounts(WHY_ALL_LACKING, "pods", WHY),
        },
    ),
    Question(
        "GPUs of pods that do not exist now, by tier and reason",
        {
            "SQL": sql.now(sql.LACKING, "gpus", WHY),
            "metrics": metric("gputally_uncreated_gpus", WHY),
            "/api/v1/pending": amounts(LACKING, "gpus", WHY),
            "why --all": amounts(WHY_ALL_LACKING, "gpus", WHY),
        },
    ),
)
ROOM: Final = (
    Question(
        "pods that fit now, by model, pool and size",
        {
            "metrics": metric("gputally_fitting_pods", FITS),
            "/api/v1/fits": amounts(fitting(FITS_ROWS), "count", FITS),
            "fits --output json": amounts(fitting(FITS_COMMAND), "count", FITS),
        },
    ),
    Question(
        "pods that fit now, by size",
        {"metrics": metric("gputally_fitting_pods", SIZE), "fits": amounts(fitting_in_words(), "count", SIZE)},
    ),
    Question(
        "stranded GPUs now, by model, pool and reason",
        {
            "metrics": metric("gputally_stranded_gpus", STRANDED),
            "/api/v1/fits": amounts(stranded(FITS_ROWS), "count", STRANDED),
            "fits --output json": amounts(stranded(FITS_COMMAND), "count", STRANDED),
        },
    ),
)
POSTURE: Final = (
    Question(
        "PriorityClasses with their values and policies",
        {
            "SQL": posture.values(posture.ledger_classes),
            "posture": posture.values(posture.posture_classes),
            "metrics": posture.values(posture.metric_classes),
        },
    ),
    Question(
        "who may preempt whom, by class",
        {
            "SQL": posture.permitted(posture.ledger_classes),
            "metrics": posture.permitted(posture.metric_classes),
            "posture": posture.listed_victims("may_preempt"),
            "posture, by victim": posture.listed_victims("preempted_by"),
            "posture as a table": posture.matrix("table"),
            "posture as Markdown": posture.matrix("markdown"),
            "posture as HTML": posture.matrix("html"),
        },
    ),
    Question(
        "who may preempt whom, of classes whose pods hold GPUs",
        {
            "SQL": posture.of_holders(posture.ledger_classes),
            "posture": posture.of_holders(posture.posture_classes),
            "what-if": posture.what_if_victims(),
        },
    ),
    Question(
        "GPUs that quotas allow, in all",
        {"posture": posture.quotas("hard"), "metrics": metric("gputally_quota_hard_gpus", ())},
    ),
    Question(
        "GPUs that quotas have used, in all",
        {"posture": posture.quotas("used"), "metrics": metric("gputally_quota_used_gpus", ())},
    ),
)
NOW: Final = (*ALLOCATED, *PODS_THAT_WAIT, *ROOM, *POSTURE)
