"""How surfaces are asked who may preempt whom: PriorityClasses and their order."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

from tests.surfaces.answer import Answer, Key, Reader, answer
from tests.surfaces.book import Book, exact
from tests.surfaces.readers import Row, cells

MATRIX: Final = r"preemptor \ victim"
SYSTEM: Final = "system-"
ZERO: Final = Decimal()
ONE: Final = Decimal(1)
_FORMATS: Final = ("table", "markdown", "html")
_MOST: Final = 500
"""Pods of one GPU that `what-if` is asked for: enough to take all GPUs."""
CLASSES_SQL: Final = "SELECT name, value, preemption_policy FROM priority_classes WHERE to_us IS NULL"
HOLDERS_SQL: Final = """
SELECT DISTINCT s.pod_uid, a.class_name FROM allocation_segments s JOIN allocations a USING (pod_uid)
WHERE s.end_us IS NULL
"""


class Class(NamedTuple):
    """A PriorityClass."""

    name: str
    value: int
    policy: str

    def may_preempt(self, victim: "Class") -> bool:
        """As the documentation of Kubernetes says."""
        return self.policy == "PreemptLowerPriority" and self.value > victim.value


Classes = Callable[[Book], Awaitable[list[Class]]]


async def posture(book: Book, *, output: str) -> str:
    """What `gputally posture` prints of the cluster, with what the ledger has."""
    arguments = (f"--output={output}", "--exit-zero", f"--config.file={book.config}", f"--ledger={book.ledger}")
    return await book.asked("posture", *arguments, "--window=all")


async def document(book: Book) -> Any:  # noqa: ANN401 - JSON
    """The posture as JSON."""
    return exact(await posture(book, output="json"))


async def ledger_classes(book: Book) -> list[Class]:
    """The existing classes, in the ledger."""
    rows = book.query(CLASSES_SQL)
    return [Class(row["name"], int(row["value"]), row["preemption_policy"]) for row in rows]


async def metric_classes(book: Book) -> list[Class]:
    """The existing classes, in metrics."""
    samples = await book.samples("gputally_priority_class_value")
    return [Class(each["priority_class"], int(value), each["preemption_policy"]) for each, value in samples]


async def posture_classes(book: Book) -> list[Class]:
    """The existing classes, in the posture."""
    return [Class(e["name"], int(e["value"]), e["preemption_policy"]) for e in (await document(book))["classes"]]


def values(classes: Classes) -> Reader:
    """The values of the classes."""

    async def read(book: Book) -> Answer:
        return _marked((each.name, str(each.value), each.policy) for each in _own(await classes(book)))

    return read


def permitted(classes: Classes) -> Reader:
    """The pairs of classes of which the first may preempt the second."""

    async def read(book: Book) -> Answer:
        own = list(_own(await classes(book)))
        return _marked((a.name, b.name) for a in own for b in own if a.may_preempt(b))

    return read


def listed_victims(field: str) -> Reader:
    """The same, by the lists `may_preempt` or `preempted_by` of each class in the posture."""

    async def read(book: Book) -> Answer:
        rows = (await document(book))["preemptions"]
        pairs = ((row["name"], each) for row in rows for each in row[field])
        return _marked(pair if field == "may_preempt" else pair[::-1] for pair in pairs)

    return read


def matrix(output: str) -> Reader:
    """The same, by the matrix in a format for people."""

    async def read(book: Book) -> Answer:
        head, *rows = _READ[output](await posture(book, output=output))
        shown = ((row[0], victim, cell) for row in rows for victim, cell in zip(head[1:], row[1:], strict=True))
        return _marked((preemptor, victim) for preemptor, victim, cell in shown if cell == "yes")

    return read


def _table_matrix(text: str) -> Iterator[list[str]]:
    """The lines from the head of the matrix to an empty one, cut where the columns of the head begin."""
    lines = text[text.index(MATRIX) :].partition("\n\n")[0].splitlines()
    starts = [0, *(found.start() for found in re.finditer(r"(?<=  )\S", lines[0]))]
    for line in lines:
        yield [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]


def _markdown_matrix(text: str) -> Iterator[list[str]]:
    plain = re.sub(r"\\(.)", r"\1", text)
    lines = plain[plain.index(MATRIX) :].partition("\n\n")[0].splitlines()
    for line in (f"| {lines[0]}", *lines[2:]):
        yield [cell.strip() for cell in line.strip()[1:-1].split("|")]


def _html_matrix(text: str) -> Iterator[list[str]]:
    table = text[text.index(MATRIX) :].partition("</table>")[0]
    head, _, body = table.partition("</thead>")
    yield cells(f"<th>{head}")
    for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL):
        yield cells(row)


_READ: Final = dict(zip(_FORMATS, (_table_matrix, _markdown_matrix, _html_matrix), strict=True))


def observed(tiers: Callable[[Row], Key]) -> Reader:
    """Preemptions that the posture has from the ledger."""

    async def read(book: Book) -> Answer:
        pairs = (await document(book))["observed"]["pairs"]
        return answer(((tiers(row), row["observed"]) for row in pairs), exact_to="0")

    return read


def of_holders(classes: Classes) -> Reader:
    """The pairs of classes of which pods of the second hold GPUs, and the first may preempt them."""

    async def read(book: Book) -> Answer:
        own = list(_own(await classes(book)))
        held = {row["class_name"] for row in book.query(HOLDERS_SQL)}
        return _marked((a.name, b.name) for a in own for b in own if b.name in held and a.may_preempt(b))

    return read


def what_if_victims() -> Reader:
    """The same, by whom `what-if` would preempt for as many pods of each class as there are GPUs."""

    async def read(book: Book) -> Answer:
        class_of = {row["pod_uid"]: row["class_name"] for row in book.query(HOLDERS_SQL)}
        names = [each.name for each in _own(await ledger_classes(book))]
        found = [(name, each) for name in names for each in await _victims(book, name)]
        pairs = ((name, class_of[victim["uid"]]) for name, victim in found)
        return _marked(pair for pair in pairs if pair[1])  # pods without a class have no place in the matrix

    return read


async def _victims(book: Book, class_name: str) -> list[Row]:
    path = f"/api/v1/what-if?gpus=1&count={_MOST}&class={class_name}"
    [found] = exact(await book.get(path))["forecasts"]
    victims: list[Row] = found["victims"]
    return victims


def quotas(field: str) -> Reader:
    """The sum of what all quotas allow, or what is used of them."""

    async def read(book: Book) -> Answer:
        rows = (await document(book))["quotas"]
        return answer((((), row[field]) for row in rows), exact_to="0")

    return read


def _own(classes: Iterable[Class]) -> Iterator[Class]:
    """Without those of the system."""
    return (each for each in classes if not each.name.startswith(SYSTEM))


def _marked(keys: Iterable[Key]) -> Answer:
    """An answer that names what there is: each key once."""
    return Answer(dict.fromkeys(keys, ONE), ZERO)
