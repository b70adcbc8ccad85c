"""An agent that lies moves nothing of other nodes, and adds no more than the GPUs of its own can have done."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gputally.accounting.totals.total import Total
from gputally.accounting.usage.bounds import KEPT_US
from gputally.aggregator.agent_client import implausible
from gputally.model.devices import MOST_POWER
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark, UsageReported
from gputally.model.units import GPU, US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import AssignmentReport, GpuHour, GpuReport, Hour, UsageReport
from tests.core.manifests import us
from tests.core.one_pod import NODE, RUNNING
from tests.core.replay import Replay
from tests.core.usage import assignment
from tests.property.examples import examples

END_S = 5 * 3600
AMOUNTS = st.sampled_from((0, 1, GPU * US_PER_SECOND, GPU * US_PER_HOUR, 4 * 10**18))
STARTS = st.sampled_from((us(0), us(0) - US_PER_HOUR, us(0) - 1000 * US_PER_HOUR, us(0) + 1, us(10 * END_S), us(3600)))


@st.composite
def shrewd(draw: st.DrawFn, now_us: int) -> UsageReport:
    """In a life of its own: all that some GPUs can have done in as many hours as any agent remembers."""
    ages = range(draw(st.integers(1, 73)))
    hours = tuple(as_much_as_can_be(us(0) - age * US_PER_HOUR, now_us) for age in ages)
    names = [f"GPU-{number}" for number in range(draw(st.integers(1, 3)))]
    pod, uid = draw(st.sampled_from((("a", ""), ("a", "uid-b"), ("b", ""), ("b", "uid-b"), ("ghost", ""))))
    assignments = tuple(assignment(*hours, pod=pod, since=12, pod_uid=uid, device=name, gpu=name) for name in names)
    return lie(epoch=str(draw(st.uuids())), now_us=now_us, assignments=assignments)


def as_much_as_can_be(start_us: int, now_us: int) -> Hour:
    """An hour in which a GPU did all it can."""
    to_us = min(now_us, start_us + US_PER_HOUR)
    most = GPU * (to_us - start_us)
    energy = MOST_POWER * (to_us - start_us) // US_PER_SECOND
    return Hour(start_us=start_us, from_us=start_us, to_us=to_us, measured=most, used=most, energy=energy)


@st.composite
def wild(draw: st.DrawFn, now_us: int) -> UsageReport:
    """Anything that can be decoded: amounts, times, names and UIDs, of this node's pods and of others'."""
    times = st.sampled_from((0, us(0), us(12), us(20), now_us, now_us + 1, us(10 * END_S), 1 << 61))
    gpu_hours = st.builds(GpuHour, start_us=STARTS, unattributed=AMOUNTS, energy=AMOUNTS)
    hours = tuple(draw(st.lists(gpu_hours, max_size=3)))
    told = lie(
        epoch=draw(st.sampled_from(("h1", "h2")) | st.uuids().map(str)),
        now_us=now_us + draw(st.sampled_from((0, 0, US_PER_HOUR, -US_PER_HOUR, 1 << 60))),
        gpus=(GpuReport(uuid="GPU-0", model="A100", source="samples", watermark_us=draw(times), hours=hours),),
        assignments=tuple(draw(st.lists(wild_assignments(times), min_size=1, max_size=5))),
    )
    return structs.replace(
        told,
        revision=draw(st.integers(0, 2)),
        since=draw(st.sampled_from((0, 0, 1, 2))),
        journal_start_us=draw(times),
    )


def wild_assignments(times: st.SearchStrategy[int]) -> st.SearchStrategy[AssignmentReport]:
    amounts = dict.fromkeys(("measured", "used", "burst", "memory", "memory_us", "energy"), AMOUNTS)
    hours = st.builds(Hour, start_us=STARTS, from_us=times, to_us=times, **amounts)
    return st.builds(
        AssignmentReport,
        device=st.sampled_from(("GPU-a", "GPU-0", "")),
        gpu=st.sampled_from(("GPU-0", "GPU-1", "")),
        namespace=st.sampled_from(("ml", "nowhere")),
        pod=st.sampled_from(("a", "b", "ghost")),
        container=st.just("main"),
        resource=st.just("nvidia.com/gpu"),
        share=st.just(GPU) | AMOUNTS,
        since_us=st.just(us(12)) | times,
        seen_us=st.just(us(20)) | times,
        until_us=st.none() | times,
        pod_uid=st.sampled_from(("", "uid-a", "uid-b")),
        hours=st.lists(hours, max_size=3).map(tuple),
    )


def lie(
    *, epoch: str, now_us: int, assignments: tuple[AssignmentReport, ...], gpus: tuple[GpuReport, ...] = ()
) -> UsageReport:
    return UsageReport(
        version=1,
        epoch=epoch,
        node="n1",
        now_us=now_us,
        watermark_us=now_us,
        assignments=assignments,
        gpus=gpus,
    )


@given(st.lists(st.sampled_from(("work", "pull", *("lie",) * 6, "restart", "flush")), max_size=40), st.data())
@examples(100)
def test_an_agent_that_lies_moves_nothing_of_other_nodes_and_adds_no_more_than_its_own_can_have_done(
    steps: list[str], data: st.DataObject
) -> None:
    replay = Replay(opened=-100 * 3600)
    replay.see(replace(NODE, gpus=1), RUNNING, at=13)
    replay.apply(Bookmark(kind=Kind.PODS, version="9", at_us=us(14), since_us=us(2 * END_S)))
    replay.see(replace(NODE, name="n2"), replace(RUNNING, name="b", node="n2", tier="silver"), at=14)
    replay.flush()
    honest, now_us = 0, us(20)
    for step in steps:
        match step:
            case "work":
                now_us += 600 * US_PER_SECOND
            case "pull":
                honest = min(now_us, us(3599)) - us(12)
                replay.apply(honest_usage(honest, now_us))
            case "lie":
                report = data.draw(shrewd(now_us) | wild(now_us))
                if not implausible(report):
                    replay.apply(UsageReported(report=report, at_us=now_us))
            case "restart":
                replay.flush()
                replay.restart()
            case _:
                replay.flush()

    elapsed_us = now_us - us(20) + (1 + steps.count("restart")) * KEPT_US
    for total in (Total.MEASURED, Total.USED):
        counted = replay.true(total, END_S)
        assert counted.pop(("silver", "ml", "A100"), 0) == (honest * GPU if total is Total.MEASURED else 0)
        assert sum(counted.values()) <= GPU * elapsed_us
    assert sum(replay.true(Total.ENERGY, END_S).values()) <= MOST_POWER * elapsed_us // US_PER_SECOND
    assert {labels[1] for labels in replay.true(Total.MEASURED, END_S)} <= {"ml", "unassigned"}


def honest_usage(measured_us: int, now_us: int) -> UsageReported:
    """The agent of n2, of whose pod the first hour is known."""
    hour = Hour(start_us=us(0), from_us=us(12), to_us=us(12) + measured_us, measured=measured_us * GPU)
    told = assignment(hour, pod="b", since=12, pod_uid="uid-b")
    return UsageReported(
        report=UsageReport(
            version=1,
            epoch="n2",
            node="n2",
            now_us=now_us,
            watermark_us=now_us,
            allocations_us=now_us,
            assignments=(told,),
        ),
        at_us=now_us,
    )
