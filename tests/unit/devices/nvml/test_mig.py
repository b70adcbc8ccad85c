from dataclasses import replace

import pytest

from gputally.devices.nvml.gpu_reader import LAYOUT_US
from gputally.devices.nvml.library import Nvml
from gputally.devices.nvml.mig_layout import weight_of
from gputally.model.devices import Source, Span
from gputally.model.rules import MigBasis, Rules
from tests.nvml.script import Fault, Gpu, Mig, Process, integral
from tests.unit.devices.nvml.conftest import Node, now_us
from tests.unit.devices.nvml.readers import SECOND_US, counting, look, reading, work

SMALL = Mig(uuid="MIG-small", index=0, gi=9, curve=[(-9, 12.5)])
LARGE = Mig(
    uuid="MIG-large",
    index=4,
    gi=2,
    profile="3g.40gb",
    gi_slices=3,
    ci_slices=3,
    memory_mib=40448,
    used_mib=300,
    curve=[(-9, 80)],
)
CUT = Gpu(uuid="GPU-a", mig_mode=True, mig=[SMALL, LARGE], processes=[Process(pid=7, gi=2, ci=0, memory_mib=5)])
WHOLE = replace(CUT, mig_mode=False, mig=[])


def test_the_parts_of_a_cut_gpu_are_its_mig_devices(node: Node, nvml: Nvml) -> None:
    node.play(CUT)

    with reading(nvml) as reader:
        seen = look(reader)

    small, large = seen.parts
    assert seen.mig
    assert (small.uuid, small.profile, small.weight, small.gi, small.ci) == ("MIG-small", "1g.10gb", 142_857, 9, 0)
    assert (large.uuid, large.profile, large.weight, large.gi, large.ci) == ("MIG-large", "3g.40gb", 428_571, 2, 0)
    assert (large.memory_used, large.memory_total) == (300 << 20, 40448 << 20)
    assert small.processes == ()
    assert large.processes
    assert [(each.pid, each.memory, each.busy) for each in large.processes] == [(7, 5 << 20, None)]
    assert seen.condition.energy is not None  # of the whole GPU


def test_the_activity_of_each_instance_is_that_of_its_curve(node: Node, nvml: Nvml) -> None:
    step = node.now() + 0.1
    curve = [(-9, 80), (step, 10)]
    node.play(replace(CUT, mig=[SMALL, replace(LARGE, curve=curve)]))

    with reading(nvml) as reader:
        spans: list[Span] = []
        while node.now() < step + 0.25:
            seen = look(reader).parts[1]
            spans += seen.busy

    start, end = spans[0].from_us - node.origin_us, spans[-1].to_us - node.origin_us
    assert seen.source is Source.GPM
    assert work(spans) == pytest.approx(float(integral(curve, start, end)), rel=0.01)


def test_compute_instances_share_what_their_gpu_instance_does(node: Node, nvml: Nvml) -> None:
    third = replace(LARGE, ci_slices=1, profile="1c.3g.40gb")
    node.play(replace(CUT, mig=[third, replace(third, uuid="MIG-b", index=5, ci=1)]))

    with reading(nvml) as reader:
        while not (parts := look(reader).parts)[0].busy:
            pass

    assert parts[0].busy == parts[1].busy
    assert [part.weight for part in parts] == [142_857, 142_857]


def test_without_gpm_the_utilisation_of_a_mig_device_is_not_known(node: Node, nvml: Nvml) -> None:
    node.play(replace(CUT, gpm=False))

    with reading(nvml) as reader:
        seen = look(reader)

    assert [(part.source, part.busy) for part in seen.parts] == [(Source.NONE, ())] * 2


def test_an_instance_that_is_destroyed_is_gone_from_the_same_reading(node: Node, nvml: Nvml) -> None:
    node.play(CUT)

    with reading(nvml) as reader:
        look(reader)
        node.play(replace(CUT, mig=[SMALL]))
        assert [part.uuid for part in look(reader).parts] == ["MIG-small"]


def test_an_instance_that_is_new_is_found_in_ten_seconds(node: Node, nvml: Nvml) -> None:
    node.play(replace(CUT, mig=[SMALL]))

    with reading(nvml) as reader:
        node.play(CUT)
        soon = reader.read(now_us()).parts
        later = reader.read(now_us() + LAYOUT_US).parts

    assert [part.uuid for part in soon] == ["MIG-small"]
    assert [part.uuid for part in later] == ["MIG-small", "MIG-large"]


def test_the_activity_of_an_instance_that_is_made_anew_begins_anew(node: Node, nvml: Nvml) -> None:
    node.play(CUT)

    with reading(nvml) as reader:
        look(reader)
        node.play(replace(CUT, mig=[SMALL]))
        look(reader)
        node.play(CUT)
        found_us = now_us() + LAYOUT_US
        assert reader.read(found_us).parts[1].busy == ()
        spans = reader.read(found_us + SECOND_US).parts[1].busy

    assert spans == (Span(found_us, found_us + SECOND_US, 800_000),)


def test_destroying_an_instance_costs_the_others_no_time(node: Node, nvml: Nvml) -> None:
    node.play(CUT)

    with reading(nvml) as reader:
        spans: list[Span] = []
        while not spans:
            spans += look(reader).parts[0].busy
        node.play(replace(CUT, mig=[SMALL]))
        while len(spans) < 3:
            spans += look(reader).parts[0].busy

    assert sum(span.to_us - span.from_us for span in spans) == spans[-1].to_us - spans[0].from_us


def test_a_gpu_may_be_cut_and_put_together_again(node: Node, nvml: Nvml) -> None:
    node.play(WHOLE)

    with reading(nvml) as reader:
        seen = [look(reader)]
        node.play(CUT)
        seen.append(look(reader))
        node.play(WHOLE)
        seen.append(look(reader))

    assert [[part.uuid for part in each.parts] for each in seen] == [["GPU-a"], ["MIG-small", "MIG-large"], ["GPU-a"]]
    assert [each.mig for each in seen] == [False, True, False]


def test_a_cut_gpu_without_instances_has_no_parts(node: Node, nvml: Nvml) -> None:
    node.play(replace(CUT, mig=[]))

    with reading(nvml) as reader:
        assert look(reader).parts == ()


def test_the_samples_of_all_instances_are_freed(node: Node, nvml: Nvml) -> None:
    node.play(CUT)

    with counting(nvml, nvmlGpmSampleAlloc=1, nvmlGpmSampleFree=-1) as lent:
        with reading(nvml) as reader:
            assert lent.total == 8
            node.play(replace(CUT, mig=[SMALL]))
            look(reader)
            assert lent.total == 4
        assert lent.total == 0


def test_a_device_without_a_telling_name_has_the_profile_of_its_size(node: Node, nvml: Nvml) -> None:
    unnamed = [Fault(function="nvmlDeviceGetName", code=3)]
    part = replace(LARGE, uuid="MIG-part", index=5, ci=1, ci_slices=1, faults=unnamed)
    node.play(replace(CUT, mig=[replace(LARGE, faults=unnamed), part]))

    with reading(nvml) as reader:
        assert [part.profile for part in look(reader).parts] == ["3g.40gb", "1c.3g.40gb"]


@pytest.mark.parametrize(
    ("profile", "model", "weight"),
    [
        ("1g.10gb", "NVIDIA-H100-80GB-HBM3", 142_857),
        ("1g.10gb+me", "NVIDIA A100-SXM4-80GB", 142_857),
        ("7g.80gb", "NVIDIA-H100-80GB-HBM3", 1_000_000),
        ("1c.3g.40gb", "NVIDIA-H100-80GB-HBM3", 142_857),
        ("2g.12gb", "NVIDIA A30", 500_000),
        ("1g.24gb", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 250_000),
    ],
)
def test_a_mig_device_weighs_as_many_compute_slices_as_it_has(profile: str, model: str, weight: int) -> None:
    assert weight_of(profile, model, Rules()) == weight


def test_by_memory_a_mig_device_weighs_its_eighths_of_what_the_driver_tells(node: Node, nvml: Nvml) -> None:
    node.play(CUT)

    with reading(nvml, rules=Rules(mig_basis=MigBasis.MEMORY)) as reader:
        assert [part.weight for part in look(reader).parts] == [125_000, 500_000]
