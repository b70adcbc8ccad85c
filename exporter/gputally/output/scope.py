"""The scope of an answer in words and JSON: what of which ledger, and what it leaves out."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, Final

from msgspec import Struct

from gputally.ledger.records import LedgerState, Records, Window
from gputally.model.printable import printable
from gputally.model.unaccounted import UnaccountedDay
from gputally.model.units import to_datetime
from gputally.reports.bill_rows import lost_note
from gputally.reports.query import ReportQuery
from gputally.reports.unbilled import most_unaccounted, note_of

RECORD_NAMES: Final[Mapping[Records, str]] = {
    Records.ALLOCATIONS: "allocations",
    Records.PODS: "single pods",
    Records.DISRUPTIONS: "preemptions and other disruptions",
    Records.WAITS: "waits",
}
"""For people."""
_IMPORTED: Final = "imported jobs have none"
_WHY_NONE: Final = {
    **dict.fromkeys(Records, _IMPORTED),
    Records.WAITS: f"{_IMPORTED}, and others need --pending.reasons=on",
}


class Scope(Struct, frozen=True, kw_only=True):
    """What is reported of which ledger; times are shown in the zone of the query.

    `state.accounted_us` is the cut-off of the answer: nothing after it counts, whatever the ledger knows by now.
    `unaccounted` are the days with pods that asked for GPUs which were not accounted. It is None with filters, since
    these pods have no values to filter by, and for commands that do not show them.

    The lists are of `records`; `is_known` if there are records of the whole period that was asked for. Of an answer
    without any, `unmatched` are the values of filters that no record of any time has: `tenant visoin`.
    """

    query: ReportQuery
    state: LedgerState
    unaccounted: Sequence[UnaccountedDay] | None = None
    records: Records = Records.ALLOCATIONS
    is_known: bool = True
    unmatched: Sequence[str] = ()

    @property
    def accounted(self) -> str:
        """What the ledger contains."""
        return f"the ledger accounts {self.period(Window(self.state.accounting_start_us, self.state.accounted_us))}"

    @property
    def cut_off(self) -> datetime:
        """The time up to which the answer counts."""
        return to_datetime(self.state.accounted_us).astimezone(self.query.calendar.zone)

    @property
    def about(self) -> str:
        """Period, cut-off unless it ends the period, and filters, for people."""
        return f"{self.period(self.query.window)}{self._later_cut_off}{self.limits}"

    @property
    def _later_cut_off(self) -> str:
        is_over = self.query.window.end_us < self.state.accounted_us
        return f", cut-off {self.cut_off:%Y-%m-%d %H:%M:%S %Z}" if is_over else ""

    def compared_to(self, before: Window) -> str:
        """Both periods of a comparison, cut-off and filters, for people."""
        periods = f"{self.period(self.query.window)}, compared to {self.period(before)}"
        return f"{periods}{self._later_cut_off}{self.limits}"

    @property
    def records_from(self) -> datetime | None:
        """From when on there are records: before, "none" means that nothing is known. None if there are none at all."""
        from_us = self.state.records_from_us(self.records)
        return None if from_us is None else to_datetime(from_us).astimezone(self.query.calendar.zone)

    @property
    def nothing(self) -> str:
        """What an empty list says."""
        from_us = self.state.records_from_us(self.records)
        return "not known" if from_us is None or from_us >= self.query.window.end_us else "none"

    @property
    def limits(self) -> str:
        """The filters, for people."""
        return "".join(f", {each.column} {' or '.join(each.globs)}" for each in self.query.filters)

    @property
    def lost_note(self) -> str:
        """Since when lost work counts, and what its sign means, for people."""
        start = to_datetime(self.state.accounting_start_us).astimezone(self.query.calendar.zone)
        return lost_note(f"{start:%Y-%m-%d %H:%M:%S %Z}")

    @property
    def notes(self) -> list[str]:
        """What the report leaves out, for people, and from when on there are records."""
        return [*self.warnings, *([self._since] if self.is_known else [])]

    @property
    def warnings(self) -> list[str]:
        """The notes without which the rows would mislead, also for formats without room for notes."""
        columns = [each.column for each in self.query.filters]
        of = " of these tenants" if "tenant" in columns and len(columns) > 1 else ""
        misspelt = printable(f"No record{of} has {' or '.join(self.unmatched)}: check the spelling.")
        notes = [note_of(each) for each in most_unaccounted(self.unaccounted or ())]
        return [*([misspelt] if self.unmatched else []), *notes, *([] if self.is_known else [self._since])]

    @property
    def _since(self) -> str:
        name, start = RECORD_NAMES[self.records], self.records_from
        if start is None:
            return f"The ledger has no records of {name} at present: {_WHY_NONE[self.records]}."
        part = "" if self.is_known else ", later than the period begins"
        return f"Records of {name} exist from {start:%Y-%m-%d %H:%M:%S %Z} on{part}."

    def period(self, window: Window) -> str:
        """A period for people."""
        start, end = (to_datetime(us).astimezone(self.query.calendar.zone) for us in window)
        return f"{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S %Z}"


def document_head(scope: Scope, *, version: int) -> dict[str, Any]:
    """What the JSON of a period begins with."""
    zone = scope.query.calendar.zone
    return {
        "version": version,
        "cluster": scope.state.cluster,
        "window": times(scope.query.window, zone),
        "accounted": times(Window(scope.state.accounting_start_us, scope.state.accounted_us), zone),
        "cut_off": scope.cut_off,
        "records_from": scope.records_from,
        "where": {each.column: each.globs for each in scope.query.filters},
        "unmatched": scope.unmatched,
    }


def times(window: Window, zone: tzinfo) -> dict[str, datetime]:
    """A period in a document."""
    start, end = (to_datetime(us).astimezone(zone) for us in window)
    return {"from": start, "to": end}
