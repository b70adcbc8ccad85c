"""Under which terms a pod holds its GPUs: tier, tenant, model, pool, price asset and quantities."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from gputally.accounting.admission import OTHER
from gputally.accounting.job import JOB_LABEL_KEYS
from gputally.accounting.node import quantities_on
from gputally.accounting.release import Home, released
from gputally.accounting.request import Units, limited
from gputally.accounting.tenant import relevant_labels
from gputally.accounting.tier import tier_of
from gputally.model.allocation import Segment, Terms
from gputally.model.history import grown
from gputally.model.kube import Labels
from gputally.model.node import NodeFacts
from gputally.model.pod import PodRecord
from gputally.model.rules import Rules

Admit = Callable[[str, str], str]
"""How the value of a label is exported."""
_QUEUE_LABELS = (
    "kueue.x-k8s.io/local-queue-name",
    "kueue.x-k8s.io/queue-name",
    "volcano.sh/queue-name",
    "kai.scheduler/queue",
)


def kept_labels(labels: Labels | None, rules: Rules) -> tuple[tuple[str, str], ...]:
    """The labels of a pod that anything here looks at, which is all that is remembered of them."""
    if not labels:
        return ()
    wanted = _wanted_keys(rules)
    return tuple(sorted((key, value) for key, value in labels.items() if key in wanted))


@lru_cache(maxsize=8)
def _wanted_keys(rules: Rules) -> frozenset[str]:
    return relevant_labels(rules) | JOB_LABEL_KEYS | frozenset(_QUEUE_LABELS)


def terms_of(record: PodRecord, facts: NodeFacts, tenant: str, rules: Rules, *, from_us: int, admit: Admit) -> Terms:
    """What applies to the bound pod from `from_us` on, and how it is exported from then on."""
    terms = Terms(
        from_us=from_us,
        tier=tier_of(record.class_name, record.priority, rules),
        tenant=tenant,
        queue=queue_of(dict(record.labels)) if record.labels else "",
        gpu_model=facts.gpu_model,
        pool=facts.pool,
        asset=facts.asset,
        quantities=quantities_on(record.units, facts.sharing, rules),
    )
    return _exported(terms, admit)


def with_terms(history: Sequence[Terms], terms: Terms, *, since_us: int, amends: bool) -> Sequence[Terms]:
    """`history` with `terms` at its end, if they say anything new; the first ones hold from the binding on.

    Of terms from one instant on the last count, and should a clock have been set back, those told last.
    """
    if not history:
        return (replace(terms, from_us=since_us),)
    if amends:
        return grown(history, len(history) - 1, (replace(terms, from_us=history[-1].from_us),))
    latest = history[-1]
    if replace(terms, from_us=latest.from_us) == latest:
        return history
    return grown(history, bisect_left(history, terms.from_us, key=lambda each: each.from_us), (terms,))


def _exported(terms: Terms, admit: Admit) -> Terms:
    labels = admit("tier", terms.tier), admit("tenant", terms.tenant), admit("gpu_model", terms.gpu_model)
    return replace(terms, shown=labels if OTHER in labels else None)


def as_posted(record: PodRecord) -> Sequence[Terms]:
    """The terms of a pod as an earlier process posted them; an earlier version did not keep how they were exported."""
    if not any(OTHER in segment.labels for segment in record.segments):
        return record.terms
    posted = (replace(terms, shown=terms.shown or _posted_as(terms, record.segments)) for terms in record.terms)
    return grown((), 0, posted)


def _posted_as(terms: Terms, segments: Sequence[Segment]) -> tuple[str, str, str] | None:
    for index in range(bisect_left(segments, terms.from_us, key=lambda each: each.start_us), len(segments)):
        segment = segments[index]
        if (segment.tier, segment.tenant, segment.gpu_model) == (terms.tier, terms.tenant, terms.gpu_model):
            return segment.labels[:3] if OTHER in segment.labels else None
    return None


def placed(record: PodRecord, home: Home, rules: Rules, *, admit: Admit) -> PodRecord:
    """A bound pod on its node, as if it had not been thought to be on another, with what the node says to its end."""
    if record.node_uid != home.uid:
        terms = tuple(_moved(each, record.units, home.facts, rules, admit=admit) for each in record.terms)
        record = replace(record, node=home.name, node_uid=home.uid, terms=terms)
    return released(replace(record, limited=limited(record.units, home.facts.offered)), home.life)


def _moved(terms: Terms, units: Units, facts: NodeFacts, rules: Rules, *, admit: Admit) -> Terms:
    terms = replace(
        terms,
        gpu_model=facts.gpu_model,
        pool=facts.pool,
        asset=facts.asset,
        quantities=quantities_on(units, facts.sharing, rules),
    )
    return _exported(terms, admit)


def queue_of(labels: Mapping[str, str]) -> str:
    """The queue by the label of Kueue, Volcano or KAI; "" without one."""
    return next((labels[key] for key in _QUEUE_LABELS if labels.get(key)), "")
