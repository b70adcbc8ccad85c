"""Pods that lose their GPUs to pods of higher priority."""

from monitoring.rule import Alert, Group

_LOST = """\
sum by (cluster, tenant) (
    label_replace(
        increase(gputally_preemption_lost_gpu_seconds_total[$window]), "tenant", "$1", "victim_tenant", "(.+)"
    )
)"""

GROUP = Group(
    name="preemption",
    alerts=(
        Alert(
            name="HighPreemptionRate",
            expression="""\
sum by (cluster, victim_tier) (increase(gputally_preemptions_total[$window])) >= $pods
""",
            summary="Many pods of a tier are preempted.",
            description=(
                'Within $window, {{ $value | printf "%.0f" }} pods of tier {{ $labels.victim_tier }} lost their GPUs '
                "to pods of higher priority. Check which tier preempts them: if it grows as planned, move the others "
                "to another time; if pods preempt each other in turn, stop one side."
            ),
            dashboard="tiers",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyInferencePodsPreempted",
            expression="""\
sum by (cluster, victim_tier, preemptor_tier) (increase(gputally_preemptions_total[$window])) > 0
and on (cluster, victim_tier)
label_replace(gputally_tier_info{serving="true"}, "victim_tier", "$1", "tier", "(.+)")
""",
            summary="Inference pods were preempted.",
            description=(
                "Pods of tier {{ $labels.victim_tier }} lost their GPUs to pods of tier {{ $labels.preemptor_tier }} "
                "within $window. Check whether they run again elsewhere, and whether that tier should preempt them: "
                "the priority of its PriorityClass decides."
            ),
            dashboard="tiers",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyGracePeriodExceeded",
            expression="""\
sum by (cluster, tenant) (increase(gputally_grace_period_exceeded_total[$window])) >= $pods
""",
            summary="Disrupted pods keep their GPUs beyond their grace period.",
            description=(
                'Within $window, {{ $value | printf "%.0f" }} disrupted pods of tenant {{ $labels.tenant }} held their '
                "GPUs for longer than their grace period, and the pods that need these GPUs wait. Find the pods "
                "with gputally preemptions, and check whether their nodes or their jobs have something in common."
            ),
            dashboard="preemption",
            variables=("cluster", "tenant"),
        ),
        Alert(
            name="GputallyJobsEndedEarly",
            expression="""\
sum by (cluster, tier, tenant, outcome) (increase(gputally_jobs_ended_early_total[$window])) > 0
""",
            summary="Preemptions ended jobs.",
            description=(
                'Within $window, preemptions ended {{ $value | printf "%.0f" }} Jobs of tenant {{ $labels.tenant }} in '
                "tier {{ $labels.tier }}, with the outcome {{ $labels.outcome }}. Their training has not finished, and "
                "nothing starts them again. The runbook has the command that names them: start them again from their "
                "last checkpoint, and change their handling of SIGTERM or their podFailurePolicy."
            ),
            dashboard="preemption",
            variables=("cluster", "tenant", "tier"),
        ),
        Alert(
            name="GputallyForbiddenPreemption",
            expression="""\
sum by (cluster, victim_tier, preemptor_tier) (increase(gputally_forbidden_preemptions_total[$window])) > 0
""",
            summary="Pods were preempted although the priorities do not permit it.",
            description=(
                "Within $window, pods of tier {{ $labels.victim_tier }} lost their GPUs to pods of tier "
                "{{ $labels.preemptor_tier }} whose priority is not higher, or whose preemptionPolicy is Never. Find "
                "them with gputally preemptions --by job, and check whether a queue system reclaims quotas."
            ),
            dashboard="preemption",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyRepeatVictims",
            expression="""\
max by (cluster, tier, tenant) (gputally_repeat_victim_jobs) >= $jobs
""",
            summary="Jobs are preempted again and again.",
            description=(
                '{{ $value | printf "%.0f" }} jobs of tenant {{ $labels.tenant }} in tier {{ $labels.tier }} were '
                "preempted three or more times within a day, so that they hardly get on. Find out who preempts "
                "them and how often they save their work."
            ),
            dashboard="preemption",
            variables=("cluster", "tenant", "tier"),
        ),
        Alert(
            name="GputallyLostWorkShare",
            expression=f"""\
{_LOST} / sum by (cluster, tenant) (increase(gputally_allocated_gpu_seconds_total{{state="running"}}[$window])) > $share
and
{_LOST} / 3600 > $gpu_hours
""",
            summary="Preemptions destroy a large share of a tenant's work.",
            description=(
                "Within $window, preemptions destroyed up to {{ $value | humanizePercentage }} of the GPU time in "
                "which pods of tenant {{ $labels.tenant }} ran. Find the jobs on the dashboard and with gputally "
                "preemptions; more frequent checkpoints, or one on SIGTERM, would have saved most of it."
            ),
            dashboard="preemption",
            variables=("cluster", "tenant"),
        ),
    ),
)
