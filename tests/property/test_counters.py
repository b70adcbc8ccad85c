"""Counters against the ledger's own segments, group by group, through all that befalls a process and its disk."""

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gputally.accounting.fleet.snapshot import Snapshot, publish
from gputally.accounting.totals.total import LABELS, Total
from gputally.model.kube.kinds import Kind
from gputally.model.kube.workloads import Job
from gputally.model.observation import Deleted, RelistFinished, RelistStarted, Upserted
from gputally.model.rules import Limits, Rules, TenantRule, TenantSource
from gputally.model.units import US_PER_HOUR
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.property.examples import examples

if TYPE_CHECKING:
    from gputally.accounting.changes import Changes

LIMIT = 2
RULES = Rules(
    tenants=(TenantRule(source=TenantSource.POD_LABEL, key="team"),),
    limits=Limits(tenants=LIMIT, gpu_models=LIMIT, pools=LIMIT, idle_hours=24),
)
TEAMS = st.sampled_from("abcd")
PODS = st.sampled_from(["p0", "p1", "p2"])
NODES = ("n1", "n2")
KINDS = st.sampled_from(["A100", "H100", "L4", "T4"])
JOBS = st.sampled_from(["", "j0", "j1"])
ZERO_S = 20
EXAMPLES = examples(150)
HOURS = st.sampled_from([1, 12, 30])


class Books(RuleBasedStateMachine):
    """A small cluster, a process that is killed, a disk that is full at times, and clocks that step."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.replay = Replay(rules=RULES, opened=900, zero=ZERO_S)
        self.known: dict[str, PodForm] = {}
        self.told: dict[str, PodForm] = {}
        """What the API server has, and what of it is in the ledger: a new process is told the rest."""
        self.nodes: dict[str, NodeForm] = {}
        self.version = 10
        self.jobs: dict[str, Job] = {}
        self.unwritten: Changes | None = None
        self.is_full = False
        self.assignments: set[str] = set()
        """Tenants of which a pod was ever bound."""
        self.shown: dict[tuple[str, ...], int] = {}
        self.withheld = defaultdict[tuple[str, ...], set[int]](set)
        """Values as last shown, and as evaluated since, but not shown, since they could not be written; after a crash,
        any of them."""

    @initialize()
    def furnish(self) -> None:
        for name in NODES:
            self.nodes[name] = NodeForm(name=name, uid=f"uid-{name}", created=900, capacity={"nvidia.com/gpu": 8})
            self.replay.see(self.nodes[name], at=950)

    @rule(seconds=st.integers(1, 200))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds / 7

    @rule(name=PODS, team=TEAMS, gpus=st.integers(1, 4), node=st.sampled_from(NODES))
    def a_pod_runs(self, name: str, team: str, gpus: int, node: str) -> None:
        """The usual way, and time for a scrape or two."""
        self.a_pod_waits(name, team, gpus)
        self.it_is_bound(name, node, 0)
        self.it_starts(name, 0)
        self.now += ZERO_S * 2
        self.scrape(0)

    @rule(name=st.sampled_from(NODES), kind=KINDS)
    def a_node_is_another(self, name: str, kind: str) -> None:
        """Another GPU model, in another pool."""
        self.nodes[name] = replace(self.nodes[name], labels={"nvidia.com/gpu.product": kind, "agentpool": kind})
        self.replay.see(self.nodes[name], at=self.now)

    @rule(hours=HOURS)
    def hours_pass(self, hours: int) -> None:
        self.now += hours * 3600
        self.replay.fleet.advance(us(self.now))

    @rule(teams=st.permutations("abcd"), seconds=st.integers(1, 40))
    def work_begins_again(self, teams: list[str], seconds: int) -> None:
        """All rest for longer than a value keeps its room; then more come than there is room for, at short notice."""
        for name in tuple(self.known):
            self.it_is_deleted(name)
        for hours in (1, 30):
            self.hours_pass(hours)
            self.scrape(0)
        for name, team in zip(("p0", "p1", "p2"), teams, strict=False):
            self.a_pod_waits(name, team, 1)
            self.it_is_bound(name, NODES[0], 0)
            self.now += seconds
            self.replay.fleet.advance(us(self.now))

    @rule(name=PODS, team=TEAMS, gpus=st.integers(1, 4), job=JOBS)
    def a_pod_waits(self, name: str, team: str, gpus: int, job: str = "") -> None:
        """Of a Job that is known or not, or of none."""
        if name not in self.known:
            self.version += 1
            form = PodForm(name=name, uid=f"{name}-{self.version}", created=int(self.now), gpus=gpus)
            uid = self.jobs[job].metadata.uid if job in self.jobs else f"{job}-unknown"
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": True}
            self.tell(replace(form, labels={"team": team}, owners=(owner,) if job else ()), name)

    @rule(name=JOBS, condition=st.sampled_from(["Suspended", "Suspended", "Complete", "Failed"]))
    def a_job_goes_on_or_ends(self, name: str, condition: str) -> None:
        self.version += 1
        uid = self.jobs[name].metadata.uid if name in self.jobs else f"{name}-{self.version}"
        meta = {"name": name, "namespace": "ml", "uid": uid}
        status = {"conditions": [{"type": condition, "status": "True"}]}
        self.jobs[name] = msgspec.convert({"metadata": meta, "status": status}, Job)
        self.see_jobs(name)

    @rule(name=JOBS)
    def a_job_is_deleted(self, name: str) -> None:
        if job := self.jobs.pop(name, None):
            self.replay.apply(Deleted(kind=Kind.JOBS, object=job, at_us=us(self.now), since_us=us(self.now)))

    def see_jobs(self, *names: str) -> None:
        at_us = us(self.now)
        for name in names:
            self.replay.apply(Upserted(kind=Kind.JOBS, object=self.jobs[name], at_us=at_us, since_us=at_us))

    @rule(name=PODS, node=st.sampled_from(NODES), late=st.integers(0, 30))
    def it_is_bound(self, name: str, node: str, late: int) -> None:
        if (form := self.known.get(name)) and not form.node:
            self.tell(replace(form, node=node, scheduled=max(form.created, int(self.now) - late)), name)

    @rule(name=PODS, late=st.integers(0, 30))
    def it_starts(self, name: str, late: int) -> None:
        """The start is told late: its time, and that of labels told since, moves from one state to another."""
        if (form := self.known.get(name)) and form.node and form.started is None:
            self.tell(replace(form, started=max(int(form.scheduled or 0), int(self.now) - late)), name)

    @rule(name=PODS, late=st.integers(0, 30))
    def it_is_asked_to_stop(self, name: str, late: int) -> None:
        if (form := self.known.get(name)) and form.node and form.deleted is None:
            self.tell(replace(form, deleted=max(form.created, int(self.now) - late), grace=30), name)

    @rule(name=PODS, team=TEAMS)
    def it_is_relabelled(self, name: str, team: str) -> None:
        if form := self.known.get(name):
            self.tell(replace(form, labels={"team": team}), name)

    @rule(name=PODS, late=st.integers(0, 30))
    def it_finishes(self, name: str, late: int) -> None:
        """The end is told late: what the counters showed meanwhile has to be taken back."""
        if (form := self.known.get(name)) and form.started is not None and form.phase != "Succeeded":
            self.tell(replace(form, phase="Succeeded", finished=max(form.started, int(self.now) - late)), name)

    @rule(name=PODS)
    def it_is_refused(self, name: str) -> None:
        if (form := self.known.get(name)) and form.node and form.started is None:
            self.tell(replace(form, phase="Failed", reason="UnexpectedAdmissionError"), name)

    @rule(name=PODS)
    def it_is_deleted(self, name: str) -> None:
        if form := self.known.pop(name, None):
            self.replay.lose(form, at=self.now)

    @rule(back=st.integers(-40, 40))
    def scrape(self, back: int) -> None:
        """The clock may have stepped. Nobody is shown what could not be written."""
        snapshot = publish(self.replay.fleet, now_us=us(self.now + back), ledger={})
        self.flush()
        if self.unwritten is None:
            self.look_at(snapshot)
        else:
            for row in snapshot.totals[Total.ALLOCATED]:
                self.withheld[row.labels].add(row.value)

    @rule()
    def flush(self) -> None:
        changes = self.replay.fleet.drain()
        self.unwritten = self.unwritten.followed_by(changes) if self.unwritten else changes
        if not self.is_full:
            self.replay.memory.write(self.unwritten)
            self.unwritten = None
            self.told = dict(self.known)

    @rule()
    def the_disk_fills_or_empties(self) -> None:
        self.is_full = not self.is_full

    @rule()
    def kill(self) -> None:
        """A new process starts from the ledger, and is told by a watch that resumes of all that was not kept."""
        before, self.unwritten = self.told, None
        self.replay.restart()
        gone = [form for name, form in before.items() if self.known.get(name, form).uid != form.uid]
        gone += [form for name, form in before.items() if name not in self.known]
        for form in {each.uid: each for each in gone}.values():
            self.replay.lose(form, at=self.now)
        self.replay.see(*self.nodes.values(), *self.known.values(), at=self.now)
        at_us = us(self.now)
        self.replay.apply(RelistStarted(kind=Kind.JOBS, at_us=at_us))
        self.see_jobs(*self.jobs)
        self.replay.apply(RelistFinished(kind=Kind.JOBS, version="1", at_us=at_us, since_us=at_us, as_of_us=at_us))

    @invariant()
    def ended_jobs_and_open_ones_add_up_to_all_that_is_allocated(self) -> None:
        self.replay.fleet.reconcile()
        assert self.replay.in_jobs() == self.replay.in_pods()

    @invariant()
    def every_group_is_what_the_ledger_says(self) -> None:
        """At rest the lines are those of the segments, to the µs·µGPU; of all values, shown or not."""
        self.replay.fleet.reconcile()
        ledger = Counter[tuple[str, ...]]()
        revisions = dict(self.replay.memory.revisions)
        revisions |= self.unwritten.revisions if self.unwritten else {}
        revisions |= self.replay.fleet.pods.handover.revised
        at_us = us(self.now) + 10 * US_PER_HOUR
        for record in revisions.values():
            for each in record.segments:
                end_us = at_us if each.end_us is None else each.end_us
                ledger[each.labels] += each.quantity * (end_us - max(each.start_us, us(900)))
        lines = {labels: series.at(at_us) for labels, series in self.replay.fleet.totals.truth(Total.ALLOCATED)}
        assert {k: v for k, v in lines.items() if v} == {k: v for k, v in ledger.items() if v}

    @invariant()
    def there_are_no_more_tenants_than_allowed_and_none_that_only_waits(self) -> None:
        limiter = self.replay.fleet.limiter
        assert len(limiter.values["tenant"]) <= LIMIT
        assert limiter.values["tenant"].keys() <= self.assignments

    @invariant()
    def nothing_grows_unseen(self) -> None:
        """What gave way is not in use: no series that the next scrape will not have has a slope."""
        exports, fleet = self.replay.fleet.limiter.exports, self.replay.fleet
        fleet.reconcile()
        fleet.nodes.catch_up(at_us=fleet.now_us)
        growing = [key for key, series in fleet.totals.series.items() if series.b]
        assert not [(total, each) for total, each in growing if not all(map(exports, LABELS[total], each))]

    def tell(self, form: PodForm, name: str) -> None:
        self.version += 1
        self.known[name] = replace(form, version=self.version)
        self.assignments |= set(form.labels.values()) if form.node else set()
        self.replay.see(self.known[name], at=self.now)

    def look_at(self, snapshot: Snapshot) -> None:
        """No counter falls, also not one that left and comes back; once shown, none is behind the truth."""
        totals = self.replay.fleet.totals
        for row in snapshot.totals[Total.ALLOCATED]:
            series = totals.series[Total.ALLOCATED, row.labels]
            before = self.shown.get(row.labels, 0)
            assert row.value >= before, f"{row.labels} fell from {before} to {row.value}"
            if series.shown_us is not None and series.shown_us <= snapshot.now_us:
                assert row.value >= series.at(snapshot.now_us)
            else:
                stood = {before, *self.withheld[row.labels]}
                assert row.value in stood, f"{row.labels} went on at {row.value} from {before}"
            self.shown[row.labels] = row.value
            self.withheld[row.labels].clear()
        assert snapshot.differences == {"allocated": 0, "capacity": 0}


Books.TestCase.settings = settings(EXAMPLES, stateful_step_count=50)
TestBooks = Books.TestCase
