"""The posture of scenario S2, as written in each format for people."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.cli import main
from gputally.formatting.formats import FORMATS
from gputally.ledger.open_to_write import open_ledger
from tests.conftest import Golden
from tests.contract.records import BY, CLASS_VERSION, PREEMPTION
from tests.core.manifests import us

if TYPE_CHECKING:
    from gputally.model.disruptions import Victim

MANIFESTS = Path(__file__).parents[1] / "unit" / "posture" / "manifests"


@pytest.mark.parametrize("output", FORMATS)
def test_the_posture_is_as_recorded(
    output: str, golden: Golden, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(MANIFESTS)

    main(["posture", "s2.yaml", "--output", output])

    golden.check(f"posture.{output}", capsys.readouterr().out)


OBSERVED = (
    ("gpu-serving", "gpu-training", 12),
    ("gpu-batch", "gpu-training", 40),
    ("gpu-batch", "gpu-serving", 7),
    ("gpu-interactive", "gpu-batch", 3),
    ("gpu-serving", "gpu-batch", 1),
)
"""Victim tier, preemptor tier, and how often: the last one is not permitted."""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The preemptions of a day, and a class that got another value on it."""
    path, noon = tmp_path / "ledger.db", us(43_200)
    each = [pair for *pair, times in OBSERVED for _ in range(times)]
    counted: dict[str, Victim | None] = {
        f"pod-{number}": replace(
            PREEMPTION,
            victim_uid=f"pod-{number}",
            victim_tier=victim,
            by=replace(BY, counted_tier=victim, preemptor_tier=preemptor),
            decided_us=noon,
        )
        for number, (victim, preemptor) in enumerate(each)
    }
    before = replace(CLASS_VERSION, name="gpu-serving", value=500, is_default=False, from_us=us(-1), to_us=noon)
    now = replace(before, value=800, preemption_policy="PreemptLowerPriority", from_us=noon, to_us=None)
    changes = Changes(
        accounting_start_us=us(0),
        evaluated_us=us(86_400),
        at_us=us(86_400),
        victims=counted,
        priority_classes={(each.name, each.from_us): each for each in (before, now)},
    )
    with open_ledger(str(path)) as ledger:
        ledger.write(changes)
    return path


@pytest.mark.parametrize("output", ["table", "json"])
def test_the_posture_beside_what_was_observed_is_as_recorded(
    output: str, ledger: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(MANIFESTS)

    main(["posture", "s2.yaml", "--ledger", str(ledger), "--window", "1d", "--output", output])

    golden.check(f"posture-observed.{output}", capsys.readouterr().out)
