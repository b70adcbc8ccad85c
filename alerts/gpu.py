"""GPUs that fail, as the agents of their nodes tell: `instance` is the node, if Prometheus is told to make it so."""

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
"""Of a GPU that is lost nothing is told any more, but there was something within the day."""

GROUP = Group(
    name="gpu",
    alerts=(
        Alert(
            name="GpuLost",
            expression="max by (cluster, instance, gpu) (gputally_gpu_up) == 0",
            summary="A GPU does not answer.",
            description=(
                f"{_WHICH} is lost to its driver, or calls to it hang. Cordon the node, move its pods, and reset the "
                "GPU or restart the node; if it does not come back, have it replaced."
            ),
            dashboard="condition",
            variables=_GPU,
        ),
        Alert(
            name="GpuXid",
            expression="""\
time() - max by (cluster, instance, gpu, xid) (
  gputally_gpu_xid_last_timestamp_seconds{xid=~"$hardware_xids"}
) < $seconds
""",
            summary="The driver reported an error of a GPU's hardware.",
            description=(
                f"{_WHICH} had XID {{{{ $labels.xid }}}}, last {{{{ $value | humanizeDuration }}}} ago. The runbook "
                "says which of them want a reset, and which a new GPU; cordon the node before either."
            ),
            dashboard="condition",
            variables=_GPU,
        ),
        Alert(
            name="GpuUncorrectableEcc",
            expression="""\
sum by (cluster, instance, gpu) (
  increase(gputally_gpu_ecc_errors_total{kind="uncorrected"}[$window])
) > 0
""",
            summary="A GPU's memory had errors that could not be corrected.",
            description=(
                f"{_WHICH} had uncorrected memory errors within $window. What ran on it may have computed wrong: tell "
                "whoever ran there, drain the node and reset the GPU."
            ),
            dashboard="condition",
            variables=_GPU,
        ),
        Alert(
            name="GpuRowRemapFailed",
            expression="max by (cluster, instance, gpu) (gputally_gpu_row_remap_failed) > 0",
            summary="A GPU has no spare memory rows left.",
            description=f"{_WHICH} could not replace a failed memory row. Drain the node and have the GPU replaced.",
            dashboard="condition",
            variables=_GPU,
        ),
        Alert(
            name="GpuThermallyThrottled",
            expression="""\
(
  max by (cluster, instance, gpu) (
    rate(gputally_gpu_throttled_seconds_total{reason=~"hw_thermal|sw_thermal"}[$window])
  )
  or
  avg_over_time(
    (
      max by (cluster, instance, gpu) (gputally_gpu_throttle_reason{reason=~"hw_thermal|sw_thermal"})
      or
      0 * max by (cluster, instance, gpu) (gputally_gpu_up)
    )[$window:1m]
  )
) > $share
""",
            summary="A GPU is slowed down because it is hot.",
            description=(
                f"Heat held down the clocks of {_WHICH} for {{{{ $value | humanizePercentage }}}} of the time. Look "
                "whether its neighbours are hot too: then it is the room or the chassis; else its own fans or paste."
            ),
            dashboard="condition",
            variables=_GPU,
        ),
    ),
)
