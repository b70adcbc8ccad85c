"""Errors of the accounting, and pods that it cannot classify."""

from monitoring.rule import Alert, Group

GROUP = Group(
    name="accounting",
    alerts=(
        Alert(
            name="GputallyPodsWithoutTier",
            expression="max by (cluster) (gputally_pods_without_tier) > $pods",
            summary="Pods that request GPUs have no tier.",
            description=(
                '{{ $value | printf "%.0f" }} pods count as tier `none`, and any pod with a positive priority can '
                "preempt them. Give them a PriorityClass, or add a tier rule for the PriorityClass they have."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyPodsWithoutTenant",
            expression="max by (cluster) (gputally_pods_without_tenant) > $pods",
            summary="Pods that request GPUs have no tenant.",
            description=(
                'The cost of {{ $value | printf "%.0f" }} pods is charged to `unassigned`. Label the pods or their '
                "namespace as the tenant rules require."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyUnaccountedGpuPods",
            expression=('max by (cluster, reason) (gputally_unaccounted_gpu_pods{reason!~"$ignored_reasons"}) > $pods'),
            summary="Pods use GPUs that gputally does not account.",
            description=(
                '{{ $value | printf "%.0f" }} pods request GPUs that are not accounted ({{ $labels.reason }}): no tier '
                "and no tenant pays for them, and their nodes seem to have no GPUs, or free ones. See the runbook "
                "for this reason."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyReconciliationDifference",
            expression="max by (cluster, check) (abs(gputally_reconciliation_difference_gpu_seconds)) > $gpu_seconds",
            summary="Two sums of GPU time that must be equal differ.",
            description=(
                'Counters or ledger are wrong: the check {{ $labels.check }} finds {{ $value | printf "%.6g" }} '
                "GPU-seconds of difference. Do not send bills until it is explained. Copy the ledger, and report this "
                "bug."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyOvercount",
            expression="max by (cluster, counter) (gputally_overcount_gpu_seconds) / 3600 > $gpu_hours",
            summary="Counters show too much GPU time, and no new GPU time offsets it.",
            description=(
                'The counters of {{ $labels.counter }} time are {{ $value | printf "%.1f" }} GPU-hours too high after '
                "late updates. Bill this time from the ledger, and find out why the end of pods was observed so late."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyLabelLimit",
            expression="sum by (cluster, label) (increase(gputally_label_overflows_total[$window])) > 0",
            summary="A label has reached its limit of values.",
            description=(
                "New values of the label {{ $labels.label }} are shown as `other`. Raise its limit in the "
                "configuration, or find out why there are so many values."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
    ),
)
