"""Whether the books add up, and what they cannot classify."""

from monitoring.rule import Alert, Group

GROUP = Group(
    name="books",
    alerts=(
        Alert(
            name="PodsWithoutTier",
            expression="max by (cluster) (gputally_pods_without_tier) > $pods",
            summary="Pods with GPUs belong to no tier.",
            description=(
                '{{ $value | printf "%.0f" }} pods that ask for GPUs have no tier: they count as `none`, and anyone '
                "may preempt them. Give them a PriorityClass, or write a rule for the one they have."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="PodsWithoutTenant",
            expression="max by (cluster) (gputally_pods_without_tenant) > $pods",
            summary="Pods with GPUs belong to no tenant.",
            description=(
                '{{ $value | printf "%.0f" }} pods that ask for GPUs have no tenant: what they cost is `unassigned`. '
                "Label them or their namespace as the rules of tenants ask."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyReconciliationDifference",
            expression="max by (cluster, check) (abs(gputally_reconciliation_difference_gpu_seconds)) > $gpu_seconds",
            summary="Two sums of GPU time that must be equal are not.",
            description=(
                'The check {{ $labels.check }} finds a difference of {{ $value | printf "%.6g" }} GPU-seconds. Send '
                "no bill before it is explained. Keep a copy of the ledger, and report it: this is a bug."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyOvercount",
            expression="max by (cluster, counter) (gputally_overcount_gpu_seconds) / 3600 > $gpu_hours",
            summary="Counters show more GPU time than there was, and nothing works it off.",
            description=(
                'Late knowledge took back {{ $value | printf "%.1f" }} GPU-hours that the counters of '
                "{{ $labels.counter }} time had shown already. Bill this time from the ledger, and find out why the "
                "end of pods was learnt so late."
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
                "configuration, or look why there are so many."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
    ),
)
