"""Durations have one grammar, in flags, annotations and files."""

import pytest

from gputally.model.units import duration_text, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1h30m", 5400),
        ("7d", 604_800),
        ("2w1d", 1_296_000),
        ("1y", 31_536_000),
        ("0s", 0),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "h", "1.5h", "-5m", "30m1h", "1h1h", "5 m", "5M", "1234567s", "٣h", "5ms"])
def test_anything_else_is_not_a_duration(text: str) -> None:
    assert seconds_of(text) is None


@pytest.mark.parametrize("seconds", [0, 1, 60, 3599, 5400, 86_400])
def test_a_duration_that_is_shown_can_be_read(seconds: int) -> None:
    assert seconds_of(duration_text(seconds)) == seconds
