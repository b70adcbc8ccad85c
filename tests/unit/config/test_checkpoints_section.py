"""The section `checkpoints` says how often the jobs of a tier save a checkpoint, or what is wrong with it."""

from pathlib import Path

import pytest

from gputally.config.rules_file import default_rules, read_rules
from gputally.errors import ConfigError
from gputally.model.rules import CheckpointRule
from gputally.model.units import US_PER_SECOND


def written(tmp_path: Path, checkpoints: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(f"kind: Configuration\ncheckpoints: {checkpoints}\n")
    return path


def test_the_section_is_read_and_changes_nothing_about_how_pods_are_classified(tmp_path: Path) -> None:
    found = read_rules(written(tmp_path, "[{tier: batch, interval: 30m}, {interval: 1h30m}]"))

    assert found.checkpoints == (
        CheckpointRule(tier="batch", interval_us=1800 * US_PER_SECOND),
        CheckpointRule(interval_us=5400 * US_PER_SECOND),
    )
    assert found.digest == default_rules().digest


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[{tier: a}]", "checkpoints[0].interval: is missing; add how often jobs save a checkpoint, such as 30m"),
        (
            "[{interval: 10}]",
            "checkpoints[0].interval: '10' is not a duration from 1m to 168h; use one such as 10m or 1h30m",
        ),
        ("[{interval: 1h, tiers: a}]", "checkpoints[0].tiers: unknown field; did you mean 'tier'?"),
    ],
)
def test_problems_are_named_with_their_field(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_rules(written(tmp_path, text))

    assert str(caught.value).endswith(problem)
