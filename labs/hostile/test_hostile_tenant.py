"""A tenant that may only create pods, Jobs and ConfigMaps in its own namespace does not affect other tenants."""

import sys
from pathlib import Path

import pytest

from labs.hostile.report import findings, inconclusive_reasons, table
from labs.hostile.run import Size, run

SHORT = Size(seed=1, lasts_s=26, scale=0.1, per_second=80, tenants=64)
WHOLE = Size(seed=2, lasts_s=180, scale=1, per_second=60, tenants=500)


@pytest.mark.e2e
async def test_a_hostile_tenant_does_not_affect_others(tmp_path: Path) -> None:
    await compare(tmp_path, SHORT)


@pytest.mark.e2e
@pytest.mark.campaign
async def test_a_hostile_tenant_does_not_affect_others_in_a_full_campaign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = await compare(tmp_path, WHOLE)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}")


async def compare(scratch: Path, size: Size) -> str:
    """Run both, assert that there are no violations, and return the table."""
    folders = [scratch / name for name in ("alone", "beside")]
    for folder in folders:
        folder.mkdir()
    alone = await run(folders[0], size, hostile=False)
    beside = await run(folders[1], size, hostile=True)
    report = table(alone, beside)

    wrong = [*inconclusive_reasons(beside, size), *findings(alone, beside, size)]

    assert not wrong, "\n".join([report, *wrong])
    return report
