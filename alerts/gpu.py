"""GPUs that fail, as the agents report them; with the recommended scrape configuration, `instance` is the node."""

from typing import Final

from monitoring.rule import Alert, Group

_GPU: Final = ("cluster", "instance", "gpu")
_WHICH: Final = (
    "{{ $labels.gpu }}"
    '{{ with printf "max by (gpu_model, pci_bus_id) '
    '(max_over_time(gputally_gpu_info{cluster=%q, instance=%q, gpu=%q}[1d]))" '
    "$labels.cluster $labels.instance $labels.gpu | query }}"
    ' ({{ . | first | label "gpu_model" }} at {{ . | first | label "pci_bus_id" }}){{ end }}'
    " of node {{ $labels.instance }}"
)
"""The agent reports no info of a lost GPU, so the query looks back a day."""


def _throttled(reasons: str) -> str:
    """The share of the window in which any of the reasons throttled a GPU.

    A driver that does not count throttled time is sampled; a reason that does not hold has no series.
    """
    return f"""\
(
  max by (cluster, instance, gpu) (
    rate(gputally_gpu_throttled_seconds_total{{{reasons}}}[$window])
  )
  or
  avg_over_time(
    (
      max by (cluster, instance, gpu) (gputally_gpu_throttle_reason{{{reasons}}})
      or
      0 * max by (cluster, instance, gpu) (gputally_gpu_up)
    )[$window:1m]
  )
) > $share
"""


GROUP = Group(
    name="gpu",
    alerts=(
        Alert(
            name="GputallyGpuLost",
            expression="max by (cluster, instance, gpu) (gputally_gpu_up) == 0",
            summary="A GPU does not answer.",
            description=(
                f"Programs on {_WHICH} fail or hang: the driver has lost the GPU, or calls to it hang. Cordon the "
                "node, move its pods, and reset the GPU or restart the node. If it stays lost, have it replaced."
            ),
            dashboard="condition",
            variables=_GPU,
        ),
        Alert(
            name="GputallyGpuXid",
            expression="""\
time() - max by (cluster, instance, gpu, xid) (
  gputally_gpu_xid_last_timestamp_seconds{xid=~"$hardware_xids"}
) < $seconds
""",
            summary="The driver reported a hardware error of a GPU.",
            description=(
                f"Programs on {_WHICH} may have failed or computed wrong results: it had XID {{{{ $labels.xid }}}}, "
                "last {{ $value | humanizeDuration }} ago. Cordon the node. The runbook says which XIDs require a "
                "reset, and which a new GPU."
            ),
            dashboard="condition",
            variables=_GPU,
        ),
        Alert(
            name="GputallyGpuUncorrectableEcc",
            expression="""\
sum by (cluster, instance, gpu) (
  increase(gputally_gpu_ecc_errors_total{kind="uncorrected"}[$window])
) > 0
""",
            summary="A GPU had uncorrectable memory errors.",
            description=(
                f"Programs on {_WHICH} may have computed wrong results: it had uncorrected memory errors within "
                "$window. Inform the owners of these programs, drain the node and reset the GPU."
            ),
            dashboard="condition",
            variables=_GPU,
        ),
        Alert(
            name="GputallyGpuRowRemapFailed",
            expression="max by (cluster, instance, gpu) (gputally_gpu_row_remap_failed) > 0",
            summary="A GPU has no spare memory rows left.",
            description=f"{_WHICH} could not replace a failed memory row. Drain the node and have the GPU replaced.",
            dashboard="condition",
            variables=_GPU,
        ),
        Alert(
            name="GputallyGpuThermallyThrottled",
            expression=_throttled('reason=~"hw_thermal|sw_thermal"'),
            summary="A GPU is throttled because of heat.",
            description=(
                f"Heat reduced the clocks of {_WHICH} for {{{{ $value | humanizePercentage }}}} of the time. Check its "
                "neighbours: if they are hot too, the room or the chassis is the cause; otherwise its own fans or "
                "thermal paste."
            ),
            dashboard="condition",
            variables=_GPU,
        ),
        Alert(
            name="GputallyGpuPowerBrake",
            expression=_throttled('reason="hw_power_brake"'),
            summary="A GPU is throttled by the power brake of its node.",
            description=(
                f"Jobs on {_WHICH} run slower than they should: for {{{{ $value | humanizePercentage }}}} of the time, "
                "the power brake signal of the node reduced its clocks. Check the power supplies of the node and the "
                "event log of its BMC."
            ),
            dashboard="condition",
            variables=_GPU,
        ),
    ),
)
