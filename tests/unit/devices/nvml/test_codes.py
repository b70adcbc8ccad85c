import pytest

from gputally.devices.nvml.library import Meaning, meaning


@pytest.mark.parametrize("code", [2, 3, 4, 13, 25])
def test_what_a_device_cannot_tell_is_not_asked_again(code: int) -> None:
    assert meaning(code) is Meaning.UNSUPPORTED


@pytest.mark.parametrize("code", [0, 6, 7, 10, 21, 4711])
def test_a_code_of_no_consequence_means_one_value_less(code: int) -> None:
    assert meaning(code) is Meaning.NOTHING


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (1, Meaning.UNAVAILABLE),
        (999, Meaning.UNAVAILABLE),
        (9, Meaning.MISSING),
        (12, Meaning.MISSING),
        (15, Meaning.LOST),
        (16, Meaning.LOST),
        (18, Meaning.CHANGED),
    ],
)
def test_a_code_that_concerns_more_says_what_to_do(code: int, expected: Meaning) -> None:
    assert meaning(code) is expected
