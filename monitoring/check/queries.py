"""Whether answers still have the labels that are shown of them, and whether what they mix goes together."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from monitoring.check.answer import Answer
from monitoring.check.asked import heads
from monitoring.check.grafana import Panel
from monitoring.check.problem import Problem


def problems(answers: Iterable[Answer]) -> Iterator[Problem]:
    """On the way through a query, and at its end."""
    tables: dict[tuple[str, int], list[Answer]] = defaultdict(list)
    for answer in answers:
        asked, flow = answer.asked, answer.flow
        for text in dict.fromkeys(flow.problems):
            yield asked.problem(text)
        for label, where in asked.shown:
            if label not in flow.labels:
                yield asked.problem(f"{flow.lack(label, where)}; keep it in the query, or show another")
        if asked.panel and asked.panel.type == "table":
            tables[asked.file, asked.panel.id].append(answer)
    for (file, _), columns in tables.items():
        panel = columns[0].asked.panel
        assert panel, "only panels were collected"
        yield from (Problem(file, panel.place, text) for text in _of_table(panel, columns))


def _of_table(panel: Panel, columns: list[Answer]) -> Iterator[str]:
    """Its keys are labels, and the same label of all queries puts their values into one line."""
    keys = [name for name in heads(panel) if not name.startswith("Value")]
    every = frozenset().union(*(column.flow.labels for column in columns))
    yield from (
        f"its column {heads(panel)[key]!r} is empty: no query has the label {key}" for key in keys if key not in every
    )
    common = set(keys).intersection(*(column.flow.labels for column in columns))
    if keys and not common:
        yield "its queries share none of its keys, so that their values stand in lines of their own; give them one"
