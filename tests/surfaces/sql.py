"""The surface of those who read the ledger with SQL, by the relations that docs/ledger.md describes."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Final, NamedTuple

from tests.docs.pages import TEXTS, blocks
from tests.surfaces.answer import Answer, Key, Reader, answer
from tests.surfaces.book import Book, Json
from tests.surfaces.readers import GPU_HOUR, sums

EXACT: Final = "0.000000001"
COST_UNIT: Final = GPU_HOUR * 10**12
"""In the ledger's integers, one unit of a currency."""
(EXACT_SUMS,) = (block for block in blocks(TEXTS["docs/ledger.md"], "sql") if "allocation_segments" in block)

WAITS: Final = """
SELECT w.tier, w.tenant, w.cause, w.occupying_tier, w.quantity, ifnull(w.occupied, w.quantity) AS occupied,
       max(w.from_us, {start}) AS from_us, min(ifnull(w.to_us, {end}), {end}) AS to_us, p.per_gpu_hour
FROM waits w LEFT JOIN prices p ON p.price_key = w.price_key
WHERE w.from_us < {end} AND ifnull(w.to_us, {end}) > {start}
"""
UNCREATED: Final = """
SELECT w.tier, w.tenant, w.cause, w.pods * w.quantity AS quantity,
       max(w.from_us, {start}) AS from_us, min(ifnull(w.to_us, {end}), {end}) AS to_us, p.per_gpu_hour
FROM uncreated_waits w LEFT JOIN prices p ON p.price_key = w.price_key
WHERE w.from_us < {end} AND ifnull(w.to_us, {end}) > {start}
"""
LOST: Final = """
SELECT d.victim_tier AS tier, d.victim_tenant AS tenant, d.job, d.cause, l.gpu_time, l.costs
FROM disruptions d JOIN lost_work l USING (victim_uid) WHERE d.decided_us >= {start} AND d.decided_us < {end}
"""
DISRUPTIONS: Final = """
SELECT victim_tier AS tier, victim_tenant AS tenant, cause,
       sum(CASE cause WHEN 'container_restart' THEN (SELECT members FROM lost_work l WHERE l.victim_uid = d.victim_uid)
                      ELSE 1 END) AS pods
FROM disruptions d
WHERE decided_us >= {start} AND decided_us < {end} GROUP BY victim_tier, victim_tenant, cause
"""
PREEMPTIONS: Final = """
SELECT victim_tier, victim_tenant, preemptor_tier, count(*) AS pods FROM preemptions
GROUP BY victim_tier, victim_tenant, preemptor_tier
"""
USED: Final = """
SELECT s.tier, s.tenant, u.measured, u.used, u.burst FROM usage_by_pod u
JOIN (SELECT DISTINCT pod_uid, tier, tenant FROM allocation_segments) s USING (pod_uid)
"""
HELD: Final = """
SELECT tier, tenant, node, gpu_model, state, quantity, start_us AS from_us, per_gpu_hour, pod_uid
FROM allocation_segments WHERE end_us IS NULL
"""
PENDING: Final = """
SELECT w.namespace || '/' || w.name AS name, w.pod_uid, w.tier, w.tenant, w.reason, w.quantity, w.from_us,
       p.per_gpu_hour
FROM waits w LEFT JOIN prices p ON p.price_key = w.price_key WHERE w.to_us IS NULL
"""
WAITED_SINCE: Final = """
SELECT w.namespace || '/' || w.name AS name, 0 AS quantity, min(w.from_us) AS from_us, NULL AS per_gpu_hour
FROM waits w GROUP BY w.pod_uid HAVING sum(w.to_us IS NULL)
"""
SAME_REASON_SINCE: Final = """
SELECT now.namespace || '/' || now.name AS name, 0 AS quantity, NULL AS per_gpu_hour,
       min(before.from_us) AS from_us
FROM waits now JOIN waits before USING (pod_uid)
WHERE now.to_us IS NULL AND before.reason = now.reason AND before.from_us >= ifnull(
    (SELECT max(other.to_us) FROM waits other WHERE other.pod_uid = now.pod_uid AND other.reason <> now.reason), 0)
GROUP BY now.pod_uid
"""
WAITED: Final = """
SELECT w.namespace || '/' || w.name AS name, w.quantity, w.from_us, w.to_us, p.per_gpu_hour
FROM waits w LEFT JOIN prices p ON p.price_key = w.price_key
WHERE w.pod_uid IN (SELECT pod_uid FROM waits WHERE to_us IS NULL)
"""
LACKING: Final = """
SELECT w.tier, w.tenant, w.reason, w.pods AS count, w.pods * w.quantity AS quantity, w.from_us, p.per_gpu_hour
FROM uncreated_waits w LEFT JOIN prices p ON p.price_key = w.price_key WHERE w.to_us IS NULL
"""
OFFERED: Final = """
SELECT c.node_uid, c.from_us, c.physical, e.gone_us FROM capacity c LEFT JOIN node_ends e USING (node_uid)
ORDER BY c.node_uid, c.from_us
"""


class Span(NamedTuple):
    """A period, in microseconds; without an end, up to the cut-off of the ledger."""

    start_us: int = 0
    end_us: int = 0

    def of(self, book: Book) -> "Span":
        return Span(max(self.start_us, book.start_us), self.end_us or book.now_us)


ALL: Final = Span()


def allocated(by: Sequence[str], span: Span = ALL, *, cost: bool = False) -> Reader:
    """The query of docs/ledger.md, for a period as it says, grouped by these columns."""

    async def read(book: Book) -> Answer:
        found = ((_key(row, by), _amount(row, cost=cost)) for row in book.query(_for_period(by, span.of(book))))
        return answer(found, exact_to=EXACT)

    return read


def _for_period(by: Sequence[str], span: Span) -> str:
    """The documented query, changed in the documented way."""
    start, end = span
    cut = re.sub(r"\bstart_us\b", f"max(start_us, {start})", EXACT_SUMS)
    cut = re.sub(r"\buntil_us\b", f"min(until_us, {end})", cut)
    grouped = cut.replace("tenant,", f"{', '.join(by)},")
    return grouped.replace("GROUP BY", f"WHERE start_us < {end} AND until_us > {start} GROUP BY")


def _amount(row: Json, *, cost: bool) -> Decimal:
    hours: Decimal = (row["seconds"] * 10**6 + row["microseconds"]) / GPU_HOUR
    return hours * Decimal(row["per_gpu_hour"] or 0) if cost else hours


def waited(by: Sequence[str], *, cost: bool = False) -> Reader:
    """Waits for GPUs; `occupying_tier` is who held what was missing, `nobody` for the rest."""

    async def read(book: Book) -> Answer:
        found = ((_key(each, by), each["time"] * _price(each, cost=cost)) for each in _charges(book))
        return answer(found, exact_to=EXACT)

    return read


def _charges(book: Book) -> Iterator[Json]:
    """Of each wait, the part that is charged to who held the GPUs, and the rest."""
    for row in book.query(_filled(WAITS, book)):
        occupied = row["occupied"] if row["occupying_tier"] else Decimal(0)
        for tier, quantity in ((row["occupying_tier"], occupied), ("nobody", row["quantity"] - occupied)):
            yield row | {"occupying_tier": tier, "time": quantity * (row["to_us"] - row["from_us"]) / GPU_HOUR}


def uncreated(by: Sequence[str], *, cost: bool = False) -> Reader:
    """Waits of pods that do not exist."""

    async def read(book: Book) -> Answer:
        rows = book.query(_filled(UNCREATED, book))
        times = ((row, row["quantity"] * (row["to_us"] - row["from_us"]) / GPU_HOUR) for row in rows)
        return answer(((_key(row, by), time * _price(row, cost=cost)) for row, time in times), exact_to=EXACT)

    return read


def lost(by: Sequence[str], *, cost: bool = False) -> Reader:
    """Destroyed work, by columns of the victim."""

    async def read(book: Book) -> Answer:
        found = ((_key(row, by), _cost(row) if cost else Decimal(row["gpu_time"]) / GPU_HOUR) for row in _lost(book))
        return answer(found, exact_to=EXACT)

    return read


def _lost(book: Book) -> list[Json]:
    return [row for row in book.query(_filled(LOST, book)) if row["cause"] != "deletion"]


def _cost(row: Json) -> Decimal:
    return sum((Decimal(each) / COST_UNIT for _, each in json.loads(row["costs"])), Decimal())


def disrupted(by: Sequence[str]) -> Reader:
    """Pods that lost their GPUs."""
    return _counted(DISRUPTIONS, by)


def preempted(by: Sequence[str]) -> Reader:
    """Preempted pods."""
    return _counted(PREEMPTIONS, by)


def _counted(sql: str, by: Sequence[str]) -> Reader:
    async def read(book: Book) -> Answer:
        return answer(((_key(row, by), row["pods"]) for row in book.query(_filled(sql, book))), exact_to="0")

    return read


def used(of: str, by: Sequence[str]) -> Reader:
    """`measured`, `used`, `burst` or `idle`: what was measured and not used, where use above the share is burst."""

    async def read(book: Book) -> Answer:
        rows = (row | {"idle": row["measured"] - row["used"] + row["burst"]} for row in book.query(USED))
        return answer(((_key(row, by), row[of] / GPU_HOUR) for row in rows), exact_to=EXACT)

    return read


def now(sql: str, value: str, by: Sequence[str]) -> Reader:
    """The sums of `gpus`, `cost_per_hour`, `since_s` or a column, or with `COUNT` the number of open rows."""

    async def read(book: Book) -> Answer:
        return sums(_measured(book, sql), by, value, exact_to=EXACT)

    return read


def _measured(book: Book, sql: str) -> Iterator[Json]:
    for row in book.query(sql):
        gpus = Decimal(row["quantity"]) / 10**6
        cost = gpus * Decimal(row["per_gpu_hour"] or 0)
        yield row | {"gpus": gpus, "cost_per_hour": cost, "since_s": (book.now_us - row["from_us"]) / 10**6}


def waited_so_far() -> Reader:
    """What the waits of the pods that wait now have cost."""

    async def read(book: Book) -> Answer:
        rows = ((each, (each["to_us"] or book.now_us) - each["from_us"]) for each in book.query(WAITED))
        costs = (((row["name"],), row["quantity"] * us / GPU_HOUR * _price(row, cost=True)) for row, us in rows)
        return answer(costs, exact_to=EXACT)

    return read


def offered() -> Reader:
    """The GPU-hours that nodes had, whatever their state."""

    async def read(book: Book) -> Answer:
        nodes = defaultdict[str, list[Json]](list)
        for row in book.query(OFFERED):
            nodes[row["node_uid"]].append(row)
        spans = (span for rows in nodes.values() for span in _offers(rows, book))
        return answer((((), time / GPU_HOUR) for time in spans), exact_to=EXACT)

    return read


def _offers(rows: Sequence[Json], book: Book) -> Iterator[Decimal]:
    end_us = rows[0]["gone_us"] or book.now_us
    instants = [max(row["from_us"], book.start_us) for row in rows]
    for row, (from_us, to_us) in zip(rows, pairwise([*instants, end_us]), strict=True):
        yield row["physical"] * max(0, to_us - from_us)


def _filled(sql: str, book: Book) -> str:
    start, end = ALL.of(book)
    return sql.format(start=start, end=end)


def _key(row: Json, by: Sequence[str]) -> Key:
    return tuple(row[name] for name in by)


def _price(row: Json, *, cost: bool) -> Decimal:
    return Decimal(row["per_gpu_hour"] or 0) if cost else Decimal(1)
