"""Jobs that wait in a queue of Kueue without pods, as its Workloads report them."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.limits import LimitOverflow, NamespaceLimit
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.uncreated.missing_pods import Key, Lacking, Lacks, lacking_of_template
from gputally.frameworks.kueue import KINDS_WITH_PODS, KueueWorkload, is_beyond_quota
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Condition, Object, Owner, controller_of
from gputally.model.rules import Rules
from gputally.model.units import dated_us

_MOST_TEXT: Final = 400
_MOST_QUEUE: Final = 63
_MOST_SETS: Final = 16
"""Pod sets of one workload; the API allows 8, or 10 in later versions."""


class QueueState(Struct, frozen=True, gc=False):
    """Why a queue has not admitted a job, and whether it never can."""

    text: str
    is_never: bool


class Explained(Protocol):
    """Called with a job whose reason in its queue may have changed."""

    def __call__(self, key: Key, *, at_us: int) -> None:
        """Report that the reason of a job may have changed, as observed at `at_us`."""


class QueuedWorkloads(StatePart[Struct]):
    """What each Workload of Kueue lacks that is not admitted, and why.

    Jobs of batch/v1 say themselves what they lack, so only the reason comes from their Workload: `states` are by the
    namespace and UID of the job. Sources: kueue pkg/workload/workload.go, pkg/scheduler/flavorassigner (messages).
    """

    name = "queued_workload"
    kinds = (Kind.KUEUE_WORKLOADS,)

    def __init__(self, lacks: Lacks, explained: Explained, rules: Rules) -> None:
        self.states: dict[Key, QueueState] = {}
        self._lacks = lacks
        self._explained = explained
        self._rules = rules
        self._known: dict[str, tuple[Key, tuple[Key, ...]]] = {}
        """The job of each Workload, by its UID, and what the job lacks."""
        self._uid_of: dict[Key, str] = {}
        """The UID of the Workload of a job."""
        self._limit = NamespaceLimit(Kind.KUEUE_WORKLOADS.limit, self._drop)
        self._now_us = 0

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self._limit.overflow

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if isinstance(found, KueueWorkload):
            self._now_us = at_us
            owner = _owner_of(found)
            if owner and found.is_waiting:
                job = owner.namespace, owner.reference.uid
                lacking = dict(_lacking_of(found, owner, self._rules, at_us=at_us))
                state = _state_of(found.quota_reserved)
                self._replace(found.metadata.uid, job, lacking, state, at_us=at_us)
            else:
                self.gone(found.metadata.uid, at_us=at_us)

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`."""
        if known := self._known.pop(uid, None):
            job, keys = known
            self.states.pop(job, None)
            self._uid_of.pop(job, None)
            for key in (job, *keys):
                self._limit.remove(*key)
            for key in keys:
                self._lacks(key, None, at_us=at_us)
            self._explained(job, at_us=at_us)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._known.keys() - {*uids}:
            self.gone(uid, at_us=at_us)

    def _replace(self, uid: str, job: Key, lacking: Mapping[Key, Lacking], state: QueueState, *, at_us: int) -> None:
        kept = [key for key in tuple(lacking) or (job,) if self._limit.put(*key)]
        if not kept:
            self.gone(uid, at_us=at_us)
            return
        lacking = {key: lacking[key] for key in kept if key in lacking}
        before = self._known.get(uid, (job, ()))[1]
        self._known[uid], self.states[job], self._uid_of[job] = (job, tuple(lacking)), state, uid
        for key in {job, *before} - {*kept}:
            self._limit.remove(*key)
        for key in dict.fromkeys((*before, *lacking)):
            self._lacks(key, lacking.get(key), at_us=at_us)
        self._explained(job, at_us=at_us)

    def _drop(self, namespace: str, key: str) -> None:
        """A pod set of a Workload, or its job, is not kept any more: nor are its others."""
        jobs = ((namespace, key), (namespace, key.rpartition("/")[0]))
        for uid in [self._uid_of[job] for job in jobs if job in self._uid_of]:
            self.gone(uid, at_us=self._now_us)


def _owner_of(found: KueueWorkload) -> Owner | None:
    """The job that waits for the Workload; None if its pods exist."""
    owner = controller_of(found.metadata.owner_references)
    return Owner(found.metadata.namespace, owner) if owner and owner.kind not in KINDS_WITH_PODS else None


def _lacking_of(found: KueueWorkload, owner: Owner, rules: Rules, *, at_us: int) -> Iterator[tuple[Key, Lacking]]:
    """The pods with GPUs that it lacks; an entry for each pod set, as their pods may differ."""
    if (owner.reference.api_version, owner.reference.kind) == ("batch/v1", "Job"):
        return
    waits, uid = found.quota_reserved, owner.reference.uid
    since = (waits.last_transition_time if waits else None) or found.metadata.creation_timestamp
    for each in (found.spec.pod_sets or ())[:_MOST_SETS]:
        lacking = lacking_of_template(owner, each.template, None, each.count, rules)
        if lacking:
            queue = found.spec.queue_name[:_MOST_QUEUE] or "none"
            since_us = dated_us(since, at_us)
            yield (owner.namespace, f"{uid}/{each.name}"), replace(lacking, queue=queue, since_us=since_us)


def _state_of(reserved: Condition | None) -> QueueState:
    if reserved is None:
        return QueueState("", is_never=False)
    if reserved.status == "True":
        return QueueState("its quota is reserved, admission checks are not done", is_never=False)
    return QueueState((reserved.message or "")[:_MOST_TEXT], is_never=is_beyond_quota(reserved))
