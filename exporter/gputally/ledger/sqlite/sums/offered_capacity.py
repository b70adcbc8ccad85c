"""What nodes offered and at what price, and how much of it was allocated."""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import json
from msgspec.structs import replace

from gputally.ledger.cuts import pieces
from gputally.ledger.price_columns import price_of
from gputally.ledger.records import CapacityRecord, NodeSteps
from gputally.ledger.sqlite import queries
from gputally.ledger.sqlite.segment_rows import Row
from gputally.ledger.sqlite.sums.names import Rows
from gputally.ledger.sqlite.sums.segment_pages import older_segments, segment_pages
from gputally.model.price import Asset, Price, Purchase

_OFFERED: Final = ("node_uid", "node", "start_us", "end_us", "physical", "covered", "allocatable")
_Prices = tuple[list[int], list[Price | None]]
"""Ascending times (µs), and the price from each on."""
_NO_PRICES: Final[_Prices] = ([], [])
_Steps = tuple["array[int]", "array[int]"]
"""Times (µs) and changes (µGPU)."""


def read_capacity(rows: Rows, bounds: Mapping[str, Any], held: Mapping[str, int]) -> Iterator[CapacityRecord]:
    """The capacity of nodes, divided where its price changes; `held` is the last allocation on lost nodes."""
    prices = _asset_prices(rows)
    for row in rows(queries.CAPACITY, {**bounds, "held": json.encode(held).decode()}):
        offered = _capacity(row)
        instants, of_asset = prices.get(offered.asset, _NO_PRICES)
        parts = [
            replace(
                offered,
                start_us=piece.start_us,
                end_us=piece.end_us,
                price=of_asset[piece.period - 1] if piece.period else None,
            )
            for piece in pieces(offered.start_us, offered.end_us, instants)
        ]
        yield from _merged(parts)


def read_steps(rows: Rows, bounds: Mapping[str, Any], page: int) -> Iterator[NodeSteps]:
    """The changes of the allocated µGPU by the UID of the node; those of a million segments need 32 MB."""
    numbered, named = (defaultdict[Any, _Steps](lambda: (array("q"), array("q"))) for _ in range(2))
    for segments in segment_pages(rows, bounds, ("node_uid",), page=page):
        for uid, _, _, *span, _, _, _, _ in segments:
            _hold(numbered[uid], *span)
    for uid, *span in rows(queries.ROLLED_STEPS, bounds):
        _hold(numbered[uid], *span)
    texts: dict[int, str] = dict(rows(queries.TEXTS, {"ids": json.encode(list(numbered)).decode()}))
    for uid, steps in numbered.items():
        named[texts[uid]] = steps
    for uid, *_, quantity, from_us, to_us in older_segments(rows, bounds, ("node_uid",)):
        _hold(named[uid], quantity, from_us, to_us)
    for uid in sorted(named):
        yield NodeSteps(uid, sorted(zip(*named[uid], strict=True)))


def _hold(steps: _Steps, quantity: int, from_us: int, to_us: int) -> None:
    times, changes = steps
    times.extend((from_us, to_us))
    changes.extend((quantity, -quantity))


def _asset_prices(rows: Rows) -> dict[Asset, _Prices]:
    found: dict[Asset, _Prices] = {}
    for row in rows(queries.ASSET_PRICES, {}):
        asset, from_us, price = _asset(row[:5]), row[5], row[6:]
        instants, prices = found.setdefault(asset, ([], []))
        instants.append(from_us)
        prices.append(price_of(*price) if price[0] else None)
    return found


def _merged(parts: Sequence[CapacityRecord]) -> Iterator[CapacityRecord]:
    """Those at the same price as one."""
    last = parts[0]
    for part in parts[1:]:
        if part.price == last.price:
            last = replace(last, end_us=part.end_us)
        else:
            yield last
            last = part
    yield last


def _capacity(row: Row) -> CapacityRecord:
    plain, (divided, ready, cordoned), asset = row[:7], row[7:10], row[10:15]
    return CapacityRecord(
        **dict(zip(_OFFERED, plain, strict=True)),
        divided=bool(divided),
        ready=bool(ready),
        cordoned=bool(cordoned),
        asset=_asset(asset),
        price=None,
        continues=row[15],
    )


def _asset(row: Row) -> Asset:
    instance_type, gpu_model, pool, purchase, labels = row
    return Asset(
        instance_type=instance_type,
        gpu_model=gpu_model,
        pool=pool,
        purchase=Purchase(purchase),
        labels=tuple(json.decode(labels, type=dict[str, str]).items()),
    )
