"""A scheduler that binds gangs at once confirms verdicts on gangs, in generated states."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest

from gputally.model.verdicts import ObstacleKind, Reason
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.e2e.oracle.board import Board
from tests.e2e.oracle.gang import GATES, GROUPS, Gang, bound, gangs
from tests.e2e.oracle.state import classes

pytestmark = [pytest.mark.e2e, pytest.mark.campaign]

MANY = 48


@pytest.fixture
async def gang_api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    plane = ControlPlane(
        tmp_path_factory.mktemp("gangs"),
        api_server_args=[f"--runtime-config={GROUPS}=true", GATES],
        scheduler_args=[GATES],
    )
    async with plane, Api(plane.url, plane.token("admin"), plane.ca_file) as api:
        yield api


async def test_a_scheduler_of_gangs_confirms_their_verdicts(gang_api: Api) -> None:
    for tier in classes():
        await gang_api.create(tier)
    errors, several = list[str](), list(gangs(MANY, seed=5))
    async with Board.following(gang_api) as board, asyncio.TaskGroup() as group:
        for each in several:
            group.create_task(examine(gang_api, board, each, errors))
    reasons = {each.verdict().reason for each in several}
    assert errors == []
    assert {Reason.SCHEDULABLE, Reason.GANG} <= reasons


async def examine(api: Api, board: Board, gang: Gang, errors: list[str]) -> None:
    """It is bound as a whole if the verdict says so; else without all obstacles, and not with any one of them."""
    verdict, numbers = gang.verdict(), count()

    async def check(changed: Gang, *, binds: bool) -> None:
        number = await bound(api, board, changed, number=next(numbers), binds=binds)
        if (number >= changed.least) != binds or (number and not binds):
            errors.append(f"{gang.name}: {number} of {changed.least} are bound, {binds=}: {verdict}")

    await check(gang, binds=verdict.reason is Reason.SCHEDULABLE)
    if verdict.obstacles and all(each.kind is ObstacleKind.GANG for each in verdict.obstacles):
        for kept in (None, *verdict.obstacles):
            changed = gang
            for obstacle in verdict.obstacles:
                changed = changed if obstacle == kept else changed.without(obstacle)
            await check(changed, binds=kept is None)
