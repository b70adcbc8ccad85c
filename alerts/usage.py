"""GPUs that are held and not used."""

from typing import Final

from monitoring.rule import Alert, Group


def _gpus(counter: str) -> str:
    """GPU-seconds per second are GPUs."""
    return f"sum by (cluster, tenant) (rate({counter}[$window]))"


_MEASURED: Final = _gpus("gputally_measured_gpu_seconds_total")
_USED: Final = f"{_gpus('gputally_used_gpu_seconds_total')} - {_gpus('gputally_burst_gpu_seconds_total')}"
"""Of the share held: what goes beyond it makes up for nobody's idleness."""

GROUP = Group(
    name="usage",
    alerts=(
        Alert(
            name="IdleGpusByTenant",
            expression=f"""\
{_MEASURED} - ({_USED}) > $gpus
and
1 - ({_USED}) / {_MEASURED} > $share
""",
            summary="A tenant holds many GPUs that do next to nothing.",
            description=(
                'Of the GPUs that tenant {{ $labels.tenant }} holds {{ $value | printf "%.1f" }} have been idle for '
                "$for or longer. Look which of its pods hold them, and ask it to give them back or to share them."
            ),
            dashboard="tenants",
            variables=("cluster", "tenant"),
        ),
    ),
)
