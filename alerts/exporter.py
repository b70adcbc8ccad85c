"""The exporter and its agents: what they do not see nobody is told of."""

from monitoring.rule import Alert, Group

_REACHABLE = 'gputally_agents{state="reachable"}'

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
            summary="There is no aggregator to scrape.",
            description=(
                "The aggregator{{ with $labels.cluster }} of cluster {{ . }}{{ end }} has no series: nobody is paged "
                "for inference pods that wait. Look whether its pod runs, and whether Prometheus reaches it. "
                "Its books catch up when it is back."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyWatchStale",
            expression="""\
time() - max by (cluster, resource) (
  gputally_watch_last_activity_timestamp_seconds{resource!="events"}
) > $seconds
or
(
  max by (cluster, resource) (gputally_watch_connected) == 0
  unless
  max by (cluster, resource) (gputally_watch_available) == 0
)
""",
            summary="The aggregator does not learn what happens in the cluster.",
            description=(
                "The watch of {{ $labels.resource }} brings nothing. Look whether the API server answers and whether "
                "the aggregator may still watch them. Until then gauges show the past, and counters go on as if "
                "nothing had changed."
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
                "Look whether the disk of the ledger is full or read-only, and do not restart the aggregator before it "
                "can be written: counters stand still, and go on from there."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyLedgerDamaged",
            expression="max by (cluster) (gputally_ledger_damaged) == 1",
            summary="Rows of the ledger are damaged.",
            description=(
                "Some rows in the ledger of cluster {{ $labels.cluster }} cannot be read or contradict each other. "
                "Accounting goes on and counters are right, but bills made from the ledger may be wrong. Look at the "
                "log of the aggregator, which says what was found first, then at the disk, and restore what was lost "
                "from a backup."
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
            summary="Nodes with GPUs have no agent that answers.",
            description=(
                'The agents of {{ $value | printf "%.0f" }} nodes with GPUs do not answer: what their GPUs do is not '
                "measured, and what is not measured is neither used nor idle. Look at the pods of the agents."
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
            summary="An agent runs and learns nothing.",
            description=(
                "The agent of node {{ $labels.instance }} gets no answer from the {{ $labels.source }}. Look at its "
                "log: it says what is missing, mostly a mount of its pod or a driver that was replaced."
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
""",
            summary="Objects were left out of the accounting.",
            description=(
                "Some {{ $labels.resource }} contradict themselves or cannot be read, and were not accounted. The log "
                "of the aggregator names them and the reason; report it if the objects are in order."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyClockSkewed",
            expression="max by (cluster) (abs(gputally_clock_skew_seconds)) > $seconds",
            summary="The clocks of the aggregator and of the API server differ.",
            description=(
                "They are {{ $value | humanizeDuration }} apart. The books go by the API server and stay right, but "
                "ages on alerts and dashboards are by the clock of Prometheus. Look which of the machines does not "
                "follow its time server."
            ),
            dashboard="exporter",
            variables=("cluster",),
        ),
    ),
)
