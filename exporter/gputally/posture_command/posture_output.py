"""Writes a posture as a table for terminals, as Markdown, HTML or JSON."""

import textwrap
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, TextIO

from msgspec import convert, structs, to_builtins

from gputally.files.html_template import html_template
from gputally.ledger_commands.plain_text import markdown, markdown_table, write_document, write_rows
from gputally.model.printable import printable
from gputally.posture.document import VERSION, Posture
from gputally.posture_command.finding_groups import FindingGroup
from gputally.posture_command.posture_sections import TITLE, PostureSection, gpus, sections, summary

_WIDTH: Final = 100


def write_posture(file: TextIO, posture: Posture, *, output: str) -> None:
    """Write the document in this format."""
    if output == "json":
        write_document(file, document_of(posture))
    elif output == "html":
        file.write(
            html_template("gputally.posture_command", "posture.html").render(
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
