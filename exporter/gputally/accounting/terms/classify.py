"""Classifies pods: tier, tenant, model, pool, price asset and quantities."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter

from msgspec.structs import replace

from gputally.accounting.facts.node_history import History, sharing_labels
from gputally.accounting.facts.release import PodNode, released
from gputally.accounting.terms.job import TEMPLATE_HASH
from gputally.accounting.terms.tenant import Namespaces, relevant_labels
from gputally.accounting.terms.tier import tier_labels, tier_of_pod
from gputally.accounting.totals.label_limiter import PodLabels
from gputally.frameworks.all import LABEL_KEYS, queue_of
from gputally.model.allocation import Terms
from gputally.model.disruptions import Preemptor
from gputally.model.history import grown
from gputally.model.kube.meta import Labels
from gputally.model.node_record import NodeFacts
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.shares.request import limited
from gputally.shares.schemes import quantities_on

LimitLabels = Callable[[PodLabels], PodLabels]
"""Maps a pod's labels to the exported ones."""


def kept_labels(labels: Labels | None, rules: Rules) -> tuple[tuple[str, str], ...]:
    """The labels of a pod that any rule reads; no others are stored."""
    if not labels:
        return ()
    keys, found = kept_keys(rules), []
    for each in labels.items():
        if each[0] in keys:
            found.append(each)  # noqa: PERF401 - a comprehension is a further call, at each event
    found.sort()
    return tuple(found)


@lru_cache(maxsize=8)
def kept_keys(rules: Rules) -> frozenset[str]:
    """The label keys of pods that any rule reads."""
    return relevant_labels(rules) | tier_labels(rules) | LABEL_KEYS | {TEMPLATE_HASH}


def terms_of(
    record: PodRecord, facts: NodeFacts, tenant: str, rules: Rules, *, from_us: int, limit: LimitLabels
) -> Terms:
    """The terms of a bound pod from `from_us` on, and how they are exported."""
    terms = Terms(
        from_us=from_us,
        tier=tier_of_pod(record, rules),
        tenant=tenant,
        queue=queue_of(dict(record.labels)) if record.labels else "",
        gpu_model=facts.gpu_model,
        pool=facts.pool,
        asset=facts.asset,
        quantities=quantities_on(record.units, sharing_labels(facts), rules),
    )
    return _exported(terms, limit)


def with_terms(history: Sequence[Terms], terms: Terms, *, amends: bool, limit: LimitLabels) -> Sequence[Terms]:
    """`history` with `terms` at its end if they differ.

    With `amends`, tier, tenant and queue of the last entry were a guess: all entries with that guess get the new ones.
    Of several terms from the same instant, or after a clock was set back, the latest apply.
    """
    if amends:
        guess, known = _whose(history[-1]), {"tier": terms.tier, "tenant": terms.tenant, "queue": terms.queue}
        better = (_exported(replace(each, **known), limit) if _whose(each) == guess else each for each in history)
        history = grown((), 0, better)
    latest = history[-1]
    if replace(terms, from_us=latest.from_us) == latest:
        return history
    return grown(history, bisect_left(history, terms.from_us, key=_from_us), (terms,))


def _exported(terms: Terms, limit: LimitLabels) -> Terms:
    full = terms.tier, terms.tenant, terms.gpu_model
    labels = limit(full)
    shown = None if labels == full else labels
    return terms if terms.shown == shown else replace(terms, shown=shown)


def placed(record: PodRecord, pod_node: PodNode, rules: Rules, *, limit: LimitLabels) -> PodRecord:
    """A bound pod moved to its real node, which existed when it was bound, with that node's influence on its end."""
    if (record.scheduled_us or 0) < pod_node.born_us:  # within a second, see `Lineage.at`
        record = replace(record, scheduled_us=pod_node.born_us)
    if record.node_uid != pod_node.uid:
        record = replace(record, node=pod_node.name, node_uid=pod_node.uid)
        if record.terms:
            record = on_node(record, pod_node.history, rules, since_us=0, limit=limit)
    most = limited(record.units, pod_node.history[-1][1].offered, rules)
    return released(record if most == record.limited else replace(record, limited=most), pod_node.life)


def with_present_terms(  # noqa: PLR0913 - all that terms follow from
    record: PodRecord, history: History, tenant: str, rules: Rules, *, at_us: int, amends: bool, limit: LimitLabels
) -> PodRecord:
    """The bound pod with its present terms: the first ones since its binding, others from `at_us` on.

    `history` is its node's. With `amend`, they apply from the beginning.
    """
    if not record.terms:
        return _with_first_terms(record, history, tenant, rules, limit=limit)
    from_us = max(at_us, record.scheduled_us or 0)
    terms = terms_of(record, history[-1][1], tenant, rules, from_us=from_us, limit=limit)
    return replace(record, terms=with_terms(record.terms, terms, amends=amends, limit=limit))


def relimited(record: PodRecord, *, at_us: int, limit: LimitLabels) -> PodRecord:
    """The pod with newly limited labels from `at_us` on: they may have been evicted since."""
    terms = _exported(replace(record.terms[-1], from_us=max(at_us, record.scheduled_us or 0)), limit)
    return replace(record, terms=with_terms(record.terms, terms, amends=False, limit=limit))


def _with_first_terms(
    record: PodRecord, history: History, tenant: str, rules: Rules, *, limit: LimitLabels
) -> PodRecord:
    start_us = record.scheduled_us or 0
    began = bisect_right(history, start_us, key=itemgetter(0))
    facts = history[max(0, began - 1)][1]
    first = terms_of(record, facts, tenant, rules, from_us=start_us, limit=limit)
    record = replace(record, terms=(first,))
    return record if began == len(history) else on_node(record, history, rules, since_us=start_us, limit=limit)


def on_node(record: PodRecord, history: History, rules: Rules, *, since_us: int, limit: LimitLabels) -> PodRecord:
    """The pod with its node's `history` from `since_us` on; its earlier terms stay."""
    if not record.terms:
        return record
    terms, begin_us = record.terms, max(since_us, record.terms[0].from_us)
    kept = bisect_left(terms, begin_us, key=_from_us)
    changes = history[bisect_left(history, begin_us, key=itemgetter(0)) :]
    fresh: list[Terms] = []
    for cut_us in sorted({begin_us, *(each.from_us for each in terms[kept:]), *(from_us for from_us, _ in changes)}):
        said = terms[max(0, bisect_right(terms, cut_us, key=_from_us) - 1)]
        _, facts = history[max(0, bisect_right(history, cut_us, key=itemgetter(0)) - 1)]
        each = _under(replace(said, from_us=cut_us), record.units, facts, rules)
        each = each if each.gpu_model == said.gpu_model else _exported(each, limit)
        last = fresh[-1] if fresh else terms[kept - 1] if kept else None
        if last is None or replace(last, from_us=cut_us) != each:
            fresh.append(each)
    found = grown(terms, kept, fresh)
    return record if found == terms else replace(record, terms=found)


def _under(terms: Terms, units: tuple[tuple[str, int], ...], facts: NodeFacts, rules: Rules) -> Terms:
    return replace(
        terms,
        gpu_model=facts.gpu_model,
        pool=facts.pool,
        asset=facts.asset,
        quantities=quantities_on(units, sharing_labels(facts), rules),
    )


def _from_us(terms: Terms) -> int:
    return terms.from_us


def _whose(terms: Terms) -> tuple[str, str, str]:
    return terms.tier, terms.tenant, terms.queue


def preemptor_from(record: PodRecord, rules: Rules, namespaces: Namespaces) -> Preemptor:
    """The pod with its present tier and tenant."""
    return Preemptor(
        uid=record.uid,
        namespace=record.namespace,
        name=record.name,
        tier=tier_of_pod(record, rules),
        tenant=namespaces.tenant(record),
        priority=record.priority or 0,
        may_preempt=record.may_preempt,
        class_name=record.class_name,
    )
