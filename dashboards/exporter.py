"""Health of gputally itself: its accounting, watches, ledger and process."""

from dashboards.rows.sources import LEDGER, WATCHES
from monitoring.board import Board, Row, Variable
from monitoring.panel import GREEN, ORANGE, RED, YELLOW, Column, Look, Query, stat, table, timeseries
from monitoring.process import process
from monitoring.selector import Selectors
from monitoring.unit import COUNT, GPU_HOURS, GPU_SECONDS, MOMENT, MONEY, PER_SECOND

select = Selectors("cluster", "instance")
WHO = "{{cluster}} {{instance}}"
NO_EXPORTER = "no data from the exporter"
YES_OR_NO = {0: ("no", RED), 1: ("yes", GREEN)}
STARTED = select("gputally_accounting_start_timestamp_seconds")

WRONG = {
    "gputally_watch_connected": "== bool 0",
    "gputally_watch_synced": "== bool 0",
    "gputally_ledger_writable": "== bool 0",
    "gputally_ledger_damaged": "== bool 1",
    "gputally_reconciliation_difference_gpu_seconds": "> bool 1",
    "gputally_reconciliation_difference_cost": "> bool 0.01",
}
"""When a metric shows a problem of the exporter itself."""
PROBLEMS = " + ".join(f"sum(abs({select.now(name)}) {test})" for name, test in WRONG.items())

ACCOUNTING = Row(
    "Accounting",
    (
        stat(
            Look(
                "gputally",
                "Whether all watches are connected and complete, the ledger is writable and undamaged, and independent "
                "sums agree; otherwise how many of these checks fail. The panels below say which.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: RED},
            ),
            Query(PROBLEMS, "problems"),
            words={0: ("healthy", GREEN)},
        ),
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
                "GPU-hours by which a counter exceeds the corrected accounting. It stands still until that is offset.",
                unit=GPU_HOURS,
                empty=NO_EXPORTER,
                steps={"<GputallyOvercount.gpu_hours>": YELLOW},
            ),
            Query(f"max({select.now('gputally_overcount_gpu_seconds')}) / 3600", "overcount"),
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
                "Pods with unaccounted GPUs",
                "Bound pods that ask for GPUs which are not accounted, by reason: their nodes offer too few, Dynamic "
                "Resource Allocation serves them, or no rule weighs the device.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: ORANGE},
            ),
            Query(f"sum by (reason) ({select.now('gputally_unaccounted_gpu_pods')})", "{{reason}}"),
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
                "Conflicting labels",
                "Nodes whose labels say both spot and on-demand, so that their price is a guess; and nodes whose GPU "
                "labels contradict the units that they offer.",
                unit=COUNT,
                empty=NO_EXPORTER,
                steps={1: ORANGE},
            ),
            Query(f"sum({select.now('gputally_purchase_conflict_nodes')})", "purchase"),
            Query(f"sum({select.now('gputally_gpu_label_conflict_nodes')})", "GPUs"),
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
