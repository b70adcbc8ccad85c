"""Whether gputally itself can be believed: the books, the watches, the ledger and the agents."""

from monitoring.board import Board, Row, Variable
from monitoring.panel import GREEN, ORANGE, RED, YELLOW, Column, Look, Query, stat, table, timeline, timeseries
from monitoring.process import process
from monitoring.selector import Selectors
from monitoring.unit import COUNT, GPU_HOURS, GPU_SECONDS, MOMENT, MONEY, PER_SECOND, RATIO, SECONDS

select = Selectors("cluster", "instance")
WHO = "{{cluster}} {{instance}}"
NO_EXPORTER = "no exporter answers"
YES_OR_NO = {0: ("no", RED), 1: ("yes", GREEN)}
STARTED = select("gputally_accounting_start_timestamp_seconds")

BOOKS = Row(
    "The books",
    (
        stat(
            Look(
                "Residual",
                "GPU-seconds by which sums that are kept apart differ. Anything but 0 is a fault of ours.",
                unit=GPU_SECONDS,
                empty=NO_EXPORTER,
                steps={"<GputallyReconciliationDifference.gpu_seconds>": RED},
            ),
            Query(f"sum(abs({select.now('gputally_reconciliation_difference_gpu_seconds')}))", "residual"),
        ),
        stat(
            Look(
                "Ahead",
                "GPU-hours published before late news took them back; counters stand still until it is worked off.",
                unit=GPU_HOURS,
                empty=NO_EXPORTER,
                steps={"<GputallyOvercount.gpu_hours>": YELLOW},
            ),
            Query(f"sum({select.now('gputally_overcount_gpu_seconds')}) / 3600", "ahead"),
        ),
        stat(
            Look("Pods", "That ask for GPUs and exist, finished ones too.", unit=COUNT, empty=NO_EXPORTER),
            Query(f"sum({select.now('gputally_pods')})", "pods"),
        ),
        stat(
            Look("Nodes", "With GPUs.", unit=COUNT, empty=NO_EXPORTER),
            Query(f"sum({select.now('gputally_nodes')})", "nodes"),
        ),
        stat(
            Look(
                "Pods without tier",
                "No rule gives them one: what they hold is counted as of tier none.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: ORANGE},
            ),
            Query(f"sum({select.now('gputally_pods_without_tier')})", "pods"),
        ),
        stat(
            Look(
                "Pods without tenant",
                "No rule gives them one: what they hold is unassigned.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: ORANGE},
            ),
            Query(f"sum({select.now('gputally_pods_without_tenant')})", "pods"),
        ),
        stat(
            Look(
                "Cost ahead",
                "The same in money: what cost counters stand above what is true.",
                unit=MONEY,
                empty="no price book",
                steps={1: YELLOW},
            ),
            Query(f"sum by (currency) ({select.now('gputally_overcount_cost')})", "{{currency}}"),
        ),
        stat(
            Look(
                "Nodes bought two ways",
                "Their labels contradict each other about spot and on-demand, so their price is a guess.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: ORANGE},
            ),
            Query(f"sum({select.now('gputally_purchase_conflict_nodes')})", "nodes"),
        ),
        table(
            Look(
                "Exporter and price book",
                "What runs, since when it keeps books, and by which prices it counts.",
                empty=NO_EXPORTER,
                height=4,
                width=16,
            ),
            {
                "cluster": "Cluster",
                "instance": "Instance",
                "version": "Version",
                "python_version": "Python",
                "name": "Price book",
                "currency": "Currency",
                "basis": "Basis",
                "as_of": "As of",
                "source": "Source",
                "digest": "Digest",
            },
            Column(
                head="Books opened",
                expression=f"max by (cluster, instance) ({STARTED}) * 1000",
                unit=MOMENT,
            ),
            Column(
                head="",
                expression=f"count by (cluster, instance, version, python_version) ({select('gputally_build_info')})",
                unit=COUNT,
            ),
            Column(
                head="",
                expression="count by (cluster, instance, name, currency, basis, as_of, source, digest) "
                f"({select('gputally_price_book_info')})",
                unit=COUNT,
            ),
        ),
        timeseries(
            Look(
                "Residuals and what is ahead", "GPU-hours, by check and by counter.", unit=GPU_HOURS, empty=NO_EXPORTER
            ),
            Query(
                f"sum by (check) ({select.now('gputally_reconciliation_difference_gpu_seconds')}) / 3600",
                "residual {{check}}",
            ),
            Query(f"sum by (counter) ({select.now('gputally_overcount_gpu_seconds')}) / 3600", "ahead {{counter}}"),
        ),
        timeseries(
            Look(
                "Left out, or counted as other",
                "Per second: objects that contradict themselves, label values past their limit, hours of usage that an "
                "agent took back, agents that began anew.",
                unit=PER_SECOND,
                empty=NO_EXPORTER,
            ),
            Query(
                f"sum by (cluster, resource) ({select.rate('gputally_skipped_objects_total')})",
                "{{cluster}} {{resource}} skipped",
            ),
            Query(
                f"sum by (cluster, resource) ({select.rate('gputally_watch_malformed_objects_total')})",
                "{{cluster}} {{resource}} malformed",
            ),
            Query(f"sum by (label) ({select.rate('gputally_label_overflows_total')})", "{{label}} past its limit"),
            Query(f"sum({select.rate('gputally_usage_faults_total')})", "usage taken back"),
            Query(f"sum({select.rate('gputally_agent_restarts_total')})", "agents begun anew"),
        ),
    ),
)

WATCHES = Row(
    "Watches",
    (
        timeline(
            Look("Complete", "Whether each watch has had a whole picture since the start.", empty=NO_EXPORTER),
            Query(f"min by (cluster, resource) ({select('gputally_watch_synced')})", "{{cluster}} {{resource}}"),
            words=YES_OR_NO,
        ),
        timeline(
            Look("Connected", "Whether each watch has an open stream.", empty=NO_EXPORTER),
            Query(f"min by (cluster, resource) ({select('gputally_watch_connected')})", "{{cluster}} {{resource}}"),
            words=YES_OR_NO,
        ),
        timeseries(
            Look(
                "Silence",
                "Time since each watch last received anything. Healthy ones hear something every minute or two; Events "
                "are rare, and get no bookmarks.",
                unit=SECONDS,
                empty=NO_EXPORTER,
                steps={"<GputallyWatchStale.seconds>": RED},
            ),
            Query(
                f"time() - max by (cluster, resource) ({select('gputally_watch_last_activity_timestamp_seconds')})",
                "{{cluster}} {{resource}}",
            ),
        ),
        timeseries(
            Look("Objects received", "Per second, in changes and listings.", unit=PER_SECOND, empty=NO_EXPORTER),
            Query(
                f"sum by (cluster, resource) ({select.rate('gputally_watch_objects_total')})",
                "{{cluster}} {{resource}}",
            ),
            Query(
                f"sum by (cluster, resource) ({select.rate('gputally_watch_bookmarks_total')})",
                "{{cluster}} {{resource}} bookmarks",
            ),
        ),
        timeseries(
            Look(
                "Interruptions",
                "Per second: streams opened again, complete listings, histories that no longer reached back, failures.",
                unit=PER_SECOND,
                empty=NO_EXPORTER,
            ),
            Query(
                f"sum by (cluster, resource) ({select.rate('gputally_watch_reconnects_total')})",
                "{{cluster}} {{resource}} reopened",
            ),
            Query(
                f"sum by (cluster, resource) ({select.rate('gputally_watch_listings_total')})",
                "{{cluster}} {{resource}} listed",
            ),
            Query(
                f"sum by (cluster, resource) ({select.rate('gputally_watch_expired_total')})",
                "{{cluster}} {{resource}} expired",
            ),
            Query(
                f"sum by (cluster, resource, reason) ({select.rate('gputally_watch_errors_total')})",
                "{{cluster}} {{resource}}: {{reason}}",
            ),
            Query(
                f"sum by (cluster) ({select.rate('gputally_api_dates_rejected_total')})",
                "{{cluster}} rejected dates",
            ),
        ),
        timeseries(
            Look(
                "Clock against the API server's",
                "How far ours is from theirs. Accounting goes by theirs.",
                unit=SECONDS,
                empty=NO_EXPORTER,
                steps={"<GputallyClockSkewed.seconds>": ORANGE},
            ),
            Query(f"max by (cluster, instance) (abs({select('gputally_clock_skew_seconds')}))", WHO),
        ),
    ),
)

LEDGER = Row(
    "Ledger",
    (
        timeline(
            Look("Writable", "Whether the last write succeeded. If not, rows wait.", width=8, empty=NO_EXPORTER),
            Query(f"min by (cluster, instance) ({select('gputally_ledger_writable')})", WHO),
            words=YES_OR_NO,
        ),
        timeseries(
            Look(
                "Waiting",
                "Observations read and not yet accounted, and rows accounted and not yet written.",
                unit=COUNT,
                width=8,
                empty=NO_EXPORTER,
            ),
            Query(f"sum({select.now('gputally_queued_observations')})", "observations"),
            Query(f"sum({select.now('gputally_ledger_waiting_rows')})", "rows"),
        ),
        timeseries(
            Look(
                "Since the last write",
                "Of the ledger.",
                unit=SECONDS,
                width=8,
                empty=NO_EXPORTER,
                steps={"<GputallyLedgerBehind.seconds>": RED},
            ),
            Query(
                f"time() - max by (cluster, instance) ({select('gputally_ledger_last_write_timestamp_seconds')})", WHO
            ),
        ),
        timeline(
            Look("Sound", "Whether all that was read of it so far holds together.", width=8, empty=NO_EXPORTER),
            Query(f"1 - max by (cluster, instance) ({select('gputally_ledger_damaged')})", WHO),
            words=YES_OR_NO,
        ),
        timeseries(
            Look("Writes", "Transactions per second, and those refused.", unit=PER_SECOND, empty=NO_EXPORTER),
            Query(f"sum({select.rate('gputally_ledger_writes_total')})", "written"),
            Query(f"sum({select.rate('gputally_ledger_write_failures_total')})", "refused"),
        ),
        timeseries(
            Look("Time spent writing", "The share of the time.", unit=RATIO, empty=NO_EXPORTER, steps={0.5: ORANGE}),
            Query(f"sum by (cluster, instance) ({select.rate('gputally_ledger_write_seconds_total')})", WHO),
        ),
    ),
)

PROCESS = Row("Process", process(select, "gputally_build_info", whose="of the aggregator's process"))

BOARD = Board(
    name="exporter",
    title="Exporter health",
    description="Whether what gputally says can be believed: its books, its watches and its ledger.",
    span="6h",
    variables=(
        Variable("cluster", "Cluster", "gputally_build_info"),
        Variable("instance", "Instance", "gputally_build_info"),
    ),
    rows=(BOOKS, WATCHES, LEDGER, PROCESS),
)
