"""Jobs count once, with all GPU-time of all their pods, when they have ended and hold no GPUs; so do early ends."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.facts.outcome import outcome_of
from gputally.accounting.totals.total import Total
from gputally.model.units import US_PER_SECOND
from tests.core.manifests import NodeForm, instant
from tests.core.replay import Replay
from tests.property.crashes import with_crashes
from tests.property.early_ends import early_outcome, job_specs, pods_that_end
from tests.property.examples import examples
from tests.property.node_lives import HORIZON, LATEST, OPENED, Draw
from tests.property.strategies import clusters
from tests.property.test_accounting import NO_PRICES, assert_laws, new_replay
from tests.told import Json, Told
from tests.true_ends import own_end
from tests.true_nodes import by_uid
from tests.truth import account

Seconds = Counter[tuple[str, str, str]]
"""Millionths of GPU-seconds by tier, tenant and outcome."""
JOBS = ("j0", "j1")
ENDS = (
    ("Complete", ""),
    *[("Failed", "BackoffLimitExceeded")] * 3,
    ("Failed", "PodFailurePolicy"),
    ("Failed", "DeadlineExceeded"),
)
STEPS = st.sampled_from(["", "", "", "flush", "crash"])


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A cluster whose pods belong to Jobs: `jobs` are their outcomes and last manifests; none if nobody may watch."""

    log: tuple[Told, ...]
    jobs: Mapping[str, tuple[str, Json]]


@st.composite
def workloads(draw: Draw) -> Workload:
    """Each pod belongs to one of two Jobs, or to none; Jobs end, and are deleted, whatever their pods do."""
    cluster = draw(clusters(outages=True, prompt=True))
    owners = {uid: draw(st.sampled_from([*JOBS, ""])) for uid in dict.fromkeys(map(_uid, _pods(cluster.log)))}
    log = tuple(owned(told, owners.get(_uid(told), "")) for told in cluster.log)
    if not draw(st.integers(0, 4)):
        return Workload(log=log, jobs={})
    lives = {name: draw(job_lives(name, log)) for name in JOBS}
    created, later = [life[0] for life in lives.values()], [told for life in lives.values() for told in life[1:]]
    merged = sorted([*log, *later], key=lambda told: told.at)
    return Workload(log=(*created, *merged), jobs={name: outcome_in(life) for name, life in lives.items()})


@st.composite
def job_lives(draw: Draw, name: str, log: Sequence[Told]) -> list[Told]:
    """A Job exists before its pods; it may end, and it may be deleted once all of its pods are bound."""
    spec = draw(job_specs())
    life = [job(name, at=0, spec=spec)]
    if draw(st.booleans()):
        life.append(draw(job_ends(name, spec, between=(1, LATEST))))
    if draw(st.booleans()):
        bound = max((first_bound(told) for told in by_uid(log, "pod") if owner_of(told[0]) == name), default=0)
        at = draw(st.integers(max(bound, life[-1].at), max(bound, LATEST)))
        last = replace(life[-1], at=at, since=at)
        life.append(replace(last, event="gone") if draw(st.booleans()) else replace(last, event="vanished"))
    return life


@st.composite
def job_ends(draw: Draw, name: str, spec: Json, *, between: tuple[int, int]) -> Told:
    """A Job ends with any numbers of successes and failures: what its pods did before nobody may have seen."""
    kind, reason = draw(st.sampled_from(ENDS))
    failed = spec["backoffLimit"] + draw(st.sampled_from([0, 1, 1, 2]))
    counts = {"succeeded": draw(st.integers(0, 3)), "failed": failed}
    return job(name, at=draw(st.integers(*between)), spec=spec, ended=kind, reason=reason, **counts)


@st.composite
def preempted_jobs(draw: Draw) -> Workload:
    """One Job, whose pods end in all ways that matter for how it ended, at any time before or after that."""
    pods = [entry for i in range(draw(st.integers(1, 5))) for entry in draw(pods_that_end(f"p{i}"))]
    spec = draw(job_specs())
    life = [job("j0", at=0, spec=spec), draw(job_ends("j0", spec, between=(OPENED, OPENED + 15)))]
    node = Told(kind="node", event="seen", manifest=NodeForm(name="n1", created=0).manifest(), at=0, since=0)
    log = sorted([*(owned(told, "j0") for told in pods), life[1]], key=lambda told: told.at)
    return Workload(log=(node, life[0], *log), jobs={"j0": outcome_in(life)})


def first_bound(told: Sequence[Told]) -> int:
    """When the pod was first seen with a node; never is after everything."""
    return next((t.at for t in told if t.event != "vanished" and t.manifest["spec"].get("nodeName")), HORIZON - 1)


def job(name: str, *, at: int, spec: Json, ended: str = "", reason: str = "", **counts: int) -> Told:
    end = {"type": ended, "status": "True", "reason": reason, "lastTransitionTime": instant(at)}
    manifest: Json = {
        "metadata": {"name": name, "namespace": "ml", "uid": name, "resourceVersion": "1"},
        "spec": spec,
        "status": {"conditions": [end] if ended else [], **counts},
    }
    return Told(kind="job", event="seen", manifest=manifest, at=at, since=at)


def outcome_in(life: Sequence[Told]) -> tuple[str, Json]:
    """How a Job ended: as its condition says, else by its deletion; with its last manifest."""
    found = "running"
    for told in life:
        for condition in told.manifest["status"]["conditions"]:
            found = {"Complete": "succeeded", "Failed": "failed"}[condition["type"]]
        if found == "running" and told.event != "seen":
            found = {"gone": "deleted", "vanished": "unknown"}[told.event]
    return found, life[-1].manifest


def owned(told: Told, name: str) -> Told:
    if told.kind != "pod" or not name:
        return told
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name, "controller": True}
    meta = {**told.manifest["metadata"], "ownerReferences": [owner]}
    return replace(told, manifest={**told.manifest, "metadata": meta})


def owner_of(told: Told) -> str:
    owners: list[Json] = told.manifest["metadata"]["ownerReferences"]
    return next((str(each["uid"]) for each in owners if each["kind"] == "Job"), "")


def expected(workload: Workload, replay: Replay) -> Seconds:
    """Second by second: Jobs that have ended and hold nothing, and pods of no known Job that have ended."""
    found = Seconds()
    for outcome, time in ended_jobs(workload, replay):
        found.update({(*payer, outcome): amount for payer, amount in time.items()})
    for pod in by_uid(workload.log, "pod"):
        if owner_of(pod[0]) not in workload.jobs and own_end(pod) is not None:
            log = [told for told in workload.log if told.kind == "node" or _uid(told) == _uid(pod[0])]
            outcome = outcome_of(replay.memory.revisions[_uid(pod[0])]).value if held(log, HORIZON) else ""
            found.update({(*payer, outcome): amount for payer, amount in held(log, HORIZON).items()})
    return found


def ended_jobs(workload: Workload, replay: Replay) -> Iterable[tuple[str, Counter[tuple[str, str]]]]:
    """The outcome and the time of each Job that has ended and holds nothing."""
    for name, (by_condition, manifest) in workload.jobs.items():
        log = [told for told in workload.log if told.kind == "node" or owner_of_pod(told) == name]
        if by_condition != "running" and held(log, HORIZON) == held(log, HORIZON + 30):
            outcome = early_outcome(manifest, by_uid(log, "pod"), replay.memory.revisions)
            yield outcome or by_condition, held(log, HORIZON)


def early_ends(workload: Workload, replay: Replay) -> Counter[tuple[str, ...]]:
    """Jobs that ended early, each for who had most of its time."""
    found = Counter[tuple[str, ...]]()
    for outcome, time in ended_jobs(workload, replay):
        if outcome.endswith("_early") and +time:
            payer = max(+time, key=lambda payer: (time[payer], payer))
            found[*payer, outcome] += 1
    return found


def owner_of_pod(told: Told) -> str:
    return owner_of(told) if told.kind == "pod" else ""


def held(log: Sequence[Told], until: int) -> Counter[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for (tier, tenant, *_), amount in account(log, opened=OPENED, until=until, prices=NO_PRICES).allocated.items():
        found[tier, tenant] += amount
    return found


def counted(replay: Replay) -> Seconds:
    found = Seconds()
    for labels, amount in replay.true(Total.JOB, HORIZON).items():
        assert amount % US_PER_SECOND == 0
        found[labels[0], labels[1], labels[2]] = amount // US_PER_SECOND
    return found


@given(workloads(), st.lists(STEPS, min_size=1, max_size=40))
@examples(150)
def test_each_job_counts_once_with_all_time_of_its_pods_over_crashes(workload: Workload, steps: list[str]) -> None:
    replay = new_replay(NO_PRICES)
    for _ in with_crashes(replay, workload.log, partial(next, cycle(steps))):
        pass
    replay.scrape(HORIZON)

    assert counted(replay) == expected(workload, replay)
    assert replay.true(Total.ENDED_EARLY, HORIZON) == early_ends(workload, replay)
    assert_laws(replay)


@given(preempted_jobs(), st.lists(st.sampled_from(["", "flush", "crash"]), min_size=1, max_size=40))
@examples(200)
def test_jobs_that_preemptions_ended_are_recognised_over_crashes(workload: Workload, steps: list[str]) -> None:
    replay = new_replay(NO_PRICES)
    for _ in with_crashes(replay, workload.log, partial(next, cycle(steps))):
        pass
    replay.scrape(HORIZON)

    assert counted(replay) == expected(workload, replay)
    assert replay.true(Total.ENDED_EARLY, HORIZON) == early_ends(workload, replay)


@given(workloads())
@examples(50)
def test_nothing_is_kept_of_jobs_that_are_gone_with_their_pods(workload: Workload) -> None:
    replay = new_replay(NO_PRICES)
    for _ in with_crashes(replay, workload.log, lambda: ""):
        pass
    last = HORIZON + 3600
    for told in [*_last(workload.log, "pod"), *_last(workload.log, "job")]:
        for _ in with_crashes(replay, (replace(told, event="gone", at=last, since=last),), lambda: ""):
            pass
    replay.fleet.advance(replay.fleet.now_us + 26 * 3600 * US_PER_SECOND)

    assert not replay.fleet.jobs._times
    assert not replay.fleet.jobs._jobs


def _last(log: Iterable[Told], kind: str) -> list[Told]:
    """What still exists in the end."""
    last = {_uid(told): told for told in log if told.kind == kind}
    return [told for told in last.values() if told.event == "seen"]


def _pods(log: Iterable[Told]) -> list[Told]:
    return [told for told in log if told.kind == "pod"]


def _uid(told: Told) -> str:
    uid: str = told.manifest["metadata"]["uid"]
    return uid
