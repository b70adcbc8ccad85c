"""How each surface is asked: constructors of readers.

`by` are the columns or labels that make the key, and `value` is the column with the amount, or `COUNT` for the number
of rows. `window` is a period as users write it.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from html import unescape
from typing import Any, Final
from urllib.parse import urlencode

from tests.surfaces.answer import Answer, Key, Reader, answer
from tests.surfaces.book import Book, exact

COUNT: Final = ""
NINE: Final = "0.000000001"
"""The resolution of nine decimals, for which commands are asked, and which floats have."""
SCRAPED: Final = "0.0000001"
"""Each scrape is some microseconds later than the one before, in which GPUs were held and cost money."""
SIX: Final = "0.000001"
"""Of CSV and JSON, if nobody asks for other decimals."""
PAGE: Final = "0.01"
HOUR_S: Final = 3600
GPU_HOUR: Final = Decimal(HOUR_S * 10**12)
"""In microseconds times millionths of a GPU."""
Row = Mapping[str, Any]
ANY: Final[Row] = {}


def command(name: str, value: str, by: Sequence[str], *flags: str, where: Row = ANY) -> Reader:
    """The rows of a command with `--decimals`, by default of all time."""
    return _json_rows(value, by, where, exact_to=NINE, arguments=(name, *_windowed(flags), "--decimals=9"))


def preemption_rows(value: str, by: Sequence[str], *flags: str) -> Reader:
    """The rows of `gputally preemptions`."""
    return _json_rows(value, by, ANY, exact_to=SIX, arguments=("preemptions", *_windowed(flags)))


def _windowed(flags: Sequence[str]) -> Sequence[str]:
    return flags if any(each.startswith("--window") for each in flags) else ("--window=all", *flags)


def _json_rows(value: str, by: Sequence[str], where: Row, *, exact_to: str, arguments: Sequence[str]) -> Reader:
    async def read(book: Book) -> Answer:
        rows = exact(book.command(*arguments, "--output=json"))["rows"]
        return sums(rows, by, value, exact_to=exact_to, where=where)

    return read


def report(value: str, by: Sequence[str], window: str = "all") -> Reader:
    """`gputally report`."""
    return command("report", value, by, f"--window={window}", f"--by={','.join(by)}")


def api(path: str, value: str, by: Sequence[str], *, rows: str = "rows", where: Row = ANY) -> Reader:
    """A document of the HTTP API, with its rows in the field `rows`."""

    async def read(book: Book) -> Answer:
        document = exact(await book.get(path))
        return sums(document[rows], by, value, exact_to=SIX, where=where)

    return read


def api_report(value: str, by: Sequence[str], window: str = "all") -> Reader:
    """`/api/v1/report`."""
    return api(f"/api/v1/report?{urlencode({'window': window, 'by': ','.join(by)})}", value, by)


def page(head: str, by: Sequence[str]) -> Reader:
    """The bill of the page `/report`, which leaves out columns without amounts."""
    return _page_table("Cost by", head, by, query={"window": "all", "by": ",".join(by)})


def page_days(head: str) -> Reader:
    """The days of that page."""
    return _page_table("Cost by day", head, ("day",), query={"window": "all", "by": "tier,tenant"})


def _page_table(caption: str, head: str, by: Sequence[str], *, query: Mapping[str, str]) -> Reader:
    async def read(book: Book) -> Answer:
        rows = rows_of_page(await book.get(f"/report?{urlencode(query)}"), caption)
        shown = [row | {head: row[head].replace(",", "")} for row in rows if head in row]
        return sums(shown, by, head, exact_to=PAGE)

    return read


def rows_of_page(text: str, caption: str) -> list[dict[str, str]]:
    """The rows of the first table with a caption that begins so, by heads."""
    found = re.search(rf"<caption>{re.escape(caption)}.*?</table>", text, re.DOTALL)
    assert found, f"the page has no table {caption}"
    heads = cells(found[0].partition("<thead>")[2].partition("</thead>")[0])
    body = found[0].partition("<tbody>")[2].partition("</tbody>")[0]
    rows = [row for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL) if "colspan" not in row]  # that says: none
    return [dict(zip(heads, cells(row), strict=True)) for row in rows]


def cells(row: str) -> list[str]:
    """The texts of a row in HTML."""
    found = re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.DOTALL)
    return [unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in found]


def focus(value: str, by: Callable[[Row], Key], window: str = "all") -> Reader:
    """`gputally report --output focus`: charges, whose tags are columns here."""

    async def read(book: Book) -> Answer:
        lines = csv.DictReader(io.StringIO(book.command("report", f"--window={window}", "--output=focus")))
        rows = (row | json.loads(row["Tags"]) for row in lines)
        return answer(((by(row), Decimal(row[value])) for row in rows), exact_to=NINE)

    return read


def showback(value: str, by: Sequence[str]) -> Reader:
    """The CSV files of `gputally showback`."""

    async def read(book: Book) -> Answer:
        files = await book.bills("all", by="tier,tenant,namespace,job")
        rows = (row for text in files.values() for row in csv.DictReader(io.StringIO(text)))
        return sums(rows, by, value, exact_to=SIX)

    return read


def waterfall(value: str, steps: Mapping[tuple[str, str], Key]) -> Reader:
    """Steps and causes of `gputally report --waterfall`, whose losses are negative, by what they are called here."""

    async def read(book: Book) -> Answer:
        text = book.command("report", "--window=all", "--waterfall", "--decimals=9", "--output=csv")
        rows = [row for row in csv.DictReader(io.StringIO(text)) if (row["step"], row["cause"]) in steps]
        found = ((steps[row["step"], row["cause"]], abs(Decimal(row[value]))) for row in rows)
        return answer(found, exact_to=NINE)

    return read


def closing(by: Sequence[str], window: str, *, cost: bool = False) -> Reader:
    """The lines that `gputally periods` would close the period with."""

    async def read(book: Book) -> Answer:
        lines = exact(book.command("periods", "--preview", "--output=json", window))["lines"]
        hours = (line | {"amount": Decimal(line["gpu_time"]) / GPU_HOUR} for line in lines)
        priced = (
            each | {"amount": each["amount"] * Decimal(each["per_gpu_hour"] or 0)} if cost else each for each in hours
        )
        return sums(priced, by, "amount", exact_to=NINE)

    return read


def metric(
    name: str, by: Sequence[str], *, per: int = 1, where: Row = ANY, path: str = "/metrics", overcount: str = ""
) -> Reader:
    """A metric in units of `per`, summed over its other labels.

    With `overcount`, each counter may exceed the ledger by as much as all of that name exceed it.
    """

    async def read(book: Book) -> Answer:
        chosen = [each for each in await book.samples(name, path) if where.items() <= each[0].items()]
        shown = answer(
            ((tuple(labels[each] for each in by), value / per) for labels, value in chosen), exact_to=SCRAPED
        )
        return shown._replace(exact_to=shown.exact_to + await _overcount(book, overcount) / per)

    return read


def counted(name: str, overcount: str, *, per: int = 1) -> Reader:
    """A counter in all, less its overcount: exactly what is in the ledger."""

    async def read(book: Book) -> Answer:
        value = sum((value for _, value in await book.samples(name)), Decimal()) - await _overcount(book, overcount)
        return answer([((), value / per)], exact_to=SCRAPED)

    return read


def overcount(counter: str, *, per: int = 1) -> Reader:
    """By how much the counters of this name exceed the ledger, as they state."""

    async def read(book: Book) -> Answer:
        return answer([((), await _overcount(book, counter) / per)], exact_to=NINE)

    return read


async def _overcount(book: Book, counter: str) -> Decimal:
    names = ("gputally_overcount_gpu_seconds", "gputally_overcount_cost")
    samples = [each for name in names for each in await book.samples(name)]
    return sum((value for labels, value in samples if labels["counter"] == counter), Decimal())


def difference(first: Reader, *others: Reader) -> Reader:
    """What one answer is above the sum of others."""

    async def read(book: Book) -> Answer:
        found, less = await first(book), [await each(book) for each in others]
        amounts = [*found.amounts.items(), *((key, -each) for one in less for key, each in one.amounts.items())]
        exact_to = found.exact_to + sum((each.exact_to for each in less), Decimal())
        return answer(amounts, exact_to="0")._replace(exact_to=exact_to)

    return read


def total(reader: Reader) -> Reader:
    """The sum of an answer."""

    async def read(book: Book) -> Answer:
        found = await reader(book)
        shown = answer((((), amount) for amount in found.amounts.values()), exact_to="0")
        return shown._replace(exact_to=found.exact_to * max(1, len(found.amounts)))

    return read


def sums(rows: Iterable[Row], by: Sequence[str], value: str, *, exact_to: str, where: Row = ANY) -> Answer:
    """The sums of a column by others; null and empty cells are not known."""
    chosen = [row for row in rows if where.items() <= row.items()]
    found = ((tuple(str(row[name]) for name in by), _amount(row, value)) for row in chosen)
    return answer(found, exact_to="0" if value == COUNT else exact_to)


def _amount(row: Row, value: str) -> Decimal:
    if value == COUNT:
        return Decimal(1)
    cell = row[value]
    if isinstance(cell, dict):  # by currency
        return sum(cell.values(), Decimal())
    if isinstance(cell, list):
        return Decimal(len(cell))
    return Decimal(cell.removeprefix("<") if isinstance(cell, str) and cell else cell or 0)  # < marks an upper bound
