"""A posture: who may preempt whom, quotas and findings."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

from msgspec import structs, to_builtins

from gputally.formatting.amounts import counted, listed, shortened
from gputally.model.units import GPU
from gputally.output.answer import Answer, Entry, Section
from gputally.posture.classes import ClassChange
from gputally.posture.document import VERSION, Posture, Unchecked
from gputally.posture.finding import Finding, ObjectName, Severity
from gputally.posture.preemptions import ObservedPreemptions, PermittedPreemptions, TierPair
from gputally.posture.quotas import ScopedQuota

TITLE: Final = "GPU preemption posture"
UNKNOWN: Final = "unknown"
FORBIDDEN: Final = "(!)"
"""Marks preemptions that were observed and are not permitted."""
Cells = tuple[str | int | None, ...]
_FINDING: Final = ("severity", "check", "object", "what", "why", "remedy")


def finding_entries(findings: Iterable[Finding]) -> tuple[Entry, ...]:
    """Findings in order; those that differ only in their object are one, which names the first objects."""
    found = defaultdict[tuple[str, ...], list[ObjectName]](list)
    for each in findings:
        found[each.severity.value, each.check, each.what, each.why, each.remedy].append(each.object)
    return tuple(
        Entry(
            severity=severity,
            rule=check,
            about=_named(objects),
            facts=(("what", what), ("why", why), ("do", remedy)),
        )
        for (severity, check, what, why, remedy), objects in found.items()
    )


def _named(objects: list[ObjectName]) -> str:
    return listed(shortened(list(map(str, objects))))


def sections(posture: Posture) -> Iterator[Section]:
    """All sections in their order."""
    yield _classes(posture)
    yield _preemptions(posture)
    if posture.observed:
        yield _observed(posture.observed)
    if posture.class_changes is not None:
        yield _class_changes(posture.class_changes)
    yield _quotas(posture)
    yield Section(title="Pods without a class", sentences=posture.default.sentences)
    yield _findings(posture)
    if posture.accepted:
        yield Section(
            title="Accepted findings",
            sentences=tuple(
                f"{each.about}: {each.rule}: {each.facts[0][1]}." for each in finding_entries(posture.accepted)
            ),
        )
    if posture.unchecked or posture.ignored or posture.not_modelled:
        yield Section(title="What is not known", sentences=(*map(_unchecked, posture.unchecked), *_ignored(posture)))


def summary(posture: Posture) -> str:
    """The number of findings by severity."""
    counts = [
        counted(sum(each.severity == severity for each in posture.findings), severity.value) for severity in Severity
    ]
    infos = counts[-1].removesuffix("s") if counts[-1].endswith("infos") else counts[-1]
    return listed((*counts[:-1], infos))


def _classes(posture: Posture) -> Section:
    if posture.classes is None:
        return Section(title="PriorityClasses", sentences=(f"The PriorityClasses are {UNKNOWN}.",))
    rows = tuple(
        (
            each.name,
            each.value,
            each.tier,
            each.preemption_policy,
            "yes" if each.global_default else "",
            "system" if each.is_system else "serves users" if each.is_serving else "",
        )
        for each in posture.classes
    )
    head = ("class", "value", "tier", "preemptionPolicy", "globalDefault", "")
    return Section(title="PriorityClasses", head=head if rows else (), rows=rows)


def _preemptions(posture: Posture) -> Section:
    title = "Who may preempt whom"
    if not posture.preemptions:
        why = UNKNOWN if posture.classes is None else "only those of the system"
        return Section(title=title, sentences=(f"The classes are {why}.",))
    names = [each.name for each in posture.preemptions]
    rows = tuple((each.name, *(_permitted(each, name) for name in names)) for each in posture.preemptions)
    note = "Pods of the system's classes may preempt all of them."
    return Section(
        title=title,
        sentences=(*(each.sentence for each in posture.preemptions), note),
        head=("preemptor \\ victim", *names),
        rows=rows,
    )


def _permitted(found: PermittedPreemptions, victim: str) -> str:
    if victim == found.name:
        return ""
    no = "no" if found.policy_exists else "refused"
    return "yes" if victim in found.may_preempt else no


def _observed(observed: ObservedPreemptions) -> Section:
    by_pair = {(each.preemptor, each.victim): each for each in observed.pairs}
    victims = tuple(dict.fromkeys(each.victim for each in observed.pairs))
    rows = tuple((tier, *(_cell(by_pair[tier, victim]) for victim in victims)) for tier in observed.tiers)
    period = f"{observed.start:%Y-%m-%d %H:%M} to {observed.end:%Y-%m-%d %H:%M} UTC"
    note = f"Preemptions by tier from {period}, and whether values and policies permit them. {FORBIDDEN} marks others."
    return Section(
        title="Observed preemptions",
        sentences=(note, *observed.sentences),
        head=("preemptor \\ victim", *victims),
        rows=rows,
    )


def _cell(pair: TierPair) -> str:
    """`12, permitted`; only what the classes say if none was observed."""
    permitted = {True: "permitted", False: "no", None: UNKNOWN}[pair.permitted]
    if pair.is_forbidden:
        return f"{pair.observed}, not permitted {FORBIDDEN}"
    return f"{pair.observed}, {permitted}" if pair.observed else permitted


def _class_changes(changes: tuple[ClassChange, ...]) -> Section:
    title = "Changes of PriorityClasses"
    if not changes:
        return Section(title=title, sentences=("No class was created, changed or deleted in that time.",))
    rows = tuple((f"{each.at:%Y-%m-%d %H:%M:%S}", each.name, each.what) for each in changes)
    return Section(title=title, head=("UTC", "class", "change"), rows=rows)


def _quotas(posture: Posture) -> Section:
    title = "GPU quotas by namespace and class"
    if posture.quotas is None:
        return Section(title=title, sentences=(f"The quotas are {UNKNOWN}.", *_capacity(posture)))
    if not posture.quotas:
        return Section(title=title, sentences=("No ResourceQuota limits GPUs.", *_capacity(posture)))
    return Section(
        title=title,
        sentences=tuple(_capacity(posture)),
        head=("namespace", "quota", "counts pods of", "resource", "hard", "used", "headroom"),
        rows=tuple(map(_quota, posture.quotas)),
    )


def _quota(each: ScopedQuota) -> Cells:
    hard = each.invalid or each.hard
    used, headroom = (UNKNOWN, UNKNOWN) if each.used is None else (each.used, each.headroom)
    return each.namespace, each.name, each.scope, each.resource, hard, used, headroom


def _capacity(posture: Posture) -> Iterator[str]:
    """The capacity, and what the quotas of all namespaces promise of it."""
    capacity = posture.capacity
    if capacity is None:
        yield f"The GPUs of the nodes are {UNKNOWN}."
    else:
        yield f"{counted(capacity.nodes, 'node')} have {gpus(capacity.physical)} physical GPUs."
    for each in posture.sums:
        of = UNKNOWN if each.offered is None else each.offered
        yield f"The quotas of all namespaces allow {each.hard} {each.resource} in sum; the nodes offer: {of}."


def gpus(micro: int) -> str:
    """Physical GPUs without trailing zeros."""
    return f"{(Decimal(micro) / GPU).normalize():f}"


def _findings(posture: Posture) -> Section:
    found = f"{summary(posture)}." if posture.findings else "No check has found anything."
    return Section(title="Findings", sentences=(found,), entries=finding_entries(posture.findings))


def _unchecked(each: Unchecked) -> str:
    text = f"{each.resource}: {each.why}."
    if each.impossible:
        text += f" Not possible without them: {listed(each.impossible)}."
    return f"{text} Incomplete without them: {listed(each.incomplete)}." if each.incomplete else text


def _ignored(posture: Posture) -> Iterator[str]:
    if posture.ignored:
        kinds = [f"{count} {kind}" for kind, count in posture.ignored.items()]
        yield f"Objects of these kinds were not read: {listed(kinds)}."
    if posture.not_modelled:
        names = listed(posture.not_modelled)
        yield f"Pods of these objects were not checked, as their kinds are not modelled: {names}."


def posture_answer(posture: Posture) -> Answer:
    """All sections; CSV has the findings."""
    return Answer(
        title=TITLE,
        about=f"{posture.source}: {summary(posture)}.",
        heading=f"{TITLE} of {posture.source}: {summary(posture)}",
        is_about_apart=True,
        sections=sections(posture),
        columns=_FINDING,
        records=(
            (each.severity.value, each.check, str(each.object), each.what, each.why, each.remedy)
            for each in posture.findings
        ),
        document=lambda: document_of(posture),
    )


def document_of(posture: Posture) -> dict[str, Any]:
    """The posture for JSON: unknown numbers are null."""
    document: dict[str, Any] = to_builtins(structs.asdict(posture))
    for quota, each in zip(document["quotas"] or (), posture.quotas or (), strict=True):
        del quota["terms"]
        quota["headroom"] = each.headroom
    if posture.capacity:
        document["capacity"]["physical"] = Decimal(gpus(posture.capacity.physical))
    return {"version": VERSION} | document
