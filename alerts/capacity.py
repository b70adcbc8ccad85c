"""GPUs that nobody can have, that have no price, or of which the accounts of two sides differ."""

from monitoring.rule import Alert, Group

_GPUS = '{{ $value | printf "%.5g" }} x {{ $labels.gpu_model }} of pool {{ $labels.pool }}'


def _in_state(state: str) -> str:
    return f'max by (cluster, gpu_model, pool) (gputally_capacity_gpus{{state="{state}"}}) > 0'


GROUP = Group(
    name="capacity",
    alerts=(
        Alert(
            name="GpuCapacityUnhealthy",
            expression=_in_state("unhealthy"),
            summary="GPUs are there and cannot be allocated.",
            description=(
                f"The device plugin does not offer {_GPUS}. Find the nodes that have fewer allocatable GPUs than they "
                "should, and look at the device plugin and the driver there."
            ),
            dashboard="fleet",
            variables=("cluster", "gpu_model"),
        ),
        Alert(
            name="GpuCapacityUnknown",
            expression=_in_state("unknown"),
            summary="Nodes with GPUs are not ready.",
            description=(
                f"{_GPUS} are on nodes that are not ready. Find the nodes, and bring them back or delete them. There "
                "may be more: what pods hold there counts as allocated."
            ),
            dashboard="fleet",
            variables=("cluster", "gpu_model"),
        ),
        Alert(
            name="GpusOvercommitted",
            expression=_in_state("overcommitted"),
            summary="Pods hold more GPUs than their nodes have.",
            description=(
                f"Pods hold {_GPUS} beyond what there is. A GPU may be gone under its pod: find the nodes with fewer "
                "GPUs than their pods ask for, and restart those pods."
            ),
            dashboard="fleet",
            variables=("cluster", "gpu_model"),
        ),
        Alert(
            name="GpusStuckTerminating",
            expression="""\
sum by (cluster, tenant, gpu_model) (
  rate(gputally_allocated_gpu_seconds_total{state="terminating"}[$window])
) > $gpus
and
sum by (cluster, tenant, gpu_model) (
  rate(gputally_allocated_gpu_seconds_total{state="terminating"}[$window])
)
  / sum by (cluster, tenant, gpu_model) (rate(gputally_allocated_gpu_seconds_total[$window])) > $share
""",
            summary="Pods that were deleted long ago hold GPUs still.",
            description=(
                'Pods of tenant {{ $labels.tenant }} that are being deleted hold {{ $value | printf "%.2g" }} x '
                "{{ $labels.gpu_model }}. Look whether their nodes are there: pods of a lost node never end by "
                "themselves. Else find out what their containers wait for."
            ),
            dashboard="tiers",
            variables=("cluster", "tenant", "gpu_model"),
        ),
        Alert(
            name="GpusUnpriced",
            expression="""\
max by (cluster, gpu_model, pool) (gputally_unpriced_gpus) > 0
and on (cluster)
max by (cluster) (gputally_price_book_info)
""",
            summary="The price book has no price for some GPUs.",
            description=(
                f"No rule of the price book covers {_GPUS}: no cost contains them. Add a rule and restart the "
                "aggregator; costs begin then."
            ),
            dashboard="fleet",
            variables=("cluster", "gpu_model"),
        ),
        Alert(
            name="AllocationsDiffer",
            expression="max by (cluster, pool, side) (gputally_allocation_difference_gpus) > 0",
            summary="API and kubelets disagree about who holds GPUs.",
            description=(
                "One side alone ({{ $labels.side }}) says that GPUs of pool {{ $labels.pool }} are allocated: "
                '{{ $value | printf "%.5g" }} in all. Compare the pods of the nodes with what their agents see: either '
                "pods are paid for that hold nothing, or something holds GPUs unpaid."
            ),
            dashboard="agents",
            variables=("cluster",),
        ),
        Alert(
            name="NodeClockSkewed",
            expression="max by (cluster, node) (abs(gputally_node_clock_skew_seconds)) > $seconds",
            summary="The clock of a node with GPUs is off.",
            description=(
                "That of {{ $labels.node }} differs by {{ $value | humanizeDuration }} from the API server's. Times of "
                "its pods are corrected to within some seconds, which are stated as observation gaps. Look whether the "
                "node follows its time server."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
    ),
)
