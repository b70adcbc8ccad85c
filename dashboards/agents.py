"""Whether all nodes are measured: agents as seen by the aggregator, and as they report themselves."""

from monitoring.board import Board, Row, Variable
from monitoring.link import Link
from monitoring.panel import ORANGE, RED, YELLOW, Column, Look, Query, stat, table, timeseries
from monitoring.process import process
from monitoring.selector import Selectors
from monitoring.unit import COUNT, GPUS, PER_SECOND, SECONDS

fleet = Selectors("cluster")
select = Selectors("cluster", "instance")
NO_AGENT = "no data from agents"
NO_EXPORTER = "no data from the exporter"
AGE = "time() - {} by (cluster, instance) ({})"
ANSWERS = 'state="reachable"'

NODES = fleet.now("gputally_node_gpus")
AGENTS = f'label_replace({fleet("gputally_agent_info")}, "node", "$1", "instance", "(.+)")'

PULLED = Row(
    "Agents as seen by the aggregator",
    (
        stat(
            Look("Nodes with GPUs", "Existing nodes that have GPUs.", unit=COUNT, empty=NO_EXPORTER),
            Query(f"sum({fleet.now('gputally_nodes')})", "nodes"),
        ),
        stat(
            Look("Reachable agents", "Agents that answered the last pull.", unit=COUNT, empty=NO_EXPORTER),
            Query(f"sum({fleet.now('gputally_agents', ANSWERS)})", "agents"),
        ),
        stat(
            Look(
                "Nodes without agent data",
                "Nodes that have no agent, or whose agent did not answer the last pull.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: RED},
            ),
            Query(f"sum({fleet.now('gputally_nodes')}) - sum({fleet.now('gputally_agents', ANSWERS)})", "nodes"),
        ),
        stat(
            Look(
                "Measurement delay",
                "Time since the last measurement of the slowest reachable agent. Used and idle time end there.",
                unit=SECONDS,
                empty=NO_AGENT,
                steps={120: ORANGE},
            ),
            Query(f"time() - min({fleet.now('gputally_agents_watermark_timestamp_seconds')})", "behind"),
        ),
        stat(
            Look(
                "Agent restarts",
                "In the time range. An agent that restarts loses what it measured since the last pull.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={0.5: YELLOW},
            ),
            Query(f"sum({fleet.grown('gputally_agent_restarts_total')})", "restarts"),
        ),
        stat(
            Look(
                "Unmatched usage",
                "Measured usage, in GPUs, of pods that the API server did not report.",
                unit=GPUS,
                empty=NO_EXPORTER,
                steps={0.1: ORANGE},
            ),
            Query(f"sum({fleet.rate('gputally_unmatched_usage_gpu_seconds_total')})", "unmatched"),
        ),
        table(
            Look(
                "Nodes without agent",
                "Nodes with GPUs on which no agent is scraped, by name.",
                empty="none, or no podMetricsMonitor",
                width=24,
                height=5,
            ),
            {"cluster": "Cluster", "node": "Node"},
            Column(
                head="GPUs",
                expression=f"sum by (cluster, node) ({NODES}) unless on (cluster, node) {AGENTS}",
                unit=GPUS,
            ),
        ),
        timeseries(
            Look(
                "Pulls by outcome",
                "Per second. The aggregator's log has the failed pulls.",
                unit=PER_SECOND,
                empty=NO_EXPORTER,
            ),
            Query(f"sum by (outcome) ({fleet.rate('gputally_agent_pulls_total')})", "{{outcome}}"),
        ),
        timeseries(
            Look(
                "Allocation differences between API and kubelet",
                "GPUs that only one side reports as allocated. Short differences are normal when pods start or end.",
                unit=GPUS,
                empty=NO_EXPORTER,
                steps={0.001: ORANGE},
            ),
            Query(f"sum by (pool, side) ({fleet.now('gputally_allocation_difference_gpus')})", "{{pool}}: {{side}}"),
        ),
    ),
)

OWN = Row(
    "Agents as they report themselves",
    (
        table(
            Look(
                "Agents",
                "Versions on each node, and the time since its agent last read a GPU and polled the kubelet.",
                empty=NO_AGENT,
                links=(Link("Workloads on this node", "node", {"instance": "instance"}),),
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
                head="Since last GPU read",
                expression=AGE.format("max", select("gputally_agent_last_gpu_read_timestamp_seconds")),
                unit=SECONDS,
                steps={30: RED},
            ),
            Column(
                head="Since last kubelet poll",
                expression="time() - max by (instance) "
                f"({select('gputally_agent_last_kubelet_poll_timestamp_seconds')})",
                unit=SECONDS,
                steps={30: RED},
            ),
            Column(
                head="Measurement delay",
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
                head="Dropped containers",
                expression=f"sum by (cluster, instance) ({select.grown('gputally_agent_dropped_containers_total')})",
                unit=COUNT,
                steps={0.5: ORANGE},
            ),
            Column(
                head="Energy counter resets",
                expression=f"sum by (cluster, instance) ({select.grown('gputally_gpu_energy_resets_total')})",
                unit=COUNT,
                steps={0.5: YELLOW},
            ),
            Column(
                head="Rejected energy readings",
                expression=f"sum by (cluster, instance) ({select.grown('gputally_gpu_energy_faults_total')})",
                unit=COUNT,
                steps={0.5: YELLOW},
            ),
            order="Since last GPU read",
        ),
        timeseries(
            Look("GPU reads by outcome", "Per second.", unit=PER_SECOND, empty=NO_AGENT),
            Query(f"sum by (outcome) ({select.rate('gputally_agent_gpu_reads_total')})", "{{outcome}}"),
        ),
        timeseries(
            Look("Kubelet polls by outcome", "Per second.", unit=PER_SECOND, empty=NO_AGENT),
            Query(f"sum by (outcome) ({select.rate('gputally_agent_kubelet_polls_total')})", "{{outcome}}"),
        ),
        *process(select, "gputally_agent_info", whose="of the agent processes"),
    ),
)

BOARD = Board(
    name="agents",
    title="Agents",
    description="Whether all nodes are measured: agents as seen by the aggregator, and as they report themselves.",
    span="6h",
    variables=(
        Variable("cluster", "Cluster", "gputally_agents"),
        Variable("instance", "Node", "gputally_agent_info"),
    ),
    rows=(PULLED, OWN),
)
