"""Durations in words, and text with its heading on the left."""

import pytest

from gputally.formatting.times import duration
from gputally.formatting.wrapping import headed, headed_table


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (45, "45 s"),
        (90, "1 min 30 s"),
        (14 * 60 + 59, "14 min"),
        (7200, "2 h"),
        (7500, "2 h 5 min"),
        (3 * 86_400 + 4 * 3600 + 5, "3 d 4 h"),
        (-5, "0 s"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_names_in_a_table_are_never_cut_off() -> None:
    [line] = headed_table("Held by", [("8", "x" * 300)], right=frozenset({0}))

    assert line == f"Held by     8  {'x' * 300}"


def test_an_empty_text_leaves_its_heading() -> None:
    assert list(headed("Scheduler", "", width=80)) == ["Scheduler"]
