from gputally.accounting.totals.label_limiter import Growth, KnownValue, LabelLimiter, Value
from gputally.model.rules import Limits

TWO = Limits(tenants=2)


def test_values_beyond_the_limit_are_exported_as_other_and_counted() -> None:
    limiter = LabelLimiter(TWO)

    assert [limiter.limit("tenant", value) for value in "abcda"] == ["a", "b", "other", "other", "a"]
    assert limiter.refusals == {"tier": 0, "tenant": 2, "gpu_model": 0, "pool": 0}


def test_each_label_has_its_own_limit() -> None:
    limiter = LabelLimiter(Limits(tenants=0))

    assert (limiter.limit("tenant", "a"), limiter.limit("tier", "a")) == ("other", "a")


def test_values_admitted_before_stay_admitted_under_a_lower_limit() -> None:
    limiter = LabelLimiter(Limits(tenants=1), {("tenant", "a"): KnownValue(1), ("tenant", "b"): KnownValue(1)})

    assert [limiter.limit("tenant", value) for value in "abc"] == ["a", "b", "other"]


def test_only_what_is_newly_admitted_has_to_be_kept() -> None:
    limiter = LabelLimiter(TWO, {("tenant", "a"): KnownValue(1)})
    for value in "abca":
        limiter.limit("tenant", value)

    assert list(limiter.fresh) == [("tenant", "b")]


HOUR = 3_600_000_000
DAYS = 100 * HOUR
NOTHING: tuple[set[Value], set[Value]] = (set(), set())


def used(*values: str, grown: str = "") -> Growth:
    """Of all `values` there is something, and of those in `grown` it has become more."""
    return lambda: ({("tenant", value) for value in grown}, {("tenant", value) for value in values})


def shown_after(hours: int, *, limit: int = 2) -> list[str]:
    """How a third value is exported `hours` after two others were admitted, of which the second grows on."""
    limiter = LabelLimiter(Limits(tenants=limit), now_us=HOUR)
    limiter.advance(HOUR, lambda: NOTHING)
    for value in "ab":
        limiter.limit("tenant", value)
    for hour in range(2, hours + 2):
        limiter.advance(hour * HOUR, used("a", "b", grown="b"))
    return [limiter.limit("tenant", "c"), *sorted(limiter.values["tenant"])]


def test_a_value_that_has_not_grown_for_a_day_gives_way_when_there_is_no_room() -> None:
    assert shown_after(24) == ["other", "a", "b"]
    assert shown_after(25) == ["c", "b", "c"]


def test_nobody_gives_way_while_there_is_room() -> None:
    assert shown_after(1000, limit=3) == ["c", "a", "b", "c"]


def test_a_value_of_which_nothing_is_left_gives_way_at_once() -> None:
    limiter = LabelLimiter(TWO, now_us=DAYS)
    for value in "ab":
        limiter.limit("tenant", value)
    limiter.advance(DAYS + 1, used("a"))  # the only pod of b was refused by its kubelet

    assert [limiter.limit("tenant", value) for value in "cd"] == ["c", "other"]
    assert sorted(limiter.values["tenant"]) == ["a", "c"]


def test_what_is_asked_for_again_stays_until_a_look_has_told_whether_it_grows() -> None:
    limiter = LabelLimiter(TWO, {("tenant", value): KnownValue(1) for value in "ab"}, now_us=DAYS)
    limiter.record_growth(used("a", "b"))

    assert [limiter.limit("tenant", value) for value in "abc"] == ["a", "b", "other"]
    limiter.advance(DAYS + HOUR, used("a", "b", grown="a"))
    assert [limiter.limit("tenant", value) for value in "cd"] == ["c", "other"]
    assert sorted(limiter.values["tenant"]) == ["a", "c"]


def test_what_grows_by_the_books_of_the_process_before_gives_way_to_nothing() -> None:
    limiter = LabelLimiter(TWO, {("tenant", value): KnownValue(1) for value in "ab"}, now_us=DAYS)
    limiter.record_growth(used("a", "b", grown="a"))

    assert [limiter.limit("tenant", value) for value in "cd"] == ["c", "other"]
    assert sorted(limiter.values["tenant"]) == ["a", "c"]


def test_there_is_room_again_as_soon_as_something_may_give_way() -> None:
    limiter = LabelLimiter(TWO, now_us=DAYS)
    for value in "abc":
        limiter.limit("tenant", value)
    relieved = [limiter.advance(DAYS + hour * HOUR, used("a", "b", grown="b")) for hour in (1, 2, 24, 25)]

    assert relieved == [True, False, False, True]  # at first of the other labels, of which nothing is known yet
    assert limiter.limit("tenant", "c") == "c"


def test_what_follows_from_the_configuration_gives_way_to_nothing() -> None:
    limiter = LabelLimiter(Limits(tiers=1), now_us=DAYS)
    limiter.pin("tier", "gold")
    limiter.advance(2 * DAYS, lambda: NOTHING)

    assert limiter.limit("tier", "silver") == "other"


def test_values_that_wait_are_named_in_their_order_as_long_as_there_is_room_and_take_none() -> None:
    limiter = LabelLimiter(TWO)
    limiter.limit("tenant", "a")

    assert limiter.foreseen("tenant", ["x", "a", "y"]) == {"x": "x", "a": "a", "y": "other"}
    assert [limiter.limit("tenant", value) for value in "bx"] == ["b", "other"]


def test_what_was_evicted_is_kept_until_four_times_as_many_are() -> None:
    limiter = LabelLimiter(Limits(tenants=1), now_us=DAYS)
    for number in range(6):
        limiter.advance(DAYS + number * 60_000_000, lambda: NOTHING)
        limiter.limit("tenant", f"t{number}")

    assert [limiter.keeps("tenant", f"t{number}") for number in range(6)] == [False, True, True, True, True, True]
    assert limiter.fresh["tenant", "t0"] is None
    assert limiter.fresh["tenant", "t1"] == KnownValue(0, DAYS + 120_000_000)


def test_the_next_process_knows_what_was_evicted_and_in_which_order() -> None:
    saved = {("tenant", "a"): KnownValue(5), ("tenant", "b"): KnownValue(1, 30), ("tenant", "c"): KnownValue(2, 20)}
    limiter = LabelLimiter(Limits(tenants=2), saved)

    assert limiter.values["tenant"] == {"a": 5}
    assert [limiter.exports("tenant", value) for value in "abc"] == [True, False, False]
    assert list(limiter._evicted["tenant"]) == ["c", "b"]
