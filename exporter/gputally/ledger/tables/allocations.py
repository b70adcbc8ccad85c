"""Allocations of pods, their segments and jobs; texts, prices and terms, which other rows name by number."""

from typing import Final

from msgspec import Struct

from gputally.ledger.tables.table import Index, Table, TextNumber


class TextRow(Struct, frozen=True):
    """A text that rows name by its number."""

    text: str


TEXTS: Final = Table("texts", TextRow, number="id", key=("text",))


class PriceRow(Struct, frozen=True):
    """A price that a segment, a wait or capacity refers to."""

    price_key: str
    currency: str
    per_gpu_hour: str
    basis: str
    purchase: str


PRICES: Final = Table("prices", PriceRow, number="id", key=("price_key",))


class TermsRow(Struct, frozen=True):
    """The labels of segments. The last three are the exported, limited values, the others are the full names."""

    resource: str
    state: str
    tier: str
    tenant: str
    queue: str
    gpu_model: str
    pool: str
    label_tier: str
    label_tenant: str
    label_gpu_model: str


TERMS: Final = Table(
    "terms",
    TermsRow,
    number="id",
    key=(
        *("tenant", "tier", "state", "resource", "queue", "gpu_model", "pool"),
        *("label_tier", "label_tenant", "label_gpu_model"),
    ),
)


class PodRow(Struct, frozen=True):
    """The constant facts of a pod. `job_uid_text` is NULL if no Job controls it."""

    uid: str
    namespace_text: TextNumber
    name: str
    class_name_text: TextNumber
    priority: int | None
    created_us: int
    job_uid_text: TextNumber | None


PODS: Final = Table("pods", PodRow, number="id", key=("uid",))


class RevisionRow(Struct, frozen=True):
    """A revision of an allocation, numbered from 1. Never updated.

    `recorded_us` is NULL if it is the revision itself. `segments` is how many segments the revision has, of which the
    first ones, as many as `unchanged`, are those of the revision before.
    """

    pod: int
    number: int
    revision: int
    recorded_us: int | None
    node_text: TextNumber
    node_uid_text: TextNumber
    job_kind_text: TextNumber
    job_text: TextNumber
    scheduled_us: int | None
    started_us: int | None
    deletion_us: int | None
    end_us: int | None
    end_by_text: TextNumber | None
    gap_from_us: int | None
    gap_to_us: int | None
    segments: int
    outcome_text: TextNumber
    phase_text: TextNumber | None
    reason_text: TextNumber | None
    exit_code: int | None
    unchanged: int


POD_REVISIONS: Final = Table(
    "pod_revisions",
    RevisionRow,
    key=("pod", "number"),
    indexes=(Index("pod_revisions_gap", ("gap_to_us",), where="gap_from_us IS NOT NULL"),),
)


class SegmentRow(Struct, frozen=True):
    """A segment that differs from the revision before. Never updated.

    It is current from the revision of its number on, until a later one has another at its place.
    """

    pod: int
    ordinal: int
    number: int
    start_us: int
    end_us: int | None
    quantity: int
    terms: int
    price: int | None


POD_SEGMENTS: Final = Table("pod_segments", SegmentRow, key=("pod", "ordinal", "number"))


class PodDayRow(Struct, frozen=True):
    """A day (UTC, since the epoch) of a pod's allocation: an index by which a report finds the pods of its period.

    The day is -1 while the allocation lasts, and for very long ones. A pod may have a row too many, for a day of an
    earlier revision.
    """

    day: int
    pod: int


POD_DAYS: Final = Table("pod_days", PodDayRow, key=("day", "pod"))


class SummedPageRow(Struct, frozen=True):
    """A page of 5,000 pods with consecutive numbers, of which reports read sums by day instead of segments.

    Pages count from 0. `left_out` are the pods that the sums do not have, as JSON: they had not ended.
    """

    page: int
    left_out: str


SUMMED_PAGES: Final = Table("summed_pages", SummedPageRow, key=("page",))


class PageSumRow(Struct, frozen=True):
    """What the pods of a page were allocated on a day (UTC, since the epoch), by job, terms and price, as bytes."""

    page: int
    day: int
    sums: bytes


PAGE_SUMS: Final = Table(
    "page_sums", PageSumRow, key=("page", "day"), indexes=(Index("page_sums_day", ("day",)),), has_large_rows=True
)


class JobOutcomeRow(Struct, frozen=True):
    """A Job of batch/v1 whose pods request GPUs, as last observed."""

    job_uid_text: TextNumber
    namespace_text: TextNumber
    name: str
    created_us: int
    outcome_text: TextNumber
    reason_text: TextNumber
    ended_us: int | None


JOB_OUTCOMES: Final = Table("job_outcomes", JobOutcomeRow, key=("job_uid_text",))


class JobProgressRow(Struct, frozen=True):
    """The highest progress that pods of a job have stated, in millionths of a unit, and when it was first observed."""

    namespace_text: TextNumber
    job_kind_text: TextNumber
    job_text: TextNumber
    micro: int
    unit: str
    at_us: int


JOB_PROGRESS: Final = Table("job_progress", JobProgressRow, key=("namespace_text", "job_kind_text", "job_text"))


class ImportedRow(Struct, frozen=True):
    """In a ledger of imported jobs: the row of the other system from which a pod comes, as a hash."""

    pod: int
    digest: int


IMPORTED: Final = Table("imported", ImportedRow, key=("pod",))
