import pytest

from gputally_sim.instants import format_duration, http_date, parse_duration, parse_instant, rfc3339, rfc3339_micro


@pytest.mark.parametrize(
    ("text", "us"),
    [("0s", 0), ("0", 0), ("1500ms", 1_500_000), ("1h30m", 5_400_000_000), ("1.5s", 1_500_000), ("7us", 7)],
)
def test_durations_are_read_as_go_writes_them(text: str, us: int) -> None:
    assert parse_duration(text) == us


@pytest.mark.parametrize("text", ["", "soon", "10", "1h nonsense", "-3s"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


def test_times_lose_their_fraction_and_micro_times_keep_it() -> None:
    us = parse_instant("2026-03-02T08:00:59.999999Z")

    assert rfc3339(us) == "2026-03-02T08:00:59Z"
    assert parse_instant(rfc3339_micro(us)) == us


def test_a_written_duration_reads_back() -> None:
    assert parse_duration(format_duration(5_400_000_000)) == 5_400_000_000


def test_a_http_date_is_in_english_and_in_gmt() -> None:
    assert http_date(parse_instant("2026-03-02T08:00:59.999999Z")) == "Mon, 02 Mar 2026 08:00:59 GMT"
