from gputally.devices.nvml.activity import JITTER_US, DriverTime


def test_the_driver_is_ahead_by_what_its_clock_was_set_and_jitter_does_not_count() -> None:
    told = {"us": 1000}
    time = DriverTime(lambda: told["us"])
    ahead = []
    for driver_us, now_us in ((1000, 1000), (2500, 2000), (9_000_000, 3000), (9_000_900, 4000), (5000, 5000)):
        told["us"] = driver_us
        ahead.append(time.ahead_us(now_us))

    assert ahead == [0, 0, 8_997_000, 8_997_000, 0]
    assert JITTER_US > 500
