"""The whole exposition of a small fleet: two nodes, three tiers, preemptions, a pending pod, and a vanished pod."""

import subprocess
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from gputally.accounting.changes import Saved
from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.fleet.snapshot import Snapshot, publish
from gputally.accounting.prices.book import ALWAYS, Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.accounting.totals.total import RECONCILED
from gputally.catalog.all import FLEET, HEALTH
from gputally.catalog.metric import Metric
from gputally.exposition.text_format import Rows, render
from gputally.model.health import (
    AgentHealth,
    AgentsHealth,
    ClosingHealth,
    DeliveriesHealth,
    Health,
    LedgerHealth,
    WatchHealth,
)
from gputally.model.kube.events import Event
from gputally.model.kube.kinds import OPTIONAL_RESOURCES, Kind
from gputally.model.kube.meta import Namespace, Object
from gputally.model.kube.nodes import Node
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import Pod
from gputally.model.kube.policy import PodDisruptionBudget, PriorityClass, ResourceQuota
from gputally.model.kube.workloads import Job
from gputally.model.observation import Bookmark, Deleted, RelistFinished, RelistStarted, Upserted
from gputally.model.price import Basis
from gputally.model.rules import Rules
from hack import promtool
from tests.conftest import Golden
from tests.core.manifests import (
    GPU_NAME,
    Json,
    NodeForm,
    PodForm,
    as_class,
    as_event,
    as_namespace,
    as_node,
    as_pod,
    instant,
    namespace,
    preempted_event,
    priority_class,
    us,
)
from tests.core.policies import budget, quota
from tests.core.refusals import exceeded, failed_create, parallel_job
from tests.core.usage import assignment, gpu, hour, usage

FORMATS = pytest.mark.parametrize(("openmetrics", "name"), [(False, "fleet.prom"), (True, "fleet.openmetrics")])
TIERS = {"critical": 1000, "normal": 500, "scavenger": 100}
BOOK = PriceBook(
    name="golden",
    currency="USD",
    basis=Basis.NODE,
    source="Invented for this test",
    as_of="2026-07-01",
    digest="0123456789abcdef",
    tiers=(("scavenger", Decimal("0.5")),),
    rules=(
        PriceRule(
            id="h100",
            criteria=(Criterion(trait=Trait.GPU_MODEL, globs=("NVIDIA-H100*",)),),
            prices=(DatedPrice(from_us=ALWAYS, per_gpu_hour=Decimal("3.75")),),
        ),
    ),
)
"""Half price for scavengers; the A100s have no price."""
OWNERS: Mapping[str, tuple[Json, ...]] = {
    "train": ({"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-train", "controller": True},)
}
"""Training is a Job that may not fail once."""
BOUND = {"train": ("scavenger", 8, "n1", 10), "batch": ("normal", 2, "n2", 12), "lab": ("normal", 1, "n2", 14)}
KIND_OF = {
    PlaceablePod: Kind.PODS,
    Node: Kind.NODES,
    Namespace: Kind.NAMESPACES,
    PriorityClass: Kind.PRIORITY_CLASSES,
    Event: Kind.EVENTS,
    Job: Kind.JOBS,
    PodDisruptionBudget: Kind.DISRUPTION_BUDGETS,
    ResourceQuota: Kind.QUOTAS,
}
ALL: tuple[Metric[Any], ...] = (*FLEET, *HEALTH)
HEALTH_NOW = Health(
    version="0.1.0",
    python="3.11.7",
    watches=tuple(
        WatchHealth(
            kind=kind,
            synced=True,
            connected=True,
            available=None if kind in (Kind.PODS, Kind.NODES, Kind.NAMESPACES) else True,
            last_activity_us=us(3590),
            events=3,
            listings=1,
        )
        for kind in Kind
    ),
    ledger=LedgerHealth(last_write_us=us(3599), writes=20, write_us=41_500, checked_us=us(3000)),
    closing=ClosingHealth(periods=2, last_end_us=us(-86_400)),
    deliveries=DeliveriesHealth(results={"delivered": 5, "failed": 2, "rejected": 1}, pending=3),
    agents=AgentsHealth(
        agents={"n1": AgentHealth(reachable=True, watermark_us=us(3598)), "n2": AgentHealth(reachable=False)},
        pulls={"answered": 360, "timeout": 12},
    ),
    skipped={Kind.PODS: 1},
    certificates={"server": lambda: 1_800_000_000, "agents": lambda: None},
)


class Tape:
    """Feeds observations to a fleet, with times in seconds since midnight."""

    def __init__(self) -> None:
        saved = Saved(accounting_start_us=us(0), evaluated_us=us(0), at_us=us(0))
        self.fleet = Fleet(rules=Rules(watched=OPTIONAL_RESOURCES), book=BOOK, saved=saved)

    def seen(self, at: float, *objects: Object, since: float | None = None, kind: Kind | None = None) -> None:
        at_us, since_us = us(at), us(at if since is None else since)
        for each in objects:
            self.fleet.apply(Upserted(kind=kind or KIND_OF[type(each)], object=each, at_us=at_us, since_us=since_us))

    def gone(self, at: float, *pods: Pod) -> None:
        for each in pods:
            self.fleet.apply(Deleted(kind=Kind.PODS, object=each, at_us=us(at), since_us=us(at)))

    def listed(self, at: float, *objects: Object, kind: Kind = Kind.PODS, since: float | None = None) -> None:
        """A list of all objects of a kind; the watch was last complete at `since`, None if it is the first."""
        since_us = None if since is None else us(since)
        self.fleet.apply(RelistStarted(kind=kind, at_us=us(at)))
        self.seen(at, *objects, since=since)
        self.fleet.apply(RelistFinished(kind=kind, version="1000", at_us=us(at), since_us=since_us, as_of_us=us(at)))

    def scrape(self, at: float) -> Snapshot:
        self.fleet.advance(us(at))
        self.fleet.waiting.judge(at_us=us(at))
        return publish(self.fleet, now_us=us(at), ledger=dict.fromkeys(RECONCILED, (0, 0)))


def an_hour() -> Snapshot:
    """The first hour of accounting. A new series is first exposed as 0, so there are earlier scrapes."""
    tape = Tape()
    tape.seen(0, *(as_class(priority_class(tier, value)) for tier, value in TIERS.items()))
    tape.seen(0, *(as_namespace(namespace(name)) for name in ("ml", "serving")))
    tape.seen(0, train(), quota("training", {GPU_NAME: 6}, used={GPU_NAME: 4}, classes=("scavenger",)))
    tape.listed(0, budget(0, labels={"training.kubeflow.org/job-name": "gang"}), kind=Kind.DISRUPTION_BUDGETS)
    tape.listed(0, node("n1", "NVIDIA-H100-80GB-HBM3", 8), node("n2", "NVIDIA-A100-SXM4-80GB", 4), kind=Kind.NODES)
    tape.listed(0)
    for name, (tier, gpus, where, at) in BOUND.items():
        tape.seen(at + 20, pod(name, tier, gpus, node=where, created=5, scheduled=at, started=at + 20))
    tape.scrape(60)

    preempt(tape)
    tape.fleet.apply(Bookmark(kind=Kind.DISRUPTION_BUDGETS, version="600", at_us=us(640), since_us=us(640)))
    preempt_worker(tape)
    waits = pod("wide", "normal", 8, created=900, node_selector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    tape.seen(900, waits)
    measure(tape)
    tape.seen(1190, node("n2", "NVIDIA-A100-SXM4-80GB", 2))  # for ten seconds, it has fewer GPUs than its pods
    tape.seen(1200, node("n2", "NVIDIA-A100-SXM4-80GB", 4, cordoned=True))
    done = pod("batch", "normal", 2, node="n2", created=5, scheduled=12, started=32, finished=1790, phase="Succeeded")
    tape.seen(1790, done)
    tape.scrape(1800)
    tape.listed(2400, done, waits, api(scheduled=630, started=650), since=2300)  # without lab, which has vanished
    tape.scrape(3000)
    measure(tape, at=3590, since=650, used=1200)
    tune = partial(pod, "tune", "scavenger", 1, node="n1", created=3400, scheduled=3401, started=3410, clock=-60)
    tape.seen(3410, tune())
    half = partial(pod, tier="scavenger", gpus=1, labels={"volcano.sh/job-name": "half"}, created=3420)
    tape.seen(3430, half("half-0", node="n2", scheduled=3420, started=3430), half("half-1"))
    tape.seen(3597, tune(marked=3595, deleted=3595))  # it still has its GPU
    tape.seen(3598, pod("pulls", "normal", 1, node="n2", created=3580, scheduled=3598, accepted=3598))
    for name, model, pods in (("sweep", "", 2), ("priced", "NVIDIA-H100-80GB-HBM3", 1)):
        tape.seen(3510, parallel_job(name, gpus=4, tier="scavenger", parallelism=pods, model=model))
        tape.seen(3510, failed_create(exceeded(requested=4, used=4), name=name, at=3510), kind=Kind.FAILED_CREATES)
    unread = partial(failed_create, at=3510, kind="PyTorchJob", apiVersion="kubeflow.org/v1")
    tape.seen(3510, unread(exceeded(requested=2), name="a"), unread("denied", name="b"), kind=Kind.FAILED_CREATES)
    return tape.scrape(3600)


def preempt(tape: Tape) -> None:
    """Serving preempts training for four GPUs: requested at 600, released at 620, after its grace; the Job fails."""
    held = partial(pod, "train", "scavenger", 8, node="n1", created=5, scheduled=10, started=30, marked=600, grace=10)
    tape.seen(590, api())
    tape.seen(600, held(deleted=600))
    victim, preemptor = (PodForm(name=name, uid=f"uid-{name}", node="n1") for name in ("train", "api"))
    tape.seen(600, as_event(preempted_event(victim, by=preemptor)))
    tape.gone(621, held(deleted=600, finished=620, phase="Failed"))
    tape.seen(622, train("Failed"))
    tape.seen(650, api(scheduled=630, started=650))


def train(ended: str = "") -> Job:
    failed = {"type": ended, "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": instant(622)}
    status = {"conditions": [failed], "failed": 1} if ended else {}
    meta = {"name": "train", "namespace": "ml", "uid": "job-train"}
    return msgspec.convert({"metadata": meta, "spec": {"backoffLimit": 0}, "status": status}, Job)


def preempt_worker(tape: Tape) -> None:
    """One of two workers is preempted at 700, released at 710 and replaced at 800; the other waits."""
    form: dict[str, Any] = {
        "labels": {"training.kubeflow.org/job-name": "gang"},
        "annotations": {"gputally.io/last-checkpoint": instant(690)},
        "clock": -60,
    }
    worker = partial(pod, tier="scavenger", gpus=1, node="n1", **form)
    old = partial(worker, created=660, scheduled=670, accepted=670, started=680)
    new = partial(worker, "gang-2", created=705, scheduled=790, accepted=790, started=800)
    tape.seen(690, old("gang-0"), old("gang-1"))
    tape.gone(711, old("gang-1", marked=700, deleted=700, finished=710, phase="Failed"))
    tape.seen(800, new())
    tape.scrape(860)
    tape.gone(880, old("gang-0", finished=880, phase="Succeeded"), new(finished=880, phase="Succeeded"))


def measure(tape: Tape, *, at: float = 1000, since: float = 650, used: float = 100) -> None:
    """One GPU of serving is measured; there is also unattributed usage, and usage of an unknown pod."""
    amounts = hour(since, at, measured=at - since, used=used, burst=used / 10, joules=used * 300)
    serving = assignment(amounts, namespace="serving", pod="api", since=since)
    unknown = assignment(hour(700, 900, measured=200, used=20, joules=9000), pod="ghost", since=700, until=900)
    tape.fleet.apply(Bookmark(kind=Kind.PODS, version="900", at_us=us(at), since_us=us(at)))
    tape.fleet.apply(
        usage(
            serving,
            replace(unknown, device="GPU-1"),
            at=at,
            gpus=(gpu(unattributed=at / 100, joules=at, watermark=at),),
        )
    )


def api(*, scheduled: int | None = None, started: int | None = None) -> Pod:
    """The pod `api`, on a node whose clock is a minute behind."""
    where = "" if scheduled is None else "n1"
    times: dict[str, Any] = {"created": 590, "scheduled": scheduled, "accepted": scheduled, "started": started}
    declared = {"gputally.io/checkpoint-interval": "30m"}
    return pod("api", "critical", 4, namespace="serving", node=where, clock=-60, annotations=declared, **times)


def node(name: str, product: str, gpus: int, *, cordoned: bool = False) -> Node:
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus), "karpenter.sh/nodepool": "gpu"}
    return as_node(NodeForm(name=name, labels=labels, gpus=gpus, cordoned=cordoned))


def pod(name: str, tier: str, gpus: int, **form: Any) -> Pod:  # noqa: ANN401 - any field of a form
    owners, priority = OWNERS.get(name, ()), TIERS[tier]
    return as_pod(PodForm(name=name, uid=f"uid-{name}", tier=tier, priority=priority, gpus=gpus, owners=owners, **form))


def scrape(*, openmetrics: bool) -> bytes:
    """The exposition with sorted rows, because the order of first appearance does not matter."""
    snapshot = an_hour()
    families: list[tuple[Metric[Any], Rows]] = [(metric, metric.rows(snapshot)) for metric in FLEET]
    families += [(metric, metric.rows(HEALTH_NOW)) for metric in HEALTH]
    ordered = ((metric, sorted(rows, key=lambda row: row.labels)) for metric, rows in families)
    return render(ordered, openmetrics=openmetrics)


@FORMATS
def test_the_scrape_of_an_hour_is_as_recorded(golden: Golden, *, openmetrics: bool, name: str) -> None:
    golden.check(name, scrape(openmetrics=openmetrics))


def test_the_reconciliation_differences_of_the_hour_are_zero() -> None:
    assert set(an_hour().differences.values()) == {0}


def test_a_scrape_has_every_metric_of_the_catalog_and_no_other() -> None:
    families = text_string_to_metric_families(scrape(openmetrics=False).decode())

    assert {each.name for each in families if each.samples} == {each.name.removesuffix("_total") for each in ALL}


def test_promtool_finds_no_problem() -> None:
    if (tool := promtool.program()) is None:
        pytest.skip(promtool.REMEDY)
    checked = subprocess.run(
        [tool, "check", "metrics"], input=scrape(openmetrics=False), capture_output=True, check=False
    )

    assert (checked.returncode, checked.stderr.decode()) == (0, "")
