"""Who waits for GPUs, for how long, and whether that is within the objective."""

from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, RED, YELLOW, Column, Look, Query, heatmap, stat, table, timeseries
from monitoring.selector import Selectors
from monitoring.unit import COUNT, GPUS, RATIO, SECONDS

select = Selectors("cluster", "tier", "tenant")

PAGE_AFTER = "<InferencePodsPending.seconds>"
WAITING = select.now("gputally_pending_pods")
ASKED = select.now("gputally_pending_gpus")
OLDEST = select.now("gputally_pending_oldest_timestamp_seconds")
OLDEST_INFERENCE = select.now("gputally_pending_oldest_timestamp_seconds", 'tier=~"<objective.tiers>"')
BUCKETS = select("gputally_time_to_schedule_seconds_bucket")
INFERENCE = 'tier=~"<objective.tiers>"'
IN_TIME = select("gputally_time_to_schedule_seconds_bucket", INFERENCE, 'le=~"<objective.seconds>([.]0)?"')
SCHEDULED = select("gputally_time_to_schedule_seconds_count", INFERENCE)
FREE = 'max by (cluster, gpu_model, pool) (gputally_capacity_gpus{cluster=~"$cluster", state="free"})'
LOST = (
    "max by (cluster, gpu_model, pool, state) "
    '(gputally_capacity_gpus{cluster=~"$cluster", state=~"unknown|unhealthy|cordoned"})'
)

NOW = Row(
    "Now",
    (
        stat(
            Look(
                "Pods waiting",
                "Pods that ask for GPUs and are bound to no node. One that pulls its image waits no more.",
                unit=COUNT,
                empty="no exporter answers",
                steps={1: YELLOW},
            ),
            Query(f"sum({WAITING})", "pods"),
            trend=True,
        ),
        stat(
            Look(
                "GPUs they ask for",
                "By the weights of GPUs that are not shared.",
                unit=GPUS,
                empty="no exporter answers",
                steps={0.001: YELLOW},
            ),
            Query(f"sum({ASKED})", "GPUs"),
            trend=True,
        ),
        stat(
            Look(
                "Oldest inference pod",
                "How long it has waited, since it was made. It pages when this turns red.",
                unit=SECONDS,
                empty="nobody waits",
                steps={PAGE_AFTER: RED},
            ),
            Query(f"time() - min({OLDEST_INFERENCE})", "oldest"),
        ),
        stat(
            Look(
                "GPUs free",
                "Of the whole cluster. If there are enough for the pods, they are in pieces too small, or "
                "of a model or on nodes that the pods may not use.",
                unit=GPUS,
                empty="none",
                links=(Link("The fleet", "fleet"),),
            ),
            Query(f"sum({FREE})", "free"),
        ),
        stat(
            Look(
                "GPUs out of use",
                "Of nodes that are not ready or cordoned, or unhealthy themselves.",
                unit=GPUS,
                empty="none",
                steps={0.001: ORANGE},
                links=(Link("The fleet", "fleet"),),
            ),
            Query(f"sum({LOST})", "out of use"),
        ),
        stat(
            Look(
                "Inference later than <objective.seconds> s",
                "Of inference pods bound in the time shown, of all tenants; the objective allows <objective.allowed>. "
                "Pods that still wait are not in it.",
                unit=RATIO,
                empty="no pod was scheduled",
                steps={"<objective.allowed>": RED},
            ),
            Query(f"1 - sum(increase({IN_TIME}[$__range])) / sum(increase({SCHEDULED}[$__range]))", "late"),
        ),
        table(
            Look(
                "Who waits",
                "By tier and tenant, the longest wait first.",
                empty="nobody waits",
                links=(
                    Link("Whom this tier may take GPUs from", "tiers", {"tier": "tier"}),
                    Link("What this tenant holds", "tenants", {"tenant": "tenant"}),
                ),
                width=24,
                height=7,
            ),
            {"tier": "Tier", "tenant": "Tenant"},
            Column(head="Pods", expression=f"sum by (tier, tenant) ({WAITING}) > 0", unit=COUNT),
            Column(head="GPUs", expression=f"sum by (tier, tenant) ({ASKED}) > 0", unit=GPUS),
            Column(
                head="Oldest",
                expression=f"time() - min by (tier, tenant) ({OLDEST})",
                unit=SECONDS,
            ),
            order="Oldest",
        ),
    ),
)

OVER_TIME = Row(
    "Over time",
    (
        timeseries(
            Look("Pods waiting, by tier", "Pods bound to no node.", empty="no exporter answers"),
            Query(f"sum by (tier) ({WAITING})", "{{tier}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "GPUs asked for, by tenant",
                "What would have to come free for nobody to wait.",
                unit=GPUS,
                empty="no exporter answers",
            ),
            Query(f"sum by (tenant) ({ASKED})", "{{tenant}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Age of the oldest waiting pod, by tier",
                "A saw is a queue that moves; a line that only climbs is a pod that fits nowhere. Above the dashes "
                "inference pages.",
                unit=SECONDS,
                empty="nobody waited",
                steps={PAGE_AFTER: RED},
                width=24,
            ),
            Query(f"time() - min by (tier) ({OLDEST})", "{{tier}}"),
        ),
    ),
)

TIME_TO_SCHEDULE = Row(
    "Time to schedule",
    (
        heatmap(
            Look(
                "How long pods waited",
                "Pods bound, of all tenants, by the time from their creation to their binding.",
                unit=SECONDS,
                empty="no pod was scheduled",
            ),
            Query(f"sum by (le) (increase({BUCKETS}[$__rate_interval]))", "{{le}}"),
        ),
        timeseries(
            Look(
                "The half, nine in ten, 99 in 100",
                "So long or less did these shares of the pods of all tenants wait, as near as the buckets tell.",
                unit=SECONDS,
                empty="no pod was scheduled",
                steps={"<objective.seconds>": RED},
            ),
            Query(f"histogram_quantile(0.5, sum by (le) (rate({BUCKETS}[$__rate_interval])))", "half"),
            Query(f"histogram_quantile(0.9, sum by (le) (rate({BUCKETS}[$__rate_interval])))", "90 %"),
            Query(f"histogram_quantile(0.99, sum by (le) (rate({BUCKETS}[$__rate_interval])))", "99 %"),
        ),
        timeseries(
            Look(
                "Inference later than <objective.seconds> s, by tier",
                "The share of the inference pods bound, of all tenants, that had waited too long. Alerts fire "
                "when it eats the allowance of 30 days too fast.",
                unit=RATIO,
                empty="no pod was scheduled",
                steps={"<objective.allowed>": RED},
                width=24,
            ),
            Query(
                f"1 - sum by (tier) (rate({IN_TIME}[$__rate_interval]))"
                f" / sum by (tier) (rate({SCHEDULED}[$__rate_interval]))",
                "{{tier}}",
            ),
        ),
    ),
)

BOARD = Board(
    name="pending",
    title="Pending",
    description="Which pods wait for GPUs, how long the oldest of them has waited, and how fast pods are scheduled.",
    variables=(
        Variable("cluster", "Cluster", "gputally_pending_pods"),
        Variable("tier", "Tier", "gputally_pending_pods"),
        Variable("tenant", "Tenant", "gputally_pending_pods"),
    ),
    rows=(NOW, OVER_TIME, TIME_TO_SCHEDULE),
)
