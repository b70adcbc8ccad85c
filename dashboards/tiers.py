"""Allocation and cost of each priority tier, by day and by night, and preemptions between tiers."""

from dashboards.rows.preempted import (
    by_preemptor,
    by_victim_tier,
    preempted_gpus,
    preemption_count,
    preemptions_of_tenants,
)
from monitoring import annotation
from monitoring.board import Board, Constant, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, Column, Look, Query, table, timeseries
from monitoring.selector import Selectors, grown_in_all
from monitoring.unit import GPU_HOURS, GPUS, MONEY, MONEY_PER_HOUR, RATIO

select = Selectors("cluster", "tier", "tenant", "gpu_model")

ALLOCATED = select("gputally_allocated_gpu_seconds_total")
COST = select("gputally_allocated_cost_total")
GANG_WAIT = select("gputally_allocated_gpu_seconds_total", 'state="gang_wait"')
STARTING = select("gputally_allocated_gpu_seconds_total", 'state="starting"')
TERMINATING = select("gputally_allocated_gpu_seconds_total", 'state="terminating"')


def by_day(counter: str, labels: str, *, day: bool) -> str:
    """The increase of a counter over the time range, within the hours of the day or outside them.

    It sums the increase of each five minutes within those hours: only a subquery can select times in PromQL.
    """
    which = "and" if day else "unless"
    hours = "(hour() >= $day_begins and hour() < $day_ends and day_of_week() > 0 and day_of_week() < 6)"
    return f"sum_over_time((sum by ({labels}) (increase({counter}[5m])) {which} on () {hours})[$__range:5m])"


OVERVIEW = Row(
    "Totals in the time range",
    (
        table(
            Look(
                "GPU-hours and cost by tier",
                "From binding to release. Starting is the share before any container ran, gang wait the share while "
                "other pods of the gang had not started, terminating the share while pods were being deleted. "
                "Utilisation is the busy share of the time that agents measured.",
                empty="no allocated GPUs",
                links=(Link("Tenants of this tier", "tenants", {"tier": "tier"}),),
                width=24,
            ),
            {"tier": "Tier", "currency": "Currency"},
            Column(head="GPU-hours", expression=f"{grown_in_all(ALLOCATED, 'tier')} / 3600", unit=GPU_HOURS),
            Column(head="Cost", expression=grown_in_all(COST, "tier", "currency"), unit=MONEY),
            Column(
                head="Starting",
                expression=f"{grown_in_all(STARTING, 'tier')} / {grown_in_all(ALLOCATED, 'tier')}",
                unit=RATIO,
                steps={0.1: ORANGE},
            ),
            Column(
                head="Gang wait",
                expression=f"{grown_in_all(GANG_WAIT, 'tier')} / {grown_in_all(ALLOCATED, 'tier')}",
                unit=RATIO,
                steps={0.1: ORANGE},
            ),
            Column(
                head="Terminating",
                expression=f"{grown_in_all(TERMINATING, 'tier')} / {grown_in_all(ALLOCATED, 'tier')}",
                unit=RATIO,
                steps={0.1: ORANGE},
            ),
            Column(
                head="Utilisation",
                expression=select.busy("tier", whole=True),
                unit=RATIO,
            ),
            Column(
                head="Idle cost",
                expression=grown_in_all(select("gputally_idle_cost_total"), "tier", "currency"),
                unit=MONEY,
            ),
            order="GPU-hours",
        ),
    ),
)

OVER_TIME = Row(
    "Over time",
    (
        timeseries(
            Look(
                "Allocated GPUs by tier",
                "GPUs allocated to the pods of each tier.",
                unit=GPUS,
                empty="no allocated GPUs",
            ),
            Query(f"sum by (tier) ({select.now('gputally_allocated_gpus')})", "{{tier}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Cost per hour by tier",
                "With tier multipliers.",
                unit=MONEY_PER_HOUR,
                empty="no price book",
            ),
            Query(f"sum by (tier, currency) (rate({COST}[$__rate_interval])) * 3600", "{{tier}} {{currency}}"),
            stacked=True,
        ),
    ),
)

DAY_AND_NIGHT = Row(
    "Day and night (UTC; day is Monday to Friday, in the hours selected above)",
    (
        table(
            Look(
                "GPU-hours and cost by day and by night",
                "The time range, split by the hours selected above. Weekends count as night. It adds up steps of five "
                "minutes, so a boundary within a step is off by up to five minutes.",
                empty="no allocated GPUs",
                width=24,
            ),
            {"tier": "Tier", "currency": "Currency"},
            Column(head="Day", expression=f"{by_day(ALLOCATED, 'tier', day=True)} / 3600", unit=GPU_HOURS),
            Column(head="Night", expression=f"{by_day(ALLOCATED, 'tier', day=False)} / 3600", unit=GPU_HOURS),
            Column(head="Cost by day", expression=by_day(COST, "tier, currency", day=True), unit=MONEY),
            Column(head="Cost by night", expression=by_day(COST, "tier, currency", day=False), unit=MONEY),
            order="Day",
        ),
    ),
)

PREEMPTION = Row(
    "Preemption",
    (
        preemption_count(height=9),
        preempted_gpus(height=9),
        by_victim_tier(),
        by_preemptor("Preemptions by preemptor and victim", order="Preemptions"),
        table(
            Look(
                "Preemptions by tenant",
                "Tenants whose pods lost their GPUs.",
                empty="no preemptions",
                links=(Link("This tenant", "tenants", {"tenant": "victim_tenant"}),),
                width=12,
            ),
            {"victim_tenant": "Tenant", "victim_tier": "Tier"},
            preemptions_of_tenants(),
            order="Preemptions",
        ),
        timeseries(
            Look(
                "GPUs held by terminating pods",
                "GPUs of pods that are being deleted and have not released them. The scheduler has given them to other "
                "pods, and no work runs on them: this is what long grace periods cost.",
                unit=GPUS,
                empty="no allocated GPUs",
            ),
            Query(f"sum by (tier) (rate({TERMINATING}[$__rate_interval]))", "{{tier}}"),
            stacked=True,
        ),
    ),
)

BOARD = Board(
    name="tiers",
    title="Tiers and preemption",
    description="Allocation and cost of each priority tier, by day and by night, and preemptions between tiers.",
    variables=(
        Variable("cluster", "Cluster", "gputally_allocated_gpus"),
        Variable("tier", "Tier", "gputally_allocated_gpus"),
        Variable("tenant", "Tenant", "gputally_allocated_gpus"),
        Variable("gpu_model", "GPU model", "gputally_allocated_gpus"),
        Constant("day_begins", "Day starts at (UTC)", "8", tuple(str(hour) for hour in range(24))),
        Constant("day_ends", "Day ends at (UTC)", "18", tuple(str(hour) for hour in range(1, 25))),
    ),
    annotations=annotation.ALL,
    rows=(OVERVIEW, OVER_TIME, DAY_AND_NIGHT, PREEMPTION),
)
