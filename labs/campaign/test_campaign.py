"""Killed again and again under load, the product's ledger equals the truth, and no counter ever falls."""

import os
import sys

import pytest

from labs.campaign.campaign import Campaign, Ground

SEED = int(os.environ.get("GPUTALLY_CAMPAIGN_SEED", "2"))
"""Of the long campaign."""
LONGEST_BLIND_US = 60_000_000
"""Two full disks may follow each other, with kills in between and a pause after the last."""


async def test_ten_kills_and_troubles_of_the_api_server_change_nothing(ground: Ground) -> None:
    await fight(ground, kills=10, seed=1)


@pytest.mark.campaign
async def test_a_hundred_kills_full_disks_and_clock_steps_change_nothing(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    report = await fight(ground, kills=100, seed=SEED)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}")


async def fight(ground: Ground, *, kills: int, seed: int) -> str:
    """A whole campaign; the report of one in which nothing differed."""
    campaign = Campaign(ground, kills=kills, seed=seed)
    await campaign.run()
    verdict = campaign.verdict()
    report = campaign.report(verdict)

    assert campaign.feints(verdict) == [], report
    assert not verdict.deviations, "\n".join([report, *verdict.deviations])
    assert not campaign.scrapes.falls, "\n".join([report, *campaign.scrapes.falls])
    assert await campaign.rest() == [], report
    assert campaign.killer.hits == kills
    assert [death for death in campaign.killer.deaths if "ledger" not in death.words] == [], report
    assert max(verdict.gap_us, default=0) < LONGEST_BLIND_US, report
    return report
