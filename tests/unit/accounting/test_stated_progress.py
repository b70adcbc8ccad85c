"""What the annotations of a pod say about the progress of its job."""

import pytest

from gputally.accounting.jobs.progress import DEFAULT_UNIT, PROGRESS, PROGRESS_UNIT, Progress, progress_of

MOST = 999_999_999_999_999_999


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        ("12", 12_000_000),
        ("0", 0),
        ("0.5", 500_000),
        ("12.25", 12_250_000),
        ("007.000001", 7_000_001),
        ("999999999999.999999", MOST),
    ],
)
def test_progress_is_an_exact_number_of_millionths(text: str, micro: int) -> None:
    assert progress_of({PROGRESS: text}) == Progress(micro, DEFAULT_UNIT)
    assert micro < 1 << 63


@pytest.mark.parametrize(
    "text",
    [
        *("", " 1", "1 ", "1\n", "+1", "-1", "1e9", "1,5", ".5", "1.", "NaN", "inf", "0x10", "1_000"),
        *("1234567890123", "1.1234567", "٣", "1" * 100_000),
    ],
)
def test_anything_else_is_no_progress(text: str) -> None:
    assert progress_of({PROGRESS: text, PROGRESS_UNIT: "epoch"}) is None


@pytest.mark.parametrize("annotations", [None, {}, {"other": "12"}, {PROGRESS_UNIT: "epoch"}])
def test_pods_without_the_annotation_state_no_progress(annotations: dict[str, str] | None) -> None:
    assert progress_of(annotations) is None


def test_the_unit_is_a_word() -> None:
    assert progress_of({PROGRESS: "1", PROGRESS_UNIT: "training-step"}) == Progress(1_000_000, "training-step")


@pytest.mark.parametrize(
    "unit", ["", "=cmd()", "two words", "a\nb", "\x1b[2J", "<b>", "é", "1st", "a" * 21, "a" * 99_999]
)
def test_another_unit_is_ignored(unit: str) -> None:
    assert progress_of({PROGRESS: "1", PROGRESS_UNIT: unit}) == Progress(1_000_000, DEFAULT_UNIT)
