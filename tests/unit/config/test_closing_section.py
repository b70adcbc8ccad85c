"""The section `closing` says what is closed, or what is wrong with it."""

from pathlib import Path

import pytest

from gputally.config.rules_file import read_rules
from gputally.errors import ConfigError
from gputally.model.periods import Closing, PeriodLength
from gputally.model.units import US_PER_HOUR


def written(tmp_path: Path, closing: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(f"kind: Configuration\nclosing: {closing}\n")
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{period: month}", Closing(period=PeriodLength.MONTH, after_us=72 * US_PER_HOUR)),
        (
            "{period: week, after: 12h, time_zone: Asia/Kolkata}",
            Closing(period=PeriodLength.WEEK, after_us=12 * US_PER_HOUR, zone="Asia/Kolkata"),
        ),
        ("{period: quarter, after: 0d}", Closing(period=PeriodLength.QUARTER)),
        (
            "{closed: [2026-09, 2026-Q4, 2025, 2026-08-01/2026-08-15, 2026-08-15]}",
            Closing(closed=("2026-09", "2026-Q4", "2025", "2026-08-01/2026-08-15", "2026-08-15")),
        ),
        ("{closed: 2026-09}", Closing(closed=("2026-09",))),
    ],
)
def test_the_section_is_read(tmp_path: Path, text: str, expected: Closing) -> None:
    assert read_rules(written(tmp_path, text)).closing == expected


def test_what_is_closed_does_not_change_how_pods_are_classified(tmp_path: Path) -> None:
    found = [read_rules(written(tmp_path, text)) for text in ("{period: month}", "{closed: [2026-09]}")]

    assert found[0].digest == found[1].digest


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("{time_zone: UTC}", ["closing: closes nothing; add `period: month`, or `closed: [2026-10]`"]),
        ("{period: day}", ["closing.period: unknown 'day'; use week, month or quarter"]),
        (
            "{period: month, after: 14w, time_zone: Mars}",
            [
                "closing.time_zone: unknown 'Mars'; use a name such as UTC, Europe/Berlin or America/New_York",
                "closing.after: '14w' is not a duration up to 90d; use one such as 12h or 3d",
            ],
        ),
        ("{period: month, after: 91d}", ["closing.after: '91d' is not a duration up to 90d; use one such as 12h"]),
        ("{closed: [2026-09], after: 1d}", ["closing.after: applies only with `period`; periods in `closed` close at"]),
        (
            "{closed: [2026-13, last-month, 2026-09-02/2026-09-01]}",
            [
                "closing.closed[0]: '2026-13' is not a period; use 2026, 2026-Q4, 2026-10, 2026-10-31, or FROM/TO",
                "closing.closed[1]: 'last-month' is not a period",
                "closing.closed[2]: '2026-09-02/2026-09-01' is not a period",
            ],
        ),
        ("{closed: [2026-11, 2026-Q4, 2026-09]}", ["closing.closed: 2026-Q4 and 2026-11 overlap; remove one of them"]),
        (
            "{period: month, closed: [2026-09, 2026-Q4]}",
            ["closing.closed: 2026-Q4 is not a month; use periods"],
        ),
        ("{periods: month}", ["closing.periods: unknown field; did you mean 'period'?"]),
    ],
)
def test_each_problem_names_its_field(tmp_path: Path, text: str, problems: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        read_rules(written(tmp_path, text))

    found = str(error.value).splitlines()
    assert len(found) == len(problems)
    for line, problem in zip(found, problems, strict=True):
        assert problem in line
