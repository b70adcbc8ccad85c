"""The real scheduler confirms verdicts, their obstacles, predictions and suggestions, in generated states."""

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import pytest

from gputally.model.verdicts import Reason
from tests.cluster.api import Api
from tests.e2e.oracle.board import Board
from tests.e2e.oracle.examination import Examiner, Report
from tests.e2e.oracle.sample import mixed, with_budgets
from tests.e2e.oracle.state import State, classes

pytestmark = pytest.mark.e2e

FEW, MANY, GUARDED = 15, 240, 48
SEED: Final = int(os.environ.get("GPUTALLY_ORACLE_SEED") or 1)
"""Another one finds other states."""
AT_ONCE: Final = 24
"""States in the cluster at the same time, which do not touch each other."""


async def test_the_scheduler_confirms_verdicts_predictions_and_suggestions(api: Api) -> None:
    await assert_confirmed(api, [*mixed(FEW, seed=3, prefix="few", most=2), *with_budgets(4, seed=3, prefix="few")])


@pytest.mark.campaign
async def test_the_scheduler_confirms_every_verdict_of_many_states(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    states = [*mixed(MANY, seed=SEED, prefix="many", most=MANY // 10), *with_budgets(GUARDED, seed=SEED, prefix="many")]
    reports = await examined(api, states)
    with capsys.disabled():
        sys.stdout.write(f"\n{precision(reports)}\n")
    assert not errors(reports), errors(reports)


async def assert_confirmed(api: Api, several: Sequence[State]) -> None:
    reports = await examined(api, several)
    assert not errors(reports), errors(reports)
    assert len({report.reason for report in reports}) > 6


async def examined(api: Api, several: Sequence[State]) -> list[Report]:
    for each in classes():
        await api.create_once(each)
    limit = asyncio.Semaphore(AT_ONCE)
    async with Board.following(api) as board:
        examiner = Examiner(api, board)

        async def one(state: State) -> Report:
            async with limit:
                return await examiner.examine(state)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(state)) for state in several]
        return [task.result() for task in tasks]


def errors(reports: Sequence[Report]) -> str:
    """One line for each disagreement with the scheduler."""
    return "\n".join(error for report in reports for error in report.errors)


def precision(reports: Sequence[Report]) -> str:
    """For each reason: the states, those without an error, and the comparisons with the scheduler."""
    by_reason = defaultdict[Reason, list[Report]](list)
    for report in reports:
        by_reason[report.reason].append(report)
    lines = [
        f"{reason:18} {len(found):4} states, {sum(not each.errors for each in found) / len(found):.2f} correct, "
        f"{sum(each.checks for each in found):5} comparisons"
        for reason, found in sorted(by_reason.items())
    ]
    return "\n".join(lines)
