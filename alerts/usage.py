"""GPUs that are allocated and idle, or used without an allocation, and tenants that spend more than usual."""

from typing import Final

from monitoring.rule import Alert, Group, Recording


def _gpus(counter: str) -> str:
    """The rate of GPU-seconds is a number of GPUs."""
    return f"sum by (cluster, tenant) (rate({counter}[$window]))"


_MEASURED: Final = _gpus("gputally_measured_gpu_seconds_total")
_USED: Final = f"{_gpus('gputally_used_gpu_seconds_total')} - {_gpus('gputally_burst_gpu_seconds_total')}"
"""Only use within the share: burst does not offset idle time."""


def _pod_gpus(counter: str, matcher: str = "") -> str:
    """As the agents report it: GPUs of a pod, by its node."""
    selector = f"gputally_container_{counter}_gpu_seconds_total{matcher}"
    return f"sum by (cluster, instance, namespace, pod) (rate({selector}[$window]))"


_POD_MEASURED: Final = _pod_gpus("measured", '{namespace!~"$allowed_namespaces"}')
_POD_USED: Final = f"{_pod_gpus('used')} - {_pod_gpus('burst')}"
_POD: Final = (
    "Pod {{ $labels.namespace }}/{{ $labels.pod }} on node {{ $labels.instance }}"
    '{{ with printf "max by (tenant) (gputally_pod_gpus{cluster=%q, namespace=%q, pod=%q})" '
    "$labels.cluster $labels.namespace $labels.pod | query }}"
    ', of tenant {{ . | first | label "tenant" }},{{ end }}'
)
"""Its tenant is known if Prometheus scrapes /metrics/pods."""
_HELD: Final = "max by (cluster, instance, namespace, pod, gpu, device) (gputally_container_gpu_share_ratio%s) > 0"
_MEMORY: Final = """\
max by (cluster, instance, gpu, device) (max_over_time(gputally_gpu_memory_used_bytes[$window]))
      < $mebibytes * 1048576"""
_UNALLOCATED: Final = (
    '{{ range printf "sort_desc(sum by (gpu) '
    '(rate(gputally_gpu_unallocated_used_gpu_seconds_total{cluster=%q, instance=%q}[$window])) > 0.01)" '
    '$labels.cluster $labels.instance | query }}, {{ .Value | printf "%.2f" }} of {{ .Labels.gpu }}{{ end }}'
)
_COST: Final = "cluster_tenant_currency:gputally_allocated_cost:rate1h"

GROUP = Group(
    name="usage",
    interval="15m",
    recordings=(
        Recording(
            name=_COST,
            expression="sum by (cluster, tenant, currency) (rate(gputally_allocated_cost_total[1h]))\n",
            reason="Cost of each tenant: a week of it is 700 samples, instead of every sample of every counter.",
        ),
    ),
    alerts=(
        Alert(
            name="GputallyIdleGpusByTenant",
            expression=f"""\
{_MEASURED} - ({_USED}) > $gpus
and
1 - ({_USED}) / {_MEASURED} > $share
""",
            summary="A tenant has many allocated GPUs that are idle.",
            description=(
                'Of the GPUs allocated to tenant {{ $labels.tenant }}, {{ $value | printf "%.1f" }} have been idle '
                "for $for or longer. Find the pods that have them, and ask the tenant to release or share them."
            ),
            dashboard="tenants",
            variables=("cluster", "tenant"),
        ),
        Alert(
            name="GputallyIdlePod",
            expression=f"""\
{_POD_MEASURED} - ({_POD_USED}) > $gpus
and
1 - ({_POD_USED}) / {_POD_MEASURED} > $share
""",
            summary="A pod has had idle GPUs for hours.",
            description=(
                f'{_POD} has had {{{{ $value | printf "%.2g" }}}} GPUs that were idle for $for or longer. Ask its '
                "owner whether it is still needed: forgotten notebooks and finished jobs that sleep are usual. Others "
                "can have the GPUs once the pod is deleted."
            ),
            dashboard="node",
            variables=("cluster", "instance", "namespace"),
        ),
        Alert(
            name="GputallyGpuHeldWithoutProcess",
            expression=f"""\
count by (cluster, instance, namespace, pod) (
  {_HELD % ""}
  and
  {_HELD % " offset $window"}
  and on (cluster, instance, gpu, device)
    {_MEMORY}
)
""",
            summary="No process has used the memory of allocated GPUs for hours.",
            description=(
                f'{_POD} has had {{{{ $value | printf "%.0f" }}}} GPUs or GPU slices for $window, and no process has '
                "allocated memory on them. Check in its log whether the program found its GPUs. If it never uses them, "
                "its owner should request fewer."
            ),
            dashboard="node",
            variables=("cluster", "instance", "namespace"),
        ),
        Alert(
            name="GputallyUseWithoutAllocation",
            expression="""\
sum by (cluster, instance) (rate(gputally_gpu_unallocated_used_gpu_seconds_total[$window])) > $gpus
""",
            summary="GPUs of a node are used without an allocation.",
            description=(
                "On node {{ $labels.instance }}, programs use GPUs that Kubernetes did not allocate to them"
                f"{_UNALLOCATED}. No tenant pays for this use, and it slows down the pods that have the GPUs. Find the "
                "processes with `nvidia-smi` on the node."
            ),
            dashboard="node",
            variables=("cluster", "instance"),
        ),
        Alert(
            name="GputallySpendAboveBaseline",
            expression=f"""\
3600 * avg_over_time({_COST}[$window]) > $cost
and
avg_over_time({_COST}[$window]) > $factor * avg_over_time({_COST}[$baseline])
and
avg_over_time({_COST}[$window] offset $baseline)
""",
            summary="A tenant spends much more than in the last week.",
            description=(
                "Over $window, tenant {{ $labels.tenant }} has spent "
                '{{ $value | printf "%.2f" }} {{ $labels.currency }} per hour, more than $factor times its mean over '
                "$baseline. Find out which jobs are new, and ask the tenant whether they are intended."
            ),
            dashboard="tenants",
            variables=("cluster", "tenant"),
        ),
    ),
)
