"""The section `time_limits` says how long pods of a tier may be pending or starting, or what is wrong with it."""

from pathlib import Path

import pytest

from gputally.accounting.terms.tier import limits_of
from gputally.config.rules_file import default_rules, read_rules
from gputally.errors import ConfigError
from gputally.model.rules import TimeLimit
from gputally.model.units import US_PER_SECOND

MINUTE = 60 * US_PER_SECOND


def written(tmp_path: Path, limits: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(f"kind: Configuration\ntime_limits: {limits}\n")
    return path


def test_the_section_is_read_and_changes_nothing_about_how_pods_are_classified(tmp_path: Path) -> None:
    found = read_rules(written(tmp_path, "[{tier: batch, pending: 48h}, {pending: 12h, starting: 1h}]"))

    assert found.time_limits == (
        TimeLimit(tier="batch", pending_us=48 * 60 * MINUTE),
        TimeLimit(pending_us=12 * 60 * MINUTE, starting_us=60 * MINUTE),
    )
    assert found.digest == default_rules().digest


def test_the_first_entry_with_a_limit_for_the_tier_applies_to_each_of_both(tmp_path: Path) -> None:
    found = read_rules(written(tmp_path, "[{tier: batch, pending: 48h}, {tier: web, starting: 5m}, {starting: 1h}]"))

    assert limits_of("batch", found) == (48 * 60 * MINUTE, 60 * MINUTE)
    assert limits_of("web", found) == (6 * 60 * MINUTE, 5 * MINUTE)
    assert limits_of("other", found) == (6 * 60 * MINUTE, 60 * MINUTE)
    assert limits_of("batch", default_rules()) == (6 * 60 * MINUTE, 30 * MINUTE)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[{tier: a}]", "time_limits[0]: limits nothing; add pending or starting, such as `pending: 6h`"),
        (
            "[{pending: 30s}]",
            "time_limits[0].pending: '30s' is not a duration from 1m to 720h; use one such as 10m or 6h",
        ),
        ("[{pending: 1h, tiers: a}]", "time_limits[0].tiers: unknown field; did you mean 'tier'?"),
        (
            "[{pending: 1h}, {tier: a, starting: 1h, pending: 2h}]",
            "time_limits[1].pending: never applies, since an earlier entry decides; move it up or remove it",
        ),
    ],
)
def test_problems_are_named_with_their_field(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_rules(written(tmp_path, text))

    assert str(caught.value).endswith(problem)
