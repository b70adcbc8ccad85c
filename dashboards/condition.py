"""Whether GPUs are fit: errors, heat, throttling and memory, from the agents of their nodes."""

from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import GREEN, ORANGE, RED, Column, Look, Query, stat, table, timeline, timeseries
from monitoring.selector import Selectors
from monitoring.unit import CELSIUS, COUNT, HERTZ, MOMENT, RATIO, STATE

select = Selectors("cluster", "instance", "gpu")
GPU = "{{instance}} #{{minor}}"
CORRECTED = 'kind="corrected"'
XIDS = f"sum by (instance, gpu, xid) ({select.grown('gputally_gpu_xid_events_total')}) > 0"
HOT = 'reason=~"sw_thermal|hw_thermal"'
UNCORRECTED = 'kind="uncorrected"'


NOW = Row(
    "Now",
    (
        stat(
            Look(
                "Lost",
                "GPUs that the driver has lost, or in which a call hangs. The node needs a reboot, or the "
                "GPU a slot in the repair shop.",
                unit=COUNT,
                empty="no agent answers",
                steps={1: RED},
            ),
            Query(f"sum(1 - {select('gputally_gpu_up')})", "lost"),
        ),
        stat(
            Look(
                "Errors of the driver (XID)",
                "Reported in the time shown, of programs and of hardware alike.",
                unit=COUNT,
                empty="none",
                steps={0.5: ORANGE},
            ),
            Query(f"sum({select.grown('gputally_gpu_xid_events_total')})", "XID"),
        ),
        stat(
            Look(
                "Memory errors, uncorrected",
                "In the time shown. A GPU that has them spoils results.",
                unit=COUNT,
                empty="not read",
                steps={0.5: RED},
            ),
            Query(f"sum({select.grown('gputally_gpu_ecc_errors_total', UNCORRECTED)})", "errors"),
        ),
        stat(
            Look(
                "Waiting for a reset",
                "GPUs with a memory row that a reset would replace.",
                unit=COUNT,
                empty="not read",
                steps={1: ORANGE},
            ),
            Query(f"sum({select('gputally_gpu_row_remap_pending')})", "GPUs"),
        ),
        stat(
            Look(
                "To be replaced",
                "GPUs with a memory row that could not be replaced.",
                unit=COUNT,
                empty="not read",
                steps={1: RED},
            ),
            Query(f"sum({select('gputally_gpu_row_remap_failed')})", "GPUs"),
        ),
        stat(
            Look(
                "Too hot",
                "GPUs whose clocks are held down by heat now.",
                unit=COUNT,
                empty="not read",
                steps={1: ORANGE},
            ),
            Query(f"sum(max by (instance, gpu) ({select('gputally_gpu_throttle_reason', HOT)}))", "GPUs"),
        ),
    ),
)

CONDITION = Row(
    "Condition",
    (
        timeseries(
            Look(
                "Temperature, by GPU",
                "Most models slow down somewhere between 83 and 90 degrees.",
                unit=CELSIUS,
                empty="not read",
                steps={83: ORANGE, 90: RED},
            ),
            Query(f"max by (instance, gpu, minor) ({select.numbered('gputally_gpu_temperature_celsius')})", GPU),
        ),
        timeseries(
            Look(
                "Held back, by reason",
                "The share of the time in which clocks were held down. A power cap is policy; heat and the "
                "power brake are for whoever cools and feeds the machine.",
                unit=RATIO,
                empty="not read",
            ),
            Query(
                f"max by (instance, reason) ({select.rate('gputally_gpu_throttled_seconds_total')})",
                "{{instance}} {{reason}}",
            ),
        ),
        timeseries(
            Look("Clocks", "Mean over the GPUs.", unit=HERTZ, empty="not read"),
            Query(f"avg by (instance, clock) ({select('gputally_gpu_clock_hertz')})", "{{instance}} {{clock}}"),
        ),
        timeline(
            Look("Answering", "Whether the driver still reaches each GPU.", unit=STATE, empty="no agent answers"),
            Query(f"max by (cluster, instance, gpu) ({select('gputally_gpu_up')})", "{{instance}} {{gpu}}"),
            words={0: ("lost", RED), 1: ("answers", GREEN)},
        ),
        table(
            Look(
                "Errors of the driver, by code",
                "What was reported in the time shown. The code tells whether it was a program (13, 31, 43, "
                "45) or the GPU (48, 63, 64, 74, 79, 94, 95): see NVIDIA's list of XID errors.",
                links=(Link("What runs there", "node", {"instance": "instance", "gpu": "gpu"}),),
                empty="none was reported",
            ),
            {"instance": "Node", "gpu": "GPU", "xid": "XID"},
            Column(
                head="Times",
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
                "Of the GPU's life: errors, and rows replaced by spare ones. Pending ones need a reset, failed "
                "ones a new GPU.",
                links=(Link("What runs there", "node", {"instance": "instance", "gpu": "gpu"}),),
                empty="not read",
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
                head="Rows replaced",
                expression=f"sum by (instance, gpu) ({select.grown('gputally_gpu_remapped_rows_total')})",
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
    title="Condition of GPUs",
    description="Whether GPUs are fit: errors, heat, throttling and memory, as the agents of their nodes read it.",
    variables=(
        Variable("cluster", "Cluster", "gputally_gpu_up"),
        Variable("instance", "Node", "gputally_gpu_up"),
        Variable("gpu", "GPU", "gputally_gpu_up"),
    ),
    rows=(NOW, CONDITION),
)
