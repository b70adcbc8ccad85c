"""Works out the pods that a Job or another workload lacks, from its own object."""

from collections.abc import Collection, Iterator
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.limits import LimitOverflow, NamespaceLimit
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.facts.gpu_model import gpu_model_selected
from gputally.accounting.terms.job import job_of
from gputally.accounting.terms.tenant import relevant_labels
from gputally.accounting.terms.tier import tier_labels
from gputally.errors import MalformedObject
from gputally.frameworks.kueue import QUEUE_LABEL
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Condition, Object, Owner, OwnerReference, controller_of
from gputally.model.kube.pods import Pod, PodTemplate
from gputally.model.kube.workloads import Job, Workload
from gputally.model.needs import Needs
from gputally.model.observation import OwnerResolved
from gputally.model.rules import Rules
from gputally.model.units import dated_us
from gputally.placement.needs import same, selection_of
from gputally.shares.request import effective_units
from gputally.shares.schemes import requested

_MOST_QUEUE: Final = 63
_MOST_NAME: Final = 253
_MOST_LABEL: Final = 63
"""Limits of the API for pods, which it does not check in the templates of a Workload."""
_OVER: Final = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
_JOB_CONTROLLER: Final = "kubernetes.io/job-controller"

Key = tuple[str, str]
"""The namespace and the UID of a workload: tenants choose UIDs."""


class Lacking(Struct, frozen=True, kw_only=True, gc=False):
    """The `pods` pods that `owner` has not created, for the job of `job_kind` and `job`; each of `quantity` µGPU.

    `needs` are what decides on which nodes such a pod could run, None if the template says too much about that.
    `labels` are those of the template that the rules read. `queue` is the queue that has not admitted a suspended Job,
    which waits since `since_us`.
    """

    owner: Owner
    job_kind: str
    job: str
    pods: int
    quantity: int
    class_name: str
    gpu_model: str
    needs: Needs | None = None
    labels: tuple[tuple[str, str], ...]
    queue: str = ""
    since_us: int = 0


def lacking_of_job(job: Job, rules: Rules, *, at_us: int) -> Lacking | None:
    """What a Job lacks; None for one that is over, complete, suspended by its user, or run elsewhere."""
    meta, spec, status = job.metadata, job.spec, job.status
    is_foreign = (spec.managed_by or _JOB_CONTROLLER) != _JOB_CONTROLLER
    if is_foreign or meta.deletion_timestamp or any(_true(job, _OVER)):
        return None
    queue = (meta.labels or {}).get(QUEUE_LABEL, "")
    if spec.suspend and not queue:
        return None
    wanted = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is not None:
        wanted = min(wanted, spec.completions - (status.succeeded or 0))
    pods = wanted - (status.active or 0)
    owner = Owner(meta.namespace, OwnerReference(kind="Job", name=meta.name, uid=meta.uid, api_version="batch/v1"))
    found = lacking_of_template(owner, spec.template, None, pods, rules)
    if found is None or not spec.suspend:
        return found
    times = (each.last_transition_time for each in _true(job, ("Suspended",)))
    since = next((each for each in times if each), meta.creation_timestamp)
    return replace(found, queue=queue[:_MOST_QUEUE], since_us=dated_us(since, at_us))


def lacking_of_workload(owner: Owner, workload: Workload, rules: Rules) -> Lacking | None:
    """What a controller of apps/v1 lacks; None if it has all of its pods, or is being deleted."""
    meta, spec, status = workload.metadata, workload.spec, workload.status
    if meta.deletion_timestamp:
        return None
    if owner.reference.kind == "DaemonSet":
        pods = (status.desired_number_scheduled or 0) - (status.current_number_scheduled or 0)
    else:
        pods = (1 if spec.replicas is None else spec.replicas) - (status.replicas or 0)
    return lacking_of_template(owner, spec.template, controller_of(meta.owner_references), pods, rules)


def lacking_of_template(
    owner: Owner, template: PodTemplate, parent: OwnerReference | None, pods: int, rules: Rules
) -> Lacking | None:
    """What `owner`, controlled by `parent`, lacks if it lacks `pods` of that template; None unless these have GPUs.

    A template that cannot be read lacks none, as no pod comes of it.
    """
    if pods <= 0:
        return None
    pod = Pod(metadata=template.metadata, spec=template.spec)
    try:
        quantity = requested(effective_units(pod, rules), rules)
        needs = selection_of(template, rules) if quantity else None
    except MalformedObject:
        return None
    if not quantity:
        return None
    labels = template.metadata.labels or {}
    resolved = {owner: OwnerResolved(owner=owner, parent=parent, at_us=0)}
    job_kind, job = job_of(owner.reference.name, labels, owner, resolved)
    keys = tier_labels(rules) | relevant_labels(rules)
    return Lacking(
        owner=owner,
        job_kind=job_kind,
        job=job[:_MOST_NAME],
        pods=pods,
        quantity=quantity,
        class_name=template.spec.priority_class_name[:_MOST_NAME],
        gpu_model=gpu_model_selected(template.spec)[:_MOST_NAME],
        needs=same(needs) if needs else None,
        labels=tuple(sorted((key, labels[key][:_MOST_LABEL]) for key in keys & labels.keys())),
    )


def _true(job: Job, types: tuple[str, ...]) -> Iterator[Condition]:
    return (each for each in job.status.conditions or () if each.type in types and each.status == "True")


class Lacks(Protocol):
    """Called with what a workload lacks, None if nothing."""

    def __call__(self, key: Key, lacking: Lacking | None, *, at_us: int) -> None:
        """Report what the workload lacks, as observed at `at_us`."""


class UncreatedJobs(StatePart[Struct]):
    """Passes on what each Job lacks. `listed_us` is when a list of Jobs was first complete, None before."""

    name = "uncreated_job"
    kinds = (Kind.JOBS,)

    def __init__(self, lacks: Lacks, rules: Rules) -> None:
        self.listed_us: int | None = None
        self._lacks = lacks
        self._rules = rules
        self._keys: dict[str, Key] = {}
        """The keys of Jobs that lack pods, by UID."""
        self._limit = NamespaceLimit(Kind.JOBS.limit, lambda _, uid: self.gone(uid, at_us=self._now_us))
        self._now_us = 0

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if isinstance(found, Job):
            meta, lacking = found.metadata, lacking_of_job(found, self._rules, at_us=at_us)
            key = meta.namespace, meta.uid
            self._now_us = at_us
            if lacking and self._limit.put(*key):
                self._keys[meta.uid] = key
            else:
                lacking = None
                self._limit.remove(*key)
                self._keys.pop(meta.uid, None)
            self._lacks(key, lacking, at_us=at_us)

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self._limit.overflow

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`."""
        if key := self._keys.pop(uid, None):
            self._limit.remove(*key)
            self._lacks(key, None, at_us=at_us)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        self.listed_us = at_us if self.listed_us is None else self.listed_us
        for uid in self._keys.keys() - {*uids}:
            self.gone(uid, at_us=at_us)
