"""Hourly sums of GPU time and cost, so that dashboards of a month or a year stay fast."""

from typing import Final

from monitoring.rule import Group, Recording

_POD: Final = "cluster, namespace, pod"
_SUBJECT: Final = "cluster, tier, tenant, gpu_model"
_JOB: Final = "cluster, namespace, job_kind, job_name, tier, tenant"
_STARTED: Final = f"""\
max by ({_POD}, tier, tenant, gpu_model) (gputally_pod_gpus{{state!="pending"}})
      * on ({_POD}) group_left (job_kind, job_name)
        max by ({_POD}, job_kind, job_name) (gputally_pod_info)"""
"""GPUs of each pod that has some, with its job."""
_PRICE: Final = f"""\
sum by ({_SUBJECT}, currency) (rate(gputally_allocated_cost_total[5m]))
          / on ({_SUBJECT}) group_left ()
            (sum by ({_SUBJECT}) (rate(gputally_allocated_gpu_seconds_total[5m])) > 0)"""
"""The mean cost of a GPU-second of the same tier, tenant and model: a pod has no price of its own in Prometheus."""

_NODE: Final = "cluster, node, gpu_model, pool, state"
_CAPACITY: Final = f"max by ({_NODE}) (gputally_node_gpus)"
_POOL: Final = "cluster, gpu_model, pool, state"
_NODE_PRICE: Final = f"""\
sum by ({_POOL}, currency) (rate(gputally_capacity_cost_total[5m]))
          / on ({_POOL}) group_left ()
            (sum by ({_POOL}) (rate(gputally_capacity_gpu_seconds_total[5m])) > 0)"""
"""The mean cost of a GPU-second of the same pool and state."""


def _in_the_hour(counter: str, labels: str) -> str:
    return f"sum by ({labels}) (increase({counter}[1h]))\n"


GROUP = Group(
    name="history",
    interval="1h",
    recordings=(
        Recording(
            name="cluster_tier_tenant:gputally_allocated_gpu_seconds:increase1h",
            expression=_in_the_hour("gputally_allocated_gpu_seconds_total", "cluster, tier, tenant"),
            reason="A year of a tenant is 8,760 samples, instead of two million of the counter.",
        ),
        Recording(
            name="cluster_tier_tenant_currency:gputally_allocated_cost:increase1h",
            expression=_in_the_hour("gputally_allocated_cost_total", "cluster, tier, tenant, currency"),
            reason="The same for cost.",
        ),
        Recording(
            name="cluster_namespace_job:gputally_allocated_gpu_hours:sum1h",
            expression=f"""\
sum by ({_JOB}) (
  sum_over_time((
    {_STARTED}
  )[1h:1m])
) / 60
""",
            reason="GPU-hours of each job: its pods are gone when somebody asks.",
        ),
        Recording(
            name="cluster_namespace_job_currency:gputally_allocated_cost:sum1h",
            expression=f"""\
sum by ({_JOB}, currency) (
  sum_over_time((
    ({_STARTED})
      * on ({_SUBJECT}) group_left (currency) (
          {_PRICE}
        )
  )[1h:1m])
) * 60
""",
            reason="Cost of each job.",
        ),
        Recording(
            name="cluster_node:gputally_gpu_hours:sum1h",
            expression=f"sum by ({_NODE}) (sum_over_time({_CAPACITY}[1h:1m])) / 60\n",
            reason="GPU-hours of each node by state.",
        ),
        Recording(
            name="cluster_node_currency:gputally_capacity_cost:sum1h",
            expression=f"""\
sum by ({_NODE}, currency) (
  sum_over_time((
    {_CAPACITY}
      * on ({_POOL}) group_left (currency) (
          {_NODE_PRICE}
        )
  )[1h:1m])
) * 60
""",
            reason="Cost of each node by state, without tier multipliers.",
        ),
    ),
)
