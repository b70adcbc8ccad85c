"""GPUs that are free or cannot be allocated, have no price, or are allocated by only one of API server and kubelet."""

from typing import Final

from monitoring.node_names import node_names
from monitoring.rule import Alert, Group

_GPUS = '{{ $value | printf "%.5g" }} x {{ $labels.gpu_model }} of pool {{ $labels.pool }}'
_FREE: Final = 'sum by (cluster, gpu_model, pool) (rate(gputally_capacity_gpu_seconds_total{state="free"}[$window]))'
_FREE_COST: Final = (
    '{{ range printf "sort_desc(sum by (currency) (rate(gputally_capacity_cost_total'
    "{cluster=%q, gpu_model=%q, pool=%q, state='free'}[$window])) * 3600 > 0)\" "
    "$labels.cluster $labels.gpu_model $labels.pool | query }}"
    ', which costs {{ .Value | printf "%.2f" }} {{ .Labels.currency }} per hour{{ end }}'
)
"""Only if the price book has a price for them."""


def _nodes(state: str) -> str:
    """The nodes with such GPUs, if Prometheus scrapes /metrics/pods."""
    query = f"sum by (node) (gputally_node_gpus{{cluster=%q, gpu_model=%q, pool=%q, state='{state}'}}) > 0"
    arguments = "$labels.cluster $labels.gpu_model $labels.pool"
    return node_names(query, arguments, before=" on ")


_OVERCOMMITTED: Final = node_names(
    "max by (node) (gputally_node_overcommitted_gpus{cluster=%q, gpu_model=%q, pool=%q})",
    "$labels.cluster $labels.gpu_model $labels.pool",
    before=" on ",
)
_UNHEALTHY: Final = _nodes("unhealthy")
_UNKNOWN: Final = _nodes("unknown")


def _in_state(state: str, pools: str = "") -> str:
    return f'max by (cluster, gpu_model, pool) (gputally_capacity_gpus{{state="{state}"{pools}}}) > 0'


GROUP = Group(
    name="capacity",
    alerts=(
        Alert(
            name="GputallyGpuCapacityUnhealthy",
            expression=_in_state("unhealthy"),
            summary="GPUs of ready nodes cannot be allocated.",
            description=(
                f"Pods cannot use {_GPUS}{_UNHEALTHY}: the device plugin does not report them as allocatable. Find the "
                "nodes with too few allocatable GPUs, and check the device plugin and the driver there."
            ),
            dashboard="fleet",
            variables=("cluster", "gpu_model"),
        ),
        Alert(
            name="GputallyGpusNeverOffered",
            expression="max by (cluster, gpu_model, pool) (gputally_never_offered_gpus) > 0",
            summary="Nodes have GPUs by their labels, and have never offered any.",
            description=(
                f"Pods cannot request {_GPUS} as a resource of the node: it has offered none since it joined, so the "
                "GPUs count as unsliced. Check the device plugin there, and whether Dynamic Resource Allocation serves "
                "the GPUs instead, which is not accounted."
            ),
            dashboard="fleet",
            variables=("cluster", "gpu_model"),
        ),
        Alert(
            name="GputallyGpuCapacityUnknown",
            expression=_in_state("unknown", ', pool!~"$spot_pools"'),
            summary="Nodes with GPUs are not ready.",
            description=(
                f"New pods cannot use {_GPUS}{_UNKNOWN}. Find the nodes that are not ready, and repair or delete "
                "them. More GPUs may be affected: those of pods on these nodes count as allocated."
            ),
            dashboard="fleet",
            variables=("cluster", "gpu_model"),
        ),
        Alert(
            name="GputallyGpusOvercommitted",
            expression="max by (cluster, gpu_model, pool) (gputally_overcommitted_gpus) > 0",
            summary="Pods have more GPUs allocated than their nodes have.",
            description=(
                f"Allocations exceed the nodes' GPUs by {_GPUS}{_OVERCOMMITTED}: a GPU may have failed under its pod. "
                "Find the nodes with fewer GPUs than their pods request, and restart those pods."
            ),
            dashboard="fleet",
            variables=("cluster", "gpu_model"),
        ),
        Alert(
            name="GputallyFreeCapacity",
            expression=f"""\
{_FREE} > $gpus
and
{_FREE}
  / sum by (cluster, gpu_model, pool) (rate(gputally_capacity_gpu_seconds_total[$window])) > $share
""",
            summary="Many GPUs of a pool have been free for hours.",
            description=(
                f'On average over $window, {{{{ $value | printf "%.1f" }}}} x {{{{ $labels.gpu_model }}}} of pool '
                f"{{{{ $labels.pool }}}} were free{_FREE_COST}. Check whether pending pods could use them, and shrink "
                "the pool if nobody needs them."
            ),
            dashboard="fleet",
            variables=("cluster", "gpu_model"),
        ),
        Alert(
            name="GputallyGpusStuckTerminating",
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
            summary="Terminating pods have not released their GPUs.",
            description=(
                'Terminating pods of tenant {{ $labels.tenant }} block {{ $value | printf "%.2g" }} x '
                "{{ $labels.gpu_model }}. Check whether their nodes exist: pods of a lost node never end on their own. "
                "Otherwise find out what their containers are waiting for."
            ),
            dashboard="tiers",
            variables=("cluster", "tenant", "gpu_model"),
        ),
        Alert(
            name="GputallyPodsStuckStarting",
            expression="""\
time() - max by (cluster, tier, tenant) (gputally_starting_oldest_timestamp_seconds)
  > on (cluster, tier) group_left () max by (cluster, tier) (gputally_tier_starting_limit_seconds)
""",
            summary="Pods hold GPUs, but no container of them has run.",
            description=(
                "A pod of tier {{ $labels.tier }} of tenant {{ $labels.tenant }} has held GPUs for "
                "{{ $value | humanizeDuration }}, and no container of it has run. Its GPUs are paid and do nothing. "
                "Look at its Events: images that cannot be pulled, volumes that cannot be mounted, init containers "
                "that wait, or a node whose kubelet does not respond."
            ),
            dashboard="tiers",
            variables=("cluster", "tier", "tenant"),
        ),
        Alert(
            name="GputallyGpusUnpriced",
            expression="""\
max by (cluster, gpu_model, pool) (gputally_unpriced_gpus) > 0
and on (cluster)
max by (cluster) (gputally_price_book_info)
""",
            summary="The price book has no price for some GPUs.",
            description=(
                f"Costs do not include {_GPUS}: no rule of the price book covers them. Add a rule and restart the "
                "aggregator; their costs start then."
            ),
            dashboard="fleet",
            variables=("cluster", "gpu_model"),
        ),
        Alert(
            name="GputallyAllocationsDiffer",
            expression="max by (cluster, pool, side) (gputally_allocation_difference_gpus) > 0",
            summary="API server and kubelets report different GPU allocations.",
            description=(
                "Either tenants pay for GPUs that their pods do not have, or pods use GPUs that nobody pays for: "
                '{{ $value | printf "%.5g" }} GPUs of pool {{ $labels.pool }} are allocated on one side only '
                "({{ $labels.side }}). Compare the pods of the nodes with what their agents report."
            ),
            dashboard="agents",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyNodeClockSkewed",
            expression="max by (cluster, node) (abs(gputally_node_clock_skew_seconds)) > $seconds",
            summary="The clock of a node with GPUs is wrong.",
            description=(
                "Times of pods on {{ $labels.node }} are corrected to within a few seconds, which count as observation "
                "gaps. Its clock differs by {{ $value | humanizeDuration }} from the API server's. Check whether the "
                "node synchronises with its time server."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
    ),
)
