"""Random pods, scraped with pauses, imported again: exact where the API has a time, else within the stated error."""

import asyncio
from bisect import bisect_left
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.pods.segments import span_of
from gputally.config.rules_file import default_rules
from gputally.importing.kube_state.history_reader import HistoryReader
from gputally.importing.kube_state.history_scan import scan_history
from gputally.importing.kube_state.prometheus_api import TimeSpan
from gputally.model.allocation import End
from gputally.model.pod import PodRecord
from gputally.model.units import US_PER_SECOND
from tests.fakes.kube_state import KubeState, LifeOfPod
from tests.fakes.prometheus_history import DirectApi, FakePrometheus

START = 1_759_276_800
LENGTH = 3 * 7200
RULES = default_rules()
WINDOW = TimeSpan(START, START + LENGTH)


@st.composite
def lives(draw: st.DrawFn) -> LifeOfPod:
    created = START + draw(st.integers(-3000, LENGTH - 100))
    scheduled = created + draw(st.sampled_from([0, 1, 40, 500]))
    ended = scheduled + draw(st.integers(1, 200) | st.integers(200, 9000))
    phase = draw(st.sampled_from(["Succeeded", "Failed", ""]))
    is_running = draw(st.booleans()) and not phase
    if phase == "Failed" and draw(st.booleans()):
        return draw(rejected_lives(created, scheduled, ended))
    return LifeOfPod(
        uid=draw(st.uuids()).hex,
        gpus=draw(st.integers(1, 8)),
        created=created,
        scheduled=scheduled,
        started=scheduled + draw(st.integers(0, max(0, min(20, ended - scheduled - 1)))),
        ended=None if is_running else ended,
        removed=None if is_running else ended + (draw(st.sampled_from([0, 5, 300, 9000])) if phase else 0),
        phase=phase,
        has_completion=draw(st.booleans()),
    )


@st.composite
def rejected_lives(draw: st.DrawFn, created: int, scheduled: int, ended: int) -> LifeOfPod:
    """Its kubelet rejects the pod at first sight, or after it had accepted it, for instance after a reboot."""
    return LifeOfPod(
        uid=draw(st.uuids()).hex,
        gpus=draw(st.integers(1, 8)),
        created=created,
        scheduled=scheduled,
        accepted=draw(st.sampled_from([ended, scheduled])),
        ended=ended,
        removed=ended + draw(st.sampled_from([5, 300, 9000])),
        phase="Failed",
        reason="UnexpectedAdmissionError",
        has_completion=False,
    )


@st.composite
def scrapes(draw: st.DrawFn) -> list[float]:
    """Two to hundreds of them, with pauses."""
    interval = draw(st.sampled_from([15, 30, 60, 300]))
    phase = draw(st.integers(1, 999 * interval)) / 1000
    times = [START + phase + interval * number for number in range(LENGTH // interval - 1)]
    for _ in range(draw(st.integers(0, 5))):
        begin, length = draw(st.integers(0, LENGTH)), draw(st.sampled_from([100, 1500, 4000]))
        times = [at for at in times if not begin <= at - START < begin + length] or times
    return times


def imported(pods: Sequence[LifeOfPod], times: Sequence[float]) -> dict[str, PodRecord]:
    history = FakePrometheus()
    state = KubeState(history, times)
    for pod in pods:
        state.pod(pod)

    async def read() -> dict[str, PodRecord]:
        api = DirectApi(history)
        scan = await scan_history(api, WINDOW, RULES, str)
        found: dict[str, PodRecord] = {}
        if scan:
            assert scan.window.end_s == times[-1]
            async for batch in HistoryReader(api, RULES, frozenset()).pods(scan, str):
                found |= {each.uid: each for each in batch if isinstance(each, PodRecord)}
        return found

    return asyncio.run(read())


def is_scraped(times: Sequence[float], since: int, until: int | None) -> bool:
    """Whether a scrape is in [since, until)."""
    place = bisect_left(times, since)
    return place < len(times) and (until is None or times[place] < until)


@given(st.lists(lives(), min_size=1, max_size=5), scrapes())
def test_imported_times_are_exact_or_within_the_stated_error(pods: list[LifeOfPod], times: list[float]) -> None:
    found = imported(pods, times)

    for pod in pods:
        assert pod.scheduled is not None
        if pod.accepted is not None:
            check_rejected(pod, found.get(pod.uid), times)
            continue
        assert (pod.uid in found) is is_scraped(times, pod.scheduled, pod.removed)
        if pod.uid in found:
            check(pod, found[pod.uid], times)


def check_rejected(pod: LifeOfPod, record: PodRecord | None, times: Sequence[float]) -> None:
    """It held its GPUs if scrapes showed that it was accepted before, two seconds of clock skew aside."""
    scheduled, accepted, ended = pod.scheduled or 0, pod.accepted or 0, pod.ended or 0
    if record is None or not is_scraped(times, ended, pod.removed):
        return  # no scrape showed it, or it vanished
    assert record.end_by is End.REJECTED
    has_held = span_of(record, None) is not None
    assert not (has_held and accepted == ended)
    if accepted != ended and is_scraped(times, max(scheduled, accepted + 2) + 1, ended):
        assert has_held
        check(pod, record, times)


def check(pod: LifeOfPod, record: PodRecord, times: Sequence[float]) -> None:
    """Compare the record with the truth."""
    assert record.units == (("nvidia.com/gpu", pod.gpus),)
    assert record.scheduled_us == (pod.scheduled or 0) * US_PER_SECOND
    if pod.ended is None or times[-1] < pod.ended:
        assert record.end_us is None
        return
    ended_us = pod.ended * US_PER_SECOND
    assert record.end_us is not None
    if pod.phase and pod.has_completion and is_scraped(times, pod.ended, pod.removed):
        assert (record.end_us, record.gap) == (ended_us, None)
    else:
        error_us = record.gap.to_us - record.gap.from_us if record.gap else 0
        assert record.end_us <= ended_us <= record.end_us + error_us
