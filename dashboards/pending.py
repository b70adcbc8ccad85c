"""Pods that wait for GPUs, their wait times, and whether these meet the objective."""

from dashboards.rows.waits import REASONS
from monitoring import annotation
from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, RED, YELLOW, Column, Look, Query, heatmap, stat, table, timeseries
from monitoring.selector import Selectors
from monitoring.unit import COUNT, GPUS, RATIO, SECONDS

select = Selectors("cluster", "tier", "tenant")

PAGE_AFTER = "<InferencePodsPending.seconds>"
PENDING = select.now("gputally_pending_pods")
REQUESTED = select.now("gputally_pending_gpus")
OLDEST = select.now("gputally_pending_oldest_timestamp_seconds")
SERVING_TIERS = select("gputally_tier_info", 'serving="true"')
SERVING = f"and on (cluster, tier) {SERVING_TIERS}"
"""Of tiers that serve user traffic."""
OLDEST_INFERENCE = f"{OLDEST} {SERVING}"
BUCKETS = select("gputally_time_to_schedule_seconds_bucket")
IN_TIME = select("gputally_time_to_schedule_seconds_bucket", 'le=~"<objective.seconds>([.]0)?"')
SCHEDULED = select("gputally_time_to_schedule_seconds_count")
FREE = 'max by (cluster, gpu_model, pool) (gputally_capacity_gpus{cluster=~"$cluster", state="free"})'
UNAVAILABLE = (
    "max by (cluster, gpu_model, pool, state) "
    '(gputally_capacity_gpus{cluster=~"$cluster", state=~"unknown|unhealthy|cordoned"})'
)

POD_GPUS = select.now("gputally_pod_gpus", 'state="pending"')
POD_PENDING = select.now("gputally_pod_pending_timestamp_seconds")
MODEL_GPUS = select.now("gputally_pending_model_gpus")
DEMAND = (
    "(sum("
    'max by (cluster, tier, tenant, gpu_model) (gputally_allocated_gpus{cluster=~"$cluster"})'
    ") + sum("
    'max by (cluster, tier, tenant) (gputally_pending_gpus{cluster=~"$cluster"})'
    ")) / sum("
    'max by (cluster, gpu_model, pool, state) (gputally_capacity_gpus{cluster=~"$cluster"}))'
)
_PREEMPTOR = 'cluster=~"$cluster", preemptor_tier=~"$tier|unknown"'
_PAIRS = "max by (cluster, victim_tier, preemptor_tier)"
PREEMPTING = f"{_PAIRS} (gputally_preempting_victims{{{_PREEMPTOR}}})"
PREEMPTING_GPUS = f"{_PAIRS} (gputally_preempting_gpus{{{_PREEMPTOR}}})"
PREEMPTING_OLDEST = f"{_PAIRS} (gputally_preempting_oldest_timestamp_seconds{{{_PREEMPTOR}}})"
PENDING_PODS = 100
"""The panel that alerts link to."""

NOW = Row(
    "Now",
    (
        stat(
            Look(
                "Pending pods",
                "Pods that request GPUs and are not bound to a node. Pods that are pulling images are not counted.",
                unit=COUNT,
                empty="no data from the exporter",
                steps={1: YELLOW},
            ),
            Query(f"sum({PENDING})", "pods"),
            trend=True,
        ),
        stat(
            Look(
                "Requested GPUs",
                "GPUs that pending pods request, weighted as on nodes that do not share GPUs.",
                unit=GPUS,
                empty="no data from the exporter",
                steps={0.001: YELLOW},
            ),
            Query(f"sum({REQUESTED})", "GPUs"),
            trend=True,
        ),
        stat(
            Look(
                "Oldest inference pod",
                "Wait time since its creation. When it turns red, the alert pages.",
                unit=SECONDS,
                empty="no inference pod waits",
                steps={PAGE_AFTER: RED},
            ),
            Query(f"time() - min({OLDEST_INFERENCE})", "oldest"),
        ),
        stat(
            Look(
                "Free GPUs",
                "In the whole cluster. If there are enough for the pods, see the reasons above: these GPUs are spread "
                "over nodes, or of a model or on nodes that the pods cannot use.",
                unit=GPUS,
                empty="none",
                links=(Link("Fleet", "fleet"),),
            ),
            Query(f"sum({FREE})", "free"),
        ),
        stat(
            Look(
                "Unavailable GPUs",
                "GPUs that are unhealthy, or on nodes that are cordoned or not ready.",
                unit=GPUS,
                empty="none",
                steps={0.001: ORANGE},
                links=(Link("Fleet", "fleet"),),
            ),
            Query(f"sum({UNAVAILABLE})", "unavailable"),
        ),
        stat(
            Look(
                "Late inference (> <objective.seconds> s)",
                "The share of inference pods of all tenants bound late in the time range. The objective allows "
                "<objective.allowed>. Pending pods are not included.",
                unit=RATIO,
                empty="no pods scheduled",
                steps={"<objective.allowed>": RED},
            ),
            Query(
                f"1 - sum(increase({IN_TIME}[$__range]) {SERVING}) / sum(increase({SCHEDULED}[$__range]) {SERVING})",
                "late",
            ),
        ),
        table(
            Look(
                "Pending pods by tier and tenant",
                "The longest wait first. `kubectl gputally why --tenant TENANT` says what they wait for.",
                empty="no pending pods",
                links=(
                    Link("GPUs and preemptions of this tier", "tiers", {"tier": "tier"}),
                    Link("Allocated GPUs of this tenant", "tenants", {"tenant": "tenant"}),
                ),
                width=24,
                height=7,
            ),
            {"tier": "Tier", "tenant": "Tenant"},
            Column(head="Pods", expression=f"sum by (tier, tenant) ({PENDING}) > 0", unit=COUNT),
            Column(head="GPUs", expression=f"sum by (tier, tenant) ({REQUESTED}) > 0", unit=GPUS),
            Column(
                head="Oldest",
                expression=f"time() - min by (tier, tenant) ({OLDEST})",
                unit=SECONDS,
            ),
            order="Oldest",
        ),
        table(
            Look(
                "Preemptions under way",
                "Preempted pods of all tenants that still have their GPUs, by the tier that the scheduler makes room "
                "for. Until an Event names the preemptor, it is unknown.",
                empty="no preempted pods are terminating",
                links=(Link("Causes and steps of preemptions", "preemption", {"tier": "victim_tier"}),),
                width=24,
                height=6,
            ),
            {"preemptor_tier": "Preemptor", "victim_tier": "Victim"},
            Column(head="Victims", expression=f"sum by (preemptor_tier, victim_tier) ({PREEMPTING}) > 0", unit=COUNT),
            Column(head="GPUs", expression=f"sum by (preemptor_tier, victim_tier) ({PREEMPTING_GPUS}) > 0", unit=GPUS),
            Column(
                head="First request",
                expression=f"time() - min by (preemptor_tier, victim_tier) ({PREEMPTING_OLDEST})",
                unit=SECONDS,
            ),
            order="First request",
        ),
        table(
            Look(
                "Pending pods by name",
                "The longest wait first. `kubectl gputally why NAMESPACE/POD` says why, who holds what it needs, and "
                "what would help.",
                empty="no pending pods, or no podMetricsMonitor",
                width=24,
                height=9,
                id=PENDING_PODS,
            ),
            {"namespace": "Namespace", "pod": "Pod", "tier": "Tier", "tenant": "Tenant"},
            Column(head="GPUs", expression=f"sum by (namespace, pod, tier, tenant) ({POD_GPUS})", unit=GPUS),
            Column(
                head="Waits for",
                expression=f"time() - min by (namespace, pod, tier, tenant) ({POD_PENDING})",
                unit=SECONDS,
            ),
            order="Waits for",
        ),
    ),
)

OVER_TIME = Row(
    "Over time",
    (
        timeseries(
            Look("Pending pods by tier", "Pods that are not bound to a node.", empty="no data from the exporter"),
            Query(f"sum by (tier) ({PENDING})", "{{tier}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Requested GPUs by tenant",
                "GPUs that must become free before all pending pods can run.",
                unit=GPUS,
                empty="no data from the exporter",
            ),
            Query(f"sum by (tenant) ({REQUESTED})", "{{tenant}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Demand over capacity, all tiers and tenants",
                "Allocated and requested GPUs as a share of all GPUs; its mean over a week is the trend. Above 100 %, "
                "pods wait even if every GPU is in use.",
                unit=RATIO,
                empty="no data from the exporter",
                steps={1: RED},
            ),
            Query(DEMAND, "demand"),
            Query(f"avg_over_time(({DEMAND})[7d:1h])", "mean over 7 days"),
        ),
        table(
            Look(
                "Demand by GPU model, all tiers and tenants",
                "GPUs that pending pods request, by the model that their node selector requires, and free GPUs of it.",
                empty="no data from the exporter",
            ),
            {"gpu_model": "GPU model"},
            Column(head="Requested", expression=f"sum by (gpu_model) ({MODEL_GPUS})", unit=GPUS),
            Column(head="Free", expression=f"sum by (gpu_model) ({FREE})", unit=GPUS),
            order="Requested",
        ),
        timeseries(
            Look(
                "Age of the oldest pending pod by tier",
                "A sawtooth is a queue that moves; a line that only climbs is a pod that fits nowhere. Above the "
                "dashed line, inference pods page.",
                unit=SECONDS,
                empty="no inference pod waits",
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
                "Wait time distribution",
                "Bound pods of all tenants, by the time from creation to binding.",
                unit=SECONDS,
                empty="no pods scheduled",
            ),
            Query(f"sum by (le) (increase({BUCKETS}[$__rate_interval]))", "{{le}}"),
        ),
        timeseries(
            Look(
                "Wait time p50 / p90 / p99",
                "Of the pods of all tenants, estimated from histogram buckets.",
                unit=SECONDS,
                empty="no pods scheduled",
                steps={"<objective.seconds>": RED},
            ),
            Query(f"histogram_quantile(0.5, sum by (le) (rate({BUCKETS}[$__rate_interval])))", "p50"),
            Query(f"histogram_quantile(0.9, sum by (le) (rate({BUCKETS}[$__rate_interval])))", "p90"),
            Query(f"histogram_quantile(0.99, sum by (le) (rate({BUCKETS}[$__rate_interval])))", "p99"),
        ),
        timeseries(
            Look(
                "Late inference (> <objective.seconds> s) by tier",
                "The share of inference pods of all tenants that were bound late. Alerts fire when it burns the 30-day "
                "error budget too fast.",
                unit=RATIO,
                empty="no pods scheduled",
                steps={"<objective.allowed>": RED},
                width=24,
            ),
            Query(
                f"1 - sum by (tier) (rate({IN_TIME}[$__rate_interval]) {SERVING})"
                f" / sum by (tier) (rate({SCHEDULED}[$__rate_interval]) {SERVING})",
                "{{tier}}",
            ),
        ),
    ),
)

BOARD = Board(
    name="pending",
    title="Pending",
    description="Why pods wait for GPUs, the age of the oldest one, and the time to schedule.",
    variables=(
        Variable("cluster", "Cluster", "gputally_pending_pods"),
        Variable("tier", "Tier", "gputally_pending_pods"),
        Variable("tenant", "Tenant", "gputally_pending_pods"),
    ),
    annotations=annotation.ALL,
    rows=(REASONS, NOW, OVER_TIME, TIME_TO_SCHEDULE),
)
