"""Whether the nodes are measured: the agents as the aggregator finds them, and as they find themselves."""

from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, RED, YELLOW, Column, Look, Query, stat, table, timeseries
from monitoring.process import process
from monitoring.selector import Selectors
from monitoring.unit import COUNT, GPUS, PER_SECOND, SECONDS

fleet = Selectors("cluster")
select = Selectors("cluster", "instance")
NO_AGENT = "no agent answers"
NO_EXPORTER = "no exporter answers"
AGE = "time() - {} by (cluster, instance) ({})"
ANSWERS = 'state="reachable"'

PULLED = Row(
    "As the aggregator finds them",
    (
        stat(
            Look("Nodes with GPUs", "That exist.", unit=COUNT, empty=NO_EXPORTER),
            Query(f"sum({fleet.now('gputally_nodes')})", "nodes"),
        ),
        stat(
            Look("Agents that answer", "When last pulled.", unit=COUNT, empty=NO_EXPORTER),
            Query(f"sum({fleet.now('gputally_agents', ANSWERS)})", "agents"),
        ),
        stat(
            Look(
                "Nodes without an answer",
                "Whose agent did not answer when last pulled, or that have none.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: RED},
            ),
            Query(f"sum({fleet.now('gputally_nodes')}) - sum({fleet.now('gputally_agents', ANSWERS)})", "nodes"),
        ),
        stat(
            Look(
                "Measured up to",
                "Time since the slowest agent that answers last knew what its GPUs did: used and idle end there.",
                unit=SECONDS,
                empty=NO_AGENT,
                steps={120: ORANGE},
            ),
            Query(f"time() - min({fleet.now('gputally_agents_watermark_timestamp_seconds')})", "behind"),
        ),
        stat(
            Look(
                "Restarts",
                "Agents that began anew in the time shown, losing what they had measured since their last answer.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={0.5: YELLOW},
            ),
            Query(f"sum({fleet.grown('gputally_agent_restarts_total')})", "restarts"),
        ),
        stat(
            Look(
                "Used by pods unknown",
                "GPUs' worth of measured time whose pod the API did not tell of.",
                unit=GPUS,
                empty=NO_EXPORTER,
                steps={0.1: ORANGE},
            ),
            Query(f"sum({fleet.rate('gputally_unmatched_usage_gpu_seconds_total')})", "unresolved"),
        ),
        timeseries(
            Look(
                "Pulls, by outcome",
                "Per second. What is not answered is in the log.",
                unit=PER_SECOND,
                empty=NO_EXPORTER,
            ),
            Query(f"sum by (outcome) ({fleet.rate('gputally_agent_pulls_total')})", "{{outcome}}"),
        ),
        timeseries(
            Look(
                "API against kubelet",
                "GPUs that one of them alone says are allocated. A moment of it is a pod that comes or goes.",
                unit=GPUS,
                empty=NO_EXPORTER,
                steps={0.001: ORANGE},
            ),
            Query(f"sum by (pool, side) ({fleet.now('gputally_allocation_difference_gpus')})", "{{pool}}: {{side}}"),
        ),
    ),
)

OWN = Row(
    "As they find themselves",
    (
        table(
            Look(
                "Agents",
                "What runs on each node, and how long ago it last read a GPU and heard the kubelet.",
                empty=NO_AGENT,
                links=(Link("What runs there", "node", {"instance": "instance"}),),
                width=24,
            ),
            {
                "cluster": "Cluster",
                "instance": "Node",
                "version": "Version",
                "driver_version": "Driver",
                "nvml_version": "NVML",
            },
            Column(
                head="",
                expression="count by (cluster, instance, version, driver_version, nvml_version) "
                f"({select('gputally_agent_info')})",
                unit=COUNT,
            ),
            Column(
                head="GPUs read",
                expression=AGE.format("max", select("gputally_agent_last_gpu_read_timestamp_seconds")),
                unit=SECONDS,
                steps={30: RED},
            ),
            Column(
                head="Kubelet heard",
                expression="time() - max by (instance) "
                f"({select('gputally_agent_last_kubelet_poll_timestamp_seconds')})",
                unit=SECONDS,
                steps={30: RED},
            ),
            Column(
                head="Measured up to",
                expression=AGE.format("min", select("gputally_gpu_watermark_timestamp_seconds")),
                unit=SECONDS,
                steps={30: ORANGE},
            ),
            Column(
                head="Unknown devices",
                expression=f"max by (cluster, instance) ({select('gputally_agent_unknown_devices')})",
                unit=COUNT,
                steps={1: ORANGE},
            ),
            Column(
                head="Containers dropped",
                expression=f"sum by (cluster, instance) ({select.grown('gputally_agent_dropped_containers_total')})",
                unit=COUNT,
                steps={0.5: ORANGE},
            ),
            Column(
                head="Meters begun anew",
                expression=f"sum by (cluster, instance) ({select.grown('gputally_gpu_energy_resets_total')})",
                unit=COUNT,
                steps={0.5: YELLOW},
            ),
            Column(
                head="Energy readings rejected",
                expression=f"sum by (cluster, instance) ({select.grown('gputally_gpu_energy_faults_total')})",
                unit=COUNT,
                steps={0.5: YELLOW},
            ),
            order="GPUs read",
        ),
        timeseries(
            Look("Readings of GPUs, by outcome", "Per second.", unit=PER_SECOND, empty=NO_AGENT),
            Query(f"sum by (outcome) ({select.rate('gputally_agent_gpu_reads_total')})", "{{outcome}}"),
        ),
        timeseries(
            Look("Questions to kubelets, by outcome", "Per second.", unit=PER_SECOND, empty=NO_AGENT),
            Query(f"sum by (outcome) ({select.rate('gputally_agent_kubelet_polls_total')})", "{{outcome}}"),
        ),
        *process(select, "gputally_agent_info", whose="of the agents' processes"),
    ),
)

BOARD = Board(
    name="agents",
    title="Agents",
    description="Whether the nodes are measured: the agents as the aggregator finds them, and as they find themselves.",
    span="6h",
    variables=(
        Variable("cluster", "Cluster", "gputally_agents"),
        Variable("instance", "Node", "gputally_agent_info"),
    ),
    rows=(PULLED, OWN),
)
