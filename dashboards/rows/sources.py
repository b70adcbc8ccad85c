"""Watches and ledger of the aggregator: rows of the dashboard of its health."""

from monitoring.board import Row
from monitoring.panel import GREEN, ORANGE, RED, Look, Query, timeline, timeseries
from monitoring.selector import Selectors
from monitoring.unit import COUNT, PER_SECOND, RATIO, SECONDS

select = Selectors("cluster", "instance")
WHO = "{{cluster}} {{instance}}"
NO_EXPORTER = "no data from the exporter"
YES_OR_NO = {0: ("no", RED), 1: ("yes", GREEN)}

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
            Look(
                "Ledger writes",
                "Transactions per second, written and failed.",
                unit=PER_SECOND,
                width=8,
                empty=NO_EXPORTER,
            ),
            Query(f"sum({select.rate('gputally_ledger_writes_total')})", "written"),
            Query(f"sum({select.rate('gputally_ledger_write_failures_total')})", "failed"),
        ),
        timeseries(
            Look(
                "Ledger write time",
                "As a share of the time.",
                unit=RATIO,
                width=8,
                empty=NO_EXPORTER,
                steps={0.5: ORANGE},
            ),
            Query(f"sum by (cluster, instance) ({select.rate('gputally_ledger_write_seconds_total')})", WHO),
        ),
    ),
)
