"""What each priority tier holds and costs, by day and by night, and who takes GPUs from whom."""

from monitoring.board import Board, Constant, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, Column, Look, Query, stat, table, timeseries
from monitoring.selector import Selectors, grown_in_all
from monitoring.unit import COUNT, GPU_HOURS, GPUS, MONEY, MONEY_PER_HOUR, PER_HOUR, RATIO

select = Selectors("cluster", "tier", "tenant", "gpu_model")

ALLOCATED = select("gputally_allocated_gpu_seconds_total")
COST = select("gputally_allocated_cost_total")
STARTING = select("gputally_allocated_gpu_seconds_total", 'state="starting"')
TERMINATING = select("gputally_allocated_gpu_seconds_total", 'state="terminating"')
PREEMPTIONS = 'gputally_preemptions_total{cluster=~"$cluster", victim_tier=~"$tier"}'
PREEMPTED_GPUS = 'gputally_preempted_gpus_total{cluster=~"$cluster", victim_tier=~"$tier"}'


def by_day(counter: str, labels: str, *, day: bool) -> str:
    """The growth of a counter over the time shown, in the hours of the day or in all others.

    Growth in five minutes, summed where they lie in those hours: a subquery, since PromQL selects no times otherwise.
    """
    which = "and" if day else "unless"
    hours = "(hour() >= $day_begins and hour() < $day_ends and day_of_week() > 0 and day_of_week() < 6)"
    return f"sum_over_time((sum by ({labels}) (increase({counter}[5m])) {which} on () {hours})[$__range:5m])"


OVERVIEW = Row(
    "The time shown",
    (
        table(
            Look(
                "What each tier had",
                "GPU-hours and cost from binding to release. Starting and terminating are the shares of "
                "them in which no container ran yet, or a pod was on its way out; busy is of what agents measured.",
                empty="no pod held a GPU",
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
                head="Terminating",
                expression=f"{grown_in_all(TERMINATING, 'tier')} / {grown_in_all(ALLOCATED, 'tier')}",
                unit=RATIO,
                steps={0.1: ORANGE},
            ),
            Column(
                head="Busy",
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
            Look("GPUs held", "GPUs that the pods of each tier hold.", unit=GPUS, empty="no pod held a GPU"),
            Query(f"sum by (tier) ({select.now('gputally_allocated_gpus')})", "{{tier}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Cost per hour",
                "What they cost per hour, with the multipliers of tiers.",
                unit=MONEY_PER_HOUR,
                empty="no price book",
            ),
            Query(f"sum by (tier, currency) (rate({COST}[$__rate_interval])) * 3600", "{{tier}} {{currency}}"),
            stacked=True,
        ),
    ),
)

DAY_AND_NIGHT = Row(
    "Day against night (UTC; the day is of Monday to Friday, by the choices above)",
    (
        table(
            Look(
                "GPU-hours and cost by day and by night",
                "The time shown, split by the hours chosen above. Night has the weekends. It adds up "
                "pieces of five minutes, so a border that falls into one is off by as much.",
                empty="no pod held a GPU",
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
        stat(
            Look(
                "Preemptions",
                "Pods with GPUs that the scheduler evicted for others, in the time shown.",
                unit=COUNT,
                empty="no exporter answers",
                height=9,
            ),
            Query(grown_in_all(PREEMPTIONS), "preemptions"),
        ),
        stat(
            Look(
                "GPUs taken",
                "GPUs that those pods held when they were evicted.",
                unit=GPUS,
                empty="no exporter answers",
                height=9,
            ),
            Query(grown_in_all(PREEMPTED_GPUS), "GPUs"),
        ),
        timeseries(
            Look(
                "Preemptions per hour",
                "By the tier of who lost its GPUs.",
                unit=PER_HOUR,
                empty="no exporter answers",
                width=16,
            ),
            Query(f"sum by (victim_tier) (rate({PREEMPTIONS}[$__rate_interval])) * 3600", "{{victim_tier}}"),
        ),
        table(
            Look(
                "Who preempted whom",
                "Compare it with who may: a tier that loses to one below it shows priorities set wrong. "
                "Unknown is a preemptor that no Event named, or one without GPUs.",
                empty="nobody preempted anybody",
                links=(Link("Who of this tier waits", "pending", {"tier": "preemptor_tier"}),),
                width=12,
            ),
            {"preemptor_tier": "Preemptor", "victim_tier": "Victim"},
            Column(
                head="Preemptions",
                expression=f"{grown_in_all(PREEMPTIONS, 'preemptor_tier', 'victim_tier')} > 0",
                unit=COUNT,
            ),
            Column(
                head="GPUs taken",
                expression=f"{grown_in_all(PREEMPTED_GPUS, 'preemptor_tier', 'victim_tier')} > 0",
                unit=GPUS,
            ),
            order="Preemptions",
        ),
        timeseries(
            Look(
                "GPUs on their way from one pod to the next",
                "GPUs of pods that were told to stop and have not yet let go. The scheduler has given them "
                "away, and nobody computes on them: a long grace period is paid for here.",
                unit=GPUS,
                empty="no pod held a GPU",
            ),
            Query(f"sum by (tier) (rate({TERMINATING}[$__rate_interval]))", "{{tier}}"),
            stacked=True,
        ),
    ),
)

BOARD = Board(
    name="tiers",
    title="Tiers and preemption",
    description="What each priority tier holds and costs, by day and by night, and who takes GPUs from whom.",
    variables=(
        Variable("cluster", "Cluster", "gputally_allocated_gpus"),
        Variable("tier", "Tier", "gputally_allocated_gpus"),
        Variable("tenant", "Tenant", "gputally_allocated_gpus"),
        Variable("gpu_model", "GPU model", "gputally_allocated_gpus"),
        Constant("day_begins", "Day begins at (UTC)", "8", tuple(str(hour) for hour in range(24))),
        Constant("day_ends", "Day ends at (UTC)", "18", tuple(str(hour) for hour in range(1, 25))),
    ),
    rows=(OVERVIEW, OVER_TIME, DAY_AND_NIGHT, PREEMPTION),
)
