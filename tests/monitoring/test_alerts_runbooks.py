"""The runbooks: their queries and statements work, and their text matches the alert."""

import re
import sqlite3

import promql_parser
import pytest

from gputally.ledger.sqlite.schema import create
from monitoring.config import read
from monitoring.generate import groups
from tests.docs.pages import TEXTS, blocks

ALERTS = {alert.name: alert for group in groups().values() for alert in group.alerts}
PAGES = {name: TEXTS[f"docs/runbooks/{name}.md"] for name in ALERTS}
INDEX = TEXTS["docs/runbooks/README.md"]
QUERIES = [
    (name, query.strip())
    for name, page in PAGES.items()
    for block in blocks(page, "promql")
    for query in block.split("\n\n")
]
STATEMENTS = [(name, block) for name, page in PAGES.items() for block in blocks(page, "sql")]


@pytest.mark.parametrize("name", PAGES)
def test_all_runbooks_have_the_same_sections(name: str) -> None:
    assert re.findall(r"^#+ (.+)$", PAGES[name], re.MULTILINE) == [
        name,
        "Meaning",
        "Impact",
        "Diagnosis",
        "Remedy",
        "When it is wrong",
    ]


@pytest.mark.parametrize("name", PAGES)
def test_a_runbook_names_only_settings_of_its_alert(name: str) -> None:
    _, _, wrong = PAGES[name].partition("## When it is wrong")
    config = read()

    for alert, term in re.findall(r"`alerts\.(\w+)\.(\w+)`", wrong):
        assert term in config.alerts[alert]
        assert alert == name


def test_the_index_has_every_alert_with_its_severity_and_summary() -> None:
    rows = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\) \| (\w+) \| (.+) \|$", INDEX, re.MULTILINE)
    config = read()

    assert {row[0] for row in rows} == ALERTS.keys()
    assert rows == [(name, name, config.terms(name)["severity"], ALERTS[name].summary) for name, *_ in rows]


def test_the_alerts_page_has_the_correct_counts() -> None:
    assert TEXTS["docs/alerts.md"].startswith(f"# Alerts\n\n{len(ALERTS)} alerts in {len(groups())} groups,")


@pytest.mark.parametrize(("name", "query"), QUERIES)
def test_a_documented_query_is_valid(name: str, query: str) -> None:
    assert promql_parser.parse(query), name


@pytest.mark.parametrize(("name", "statement"), STATEMENTS)
def test_a_documented_statement_runs_on_a_ledger(name: str, statement: str) -> None:
    connection = sqlite3.connect(":memory:")
    create(connection)

    assert connection.execute(statement).fetchall() == [], name
    connection.close()
