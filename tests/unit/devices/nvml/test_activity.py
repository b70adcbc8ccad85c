import pytest

from gputally.devices.nvml.library import Nvml
from gputally.model.devices import Source, Span
from tests.nvml.script import Fault, Gpu, integral
from tests.unit.devices.nvml.conftest import Node, now_us
from tests.unit.devices.nvml.readers import SECOND_US, counting, look, part, reading, work

CURVE = [(-100, 0), (-14, 30), (-9, 87.5), (-5, 10), (3600, 99)]
RATES = [Fault(function="nvmlDeviceGetSamples", code=3)]
NONE = [*RATES, Fault(function="nvmlDeviceGetUtilizationRates", code=3)]


def test_samples_integrate_to_the_curve(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a", curve=CURVE))

    with reading(nvml, seconds_ago=15) as reader:
        seen = part(reader)

    start, end = seen.busy[0].from_us - node.origin_us, seen.busy[-1].to_us - node.origin_us
    assert seen.source is Source.SAMPLES
    assert end - start >= 14 * SECOND_US
    assert work(seen.busy) == pytest.approx(float(integral(CURVE, start, end)), rel=0.01)


def test_successive_readings_tell_each_sample_once(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a", curve=CURVE))

    with reading(nvml, seconds_ago=15) as reader:
        spans = [*part(reader).busy]
        while len(spans) < 6:
            spans += part(reader).busy

    start, end = spans[0].from_us - node.origin_us, spans[-1].to_us - node.origin_us
    assert sum(span.to_us - span.from_us for span in spans) == end - start
    assert work(spans) == pytest.approx(float(integral(CURVE, start, end)), rel=0.01)


def test_before_the_first_reading_nothing_is_told(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a", curve=CURVE))

    with reading(nvml) as reader:
        began_us = reader.until_us
        assert all(span.from_us >= began_us for span in part(reader).busy)


def test_a_gap_in_the_samples_stays_one(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a", curve=CURVE))

    with reading(nvml, seconds_ago=3600) as reader:  # the driver remembers twenty seconds
        (first, *_) = part(reader).busy

    assert now_us() - 21 * SECOND_US < first.from_us


def test_what_nobody_heard_is_told_again(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a", curve=CURVE))

    with reading(nvml, seconds_ago=15) as reader:
        told = part(reader).busy
        again = reader.read(now_us(), again=True).parts[0].busy

    assert again[: len(told)] == told


@pytest.mark.parametrize("set_us", [3600 * SECOND_US, -3600 * SECOND_US])
def test_samples_are_told_in_our_time_though_the_clock_they_are_stamped_by_was_set(
    node: Node, nvml: Nvml, set_us: int
) -> None:
    node.play(Gpu(uuid="GPU-a", curve=[(-9, 60)]))
    begun_us = now_us() - set_us

    with reading(nvml, seconds_ago=set_us / SECOND_US + 5) as reader:
        spans = reader.read(now_us() - set_us).parts[0].busy

    assert begun_us - 5.1 * SECOND_US < spans[0].from_us < begun_us - 4.5 * SECOND_US
    assert begun_us - SECOND_US < spans[-1].to_us <= now_us() - set_us
    assert {span.busy for span in spans} == {600_000}


def test_gpm_integrates_to_the_curve(node: Node, nvml: Nvml) -> None:
    step = (now_us() - node.origin_us) / SECOND_US + 0.15
    curve = [(-9, 80), (step, 20)]
    node.play(Gpu(uuid="GPU-a", curve=curve, samples=False))

    with reading(nvml) as reader:
        spans: list[Span] = [*part(reader).busy]
        assert spans == []
        while not spans or spans[-1].to_us < node.origin_us + (step + 0.1) * SECOND_US:
            seen = part(reader)
            spans += seen.busy

    start, end = spans[0].from_us - node.origin_us, spans[-1].to_us - node.origin_us
    assert seen.source is Source.GPM
    assert sum(span.to_us - span.from_us for span in spans) == end - start
    assert work(spans) == pytest.approx(float(integral(curve, start, end)), rel=0.01)


def test_gpm_samples_are_freed(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a", samples=False))

    with counting(nvml, nvmlGpmSampleAlloc=1, nvmlGpmSampleFree=-1) as lent:
        with reading(nvml) as reader:
            for _ in range(9):
                look(reader)
            assert lent.total == 4, "two for utilisation, two for efficiency"
        assert lent.total == 0


def test_rates_are_taken_for_the_time_since_the_last_reading(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a", curve=[(-9, 45)], gpm=False, faults=RATES))

    with reading(nvml) as reader:
        first = reader.read(100 * SECOND_US).parts[0]
        second = reader.read(101 * SECOND_US).parts[0]
        third = reader.read(103 * SECOND_US).parts[0]
        late = reader.read(107 * SECOND_US).parts[0]

    assert first.source is Source.RATES
    assert (first.busy, late.busy) == ((), ())
    assert second.busy == (Span(100 * SECOND_US, 101 * SECOND_US, 450_000),)
    assert work((*second.busy, *third.busy)) == float(integral([(0, 45)], 0, 3 * SECOND_US))


def test_a_gpu_that_tells_no_utilisation_is_not_idle(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a", gpm=False, faults=NONE))

    with reading(nvml) as reader:
        seen = part(reader)

    assert seen.source is Source.NONE
    assert seen.busy == ()


def test_a_source_that_ends_is_replaced(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a", curve=CURVE))

    with reading(nvml) as reader:
        assert part(reader).source is Source.SAMPLES
        node.play(Gpu(uuid="GPU-a", curve=CURVE, samples=False))
        assert part(reader).source is Source.GPM
