"""Pauses between tries."""

from random import Random

from gputally.kube.failures import FIRST_SECONDS, LONGEST_SECONDS, Backoff


class _Longest(Random):
    """Always the upper bound."""

    def uniform(self, a: float, b: float) -> float:  # noqa: ARG002 - as Random has it
        return b


def _backoff() -> tuple[Backoff, list[float]]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    return Backoff(_Longest(), sleep), slept


async def test_the_ceiling_doubles_up_to_the_longest_pause_and_falls_back_on_progress() -> None:
    backoff, slept = _backoff()
    for _ in range(7):
        await backoff.wait()
    backoff.reset()
    await backoff.wait()

    assert slept == [1, 2, 4, 8, 16, 30, 30, 1]
    assert (FIRST_SECONDS, LONGEST_SECONDS) == (1, 30)


async def test_the_pause_the_server_asks_for_comes_on_top() -> None:
    backoff, slept = _backoff()
    await backoff.wait(60)

    assert slept == [61]


async def test_pauses_are_spread_over_the_whole_range() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    for seed in range(50):
        await Backoff(Random(seed), sleep).wait()

    assert min(slept) < 0.2
    assert max(slept) > 0.8
