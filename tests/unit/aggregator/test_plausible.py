"""Figures that nobody can have measured are refused before they reach a counter."""

from typing import Any

import pytest
from msgspec.structs import replace

from gputally.aggregator.agent_client import implausible
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import GpuHour
from tests.core.usage import assignment, gpu, hour, report

HOUR = hour(12, 20, measured=8, used=6, burst=1, joules=5)
ASSIGNMENT = assignment(HOUR, since=12)
GPU_0 = gpu(joules=7, unattributed=1, watermark=20)
REPORT = report(ASSIGNMENT, at=20, gpus=(GPU_0,))


def test_what_an_agent_tells_is_plausible() -> None:
    assert implausible(REPORT) == ""


@pytest.mark.parametrize(
    "more", [{"now_us": -1}, {"watermark_us": 1 << 62}, {"allocations_us": -1}, {"epoch": "e" * 513}, {"epoch": ""}]
)
def test_the_head_is_looked_at(more: dict[str, Any]) -> None:
    assert implausible(replace(REPORT, **more)) == "the header of the report is implausible"


@pytest.mark.parametrize("more", [0, 1, US_PER_HOUR])
def test_nobody_claims_that_what_just_ended_is_final(more: int) -> None:
    """Hours before the start of the journal are closed: if an agent reports them again, they are counted again."""
    latest = replace(REPORT, journal_start_us=REPORT.now_us - 600 * US_PER_SECOND)
    later = replace(latest, journal_start_us=latest.journal_start_us + 1 + more)
    early = replace(REPORT, now_us=1, journal_start_us=0)

    assert [implausible(each) for each in (latest, early)] == ["", ""]
    assert implausible(later) == "the journal of the report is too short"


@pytest.mark.parametrize("more", [{"since_us": -1}, {"until_us": 1 << 62}, {"share": -1}, {"device": "d" * 513}])
def test_holders_are_looked_at(more: dict[str, Any]) -> None:
    assert (
        implausible(replace(REPORT, assignments=(replace(ASSIGNMENT, **more),))) == "the report of ml/a is implausible"
    )


@pytest.mark.parametrize(
    "more",
    [
        {"measured": -1},
        {"used": 1 << 62},
        {"energy": 1 << 62},
        {"memory": 1 << 100},
        {"burst": HOUR.used + 1},
        {"from_us": HOUR.start_us - 1},
        {"to_us": HOUR.from_us - 1},
        {"to_us": HOUR.start_us + US_PER_HOUR + 1},
        {"start_us": -1},
    ],
)
def test_hours_are_looked_at(more: dict[str, Any]) -> None:
    wrong = replace(ASSIGNMENT, hours=(HOUR, replace(HOUR, **more)))

    assert implausible(replace(REPORT, assignments=(ASSIGNMENT, wrong))) == "the report of ml/a is implausible"


@pytest.mark.parametrize("more", [{"energy": -1}, {"unattributed": 1 << 62}, {"start_us": -1}])
def test_gpus_are_looked_at(more: dict[str, int]) -> None:
    wrong = replace(GPU_0, hours=(GpuHour(**{"start_us": 0} | more),))

    assert implausible(replace(REPORT, gpus=(wrong,))) == "the report of GPU GPU-0 is implausible"


@pytest.mark.parametrize("more", [{"gpus": (GPU_0,) * 65}, {"assignments": (ASSIGNMENT,) * 20_001}])
def test_a_node_has_no_end_of_gpus_or_containers(more: dict[str, Any]) -> None:
    assert implausible(replace(REPORT, **more)).endswith("are implausible for one node")


def test_an_agent_does_not_remember_without_end() -> None:
    assert implausible(replace(REPORT, assignments=(replace(ASSIGNMENT, hours=(HOUR,) * 101),)))
    assert implausible(replace(REPORT, gpus=(replace(GPU_0, hours=GPU_0.hours * 101),)))
    assert implausible(replace(REPORT, gpus=(replace(GPU_0, source="s" * 513),)))
