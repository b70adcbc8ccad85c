import re
from decimal import Decimal

import pytest

from gputally.config.values import amount, day, flag, instant, member, nearest, pattern, unknown, whole
from gputally.model.price import Purchase

DAY_US = 86_400_000_000


@pytest.mark.parametrize("text", ["0", "2.21", "2.210", ".5", "1000000", "0.000000000001"])
def test_an_amount_is_as_exact_as_written(text: str) -> None:
    assert str(amount(text)) == str(Decimal(text))


@pytest.mark.parametrize("text", ["", "two", "2,21", "1_000", "1e3", "nan", "inf", "$2", "-0.01", "1000000.1", "٢"])
def test_an_amount_is_a_plain_number_of_a_sane_size(text: str) -> None:
    with pytest.raises(ValueError, match="use "):
        amount(text)


def test_an_amount_has_at_most_twelve_decimals() -> None:
    assert amount("0.1234567890120") == Decimal("0.123456789012")
    with pytest.raises(ValueError, match="more than 12 decimals"):
        amount("0.1234567890123")


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1970-01-02", DAY_US),
        ("1970-01-02T00:00:00Z", DAY_US),
        ("1970-01-02 02:00+02:00", DAY_US),
        ("1970-01-01T00:00:00.000001Z", 1),
    ],
)
def test_an_instant_is_a_date_at_midnight_utc_or_a_time_with_its_zone(text: str, us: int) -> None:
    assert instant(text) == us


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("20260720", "is not a date; use one such as"),
        ("2026-13-01", "month must be in 1..12"),
        ("2026-07-20T12:00:00", "has no time zone; add Z"),
        ("2026-07-20T12:00:00.1234567Z", "is not a date"),
        ("1969-12-31", "is before 1970"),
        ("now", "is not a date"),
    ],
)
def test_an_instant_that_can_be_misread_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        instant(text)


def test_a_day_has_no_time() -> None:
    assert day("2026-07-20") == "2026-07-20"
    for text in ("2026-07-20T00:00:00Z", "2026-02-30"):
        with pytest.raises(ValueError, match="is not a date"):
            day(text)


def test_a_member_is_written_as_its_value() -> None:
    assert member(Purchase)("on-demand") is Purchase.ON_DEMAND
    with pytest.raises(ValueError, match=r"unknown 'spto'; use on-demand, spot or reserved \(did you mean 'spot'\?\)"):
        member(Purchase)("spto")


def test_a_flag_is_true_or_false_and_never_yes() -> None:
    assert [flag("true"), flag("false")] == [True, False]
    with pytest.raises(ValueError, match="unknown 'yes'; use true or false"):
        flag("yes")


@pytest.mark.parametrize("text", ["0", "8", "1.5", "+3", " 3", "three"])
def test_a_whole_number_lies_within_its_bounds(text: str) -> None:
    assert whole(1, 7)("7") == 7
    with pytest.raises(ValueError, match="is not a whole number from 1 to 7"):
        whole(1, 7)(text)


def test_a_pattern_that_does_not_compile_names_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"'gpu-\(a' is not an RE2 regular expression \(.*\): missing \): gpu-\(a$"):
        pattern("gpu-(a")


def test_a_near_miss_is_recognised_in_any_case() -> None:
    assert nearest("usd", ["EUR", "USD"]) == "USD"
    assert nearest("completely different", ["EUR", "USD"]) is None


def test_of_many_options_only_the_nearest_or_an_example_is_shown() -> None:
    options = [f"option-{letter}" for letter in "abcdefghij"]

    assert unknown("optoin-c", options) == "unknown 'optoin-c'; did you mean 'option-c'?"
    assert unknown("xyz", options, "option-a") == "unknown 'xyz'; use one such as option-a"
