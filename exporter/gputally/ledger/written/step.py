"""All rows that a step of the accounting writes besides allocations and the sums of all, with their statements."""

from collections.abc import Callable, Iterable
from typing import Final

from gputally.accounting.changes import Changes
from gputally.ledger.tables.nodes import CAPACITY, CAPACITY_PRICES, NODE_ENDS, REREGISTRATIONS
from gputally.ledger.tables.statements import delete, insert_missing, upsert
from gputally.ledger.tables.table import Row
from gputally.ledger.tables.usage import UNALLOCATED_USAGE, USAGE_ASSIGNMENTS
from gputally.ledger.tables.victims import LOST_PODS, LOST_WORK, VICTIMS
from gputally.ledger.tables.waits import PRIORITY_CLASSES, UNCREATED_WAITS, WAITS
from gputally.ledger.tables.working import HISTORIES, INTERRUPTIONS, KNOWN_VALUES, SERIES, WATCHES, WORKING
from gputally.ledger.written import nodes, victims, waits, working_state

STEP: Final[tuple[tuple[str, Callable[[Changes], Iterable[Row]]], ...]] = (
    (upsert(CAPACITY), nodes.capacity),
    (upsert(CAPACITY_PRICES), nodes.asset_prices),
    (upsert(NODE_ENDS), nodes.node_ends),
    (insert_missing(REREGISTRATIONS), nodes.reregistrations),
    (victims.UPSERT_VICTIM, victims.victims),
    (delete(VICTIMS), victims.withdrawn_victims),
    (victims.INSERT_DELIVERY, victims.deliveries),
    (delete(LOST_WORK), victims.withdrawn_lost_work),
    (upsert(LOST_WORK), victims.lost_work),
    (delete(LOST_PODS, "victim_uid"), victims.revised_lost_work),
    (upsert(LOST_PODS), victims.lost_pods),
    (upsert(PRIORITY_CLASSES), working_state.class_versions),
    (delete(WAITS), waits.withdrawn_waits),
    (upsert(WAITS), waits.waits),
    (delete(UNCREATED_WAITS), waits.withdrawn_uncreated_waits),
    (upsert(UNCREATED_WAITS), waits.uncreated_waits),
    (upsert(INTERRUPTIONS), working_state.interruptions),
    (upsert(USAGE_ASSIGNMENTS), nodes.assignments),
    (nodes.UPSERT_HOUR, nodes.hours),
    (upsert(UNALLOCATED_USAGE), nodes.unallocated),
    (upsert(SERIES), working_state.series),
    (delete(SERIES), working_state.dropped_series),
    (upsert(KNOWN_VALUES), working_state.known_values),
    (delete(KNOWN_VALUES), working_state.forgotten),
    (upsert(WORKING), working_state.working),
    (delete(WORKING), working_state.dropped),
    (working_state.DELETE_OUTDATED, working_state.outdated),
    (upsert(HISTORIES), working_state.histories),
    (upsert(WATCHES), working_state.watches),
)
"""No step deletes a row that it also writes, except for lost pods and histories: these are deleted first."""
