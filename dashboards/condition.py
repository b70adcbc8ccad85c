"""GPU health: errors, temperature, throttling and memory, as reported by the agents."""

from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import GREEN, ORANGE, RED, YELLOW, Column, Look, Query, stat, table, timeline, timeseries
from monitoring.selector import Selectors
from monitoring.unit import CELSIUS, COUNT, HERTZ, MOMENT, RATIO, STATE

select = Selectors("cluster", "instance", "gpu")
GPU = "{{instance}} #{{minor}}"
CORRECTED = 'kind="corrected"'
XIDS = f"sum by (instance, gpu, xid) ({select.grown('gputally_gpu_xid_events_total')}) > 0"
HOT = 'reason=~"sw_thermal|hw_thermal"'
UNCORRECTED = 'kind="uncorrected"'
REMAPPED = "gputally_gpu_remapped_rows_total"
REMAPPED_UNCORRECTABLE = select.grown(REMAPPED, 'cause="uncorrectable"')
REMAPPED_CORRECTABLE = select.grown(REMAPPED, 'cause="correctable"')


NOW = Row(
    "Now",
    (
        stat(
            Look(
                "Lost GPUs",
                "GPUs that the driver has lost, or on which a driver call hangs. Reboot the node, or have the GPU "
                "repaired.",
                unit=COUNT,
                empty="no data from agents",
                steps={1: RED},
            ),
            Query(f"sum(1 - {select('gputally_gpu_up')})", "lost"),
        ),
        stat(
            Look(
                "XID errors",
                "Errors that the driver reported in the time range, caused by programs or by hardware.",
                unit=COUNT,
                empty="none",
                steps={0.5: ORANGE},
            ),
            Query(f"sum({select.grown('gputally_gpu_xid_events_total')})", "XID"),
        ),
        stat(
            Look(
                "Uncorrected memory errors",
                "In the time range. They corrupt the results of programs on the GPU.",
                unit=COUNT,
                empty="not reported",
                steps={0.5: RED},
            ),
            Query(f"sum({select.grown('gputally_gpu_ecc_errors_total', UNCORRECTED)})", "errors"),
        ),
        stat(
            Look(
                "GPUs that need a reset",
                "GPUs with a failed memory row that a reset replaces.",
                unit=COUNT,
                empty="not reported",
                steps={1: ORANGE},
            ),
            Query(f"sum({select('gputally_gpu_row_remap_pending')})", "GPUs"),
        ),
        stat(
            Look(
                "GPUs to replace",
                "GPUs with a failed memory row that no spare row could replace.",
                unit=COUNT,
                empty="not reported",
                steps={1: RED},
            ),
            Query(f"sum({select('gputally_gpu_row_remap_failed')})", "GPUs"),
        ),
        stat(
            Look(
                "Thermally throttled GPUs",
                "GPUs whose clocks are reduced now because of heat.",
                unit=COUNT,
                empty="not reported",
                steps={1: ORANGE},
            ),
            Query(f"sum(max by (instance, gpu) ({select('gputally_gpu_throttle_reason', HOT)}))", "GPUs"),
        ),
    ),
)

CONDITION = Row(
    "GPU health",
    (
        timeseries(
            Look(
                "Temperature by GPU",
                "Most models slow down between 83 and 90 °C.",
                unit=CELSIUS,
                empty="not reported",
                steps={83: ORANGE, 90: RED},
            ),
            Query(f"max by (instance, gpu, minor) ({select.numbered('gputally_gpu_temperature_celsius')})", GPU),
        ),
        timeseries(
            Look(
                "Throttling by reason",
                "The share of time in which clocks were reduced. A power cap is policy. For heat and the power brake, "
                "check cooling and power supply.",
                unit=RATIO,
                empty="not reported",
            ),
            Query(
                f"max by (instance, reason) ({select.rate('gputally_gpu_throttled_seconds_total')})",
                "{{instance}} {{reason}}",
            ),
        ),
        timeseries(
            Look("Clock frequencies", "Average of the GPUs of each node.", unit=HERTZ, empty="not reported"),
            Query(f"avg by (instance, clock) ({select('gputally_gpu_clock_hertz')})", "{{instance}} {{clock}}"),
        ),
        timeline(
            Look("GPU status", "Whether the driver can reach each GPU.", unit=STATE, empty="no data from agents"),
            Query(f"max by (cluster, instance, gpu) ({select('gputally_gpu_up')})", "{{instance}} {{gpu}}"),
            words={0: ("lost", RED), 1: ("up", GREEN)},
        ),
        table(
            Look(
                "XID errors by code",
                "In the time range. The code shows whether a program (13, 31, 43, 45) or the GPU (48, 63, 64, 74, 79, "
                "94, 95) caused the error: see NVIDIA's list of XID errors.",
                links=(Link("Workloads on this node", "node", {"instance": "instance", "gpu": "gpu"}),),
                empty="none",
            ),
            {"instance": "Node", "gpu": "GPU", "xid": "XID"},
            Column(
                head="Count",
                expression=XIDS,
                unit=COUNT,
            ),
            Column(
                head="Last",
                expression=f"max by (instance, gpu, xid) ({select('gputally_gpu_xid_last_timestamp_seconds')}) * 1000"
                f" and {XIDS}",
                unit=MOMENT,
            ),
            order="Last",
        ),
        table(
            Look(
                "Memory health",
                "Errors and replaced rows in the time range. Pending rows need a reset, failed rows a new GPU.",
                links=(Link("Workloads on this node", "node", {"instance": "instance", "gpu": "gpu"}),),
                empty="not reported",
            ),
            {"instance": "Node", "gpu": "GPU"},
            Column(
                head="Uncorrected",
                expression=f"sum by (instance, gpu) ({select.grown('gputally_gpu_ecc_errors_total', UNCORRECTED)})",
                unit=COUNT,
                steps={0.5: RED},
            ),
            Column(
                head="Corrected",
                expression=f"sum by (instance, gpu) ({select.grown('gputally_gpu_ecc_errors_total', CORRECTED)})",
                unit=COUNT,
            ),
            Column(
                head="Rows replaced, uncorrected",
                expression=f"sum by (instance, gpu) ({REMAPPED_UNCORRECTABLE})",
                unit=COUNT,
                steps={0.5: YELLOW},
            ),
            Column(
                head="Rows replaced, corrected",
                expression=f"sum by (instance, gpu) ({REMAPPED_CORRECTABLE})",
                unit=COUNT,
            ),
            Column(
                head="Pending",
                expression=f"max by (instance, gpu) ({select('gputally_gpu_row_remap_pending')})",
                unit=STATE,
                steps={1: ORANGE},
            ),
            Column(
                head="Failed",
                expression=f"max by (instance, gpu) ({select('gputally_gpu_row_remap_failed')})",
                unit=STATE,
                steps={1: RED},
            ),
            order="Failed",
        ),
    ),
)

BOARD = Board(
    name="condition",
    title="GPU health",
    description="Errors, temperature, throttling and memory of GPUs, as reported by the agents.",
    variables=(
        Variable("cluster", "Cluster", "gputally_gpu_up"),
        Variable("instance", "Node", "gputally_gpu_up"),
        Variable("gpu", "GPU", "gputally_gpu_up"),
    ),
    rows=(NOW, CONDITION),
)
