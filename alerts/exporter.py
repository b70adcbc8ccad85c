"""Health of the aggregator and the agents: without them, no other alert can fire."""

from typing import Final

from monitoring.node_names import node_names
from monitoring.rule import Alert, Group

_REACHABLE = 'gputally_agents{state="reachable"}'
_NODES: Final = "max by (node) (gputally_node_gpus{cluster=%q})"
_SCRAPED: Final = "label_replace(gputally_agent_info{cluster=%q}, 'node', '$1', 'instance', '(.+)')"
_NOT_SCRAPED: Final = node_names(
    f"{_NODES} unless on (node) {_SCRAPED} and on () ({_NODES} and on (node) {_SCRAPED})",
    "$labels.cluster " * 3 + "$labels.cluster",
    before=" Prometheus has no agent on ",
    after=".",
)
"""Nothing if Prometheus does not scrape /metrics/pods, or no agent by the name of its node."""

GROUP = Group(
    name="exporter",
    alerts=(
        Alert(
            name="GputallyAbsent",
            expression="""\
max by (cluster) (max_over_time(gputally_build_info[$window]))
unless on (cluster)
max by (cluster) (gputally_build_info)
or
absent_over_time(gputally_build_info[$window])
""",
            summary="Prometheus has no series of the aggregator.",
            description=(
                "No alert can page for pending inference pods, since the aggregator"
                "{{ with $labels.cluster }} of cluster {{ . }}{{ end }} has no series. Check whether its pod runs, and "
                "whether Prometheus can reach it. The accounting catches up when it is back."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyWatchStale",
            expression="""\
time() - max by (cluster, resource) (
  gputally_watch_last_activity_timestamp_seconds{resource!~"events.*"}
) > $seconds
or
(
  max by (cluster, resource) (gputally_watch_connected) == 0
  unless
  max by (cluster, resource) (gputally_watch_available) == 0
)
""",
            summary="A watch of the aggregator receives no updates.",
            description=(
                "Gauges are outdated, and counters continue as if nothing had changed: the watch of "
                "{{ $labels.resource }} receives no updates. Check whether the API server answers, and whether the "
                "aggregator still has permission to watch them."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyLedgerBehind",
            expression="""\
time() - max by (cluster) (gputally_ledger_last_write_timestamp_seconds) > $seconds
or
max by (cluster) (gputally_ledger_writable) == 0
""",
            summary="The aggregator cannot write its ledger.",
            description=(
                "{{ with printf `max(gputally_ledger_waiting_rows{cluster=%q})` $labels.cluster | query }}"
                '{{ . | first | value | printf "%.0f" }} rows wait in memory. {{ end }}'
                "Counters stand still until the ledger is writable, then they continue. Check whether its disk is full "
                "or read-only. Do not restart the aggregator before that is fixed."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyLedgerDamaged",
            expression="max by (cluster) (gputally_ledger_damaged) == 1",
            summary="Rows of the ledger are damaged.",
            description=(
                "Bills from the ledger of cluster {{ $labels.cluster }} may be wrong: some rows cannot be read or "
                "contradict each other. Accounting continues, and counters are correct. Read the first error in the "
                "aggregator's log, check the disk, and restore the lost rows from a backup."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyAgentMissing",
            expression=f"""\
max by (cluster) (gputally_nodes) - max by (cluster) ({_REACHABLE}) > $nodes
and on (cluster)
max by (cluster) (max_over_time({_REACHABLE}[$window])) > 0
""",
            summary="Nodes with GPUs have no reachable agent.",
            description=(
                'GPU usage on {{ $value | printf "%.0f" }} nodes is not measured, so it counts as neither used nor '
                f"idle: their agents do not answer.{_NOT_SCRAPED} Check the pods of the agents."
            ),
            dashboard="agents",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyAgentNotMeasuring",
            expression="""\
label_replace(
  sum by (cluster, instance) (rate(gputally_agent_gpu_reads_total{outcome="ok"}[$window])) == 0,
  "source", "driver", "", ""
)
or
label_replace(
  sum by (cluster, instance) (rate(gputally_agent_kubelet_polls_total{outcome="ok"}[$window])) == 0,
  "source", "kubelet", "", ""
)
""",
            summary="An agent runs but gets no data.",
            description=(
                "GPU usage on node {{ $labels.instance }} is not measured or not attributed: its agent gets no answer "
                "from the {{ $labels.source }}. Its log says what is missing, usually a mount of its pod or a driver "
                "that was replaced."
            ),
            dashboard="agents",
            variables=("cluster", "instance"),
        ),
        Alert(
            name="GputallyObjectsSkipped",
            expression="""\
sum by (cluster, resource) (increase(gputally_skipped_objects_total[$window])) > 0
or
sum by (cluster, resource) (increase(gputally_watch_malformed_objects_total[$window])) > 0
or
sum by (cluster, resource) (increase(gputally_objects_beyond_limits_total[$window])) > 0
""",
            summary="The accounting skipped objects.",
            description=(
                "Some {{ $labels.resource }} are not accounted, because their fields contradict each other or cannot "
                "be read, or because there are more than a limit allows. The aggregator's log names the reason; find "
                "who created too many, and if the objects are valid, report a bug."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyClockSkewed",
            expression="max by (cluster) (abs(gputally_clock_skew_seconds)) > $seconds",
            summary="The clocks of the aggregator and the API server differ.",
            description=(
                "Ages on alerts and dashboards may be wrong, since they use the clock of Prometheus: the two clocks "
                "are {{ $value | humanizeDuration }} apart. Accounting uses the API server's clock and stays correct. "
                "Find the machine that does not synchronise with its time server."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyCertificateExpiring",
            expression="""\
label_replace(
  (min by (cluster, use) (gputally_certificate_expiry_timestamp_seconds) - time()) / 86400 < $days,
  "process", "the aggregator", "", ""
)
or
label_replace(label_replace(
  (min by (cluster) (gputally_agent_certificate_expiry_timestamp_seconds) - time()) / 86400 < $days,
  "process", "an agent", "", ""), "use", "server", "", ""
)
""",
            summary="A certificate expires soon.",
            description=(
                "The {{ $labels.use }} certificate of {{ $labels.process }} expires in "
                '{{ $value | printf "%.1f" }} days. Then scrapes fail, or agents can no longer be pulled. Renew it: a '
                "new file is used at once, without a restart."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyPreemptionWebhookFailing",
            expression="""\
sum by (cluster) (increase(gputally_preemption_deliveries_total{result=~"failed|rejected"}[$window])) > 0
unless
sum by (cluster) (increase(gputally_preemption_deliveries_total{result="delivered"}[$window])) > 0
""",
            summary="The webhook takes no records of preemptions.",
            description=(
                "Owners of preempted jobs in cluster {{ $labels.cluster }} are not notified: within $window the "
                "webhook took no record of a preemption. Failed ones are repeated, rejected ones are not. Read the "
                "reason in the aggregator's log, and check the URL in its Secret."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
    ),
)
