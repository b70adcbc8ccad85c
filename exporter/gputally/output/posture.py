"""Writes a posture: who may preempt whom, quotas and findings, as tables, Markdown, HTML or JSON."""

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final, TextIO

from msgspec import Struct, convert, structs, to_builtins

from gputally.formatting.amounts import counted, listed, shortened
from gputally.formatting.html_pages import html_template
from gputally.formatting.tables import markdown, markdown_table, write_document, write_rows
from gputally.model.printable import printable
from gputally.model.units import GPU
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
_WIDTH: Final = 100


class FindingGroup(Struct, frozen=True, kw_only=True):
    """Findings that differ only in their object; `objects` names the first ones, and counts the others."""

    severity: str
    check: str
    objects: str
    what: str
    why: str
    remedy: str


def finding_groups(findings: Iterable[Finding]) -> tuple[FindingGroup, ...]:
    """The groups in the order of their first findings."""
    found = defaultdict[tuple[str, ...], list[ObjectName]](list)
    for each in findings:
        found[each.severity.value, each.check, each.what, each.why, each.remedy].append(each.object)
    return tuple(
        FindingGroup(severity=severity, check=check, objects=_named(objects), what=what, why=why, remedy=remedy)
        for (severity, check, what, why, remedy), objects in found.items()
    )


def _named(objects: list[ObjectName]) -> str:
    return listed(shortened(list(map(str, objects))))


class PostureSection(Struct, frozen=True, kw_only=True):
    """A heading with sentences, a table after them, and findings."""

    title: str
    sentences: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[Cells, ...] = ()
    findings: tuple[FindingGroup, ...] = ()


def sections(posture: Posture) -> Iterator[PostureSection]:
    """All sections in their order."""
    yield _classes(posture)
    yield _preemptions(posture)
    if posture.observed:
        yield _observed(posture.observed)
    if posture.class_changes is not None:
        yield _class_changes(posture.class_changes)
    yield _quotas(posture)
    yield PostureSection(title="Pods without a class", sentences=posture.default.sentences)
    yield _findings(posture)
    if posture.accepted:
        yield PostureSection(
            title="Accepted findings",
            sentences=tuple(f"{each.objects}: {each.check}: {each.what}." for each in finding_groups(posture.accepted)),
        )
    if posture.unchecked or posture.ignored or posture.not_modelled:
        yield PostureSection(
            title="What is not known", sentences=(*map(_unchecked, posture.unchecked), *_ignored(posture))
        )


def summary(posture: Posture) -> str:
    """The number of findings by severity."""
    counts = [
        counted(sum(each.severity == severity for each in posture.findings), severity.value) for severity in Severity
    ]
    infos = counts[-1].removesuffix("s") if counts[-1].endswith("infos") else counts[-1]
    return listed((*counts[:-1], infos))


def _classes(posture: Posture) -> PostureSection:
    if posture.classes is None:
        return PostureSection(title="PriorityClasses", sentences=(f"The PriorityClasses are {UNKNOWN}.",))
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
    return PostureSection(title="PriorityClasses", head=head, rows=rows)


def _preemptions(posture: Posture) -> PostureSection:
    title = "Who may preempt whom"
    if not posture.preemptions:
        why = UNKNOWN if posture.classes is None else "only those of the system"
        return PostureSection(title=title, sentences=(f"The classes are {why}.",))
    names = [each.name for each in posture.preemptions]
    rows = tuple((each.name, *(_permitted(each, name) for name in names)) for each in posture.preemptions)
    note = "Pods of the system's classes may preempt all of them."
    return PostureSection(
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


def _observed(observed: ObservedPreemptions) -> PostureSection:
    by_pair = {(each.preemptor, each.victim): each for each in observed.pairs}
    victims = tuple(dict.fromkeys(each.victim for each in observed.pairs))
    rows = tuple((tier, *(_cell(by_pair[tier, victim]) for victim in victims)) for tier in observed.tiers)
    period = f"{observed.start:%Y-%m-%d %H:%M} to {observed.end:%Y-%m-%d %H:%M} UTC"
    note = f"Preemptions by tier from {period}, and whether values and policies permit them. {FORBIDDEN} marks others."
    return PostureSection(
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


def _class_changes(changes: tuple[ClassChange, ...]) -> PostureSection:
    title = "Changes of PriorityClasses"
    if not changes:
        return PostureSection(title=title, sentences=("No class was created, changed or deleted in that time.",))
    rows = tuple((f"{each.at:%Y-%m-%d %H:%M:%S}", each.name, each.what) for each in changes)
    return PostureSection(title=title, head=("UTC", "class", "change"), rows=rows)


def _quotas(posture: Posture) -> PostureSection:
    title = "GPU quotas by namespace and class"
    if posture.quotas is None:
        return PostureSection(title=title, sentences=(f"The quotas are {UNKNOWN}.", *_capacity(posture)))
    if not posture.quotas:
        return PostureSection(title=title, sentences=("No ResourceQuota limits GPUs.", *_capacity(posture)))
    return PostureSection(
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


def _findings(posture: Posture) -> PostureSection:
    found = f"{summary(posture)}." if posture.findings else "No check has found anything."
    return PostureSection(title="Findings", sentences=(found,), findings=finding_groups(posture.findings))


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


def write_posture(file: TextIO, posture: Posture, *, output: str) -> None:
    """Write the document in this format."""
    if output == "json":
        write_document(file, document_of(posture))
    elif output == "html":
        file.write(
            html_template("gputally.output", "posture.html").render(
                title=TITLE, source=printable(posture.source), sections=_printable(posture)
            )
        )
    elif output == "markdown":
        file.write(f"# {TITLE}\n\n{markdown(posture.source)}: {summary(posture)}.\n")
        for each in _printable(posture):
            file.writelines(_markdown(each))
    else:
        file.write(f"{TITLE} of {printable(posture.source)}: {summary(posture)}\n")
        for each in _printable(posture):
            _write_plain(file, each)


def document_of(posture: Posture) -> dict[str, Any]:
    """The posture for JSON: unknown numbers are null."""
    document: dict[str, Any] = to_builtins(structs.asdict(posture))
    for quota, each in zip(document["quotas"] or (), posture.quotas or (), strict=True):
        del quota["terms"]
        quota["headroom"] = each.headroom
    if posture.capacity:
        document["capacity"]["physical"] = Decimal(gpus(posture.capacity.physical))
    return {"version": VERSION} | document


def _printable(posture: Posture) -> list[PostureSection]:
    """The sections without control characters: what a cluster or a file contains must not control the terminal."""
    return [convert(_clean(to_builtins(each)), PostureSection) for each in sections(posture)]


def _clean(value: Any) -> Any:  # noqa: ANN401 - plain values
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {name: _clean(each) for name, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list | tuple) else value


def _write_plain(file: TextIO, section: PostureSection) -> None:
    file.write(f"\n{section.title}\n\n")
    file.writelines(_wrapped(each, "  ") for each in section.sentences)
    if section.rows:
        file.write("\n" if section.sentences else "")
        write_rows(file, section.head, section.rows, output="table")
    for finding in section.findings:
        name = f"{finding.severity.upper()} {finding.check}: {finding.objects}"
        file.write(f"\n{name}\n")
        file.writelines(_wrapped(f"{label}: {text}", "  ") for label, text in _parts(finding))


def _parts(finding: FindingGroup) -> tuple[tuple[str, str], ...]:
    return ("what", finding.what), ("why", finding.why), ("do", finding.remedy)


def _wrapped(text: str, indent: str) -> str:
    wrapped = textwrap.fill(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=2 * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{wrapped}\n"


def _markdown(section: PostureSection) -> Iterator[str]:
    yield f"\n## {section.title}\n\n"
    for each in section.sentences:
        yield f"- {markdown(each)}\n"
    if section.rows:
        yield "\n" if section.sentences else ""
        yield from markdown_table(section.head, section.rows)
    for finding in section.findings:
        yield f"\n### {finding.severity.capitalize()}: {markdown(finding.objects)}\n\n"
        yield f"`{finding.check}`\n\n"
        for label, text in _parts(finding):
            yield f"- {label}: {markdown(text)}\n"
