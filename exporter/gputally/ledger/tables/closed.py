"""Closed periods, a chain of hashes."""

from typing import Final

from msgspec import Struct

from gputally.ledger.tables.table import BigInteger, Table


class ClosedPeriodRow(Struct, frozen=True):
    """A closed period. Its hash covers all columns but `hash`, in this order, and its lines. Never updated."""

    number: int
    name: str
    start_us: int
    end_us: int
    zone: str
    cluster: str
    closed_us: int
    accounted_us: int
    version: str
    price_book: str
    previous: str
    hash: str


CLOSED_PERIODS: Final = Table("closed_periods", ClosedPeriodRow, key=("number",))


class ClosedLineRow(Struct, frozen=True):
    """A total of a closed period, or a correction of an earlier one. Never updated.

    `of_period` is the number of the period whose GPU-time it is: another one is corrected. Without a price, the
    columns from `price_key` to `purchase` are empty.
    """

    period: int
    ordinal: int
    of_period: int
    tenant: str
    tier: str
    queue: str
    gpu_model: str
    pool: str
    resource: str
    state: str
    price_key: str
    currency: str
    per_gpu_hour: str
    basis: str
    purchase: str
    gpu_time: BigInteger


CLOSED_LINES: Final = Table("closed_lines", ClosedLineRow, key=("period", "ordinal"))
