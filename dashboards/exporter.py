"""Health of gputally itself: its accounting, watches, ledger and process."""

from monitoring.board import Board, Row, Variable
from monitoring.panel import GREEN, ORANGE, RED, YELLOW, Column, Look, Query, stat, table, timeline, timeseries
from monitoring.process import process
from monitoring.selector import Selectors
from monitoring.unit import COUNT, GPU_HOURS, GPU_SECONDS, MOMENT, MONEY, PER_SECOND, RATIO, SECONDS

select = Selectors("cluster", "instance")
WHO = "{{cluster}} {{instance}}"
NO_EXPORTER = "no data from the exporter"
YES_OR_NO = {0: ("no", RED), 1: ("yes", GREEN)}
STARTED = select("gputally_accounting_start_timestamp_seconds")

ACCOUNTING = Row(
    "Accounting",
    (
        stat(
            Look(
                "Reconciliation difference",
                "GPU-seconds by which independently kept sums differ. Any value but 0 is a bug in gputally.",
                unit=GPU_SECONDS,
                empty=NO_EXPORTER,
                steps={"<GputallyReconciliationDifference.gpu_seconds>": RED},
            ),
            Query(f"sum(abs({select.now('gputally_reconciliation_difference_gpu_seconds')}))", "difference"),
        ),
        stat(
            Look(
                "Overcount",
                "GPU-hours by which counters exceed the corrected accounting. They stand still until it is offset.",
                unit=GPU_HOURS,
                empty=NO_EXPORTER,
                steps={"<GputallyOvercount.gpu_hours>": YELLOW},
            ),
            Query(f"sum({select.now('gputally_overcount_gpu_seconds')}) / 3600", "overcount"),
        ),
        stat(
            Look("Pods", "Existing pods that request GPUs, including finished pods.", unit=COUNT, empty=NO_EXPORTER),
            Query(f"sum({select.now('gputally_pods')})", "pods"),
        ),
        stat(
            Look("Nodes", "Existing nodes with GPUs.", unit=COUNT, empty=NO_EXPORTER),
            Query(f"sum({select.now('gputally_nodes')})", "nodes"),
        ),
        stat(
            Look(
                "Pods without tier",
                "Pods to which no rule gives a tier. Their GPUs count as tier `none`.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: ORANGE},
            ),
            Query(f"sum({select.now('gputally_pods_without_tier')})", "pods"),
        ),
        stat(
            Look(
                "Pods without tenant",
                "Pods to which no rule gives a tenant. Their GPUs count as tenant `unassigned`.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: ORANGE},
            ),
            Query(f"sum({select.now('gputally_pods_without_tenant')})", "pods"),
        ),
        stat(
            Look(
                "Overcounted cost",
                "The overcount in money: how far cost counters exceed the corrected cost.",
                unit=MONEY,
                empty="no price book",
                steps={1: YELLOW},
            ),
            Query(f"sum by (currency) ({select.now('gputally_overcount_cost')})", "{{currency}}"),
        ),
        stat(
            Look(
                "Conflicting purchase labels",
                "Nodes whose labels say both spot and on-demand, so that their price is a guess.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: ORANGE},
            ),
            Query(f"sum({select.now('gputally_purchase_conflict_nodes')})", "nodes"),
        ),
        table(
            Look(
                "Exporter and price book",
                "The running version, its accounting start, and the price book in use.",
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
                head="Accounting start",
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
                "Reconciliation differences and overcount",
                "GPU-hours by check and by counter.",
                unit=GPU_HOURS,
                empty=NO_EXPORTER,
            ),
            Query(
                f"sum by (check) ({select.now('gputally_reconciliation_difference_gpu_seconds')}) / 3600",
                "difference {{check}}",
            ),
            Query(f"sum by (counter) ({select.now('gputally_overcount_gpu_seconds')}) / 3600", "overcount {{counter}}"),
        ),
        timeseries(
            Look(
                "Skipped data, label overflows and agent restarts",
                "Per second: objects that are contradictory or malformed, label values over their limit, usage "
                "reports that were rejected, and agents that restarted.",
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
            Query(f"sum by (label) ({select.rate('gputally_label_overflows_total')})", "{{label}} over its limit"),
            Query(f"sum({select.rate('gputally_usage_faults_total')})", "usage rejected"),
            Query(f"sum({select.rate('gputally_agent_restarts_total')})", "agent restarts"),
        ),
    ),
)

WATCHES = Row(
    "Watches",
    (
        timeline(
            Look("Watch synced", "Whether each watch has reached a complete state since the start.", empty=NO_EXPORTER),
            Query(f"min by (cluster, resource) ({select('gputally_watch_synced')})", "{{cluster}} {{resource}}"),
            words=YES_OR_NO,
        ),
        timeline(
            Look("Watch connected", "Whether each watch has an open stream.", empty=NO_EXPORTER),
            Query(f"min by (cluster, resource) ({select('gputally_watch_connected')})", "{{cluster}} {{resource}}"),
            words=YES_OR_NO,
        ),
        timeseries(
            Look(
                "Time since last watch activity",
                "Healthy watches receive something every minute or two, except for Events, which are rare and get no "
                "bookmarks.",
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
            Look("Objects received", "Per second, in watch events and lists.", unit=PER_SECOND, empty=NO_EXPORTER),
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
                "Watch interruptions",
                "Per second: reopened streams, complete lists, expired resource versions, errors and rejected dates.",
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
                "Clock skew to the API server",
                "How far the aggregator's clock differs. Accounting uses the API server's time.",
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
            Look("Ledger writable", "Whether the last write succeeded. If not, rows wait.", width=8, empty=NO_EXPORTER),
            Query(f"min by (cluster, instance) ({select('gputally_ledger_writable')})", WHO),
            words=YES_OR_NO,
        ),
        timeseries(
            Look(
                "Pending observations and rows",
                "Observations that are not accounted yet, and rows that are not written yet.",
                unit=COUNT,
                width=8,
                empty=NO_EXPORTER,
            ),
            Query(f"sum({select.now('gputally_queued_observations')})", "observations"),
            Query(f"sum({select.now('gputally_ledger_waiting_rows')})", "rows"),
        ),
        timeseries(
            Look(
                "Time since last ledger write",
                "Every scrape writes the ledger.",
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
            Look("Ledger intact", "Whether all rows checked so far are consistent.", width=8, empty=NO_EXPORTER),
            Query(f"1 - max by (cluster, instance) ({select('gputally_ledger_damaged')})", WHO),
            words=YES_OR_NO,
        ),
        timeseries(
            Look("Ledger writes", "Transactions per second, written and failed.", unit=PER_SECOND, empty=NO_EXPORTER),
            Query(f"sum({select.rate('gputally_ledger_writes_total')})", "written"),
            Query(f"sum({select.rate('gputally_ledger_write_failures_total')})", "failed"),
        ),
        timeseries(
            Look("Ledger write time", "As a share of the time.", unit=RATIO, empty=NO_EXPORTER, steps={0.5: ORANGE}),
            Query(f"sum by (cluster, instance) ({select.rate('gputally_ledger_write_seconds_total')})", WHO),
        ),
    ),
)

PROCESS = Row("Process", process(select, "gputally_build_info", whose="of the aggregator process"))

BOARD = Board(
    name="exporter",
    title="Exporter health",
    description="Health of gputally itself: its accounting, watches, ledger and process.",
    span="6h",
    variables=(
        Variable("cluster", "Cluster", "gputally_build_info"),
        Variable("instance", "Instance", "gputally_build_info"),
    ),
    rows=(ACCOUNTING, WATCHES, LEDGER, PROCESS),
)
