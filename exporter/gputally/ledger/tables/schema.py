"""All tables of a ledger, in the order in which a new one gets them."""

from typing import Final

from gputally.ledger.tables.allocations import (
    IMPORTED,
    JOB_OUTCOMES,
    JOB_PROGRESS,
    PAGE_SUMS,
    POD_DAYS,
    POD_REVISIONS,
    POD_SEGMENTS,
    PODS,
    PRICES,
    SUMMED_PAGES,
    TERMS,
    TEXTS,
)
from gputally.ledger.tables.closed import CLOSED_LINES, CLOSED_PERIODS
from gputally.ledger.tables.daily import DAILY_LOST, DAILY_ROWS, NODE_STEPS, ROLLED_PERIODS, ROLLED_PODS
from gputally.ledger.tables.nodes import CAPACITY, CAPACITY_PRICES, NODE_ENDS, REREGISTRATIONS
from gputally.ledger.tables.table import AnyTable
from gputally.ledger.tables.usage import UNALLOCATED_USAGE, USAGE_ASSIGNMENTS, USAGE_HOURS
from gputally.ledger.tables.victims import LOST_PODS, LOST_WORK, PREEMPTION_DELIVERIES, VICTIMS
from gputally.ledger.tables.waits import PRIORITY_CLASSES, UNCREATED_WAITS, WAITS
from gputally.ledger.tables.working import HISTORIES, INTERRUPTIONS, KNOWN_VALUES, META, SERIES, WATCHES, WORKING

TABLES: Final[tuple[AnyTable, ...]] = (
    *(META, TEXTS, PRICES, TERMS),
    *(PODS, POD_REVISIONS, POD_SEGMENTS, POD_DAYS, SUMMED_PAGES, PAGE_SUMS, JOB_OUTCOMES, JOB_PROGRESS, IMPORTED),
    *(ROLLED_PERIODS, DAILY_ROWS, DAILY_LOST, NODE_STEPS, ROLLED_PODS),
    *(CAPACITY, CAPACITY_PRICES, NODE_ENDS, REREGISTRATIONS),
    *(VICTIMS, LOST_WORK, LOST_PODS, PREEMPTION_DELIVERIES, PRIORITY_CLASSES),
    *(WAITS, UNCREATED_WAITS, INTERRUPTIONS),
    *(USAGE_ASSIGNMENTS, USAGE_HOURS, UNALLOCATED_USAGE),
    *(CLOSED_PERIODS, CLOSED_LINES),
    *(SERIES, KNOWN_VALUES, WORKING, HISTORIES, WATCHES),
)
