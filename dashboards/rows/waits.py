"""Why pods wait for GPUs, what that is charged to, and what would fit."""

from monitoring.board import Row
from monitoring.panel import ORANGE, RED, Column, Look, Query, stat, table, timeseries
from monitoring.selector import Selectors
from monitoring.unit import COUNT, GPU_HOURS, GPUS, MONEY, MONEY_PER_HOUR, RATIO, SECONDS

select = Selectors("cluster", "tier", "tenant")

REASON_PODS = select.now("gputally_pending_reason_pods")
REASON_GPUS = select.now("gputally_pending_reason_gpus")
INVERTED = select.now("gputally_pending_finding_pods", 'finding="inversion"')
STARVED = select.now("gputally_pending_finding_pods", 'finding="starvation"')
CHARGED = select("gputally_pending_gpu_seconds_total")
CHARGED_COST = select("gputally_pending_cost_total")
PARTIAL_GANGS = select.now("gputally_partial_gangs")
PARTIAL_GPUS = select.now("gputally_partial_gang_gpus")
PARTIAL_OLDEST = select.now("gputally_partial_gang_oldest_timestamp_seconds")
DEADLOCKED = 'max by (cluster) (gputally_deadlocked_gangs{cluster=~"$cluster"})'
GANG_WAIT = select("gputally_allocated_gpu_seconds_total", 'state="gang_wait"')
GANG_COST = select("gputally_allocated_cost_total", 'state="gang_wait"')
FITTING = select.now("gputally_fitting_pods")
STRANDED = select.now("gputally_stranded_gpus")
UNUSED = select.now("gputally_preemption_unused_gpus")
NODES = select.now("gputally_job_nodes")
NODES_NEEDED = select.now("gputally_job_nodes_needed")
UNCREATED_PODS = select.now("gputally_uncreated_pods")
UNCREATED_GPUS = select.now("gputally_uncreated_gpus")
UNCREATED_TIME = select("gputally_uncreated_gpu_seconds_total")
UNCREATED_COST = select("gputally_uncreated_cost_total")
LAG = select("gputally_verdict_lag_seconds_bucket")

REASONS = Row(
    "Why pods wait",
    (
        table(
            Look(
                "Pending pods by reason",
                "Of all tenants. `kubectl gputally why --all` names the pods; docs/pending.md says what to do. "
                "More nodes can help against capacity, fragmented, cpu_or_memory, inversion and never_preempts, not "
                "against quota, gated, excluded or impossible.",
                empty="no pending pods",
                width=12,
                height=8,
            ),
            {"tier": "Tier", "reason": "Reason"},
            Column(head="Pods", expression=f"sum by (tier, reason) ({REASON_PODS}) > 0", unit=COUNT),
            Column(head="GPUs", expression=f"sum by (tier, reason) ({REASON_GPUS}) > 0", unit=GPUS),
            order="GPUs",
        ),
        table(
            Look(
                "Wait time by tier, cause and occupying tier",
                "GPU-hours that pods waited in the time range, what they are charged to, and the tier of the pods "
                "that held what they waited for: `nobody` if no pod did, as with most of the cause `other`. `kubectl "
                "gputally waits` has the same by tenant, with the cost.",
                empty="no pod waited",
                width=12,
                height=8,
            ),
            {"tier": "Tier", "cause": "Cause", "occupying_tier": "Held by"},
            Column(
                head="GPU-hours",
                expression=f"sum by (tier, cause, occupying_tier) (increase({CHARGED}[$__range])) / 3600 > 0",
                unit=GPU_HOURS,
            ),
            order="GPU-hours",
        ),
        stat(
            Look(
                "Priority inversions",
                "Inference pods that wait because pods that serve no users hold what they need, at the same or a "
                "higher priority: the scheduler does not preempt those. `kubectl gputally why --all` names the pods. "
                "Correct the PriorityClasses; `kubectl gputally posture` checks them.",
                unit=COUNT,
                empty="none",
                steps={1: RED},
            ),
            Query(f"sum({INVERTED})", "pods"),
        ),
        stat(
            Look(
                "Starved pods",
                "Pods that wait while pods of lower priority, which they may not preempt, were bound later to nodes "
                "that they could use. `kubectl gputally why --all` names them.",
                unit=COUNT,
                empty="none",
                steps={1: ORANGE},
            ),
            Query(f"sum({STARVED})", "pods"),
        ),
        stat(
            Look(
                "Partial gangs",
                "Gangs of which some pods hold GPUs, while the others are not bound. `kubectl gputally why --all` "
                "names them.",
                unit=COUNT,
                empty="none",
                steps={1: ORANGE},
            ),
            Query(f"sum({PARTIAL_GANGS})", "gangs"),
        ),
        stat(
            Look(
                "Deadlocked gangs",
                "Partial gangs that wait for each other, and never go on by themselves. `kubectl gputally why --all` "
                "names them; suspend one of them.",
                unit=COUNT,
                empty="none",
                steps={1: RED},
            ),
            Query(f"sum({DEADLOCKED})", "gangs"),
        ),
        stat(
            Look(
                "Delay of reasons p99",
                "How long the reasons on this board lag behind a change of pods or nodes.",
                unit=SECONDS,
                empty="none",
            ),
            Query(f"histogram_quantile(0.99, sum by (le) (rate({LAG}[$__rate_interval])))", "p99"),
        ),
        table(
            Look(
                "Pods not created, by reason",
                "Pods that workloads of all tenants lack. They do not exist, so no other panel counts them. Refused "
                "pods are known only if the aggregator watches Events FailedCreate. Workloads of a kind that it does "
                "not read count as one pod. `kubectl gputally why --all` names the workloads; see docs/pending.md.",
                empty="no workload lacks pods, as far as known",
                width=12,
                height=6,
            ),
            {"tier": "Tier", "reason": "Reason"},
            Column(head="Pods", expression=f"sum by (tier, reason) ({UNCREATED_PODS}) > 0", unit=COUNT),
            Column(head="GPUs", expression=f"sum by (tier, reason) ({UNCREATED_GPUS}) > 0", unit=GPUS),
            order="GPUs",
        ),
        table(
            Look(
                "Wait time of pods not created",
                "GPU-hours in the time range that workloads lacked. Cost: what those of pods that select a GPU model "
                "with a price would have cost. The wait of pending pods is not included. Workloads of a kind that the "
                "aggregator does not read count as one pod, with the GPUs that their quota states.",
                empty="no workload lacked pods, as far as known",
                width=12,
                height=6,
            ),
            {"tier": "Tier", "cause": "Cause", "currency": "Currency"},
            Column(
                head="GPU-hours",
                expression=f"sum by (tier, cause) (increase({UNCREATED_TIME}[$__range])) / 3600 > 0",
                unit=GPU_HOURS,
            ),
            Column(
                head="Cost",
                expression=f"sum by (tier, cause, currency) (increase({UNCREATED_COST}[$__range])) > 0",
                unit=MONEY,
            ),
            order="GPU-hours",
        ),
        table(
            Look(
                "What fits now",
                "How many pods of this size would be bound at once, without preemption, with 1 CPU and 1 GiB for "
                "each GPU. `kubectl gputally what-if` answers for other pods, and says whom they would preempt.",
                empty="the pods on the nodes are not known yet",
                width=12,
            ),
            {"gpu_model": "GPU model", "pool": "Pool", "gpus": "GPUs per pod"},
            Column(head="Pods", expression=f"sum by (gpu_model, pool, gpus) ({FITTING})", unit=COUNT),
            order="Pods",
        ),
        table(
            Look(
                "Stranded GPUs",
                "Free GPUs that pods cannot use, and why. fragment: too few are free on the node for any pod that "
                "waits or has run in the last week. cpu, memory, pods: used up on the node. docs/pending.md has the "
                "other reasons.",
                empty="no GPU is stranded",
                width=12,
            ),
            {"gpu_model": "GPU model", "pool": "Pool", "reason": "Reason"},
            Column(head="GPUs", expression=f"sum by (gpu_model, pool, reason) ({STRANDED}) > 0", unit=GPUS),
            order="GPUs",
        ),
        table(
            Look(
                "Gangs that wait for their pods",
                "Partial gangs now, with the GPUs that they hold. gang_wait: GPU-hours, and their cost, of pods that "
                "ran in the time range while their gang was incomplete. `kubectl gputally why --all` names the gangs.",
                empty="no gang waits",
                width=24,
                height=6,
            ),
            {"tier": "Tier", "currency": "Currency"},
            Column(head="Gangs", expression=f"sum by (tier) ({PARTIAL_GANGS}) > 0", unit=COUNT),
            Column(head="GPUs", expression=f"sum by (tier) ({PARTIAL_GPUS}) > 0", unit=GPUS),
            Column(head="Oldest", expression=f"time() - min by (tier) ({PARTIAL_OLDEST})", unit=SECONDS),
            Column(
                head="GPU-hours in gang_wait",
                expression=f"sum by (tier) (increase({GANG_WAIT}[$__range])) / 3600 > 0",
                unit=GPU_HOURS,
            ),
            Column(
                head="Cost of gang_wait",
                expression=f"sum by (tier, currency) (increase({GANG_COST}[$__range])) > 0",
                unit=MONEY,
            ),
            order="GPUs",
        ),
        timeseries(
            Look(
                "Cost of waits by cause, per hour",
                "What the GPUs of pending pods would have cost. Only pods that select a GPU model with a price count. "
                "`kubectl gputally waits` has the sum of a period, by tenant.",
                unit=MONEY_PER_HOUR,
                empty="no pod with a price waited",
                width=24,
            ),
            Query(
                f"sum by (cause, currency) (rate({CHARGED_COST}[$__rate_interval])) * 3600", "{{cause}} {{currency}}"
            ),
            stacked=True,
        ),
        timeseries(
            Look(
                "GPUs freed by preemptions and not used",
                "Freed within the last hour, and not taken by the preemptor or any other pod since, by the tier of "
                "the victims.",
                unit=GPUS,
                empty="no data from the exporter",
                width=12,
            ),
            Query(f"sum by (tier) ({UNUSED})", "{{tier}}"),
            stacked=True,
        ),
        timeseries(
            Look(
                "Nodes used over nodes needed by jobs",
                "Of running jobs with several equal pods. 100 % is as few as possible; at 200 %, half as many nodes "
                "would hold them.",
                unit=RATIO,
                empty="no job has several equal pods",
                width=12,
            ),
            Query(f"sum by (tier) ({NODES}) / (sum by (tier) ({NODES_NEEDED}) > 0)", "{{tier}}"),
        ),
    ),
)
