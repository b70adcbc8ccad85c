"""After repeated kills under load, the ledger equals the truth and no counter has decreased."""

import os
import sys

import pytest

from labs.campaign.campaign import Campaign, Environment

SEED = int(os.environ.get("GPUTALLY_CAMPAIGN_SEED", "2"))
"""Seed of the long campaign."""
LONGEST_GAP_US = 60_000_000
"""Two disk-full periods may be adjacent, with kills in between and a pause after the last."""


async def test_ten_kills_and_api_server_faults_change_nothing(environment: Environment) -> None:
    await run_campaign(environment, kills=10, seed=1)


@pytest.mark.campaign
async def test_a_hundred_kills_full_disks_and_clock_steps_change_nothing(
    environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    report = await run_campaign(environment, kills=100, seed=SEED)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}")


async def run_campaign(environment: Environment, *, kills: int, seed: int) -> str:
    """Run a campaign, assert that nothing differs, and return its report."""
    campaign = Campaign(environment, kills=kills, seed=seed)
    await campaign.run()
    verdict = campaign.verdict()
    report = campaign.report(verdict)

    assert campaign.inconclusive_reasons(verdict) == [], report
    assert not verdict.deviations, "\n".join([report, *verdict.deviations])
    assert not campaign.scrapes.falls, "\n".join([report, *campaign.scrapes.falls])
    assert await campaign.rest() == [], report
    assert campaign.killer.hits == kills
    assert [death for death in campaign.killer.deaths if "ledger" not in death.message] == [], report
    assert max(verdict.gap_us, default=0) < LONGEST_GAP_US, report
    return report
