"""Readers of the GPUs of a script, and what their readings amount to."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import pytest

from gputally.devices.nvml.gpu_reader import GpuReader, ReadOptions
from gputally.devices.nvml.library import Nvml
from gputally.model.devices import Part, Reading, Span
from gputally.model.rules import Rules
from tests.unit.devices.nvml.conftest import now_us

SECOND_US = 10**6


@contextmanager
def reading(  # noqa: PLR0913 - how a reader is set up
    nvml: Nvml,
    uuid: str = "GPU-a",
    *,
    seconds_ago: float = 0,
    slow_every: int = 1,
    pod_of: Callable[[int], str | None] = lambda _pid: None,
    clock: Callable[[], int] = now_us,
    rules: Rules = Rules(),  # noqa: B008 - frozen
) -> Iterator[GpuReader]:
    """A reader that began `seconds_ago`; what it reads is closed at the end."""
    options = ReadOptions(pod_of=pod_of, clock=clock, slow_every=slow_every, rules=rules)
    reader = GpuReader(nvml, uuid, options, now_us() - round(seconds_ago * SECOND_US))
    try:
        yield reader
    finally:
        reader.close()


def look(reader: GpuReader) -> Reading:
    return reader.read(now_us())


def part(reader: GpuReader) -> Part:
    (only,) = look(reader).parts
    return only


def work(spans: Sequence[Span]) -> float:
    """Percent times µs, as tests.nvml.script.integral has it."""
    assert all(before.to_us <= after.from_us for before, after in pairwise(spans))
    return sum((span.to_us - span.from_us) * span.busy for span in spans) / 10_000


class Counter:
    """How often what it stands in for was called, as much as `by` each time."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    @property
    def total(self) -> int:
        return sum(self.calls)

    def of(self, call: Callable[..., object], by: int = 1) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            self.calls.append(by)
            return call(*arguments)

        return counted


@contextmanager
def counting(nvml: Nvml, **functions: int) -> Iterator[Counter]:
    """Calls of these functions of NVML, and what each adds."""
    counter = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name, by in functions.items():
            patch.setattr(nvml.calls, name, counter.of(getattr(nvml.calls, name), by))
        yield counter


def until(condition: Callable[[], bool]) -> None:
    """The library goes by the real clock."""
    deadline_us = now_us() + 20 * SECOND_US
    while not condition():
        assert now_us() < deadline_us
