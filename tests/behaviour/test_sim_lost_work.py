"""Compares the lost work of reports with what the preempted pods of a simulated cluster had used."""

from collections import Counter
from pathlib import Path

from gputally.ledger.open import open_reader
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.model.units import GPU, US_PER_SECOND
from gputally.reports.query import ReportQuery
from gputally.reports.waterfall import NOT_LOST, SUCCEEDED, read_waterfall_parts
from tests.behaviour.test_sim_usage import Group, Life, Outcome, ran

SLACK = GPU // 1000 * US_PER_SECOND
"""A thousandth of a GPU-second: agents lag by 1 µs, and hours are divided into integers."""


async def test_the_waterfall_loses_what_preempted_pods_had_used(tmp_path: Path) -> None:
    outcome = await ran("s1", tmp_path)
    victims = [life for life in outcome.truth.lives.values() if life.is_preempted and life.ended_us is not None]
    assert victims
    with open_reader(str(tmp_path / "ledger.db")) as reader:
        lost, kept = used_by_group(reader)

    truth = Counter[Group]()
    for life in victims:
        truth[life.group] += life.used(outcome.now_us)
    assert lost.keys() == (+truth).keys()
    assert all(abs(lost[group] - truth[group]) <= SLACK for group in lost)
    assert_nothing_twice(outcome, lost, kept)


def assert_nothing_twice(outcome: Outcome, lost: Counter[Group], kept: Counter[Group]) -> None:
    """What is lost and what is not add up to what all pods used."""
    used = Counter(outcome.truth.by_group(Life.used, outcome.now_us))
    for group in used:
        assert abs(lost[group] + kept[group] - used[group]) <= SLACK


def used_by_group(reader: LedgerReader) -> tuple[Counter[Group], Counter[Group]]:
    """The used time that was lost, and that was not."""
    state = reader.state()
    window = Window(state.accounting_start_us, state.accounted_us)
    parts, _ = read_waterfall_parts(reader, ReportQuery(window=window, by=("tier", "tenant")))
    lost, kept = Counter[Group](), Counter[Group]()
    for each in parts:
        if each.labels and each.step in (NOT_LOST, SUCCEEDED):
            (lost if each.step == NOT_LOST else kept)[each.labels[0], each.labels[1]] += each.gpu_time
    return lost, kept
