"""Long-term tables and bars from the hourly series of alerts/history.py."""

from monitoring.board import Row
from monitoring.panel import ORANGE, Column, Look, Query, counts, table
from monitoring.unit import GPU_HOURS, MONEY, RATIO

_HERE = 'cluster=~"$cluster"'
_TENANT = f'{_HERE}, tenant=~"$tenant", tier=~"$tier"'
_RECORDED = "From hourly recorded series: the hour that has not ended is missing."
_NO_PODS = "no complete hour yet, or no podMetricsMonitor"


def _over_range(series: str, labels: str, by: str) -> str:
    return f"sum by ({by}) (sum_over_time({series}{{{labels}}}[$__range]))"


_JOB = "namespace, job_kind, job_name, tenant"
_JOB_HOURS = _over_range("cluster_namespace_job:gputally_allocated_gpu_hours:sum1h", _TENANT, _JOB)
_JOB_COST = _over_range("cluster_namespace_job_currency:gputally_allocated_cost:sum1h", _TENANT, f"{_JOB}, currency")
_TOP_JOBS = f"topk(50, {_JOB_HOURS})"

BY_DAY_AND_JOB = Row(
    "Days and jobs",
    (
        counts(
            Look(
                "Cost per day by tenant",
                f"Cost of allocated GPUs, for a month or a year. {_RECORDED}",
                unit=MONEY,
                empty="no complete hour yet, or no price book",
                width=24,
            ),
            Query(
                "sum by (tenant, currency) (sum_over_time("
                f"cluster_tier_tenant_currency:gputally_allocated_cost:increase1h{{{_TENANT}}}[$__interval]))",
                "{{tenant}} {{currency}}",
            ),
            every="1d",
        ),
        table(
            Look(
                "Top 50 jobs by GPU-hours",
                "A job is the top owner of its pods, such as a Job, PyTorchJob or Deployment. Cost is at the mean "
                f"price of its tier, tenant and GPU model. {_RECORDED}",
                empty=_NO_PODS,
                width=24,
                height=10,
            ),
            {
                "namespace": "Namespace",
                "job_kind": "Kind",
                "job_name": "Job",
                "tenant": "Tenant",
                "currency": "Currency",
            },
            Column(head="GPU-hours", expression=_TOP_JOBS, unit=GPU_HOURS),
            Column(head="Cost", expression=f"{_JOB_COST} and on ({_JOB}) {_TOP_JOBS}", unit=MONEY),
            order="GPU-hours",
        ),
    ),
)

_NODE = "node, gpu_model, pool"
_NODES = f'{_HERE}, gpu_model=~"$gpu_model"'
_NODE_HOURS = _over_range("cluster_node:gputally_gpu_hours:sum1h", _NODES, _NODE)
_NODE_ALLOCATED = _over_range("cluster_node:gputally_gpu_hours:sum1h", f'{_NODES}, state="allocated"', _NODE)
_NODE_COST = "cluster_node_currency:gputally_capacity_cost:sum1h"

BY_NODE = Row(
    "Nodes",
    (
        table(
            Look(
                "Nodes in the time range",
                f"GPU-hours and cost of each node, and the part that was not allocated. {_RECORDED}",
                empty=_NO_PODS,
                width=24,
                height=10,
            ),
            {"node": "Node", "gpu_model": "GPU model", "pool": "Pool", "currency": "Currency"},
            Column(head="GPU-hours", expression=_NODE_HOURS, unit=GPU_HOURS),
            Column(head="Allocated", expression=f"{_NODE_ALLOCATED} / {_NODE_HOURS}", unit=RATIO),
            Column(head="Cost", expression=_over_range(_NODE_COST, _NODES, f"{_NODE}, currency"), unit=MONEY),
            Column(
                head="Unallocated cost",
                expression=_over_range(_NODE_COST, f'{_NODES}, state!="allocated"', f"{_NODE}, currency"),
                unit=MONEY,
                steps={0.01: ORANGE},
            ),
            order="Unallocated cost",
        ),
    ),
)
