"""How surfaces are asked about the present: what holds GPUs, what waits for them, and who may preempt whom.

A source reads rows, by the names of their columns; `amounts` adds up a column of them. The texts of commands and pages
are read back as people read them.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from tests.surfaces.answer import Answer, Reader, answer
from tests.surfaces.book import Book, exact
from tests.surfaces.readers import ANY, Row, rows_of_page, sums
from tests.surfaces.scenario_books import LATELY, LATELY_US

Source = Callable[[Book], Awaitable[Iterable[Row]]]
MINUTE: Final = "60"
"""Durations of hours in words leave out the seconds."""
CENT: Final = "0.01"
RATE: Final = "0.01"
"""Of counters, whose scrapes are true to the microsecond: per hour, a cent or a hundredth of a GPU."""
_GAP: Final = re.compile(r"\s{2,}")
_DURATION: Final = re.compile(r"(\d+) (d|h|min|s)\b")
_SECONDS: Final = {"d": 86_400, "h": 3600, "min": 60, "s": 1}
_US: Final = 10**6


def amounts(source: Source, value: str, by: Sequence[str], *, exact_to: str = "0.000001", where: Row = ANY) -> Reader:
    """The sums of a column, or with `COUNT` the number of rows, by other columns."""

    async def read(book: Book) -> Answer:
        return sums(await source(book), by, value, exact_to=exact_to, where=where)

    return read


def growth(name: str, by: Sequence[str], *, per_s: int) -> Reader:
    """How much a counter grows, at the end, in `per_s` seconds."""

    async def read(book: Book) -> Answer:
        now, before = await book.samples(name), await book.samples(name, LATELY)
        found = [*now, *((labels, -value) for labels, value in before)]
        scale = Decimal(per_s * _US) / LATELY_US
        grown = answer(((tuple(labels[each] for each in by), value * scale) for labels, value in found), exact_to="0")
        steady = {key: amount for key, amount in grown.amounts.items() if abs(amount) > Decimal(RATE)}
        return Answer(steady, Decimal(RATE))

    return read


def api_rows(path: str, rows: str) -> Source:
    """The rows of a document of the HTTP API; times are also ages in seconds, as `since_s` is of `since`."""

    async def read(book: Book) -> Iterable[Row]:
        return list(_with_ages(exact(await book.get(path)), rows))

    return read


def command_rows(rows: str, *arguments: str) -> Source:
    """The same of a command that asks the aggregator, as JSON."""

    async def read(book: Book) -> Iterable[Row]:
        return list(_with_ages(exact(await book.asked(*arguments, "--output=json")), rows))

    return read


def _with_ages(document: Any, rows: str) -> Iterator[Row]:  # noqa: ANN401 - any document
    now = datetime.fromisoformat(document["at"]) if "at" in document else None
    for row in document[rows] or ():
        ages = {
            f"{name}_s": _exact_seconds(now, datetime.fromisoformat(row[name]))
            for name in ("created", "since", "oldest")
            if now and row.get(name)
        }
        yield row | ages


def _exact_seconds(now: datetime, then: datetime) -> Decimal:
    passed = now - then
    return Decimal(passed.days * 86_400 + passed.seconds) + Decimal(passed.microseconds) / _US


def table_rows(heads: Sequence[str], *arguments: str) -> Source:
    """The rows below these heads in the text of a command; cells are apart by two spaces, and never empty."""

    async def read(book: Book) -> Iterable[Row]:
        return list(_below(await book.asked(*arguments), heads))

    return read


def _below(text: str, heads: Sequence[str]) -> Iterator[Row]:
    lines = iter(text.splitlines())
    for line in lines:
        if _cells(line)[: len(heads)] == list(heads):
            break
    for line in lines:
        if not (cells := _cells(line)):
            return
        if len(cells) >= len(heads):  # else the rest of a long cell
            yield {head: _plain(cell) for head, cell in zip(heads, cells, strict=False)}


def _cells(line: str) -> list[str]:
    return _GAP.split(line.strip()) if line.strip() else []


def top_rows(by: str) -> Source:
    """The table of `gputally top`: the group, its GPUs by state, and what they cost per hour."""
    heads = ("group", "pods", "held", "running", "gang_wait", "starting", "terminating", "pending", "cost")

    async def read(book: Book) -> Iterable[Row]:
        head, *lines = (await book.asked("top", "--once", f"--by={by}")).partition("PODS")[2].splitlines()
        assert "PENDING" in head
        rows = (re.sub(r" of [\d.,]+", "", line).split() for line in lines)  # of a node: `6 of 8`
        return [dict(zip(heads, (name, *map(_plain, cells)), strict=True)) for name, *cells in rows]

    return read


def top_capacity() -> Source:
    """The first line of `gputally top`: `GPUs 16: 12 allocated, 4 free`."""

    async def read(book: Book) -> Iterable[Row]:
        line = (await book.asked("top", "--once", "--by=tier")).splitlines()[0]
        found = re.findall(r"([\d.,]+) (\w+)(?:,|$)", line.partition(":")[2].strip())
        return [{"state": state, "gpus": _plain(gpus)} for gpus, state in found]

    return read


def page_rows(path: str, caption: str, *, may_lack: bool = False) -> Source:
    """The rows of a table on a page, by its heads; one that a page `may_lack` has no rows then."""

    async def read(book: Book) -> Iterable[Row]:
        text = await book.get(path)
        rows = [] if may_lack and f"<caption>{caption}" not in text else rows_of_page(text, caption)
        return [{head: _plain(cell) for head, cell in row.items()} for row in rows]

    return read


def _plain(cell: str) -> str:
    """A number without separators, the lower end of a range, 0 without a price, and a duration in seconds."""
    if cell in ("unpriced", "no price"):
        return "0"
    if re.fullmatch(r"[\d,]+(\.\d+)?( to [\d,.]+)?( [A-Z]{3})?", cell):
        return cell.split(" ", maxsplit=1)[0].replace(",", "")
    if parts := _DURATION.findall(cell):
        return str(sum(int(count) * _SECONDS[unit] for count, unit in parts))
    return cell


def renamed(source: Source, **names: str) -> Source:
    """The rows with other names of columns: `tier="TIER"` calls that column tier."""

    async def read(book: Book) -> Iterable[Row]:
        return [{**row, **{new: row[old] for new, old in names.items() if old in row}} for row in await source(book)]

    return read


def full_names(source: Source) -> Source:
    """The rows of pods, with namespace and name as one column `name`."""

    async def read(book: Book) -> Iterable[Row]:
        return [{**row, "name": f"{row['namespace']}/{row['pod']}"} for row in await source(book)]

    return read


def by_state(source: Source, states: Sequence[str]) -> Source:
    """A row for each state of a row that has a column for each."""

    async def read(book: Book) -> Iterable[Row]:
        return [{**row, "state": each, "gpus": row[each]} for row in await source(book) for each in states]

    return read


def node_states() -> Source:
    """The nodes of `/api/v1/allocations`, with a row for each state of their GPUs."""
    nodes = api_rows("/api/v1/allocations", "nodes")

    async def read(book: Book) -> Iterable[Row]:
        return [{**node, "state": state, "gpus": gpus} for node in await nodes(book) for state, gpus in _of(node)]

    return read


def _of(node: Row) -> Iterable[tuple[str, Any]]:
    found: Mapping[str, Any] = node["gpus"]
    return found.items()


def waits_so_far(*, on_page: bool = False) -> Reader:
    """What the wait of each waiting pod has cost, as the answer about it says, as JSON or on its page."""

    async def read(book: Book) -> Answer:
        rows = await api_rows("/api/v1/pending?limit=1000", "pods")(book)
        names = [(row["namespace"], row["pod"]) for row in rows]
        shown = [((f"{place}/{pod}",), await _so_far(book, place, pod, on_page=on_page)) for place, pod in names]
        return answer(shown, exact_to=CENT if on_page else "0.000001")

    return read


async def _so_far(book: Book, place: str, pod: str, *, on_page: bool) -> Decimal:
    query = f"namespace={place}&pod={pod}"
    if on_page:
        return cost_in(await book.get(f"/pending/why?{query}"))
    [found] = exact(await book.get(f"/api/v1/why?{query}"))["answers"]
    return Decimal(found["waited_cost"] or 0)


def costliest(reader: Reader, *arguments: str) -> Reader:
    """The highest of these costs; with arguments, what `gputally ARGUMENTS POD` says of that pod."""

    async def read(book: Book) -> Answer:
        found = await reader(book)
        ranked = sorted(found.amounts, key=lambda key: (-found.amounts[key], key))[:1]
        if not arguments:
            return found._replace(amounts={key: found.amounts[key] for key in ranked})
        texts = [(key, await book.asked(*arguments, *key)) for key in ranked]
        return answer(((key, cost_in(text)) for key, text in texts), exact_to=CENT)

    return read


def cost_in(text: str) -> Decimal:
    """What the wait has cost so far, at least, as the answer about a pod says in words."""
    found = re.search(r"([\d,]+\.\d+)(?: to [\d,.]+)? [A-Z]{3} for the wait", text)
    return Decimal(found[1].replace(",", "")) if found else Decimal()


def fitting(source: Source) -> Source:
    """The pools of `gputally fits`, with a row for each size of pods."""

    async def read(book: Book) -> Iterable[Row]:
        return [
            {**row, "gpus": size, "count": each} for row in await source(book) for size, each in row["fits"].items()
        ]

    return read


def fitting_in_words() -> Source:
    """The table of `gputally fits`, with a row for each size of pods."""
    sizes = {"1": "1 GPU", "2": "2 GPUS", "4": "4 GPUS", "8": "8 GPUS"}
    table = table_rows(("FREE", *sizes.values()), "fits")

    async def read(book: Book) -> Iterable[Row]:
        return [{"gpus": size, "count": row[head]} for row in await table(book) for size, head in sizes.items()]

    return read


def metric_ages(name: str, path: str) -> Reader:
    """The ages in seconds that the timestamps of pods mean."""

    async def read(book: Book) -> Answer:
        now = Decimal(book.now_us) / _US
        samples = await book.samples(name, path)
        ages = (((f"{labels['namespace']}/{labels['pod']}",), now - value) for labels, value in samples)
        return answer(ages, exact_to="0.000001")

    return read


def stranded(source: Source) -> Source:
    """The same with a row for each reason of stranded GPUs."""

    async def read(book: Book) -> Iterable[Row]:
        pools = await source(book)
        return [{**row, "reason": why, "count": each} for row in pools for why, each in row["stranded"].items()]

    return read
