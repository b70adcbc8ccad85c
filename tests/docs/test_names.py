import re
import sqlite3

import pytest

from gputally.catalog.metric import Metric, MetricType
from gputally.catalog.reference import GROUPS
from gputally.ledger.sqlite.schema import create
from gputally.model.allocation import End, State
from gputally.model.node_record import CapacityState
from monitoring.selector import labels_of
from tests.docs.pages import TEXTS, table
from tests.golden.test_scrape import an_hour

METRICS: dict[str, Metric[object]] = {metric.name: metric for group in GROUPS.values() for metric in group}
ACCOUNTING = TEXTS["docs/accounting.md"]

FORMER = re.compile(r"^\| (`gputally_[^|]*) \|(?= `gputally_)", re.MULTILINE)
"""The first cell of a table of renamed metrics."""


@pytest.mark.parametrize("page", TEXTS)
def test_every_metric_mentioned_exists_and_has_the_selected_labels(page: str) -> None:
    for name, selector in re.findall(r"\b(gputally_[a-z_]+)(?:\{([^}]*)\})?", FORMER.sub("|", TEXTS[page])):
        assert set(re.findall(r"(\w+)=", selector)) <= set(labels_of(name)), name


def test_the_changelog_names_every_metric() -> None:
    unreleased = TEXTS["CHANGELOG.md"].partition("### Metrics")[2]

    assert set(re.findall(r"`((?:gputally|training)_\w+)`", FORMER.sub("|", unreleased))) == METRICS.keys()


def test_the_old_name_of_a_renamed_metric_does_not_exist() -> None:
    former = {name for cell in FORMER.findall(TEXTS["CHANGELOG.md"]) for name in re.findall(r"gputally_\w+", cell)}

    assert len(former) == 15
    assert former & METRICS.keys() == set()


def test_a_counter_is_only_shown_through_a_rate() -> None:
    counters = [name for name, metric in METRICS.items() if metric.kind is MetricType.COUNTER]
    for page, text in TEXTS.items():
        for query in re.findall(r"^```promql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            for name in counters:
                bare = re.findall(rf"(?<!rate\()(?<!increase\(){name}", query)
                assert bare == [], page


def test_every_table_of_the_ledger_is_described() -> None:
    connection = sqlite3.connect(":memory:")
    create(connection)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    connection.close()

    assert {row[0] for row in table(ACCOUNTING, "Table")} == {name for (name,) in tables}


def test_every_way_an_allocation_ends_is_explained() -> None:
    assert {row[0] for row in table(ACCOUNTING, "`end_by`")} == {end.value for end in End}


@pytest.mark.parametrize("states", [State, CapacityState])
def test_every_state_is_explained_in_the_order_of_precedence(states: type[State] | type[CapacityState]) -> None:
    _, _, rest = ACCOUNTING.partition("## Capacity") if states is CapacityState else ("", "", ACCOUNTING)

    assert [row[0] for row in table(rest, "`state`")] == [state.value for state in states]


def test_every_reconciliation_check_is_explained() -> None:
    assert {row[0] for row in table(ACCOUNTING, "`check`")} == an_hour().differences.keys()
