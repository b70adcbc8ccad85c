"""What the next process resumes from, and where observation had gaps."""

from typing import Final

from msgspec import Struct

from gputally.ledger.tables.table import BigInteger, Table


class MetaRow(Struct, frozen=True):
    """The cluster, the accounting start, the last evaluation, and sums of all rows."""

    key: str
    value: str


META: Final = Table("meta", MetaRow, key=("key",))


class InterruptionRow(Struct, frozen=True):
    """An observation gap: a watch had lost its place and all objects were listed again."""

    kind: str
    from_us: int
    to_us: int


INTERRUPTIONS: Final = Table("interruptions", InterruptionRow, key=("kind", "from_us"))


class SeriesRow(Struct, frozen=True):
    """A published counter, whose value at t is max(floor, a + b·t).

    It is published from `shown_us` on, until then only its floor; NULL while a label of it is evicted.
    """

    family: str
    labels: str
    created_us: int
    a: BigInteger
    b: BigInteger
    floor: BigInteger
    floor_us: int
    shown_us: int | None


SERIES: Final = Table("series", SeriesRow, key=("family", "labels"))


class KnownValueRow(Struct, frozen=True):
    """A value of an exported label: when anything of it last grew, and since when its series are not exported."""

    label: str
    value: str
    grew_us: int
    evicted_us: int | None


KNOWN_VALUES: Final = Table("known_values", KnownValueRow, key=("label", "value"))


class WorkingRow(Struct, frozen=True):
    """What existed at the last write, to resume from, as JSON."""

    kind: str
    uid: str
    document: bytes


WORKING: Final = Table("working", WorkingRow, key=("kind", "uid"))


class HistoryRow(Struct, frozen=True):
    """A part of a long history that its document in `working` leaves out."""

    kind: str
    uid: str
    ordinal: int
    entry: bytes


HISTORIES: Final = Table("histories", HistoryRow, key=("kind", "uid", "ordinal"))


class WatchRow(Struct, frozen=True):
    """Where a watch was, and under which rules; for namespaces, the rules that classified all pods."""

    kind: str
    version: str
    at_us: int
    rules: str


WATCHES: Final = Table("watches", WatchRow, key=("kind",))
