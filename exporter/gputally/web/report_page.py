"""The page `/report`: a form, and its answer as tables; it needs no JavaScript."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from gputally.answers.parameters import InvalidRequest
from gputally.formatting.html_pages import html_template
from gputally.ledger.records import Window
from gputally.model.api.paths import REPORT_PATH, WAITS_PATH
from gputally.model.units import to_us
from gputally.questions.report import Report
from gputally.reports.bill_rows import lost_note
from gputally.reports.choices import COLUMNS
from gputally.reports.cost_change import length_note
from gputally.reports.unbilled import MostUnaccounted, note_of
from gputally.reports.waterfall_rows import bars, name_of
from gputally.web.ledger_process import ReportUnavailable
from gputally.web.report_processes import ReportRunner
from gputally.web.report_requests import asked
from gputally.web.turns import TooBusy, in_thread

FIELDS: Final = {
    "window": "month",
    "by": "tenant",
    "compare": "",
    "tenant": "",
    "tier": "",
    "time_zone": "UTC",
    "waterfall": "",
    "cut_off": "",
}
"""Parameters of the page, which are those of reports, with their defaults: the fields of the form, and the moment."""
_PERIODS: Final = ("today", "7d", "week", "last-week", "month", "last-month", "year", "all")
_MAX_ROWS: Final = "100"
"""One more row adds up the others."""
_EXACT: Final = msgspec.json.Decoder(float_hook=Decimal)
"""Keeps the decimals of amounts as written."""


class _Column(NamedTuple):
    field: str
    head: str


_BILL: Final = (
    _Column("gpu_hours", "GPU-hours"),
    _Column("unpriced", "unpriced GPU-hours"),
    _Column("unobserved", "unobserved GPU-hours"),
    _Column("utilisation", "used %"),
    _Column("cost", "cost"),
    _Column("idle_cost", "idle cost"),
    _Column("lost", "lost GPU-hours"),
    _Column("lost_cost", "lost cost"),
    _Column("unallocated_cost", "unallocated cost"),
    _Column("jobs", "jobs"),
    _Column("mean_wait_seconds", "mean wait s"),
)
_CHANGE: Final = tuple(
    _Column(name, name.replace("_", " "))
    for name in ("before", "after", "difference", "new_jobs", "ended_jobs", "quantity", "mix", "price")
)


class ReportPage(NamedTuple):
    """The page as HTML in UTF-8, and its HTTP status; `is_busy` if the request may succeed soon."""

    status: int
    html: bytes
    is_busy: bool = False


async def report_page(
    runner: ReportRunner, query: Mapping[str, Sequence[str]], *, tenants: Collection[str] | None
) -> ReportPage:
    """The answer to the form with these parameters, for a user restricted to `tenants`, None for all.

    A thread makes the page: the first one imports Jinja, which takes a tenth of a second.
    """
    form = FIELDS | {name: values[-1].strip() for name, values in query.items() if name in FIELDS}
    given = {name: [value] for name, value in form.items() if value} | {"top": [_MAX_ROWS]}
    try:
        question = asked(Report, given, tenants=tenants, fields={"page": True, "decimals": 2}).question
        html = await runner.run(question, finish=lambda body: _html(form, problem="", **_tables(body)))
        return ReportPage(200, html)
    except InvalidRequest as error:
        status, problem, is_busy = 400, str(error), False
    except ReportUnavailable as error:
        status, problem, is_busy = 503, str(error), True
    except TooBusy as error:
        status, problem, is_busy = error.status, str(error), True
    return ReportPage(status, await in_thread(lambda text: _html(form, problem=text), problem), is_busy)


def _tables(body: bytes) -> dict[str, dict[str, Any] | None]:
    """The documents of the page, all of one moment of the ledger; None without a comparison or a waterfall."""
    found = _EXACT.decode(body)
    tables = {name: _waterfall(each) if name == "waterfall" else _document(each) for name, each in found.items()}
    return {"change": None, "waterfall": None} | tables


def _bill_parameters(form: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in form.items() if value and name not in ("compare", "waterfall")}


def _document(document: dict[str, Any]) -> dict[str, Any]:
    """A report, with what a table of it needs."""
    by = dict.fromkeys(column for dimension in document["by"] for column in COLUMNS[dimension])
    is_bill = document["compared_to"] is None
    columns = [each for each in _BILL if any(row[each.field] for row in document["totals"])] if is_bill else _CHANGE
    return document | {"by_columns": tuple(by), "columns": columns, "has_shares": is_bill}


def _length_note(change: Mapping[str, Any] | None) -> str:
    """What a comparison says of periods of different lengths."""
    return length_note(_window(change["window"]), _window(change["compared_to"])) if change else ""


def _window(times: Mapping[str, str]) -> Window:
    return Window(*(to_us(datetime.fromisoformat(times[end])) for end in ("from", "to")))


def _notes(bill: Mapping[str, Any]) -> Iterator[str]:
    """What stands below the table of the bill."""
    if any(row["lost"] for row in bill.get("totals", ())):
        yield lost_note(bill["accounted"]["from"][:19].replace("T", " "))
    for each in msgspec.convert(bill.get("unaccounted") or [], list[MostUnaccounted]):
        yield note_of(each)


def _waterfall(document: dict[str, Any]) -> dict[str, Any]:
    """A report of a waterfall, with what a drawing of it needs."""
    rows = [row for row in document["rows"] if row["share"] is not None and (not row["cause"] or row["gpu_hours"])]
    drawn = bars((row["cause"], Decimal(row["share"])) for row in rows)
    named = (row | {"name": name_of(row["step"], row["cause"])} for row in rows)
    return document | {"drawn": list(zip(named, drawn, strict=True))}


def _html(form: Mapping[str, str], **values: Any) -> bytes:  # noqa: ANN401 - what the template names
    bill = values.get("bill") or {}
    moment = {"cut_off": bill["cut_off"]} if bill else {}
    parameters = _bill_parameters(form) | moment
    links = {each: f"{REPORT_PATH}?{urlencode(parameters | {'format': each})}" for each in ("csv", "json", "html")}
    waits = {
        name: parameters[name] for name in ("window", "cut_off", "tenant", "tier", "time_zone") if name in parameters
    }
    links["waits"] = f"{WAITS_PATH}?{urlencode(waits | {'format': 'html'})}"
    links["page"] = f"?{urlencode({name: value for name, value in form.items() if value} | moment)}"
    page = html_template("gputally.web", "report.html").render(
        form=form,
        periods=_PERIODS,
        dimensions=tuple(COLUMNS),
        links=links,
        notes=list(_notes(values.get("bill") or {})),
        length_note=_length_note(values.get("change")),
        **values,
    )
    return page.encode()
