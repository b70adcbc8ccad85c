"""The table of every question that more than one surface answers.

To add a surface, add a line to each question that it answers. To add a question, add an entry; all its surfaces are
compared with the first one. docs/contributing/surfaces.md explains both.
"""

from collections.abc import Mapping
from typing import Final

from tests.fakes.stepped import EXAMPLES
from tests.surfaces import sql
from tests.surfaces.answer import Key, Question, Reader
from tests.surfaces.budget_readers import budget_command, budget_metric, budget_report
from tests.surfaces.now_questions import NOW
from tests.surfaces.posture_readers import observed
from tests.surfaces.readers import (
    COUNT,
    HOUR_S,
    Row,
    api,
    api_report,
    closing,
    command,
    counted,
    difference,
    focus,
    metric,
    overcount,
    page,
    page_days,
    preemption_rows,
    report,
    showback,
    total,
    waterfall,
)

TENANT: Final = ("tenant",)
GROUP: Final = ("tier", "tenant")
VICTIM: Final = ("victim_tier", "victim_tenant")
JOB: Final = ("namespace", "job")
WAIT: Final = ("tier", "cause", "occupying_tier")
UNCREATED: Final = ("tier", "cause")
PREEMPTIONS_PATH: Final = "/api/v1/preemptions?window=all"
WAITS_PATH: Final = f"/api/v1/waits?window=all&by={','.join(WAIT)}"
INSIDE: Final = "2026-06-08T06:50:00/2026-06-08T08:40:07"
"""A period in the past of every ledger, that cuts through allocations."""
INSIDE_SPAN: Final = sql.Span(1_780_901_400_000_000, 1_780_908_007_000_000)
RERATED: Final = (f"--prices={EXAMPLES / 'demo-prices.yaml'}", f"--by={','.join(GROUP)}")
ALLOCATED, COST = "gputally_allocated_gpu_seconds_total", "gputally_allocated_cost_total"
CAPACITY_TIME, CAPACITY_COST = "gputally_capacity_gpu_seconds_total", "gputally_capacity_cost_total"
OVERCOMMITTED: Final = "gputally_overcommitted_gpu_seconds_total"
PENDING, PENDING_COST = "gputally_pending_gpu_seconds_total", "gputally_pending_cost_total"
NOT_ALLOCATED: Final = ("free", "cordoned", "unhealthy", "unsliced", "unknown")
STEPS: Final[Mapping[tuple[str, str], Key]] = {
    ("allocated", ""): ("allocated",),
    **{("allocated", state): (state,) for state in NOT_ALLOCATED},
}
"""The states of capacity in a waterfall."""


def of_group(row: Row) -> Key:
    """Tier and tenant of a FOCUS charge."""
    return row["tier"], row["SubAccountId"]


def of_job(row: Row) -> Key:
    """Namespace and job of a FOCUS charge."""
    return row["namespace"], row["job"]


def of_hour(row: Row) -> Key:
    """The hour of a FOCUS charge, as reports write it."""
    return (row["ChargePeriodStart"][:16].replace("T", " "),)


def idle_metrics() -> Reader:
    """What was measured and not used; use above the share is burst, which is within used."""
    names = ("measured", "used", "burst")
    measured, used, burst = (metric(f"gputally_{name}_gpu_seconds_total", GROUP, per=HOUR_S) for name in names)
    return difference(measured, difference(used, burst))


def capacity_metrics(name: str, counter: str, *, above: str = "", per: int = 1) -> Reader:
    """The capacity: all states, less what is allocated `above` it, less the overcount."""
    more = (metric(above, (), per=per),) if above else ()
    return difference(metric(name, (), per=per), overcount(counter, per=per), *more)


def unallocated_metrics(name: str, counter: str, *, per: int = 1) -> Reader:
    """The capacity that nobody held, which may exceed the ledger by the overcount."""
    held = metric(name, (), per=per, where={"state": "allocated"})
    return difference(metric(name, (), per=per, overcount=counter), held)


GPU_HOURS: Final = (
    Question(
        "GPU-hours by tier and tenant",
        {
            "SQL": sql.allocated(GROUP),
            "report": report("gpu_hours", GROUP),
            "/api/v1/report": api_report("gpu_hours", GROUP),
            "page": page("GPU-hours", GROUP),
            "FOCUS": focus("PricingQuantity", of_group),
            "showback": showback("gpu_hours", GROUP),
            "explain": command("explain", "gpu_hours", GROUP),
            "rerate": command("rerate", "gpu_hours", GROUP, *RERATED),
            "metrics": metric(ALLOCATED, GROUP, per=HOUR_S, overcount="allocated"),
        },
    ),
    Question(
        "GPU-hours by namespace and job",
        {
            "SQL": sql.allocated(JOB),
            "report": report("gpu_hours", JOB),
            "/api/v1/report": api_report("gpu_hours", JOB),
            "FOCUS": focus("PricingQuantity", of_job),
            "showback": showback("gpu_hours", JOB),
            "explain": command("explain", "gpu_hours", JOB),
        },
    ),
    Question(
        "GPU-hours by tier and tenant, in a period of the past",
        {
            "SQL": sql.allocated(GROUP, INSIDE_SPAN),
            "report": report("gpu_hours", GROUP, INSIDE),
            "/api/v1/report": api_report("gpu_hours", GROUP, INSIDE),
            "FOCUS": focus("PricingQuantity", of_group, INSIDE),
            "explain": command("explain", "gpu_hours", GROUP, f"--window={INSIDE}"),
            "periods": closing(GROUP, INSIDE),
        },
    ),
    Question(
        "GPU-hours by hour",
        {"report": report("gpu_hours", ("hour",)), "FOCUS": focus("PricingQuantity", of_hour)},
    ),
    Question(
        "GPU-hours by tenant",
        {
            "SQL": sql.allocated(TENANT),
            "report": report("gpu_hours", TENANT),
            "report --preset team": command("report", "gpu_hours", TENANT, "--preset=team"),
        },
    ),
    Question(
        "GPU-hours in all",
        {
            "SQL": total(sql.allocated(TENANT)),
            "waterfall": waterfall("gpu_hours", {("allocated", ""): ()}),
            "metrics": counted(ALLOCATED, "allocated", per=HOUR_S),
        },
    ),
)
COSTS: Final = (
    Question(
        "cost by tier and tenant",
        {
            "SQL": sql.allocated(GROUP, cost=True),
            "report": report("cost", GROUP),
            "/api/v1/report": api_report("cost", GROUP),
            "page": page("cost", GROUP),
            "FOCUS": focus("BilledCost", of_group),
            "showback": showback("cost", GROUP),
            "explain": command("explain", "cost", GROUP),
            "rerate": command("rerate", "before", GROUP, *RERATED),
            "metrics": metric(COST, GROUP, overcount="cost"),
        },
    ),
    Question(
        "cost by namespace and job",
        {
            "SQL": sql.allocated(JOB, cost=True),
            "report": report("cost", JOB),
            "/api/v1/report": api_report("cost", JOB),
            "FOCUS": focus("BilledCost", of_job),
            "showback": showback("cost", JOB),
            "explain": command("explain", "cost", JOB),
            "metrics of pods": metric("training_job_cost_usd", ("namespace", "job_name"), path="/metrics/pods"),
        },
    ),
    Question(
        "cost by tier and tenant, in a period of the past",
        {
            "SQL": sql.allocated(GROUP, INSIDE_SPAN, cost=True),
            "report": report("cost", GROUP, INSIDE),
            "/api/v1/report": api_report("cost", GROUP, INSIDE),
            "FOCUS": focus("BilledCost", of_group, INSIDE),
            "explain": command("explain", "cost", GROUP, f"--window={INSIDE}"),
            "periods": closing(GROUP, INSIDE, cost=True),
        },
    ),
    Question("cost by day", {"report": report("cost", ("day",)), "page": page_days("cost")}),
    Question(
        "cost by tenant",
        {
            "SQL": sql.allocated(TENANT, cost=True),
            "report": report("cost", TENANT),
            "report --preset team": command("report", "cost", TENANT, "--preset=team"),
        },
    ),
    Question(
        "cost in all",
        {
            "SQL": total(sql.allocated(TENANT, cost=True)),
            "waterfall": waterfall("cost", {("billed", ""): ()}),
            "metrics": counted(COST, "cost"),
        },
    ),
    Question(
        "what is spent of budgets",
        {"report": budget_report(), "budgets": budget_command(), "metrics": budget_metric()},
    ),
)
USE: Final = (
    Question(
        "used GPU-hours by tier and tenant",
        {
            "SQL": sql.used("used", GROUP),
            "report": report("used", GROUP),
            "/api/v1/report": api_report("used", GROUP),
            "showback": showback("used", GROUP),
            "metrics": metric("gputally_used_gpu_seconds_total", GROUP, per=HOUR_S),
        },
    ),
    Question(
        "idle GPU-hours by tier and tenant",
        {
            "SQL": sql.used("idle", GROUP),
            "report": report("idle", GROUP),
            "/api/v1/report": api_report("idle", GROUP),
            "showback": showback("idle", GROUP),
            "metrics": idle_metrics(),
        },
    ),
    Question(
        "idle GPU-hours in all",
        {
            "SQL": total(sql.used("idle", GROUP)),
            "waterfall": waterfall("gpu_hours", {("used", "idle"): ()}),
        },
    ),
    Question(
        "idle cost by tier and tenant",
        {
            "report": report("idle_cost", GROUP),
            "/api/v1/report": api_report("idle_cost", GROUP),
            "page": page("idle cost", GROUP),
            "showback": showback("idle_cost", GROUP),
            "metrics": metric("gputally_idle_cost_total", GROUP),
        },
    ),
)
LOST: Final = (
    Question(
        "lost GPU-hours by tier and tenant",
        {
            "report": report("lost", GROUP),
            "SQL": sql.lost(GROUP),
            "preemptions": preemption_rows("lost_gpu_hours", GROUP),
            "/api/v1/preemptions": api(PREEMPTIONS_PATH, "lost_gpu_hours", GROUP),
            "/api/v1/report": api_report("lost", GROUP),
            "page": page("lost GPU-hours", GROUP),
            "showback": showback("lost", GROUP),
            "metrics": metric("gputally_disruption_lost_gpu_seconds_total", GROUP, per=HOUR_S),
        },
    ),
    Question(
        "lost cost by tier and tenant",
        {
            "report": report("lost_cost", GROUP),
            "SQL": sql.lost(GROUP, cost=True),
            "preemptions": preemption_rows("lost_costs", GROUP),
            "/api/v1/preemptions": api(PREEMPTIONS_PATH, "lost_costs", GROUP),
            "/api/v1/report": api_report("lost_cost", GROUP),
            "page": page("lost cost", GROUP),
            "showback": showback("lost_cost", GROUP),
            "metrics": metric("gputally_disruption_lost_cost_total", GROUP),
        },
    ),
    Question(
        "lost GPU-hours by job",
        {
            "report": report("lost", ("job",)),
            "SQL": sql.lost(("job",)),
            "preemptions": preemption_rows("lost_gpu_hours", ("job",)),
            "showback": showback("lost", ("job",)),
        },
    ),
    Question(
        "GPU-hours lost to preemptions, by tier and tenant",
        {
            "metrics": metric("gputally_preemption_lost_gpu_seconds_total", VICTIM, per=HOUR_S),
            "preemptions": preemption_rows("lost_gpu_hours", GROUP, "--cause=preemption"),
            "preemptions --by job": preemption_rows("lost_gpu_hours", GROUP, "--by=job"),
        },
    ),
)
PREEMPTIONS: Final = (
    Question(
        "preempted pods by tier and tenant",
        {
            "SQL": sql.preempted(VICTIM),
            "preemptions": preemption_rows(COUNT, GROUP, "--cause=preemption"),
            "preemptions --by job": preemption_rows("pods", GROUP, "--by=job"),
            "/api/v1/preemptions": api(PREEMPTIONS_PATH, COUNT, GROUP, where={"cause": "preemption"}),
            "metrics of tenants": metric("gputally_tenant_preemptions_total", VICTIM),
            "metrics of disruptions": metric("gputally_disruptions_total", GROUP, where={"cause": "preemption"}),
        },
    ),
    Question(
        "preempted pods by tier of victim and preemptor",
        {
            "SQL": sql.preempted(("victim_tier", "preemptor_tier")),
            "preemptions": preemption_rows(COUNT, ("tier", "preemptor_tier"), "--cause=preemption"),
            "metrics": metric("gputally_preemptions_total", ("victim_tier", "preemptor_tier")),
            "posture": observed(lambda row: (row["victim"], row["preemptor"])),
        },
    ),
    Question(
        "disrupted pods by tier, tenant and cause",
        {
            "SQL": sql.disrupted((*GROUP, "cause")),
            "metrics": metric("gputally_disruptions_total", (*GROUP, "cause")),
        },
    ),
)
WAITS: Final = (
    Question(
        "pending GPU-hours by tier, cause and occupying tier",
        {
            "SQL": sql.waited(WAIT),
            "waits": command("waits", "gpu_hours", WAIT, f"--by={','.join(WAIT)}", where={"pods": "pending"}),
            "/api/v1/waits": api(WAITS_PATH, "gpu_hours", WAIT, where={"pods": "pending"}),
            "metrics": metric(PENDING, WAIT, per=HOUR_S, overcount="pending"),
        },
    ),
    Question(
        "cost of pending GPU-hours by tier, cause and occupying tier",
        {
            "SQL": sql.waited(WAIT, cost=True),
            "waits": command("waits", "cost", WAIT, f"--by={','.join(WAIT)}", where={"pods": "pending"}),
            "/api/v1/waits": api(WAITS_PATH, "cost", WAIT, where={"pods": "pending"}),
            "metrics": metric(PENDING_COST, WAIT, overcount="pending_cost"),
        },
    ),
    Question(
        "pending GPU-hours in all",
        {"SQL": total(sql.waited(WAIT)), "metrics": counted(PENDING, "pending", per=HOUR_S)},
    ),
    Question(
        "cost of pending GPU-hours in all",
        {"SQL": total(sql.waited(WAIT, cost=True)), "metrics": counted(PENDING_COST, "pending_cost")},
    ),
    Question(
        "GPU-hours of pods that do not exist, by tier and cause",
        {
            "SQL": sql.uncreated(UNCREATED),
            "waits": command(
                "waits", "gpu_hours", UNCREATED, f"--by={','.join(UNCREATED)}", where={"pods": "uncreated"}
            ),
            "metrics": metric("gputally_uncreated_gpu_seconds_total", UNCREATED, per=HOUR_S, overcount="uncreated"),
        },
    ),
    Question(
        "pods bound, by tier",
        {
            "metrics": metric("gputally_time_to_schedule_seconds_count", ("tier",)),
            "report": report("pods", ("tier",)),
        },
    ),
)
CAPACITY: Final = (
    Question(
        "capacity in all",
        {
            "SQL": sql.offered(),
            "waterfall": waterfall("gpu_hours", {("capacity", ""): ()}),
            "metrics": capacity_metrics(CAPACITY_TIME, "capacity", above=OVERCOMMITTED, per=HOUR_S),
        },
    ),
    Question(
        "cost of the capacity",
        {
            "waterfall": waterfall("cost", {("capacity", ""): ()}),
            "metrics": capacity_metrics(CAPACITY_COST, "capacity_cost"),
        },
    ),
    Question(
        "capacity by state",
        {
            "waterfall": waterfall("gpu_hours", STEPS),
            "metrics": metric(CAPACITY_TIME, ("state",), per=HOUR_S, overcount="capacity"),
        },
    ),
    Question(
        "unallocated capacity",
        {
            "report": total(command("report", "gpu_hours", TENANT, "--unallocated", where={"tenant": "(unallocated)"})),
            "waterfall": waterfall("gpu_hours", {("allocated", state): () for state in NOT_ALLOCATED}),
            "metrics": unallocated_metrics(CAPACITY_TIME, "capacity", per=HOUR_S),
        },
    ),
    Question(
        "cost of unallocated capacity",
        {
            "report": total(command("report", "cost", TENANT, "--unallocated", where={"tenant": "(unallocated)"})),
            "waterfall": waterfall("cost", {("allocated", state): () for state in NOT_ALLOCATED}),
            "metrics": unallocated_metrics(CAPACITY_COST, "capacity_cost"),
        },
    ),
)
QUESTIONS: Final = (*GPU_HOURS, *COSTS, *USE, *LOST, *PREEMPTIONS, *WAITS, *CAPACITY, *NOW)
