"""Pods that lose their GPUs to pods of higher priority."""

from monitoring.rule import Alert, Group

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
            name="GputallyJobsEndedEarly",
            expression="""\
sum by (cluster, tier, tenant, outcome) (increase(gputally_jobs_ended_early_total[$window])) > 0
""",
            summary="Preemptions ended jobs.",
            description=(
                'Within $window, preemptions ended {{ $value | printf "%.0f" }} Jobs of tenant {{ $labels.tenant }} in '
                "tier {{ $labels.tier }}, with the outcome {{ $labels.outcome }}. Their training has not finished, and "
                "nothing starts them again. Find them in the ledger, start them again from their last checkpoint, and "
                "change their handling of SIGTERM or their podFailurePolicy."
            ),
            dashboard="jobs",
            variables=("cluster", "tenant", "tier"),
        ),
    ),
)
