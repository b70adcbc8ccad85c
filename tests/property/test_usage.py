"""Agents are pulled at any time, and die at any time, as the aggregator does: nothing counts twice or is taken back."""

from collections import deque
from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark, UsageReported
from gputally.model.units import GPU, US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import AssignmentReport, GpuHour, GpuReport, Hour, UsageCursor, UsageReport
from tests.core.manifests import us
from tests.core.one_pod import NODE, RUNNING
from tests.core.replay import Replay
from tests.property.examples import examples

AHEAD_US = 7 * US_PER_SECOND
END_S = 5 * 3600
STEPS = ("work", "work", "pull", "pull", "twice", "late", "lost", "swap", "restart", "flush", "scrape", "crash")
JOURNAL_US = 2 * US_PER_HOUR
PODS = ("a", "ghost")
HALF = GPU // 2

Bucket = tuple[str, str, int, int]
"""Epoch, pod, since and hour."""
Amounts = tuple[int, int, int, int]
"""Measured, used, burst, energy."""


@dataclass
class Agent:
    """Two pods hold half a GPU each; each amount is what was ever done in that hour.

    `told` is what each revision had of hours, ends and unallocated energy.
    """

    now_us: int
    lives: int = 1
    since: dict[str, int] = field(default_factory=dict)
    ended: dict[tuple[str, int], int] = field(default_factory=dict)
    hours: dict[Bucket, tuple[int, int, Amounts]] = field(default_factory=dict)
    unallocated: dict[int, int] = field(default_factory=dict)
    told: list[frozenset[object]] = field(default_factory=lambda: [frozenset()])

    @property
    def epoch(self) -> str:
        return f"e{self.lives}"

    def work(self, seconds: int, share: int, joules: int) -> None:
        """Time passes, in which each pod uses so many percent of its half."""
        for _ in range(seconds // 600 + 1):
            span_us = min(seconds, 600) * US_PER_SECOND
            start_us = self.now_us - self.now_us % US_PER_HOUR
            span_us = min(span_us, start_us + US_PER_HOUR - self.now_us)
            self.now_us += span_us
            self.unallocated[start_us] = self.unallocated.get(start_us, 0) + joules
            for pod in PODS:
                since_us = self.since.setdefault(pod, self.now_us - span_us)
                bucket = (self.epoch, pod, since_us, start_us)
                from_us, _, before = self.hours.get(bucket, (self.now_us - span_us, 0, (0, 0, 0, 0)))
                used = span_us * HALF * (share if pod == "a" else min(share, 200 - share)) // 100
                more = (span_us * HALF, used, max(0, used - span_us * HALF), joules)
                amounts = (before[0] + more[0], before[1] + more[1], before[2] + more[2], before[3] + more[3])
                self.hours[bucket] = (from_us, self.now_us, amounts)

    def swap(self) -> None:
        """What held the devices ends, and goes on holding them as something new."""
        self.ended |= dict.fromkeys(self.since.items(), self.now_us)
        self.since = {}

    def restart(self) -> None:
        """All amounts are at 0, and the journal is lost."""
        self.lives += 1
        self.since, self.ended, self.hours, self.unallocated = {}, {}, {}, {}
        self.told = [frozenset()]

    def forget(self) -> None:
        """What is older than the journal is in no report any more."""
        from_us = self.now_us - JOURNAL_US
        self.ended = {key: until_us for key, until_us in self.ended.items() if until_us > from_us}
        kept = self.ended.keys() | set(self.since.items())
        self.hours = {
            bucket: each
            for bucket, each in self.hours.items()
            if bucket[1:3] in kept and bucket[3] + US_PER_HOUR > from_us
        }
        self.unallocated = {
            start_us: each for start_us, each in self.unallocated.items() if start_us + US_PER_HOUR > from_us
        }

    def report(self, cursor: UsageCursor | None = None) -> UsageReport:
        """What changed since the cursor, or everything."""
        self.forget()
        self.told.append(frozenset((*self.hours.items(), *self.ended.items(), *self.unallocated.items())))
        since = cursor.revision if cursor and cursor.epoch == self.epoch else 0
        known = self.told[since]
        gpu_hours = tuple(
            GpuHour(start_us=start_us, energy=energy)
            for start_us, energy in self.unallocated.items()
            if (start_us, energy) not in known
        )
        return UsageReport(
            version=1,
            epoch=self.epoch,
            node="n1",
            now_us=self.now_us,
            watermark_us=self.now_us,
            allocations_us=self.now_us,
            revision=len(self.told) - 1,
            since=since,
            journal_start_us=self.now_us - JOURNAL_US,
            gpus=(GpuReport(uuid="GPU-0", model="A100", source="samples", watermark_us=self.now_us, hours=gpu_hours),),
            assignments=tuple(self._assignments(known)),
        )

    def _assignments(self, known: Container[object]) -> Iterator[AssignmentReport]:
        """The current ones, and those that ended, each with its hours that are not known."""
        hours: dict[tuple[str, int], list[Hour]] = {key: [] for key in self.since.items()}
        hours |= {key: [] for key, until_us in self.ended.items() if (key, until_us) not in known}
        for bucket, (from_us, to_us, (measured, used, burst, energy)) in self.hours.items():
            _, pod, since_us, start_us = bucket
            if (bucket, self.hours[bucket]) not in known:
                hour = Hour(
                    start_us=start_us,
                    from_us=from_us,
                    to_us=to_us,
                    measured=measured,
                    used=used,
                    burst=burst,
                    energy=energy,
                )
                hours.setdefault((pod, since_us), []).append(hour)
        for key, found in hours.items():
            yield self._assignment(*key, tuple(found))

    def _assignment(self, pod: str, since_us: int, hours: tuple[Hour, ...]) -> AssignmentReport:
        return AssignmentReport(
            device=f"GPU-{pod}",
            gpu="GPU-0",
            namespace="ml",
            pod=pod,
            container="main",
            resource="nvidia.com/gpu",
            share=HALF,
            since_us=since_us,
            seen_us=self.now_us,
            until_us=self.ended.get((pod, since_us)),
            hours=hours,
        )


@dataclass
class Known:
    """What was told by each bucket, and what of it no crash can take back any more."""

    held: dict[Bucket, Amounts] = field(default_factory=dict)
    unallocated: dict[tuple[str, int], int] = field(default_factory=dict)

    def copy(self) -> "Known":
        return Known(dict(self.held), dict(self.unallocated))

    def tell(self, agent: Agent) -> None:
        self.held |= {bucket: amounts for bucket, (_, _, amounts) in agent.hours.items()}
        self.unallocated |= {(agent.epoch, start_us): energy for start_us, energy in agent.unallocated.items()}


def a_running_pod() -> Replay:
    """The API has told all there is to tell, of the pod `a` alone."""
    replay = Replay(opened=-3600)
    replay.see(NODE, RUNNING, at=13)
    replay.apply(Bookmark(kind=Kind.PODS, version="9", at_us=us(14), since_us=us(2 * END_S)))
    replay.flush()
    return replay


def pull(replay: Replay, report: UsageReport) -> None:
    replay.apply(UsageReported(report=report, at_us=report.now_us - AHEAD_US))


@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=40), st.data())
@examples(200)
def test_counters_are_the_sum_of_what_was_told_last_of_each_hour_and_never_fall(
    steps: list[str], data: st.DataObject
) -> None:
    replay, agent, known, kept = a_running_pod(), Agent(us(20) + AHEAD_US), Known(), Known()
    asked = deque[UsageCursor | None](maxlen=3)
    for step in steps:
        match step:
            case "work":
                agent.work(*(data.draw(st.integers(1, most)) for most in (3000, 120, 500)))
            case "pull" | "twice" | "late" | "lost":
                asked.append(replay.fleet.usage.cursor("n1"))
                report = agent.report(asked[0] if step == "late" else asked[-1])
                for _ in range({"twice": 2, "lost": 0}.get(step, 1)):
                    known.tell(agent)
                    pull(replay, report)
            case "swap":
                agent.swap()
            case "restart":
                agent.restart()
            case "crash":
                replay.restart()
                known = kept.copy()
                asked.clear()
            case _:
                replay.flush() if step == "flush" else replay.scrape((agent.now_us - us(0)) / US_PER_SECOND)
                kept = known.copy()
        agent.now_us += 1

    assert_counted(replay, known)


def assert_counted(replay: Replay, known: Known) -> None:
    families = (Total.MEASURED, Total.USED, Total.BURST, Total.ENERGY)
    for place, total in enumerate(families):
        counted = replay.true(total, END_S)
        for pod, tier in (("a", "gold"), ("ghost", "unknown")):
            told = sum(amounts[place] for bucket, amounts in known.held.items() if bucket[1] == pod)
            assert counted.get((tier, "ml", "A100"), 0) == told
    assert sum(replay.true(Total.UNALLOCATED_ENERGY, END_S).values()) == sum(known.unallocated.values())
    assert not any(replay.fleet.usage.pending.faults.values())
