"""What the retention leaves of ended allocations."""

from typing import Final

from msgspec import Struct

from gputally.ledger.tables.table import Table, TextNumber

_KEY: Final = (
    *("period", "namespace_text", "job_kind_text", "job_text", "node_text", "node_uid_text"),
    *("outcome_text", "job_outcome_text", "terms", "price"),
)


class RolledPeriodRow(Struct, frozen=True):
    """A day (UTC) that has daily rows. The accounting start and the edges of closed periods divide days."""

    start_us: int
    end_us: int


ROLLED_PERIODS: Final = Table("rolled_periods", RolledPeriodRow, number="id", key=("start_us",))


class DailyRow(Struct, frozen=True):
    """The sums of ended pods with the same names, terms and price in one period, after the retention.

    `pods` is how many of them were allocated, 0 for usage alone. `bound` of them were bound in the period, after
    `wait_us` since their creation, together. `price` is 0 without one. Sums of GPU-time (µs·µGPU) outgrow 64 bits:
    one is seconds * 1000000 + microseconds, each added up on its own.
    """

    period: int
    namespace_text: TextNumber
    job_kind_text: TextNumber
    job_text: TextNumber
    node_text: TextNumber
    node_uid_text: TextNumber
    outcome_text: TextNumber
    job_outcome_text: TextNumber
    terms: int
    price: int
    pods: int
    bound: int
    wait_us: int
    seconds: int
    microseconds: int
    measured_seconds: int
    measured_microseconds: int
    used_seconds: int
    used_microseconds: int
    burst_seconds: int
    burst_microseconds: int
    energy: int


DAILY_ROWS: Final = Table(
    "daily_rows",
    DailyRow,
    key=_KEY,
)


class DailyLostRow(Struct, frozen=True):
    """The part of a daily row that is lost, by how the checkpoint before it is known."""

    period: int
    namespace_text: TextNumber
    job_kind_text: TextNumber
    job_text: TextNumber
    node_text: TextNumber
    node_uid_text: TextNumber
    outcome_text: TextNumber
    job_outcome_text: TextNumber
    terms: int
    price: int
    basis: str
    seconds: int
    microseconds: int
    measured_seconds: int
    measured_microseconds: int
    used_seconds: int
    used_microseconds: int
    burst_seconds: int
    burst_microseconds: int


DAILY_LOST: Final = Table(
    "daily_lost",
    DailyLostRow,
    key=(*_KEY, "basis"),
)


class NodeStepRow(Struct, frozen=True):
    """When the µGPU changed that rolled-up pods had on a node, so that its unallocated capacity stays exact."""

    node_uid_text: TextNumber
    at_us: int
    change: int


NODE_STEPS: Final = Table("node_steps", NodeStepRow, key=("node_uid_text", "at_us"))


class RolledPodRow(Struct, frozen=True):
    """The UID of a rolled-up pod as a hash: a later revision of it must not count again."""

    uid_hash: int


ROLLED_PODS: Final = Table("rolled_pods", RolledPodRow, key=("uid_hash",))
