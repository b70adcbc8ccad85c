"""GPUs that are allocated and idle."""

from typing import Final

from monitoring.rule import Alert, Group


def _gpus(counter: str) -> str:
    """The rate of GPU-seconds is a number of GPUs."""
    return f"sum by (cluster, tenant) (rate({counter}[$window]))"


_MEASURED: Final = _gpus("gputally_measured_gpu_seconds_total")
_USED: Final = f"{_gpus('gputally_used_gpu_seconds_total')} - {_gpus('gputally_burst_gpu_seconds_total')}"
"""Only use within the share: burst does not offset idle time."""

GROUP = Group(
    name="usage",
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
    ),
)
