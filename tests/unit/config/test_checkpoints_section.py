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


def what_ifs(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(f"kind: Configuration\nwhat_if_checkpoints: {text}\n")
    return path


def test_the_what_if_intervals_are_read_in_order_and_change_nothing_else(tmp_path: Path) -> None:
    found = read_rules(what_ifs(tmp_path, "[1h30m, 5m, 5m]"))

    assert found.what_if_checkpoints_us == (300 * US_PER_SECOND, 5400 * US_PER_SECOND)
    assert found.digest == default_rules().digest
    assert read_rules(what_ifs(tmp_path, "[]")).what_if_checkpoints_us == ()
    assert [each // US_PER_SECOND // 60 for each in default_rules().what_if_checkpoints_us] == [5, 10, 15, 30, 60]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[10]", "what_if_checkpoints[0]: '10' is not a duration from 1m to 168h; use one such as 10m or 1h30m"),
        (
            "[1m, 2m, 3m, 4m, 5m, 6m, 7m, 8m, 9m]",
            "what_if_checkpoints: has 9 intervals; use at most 8, since each is a label of metrics",
        ),
    ],
)
def test_problems_of_what_if_intervals_are_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_rules(what_ifs(tmp_path, text))

    assert str(caught.value).endswith(problem)


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
