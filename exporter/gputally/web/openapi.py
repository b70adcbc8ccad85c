"""The description of the HTTP API in OpenAPI 3.1."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from gputally.answers.allocations import FILTERS
from gputally.answers.at_risk import FILTERS as AT_RISK_FILTERS
from gputally.answers.planned_pods import KIND_NAMES
from gputally.model.api.allocations import AllocationsDocument
from gputally.model.api.at_risk import AtRiskDocument
from gputally.model.api.fits import FitsDocument
from gputally.model.api.paths import (
    ALLOCATIONS_PATH,
    AT_RISK_PATH,
    FITS_PATH,
    PENDING_PATH,
    PREEMPTIONS_PATH,
    REPORT_PATH,
    WAITS_PATH,
    WHAT_IF_PATH,
    WHY_PATH,
)
from gputally.model.api.pending import PendingDocument
from gputally.model.api.what_if import WhatIfDocument
from gputally.model.api.why import WhyDocument
from gputally.questions.fits import Fits
from gputally.questions.ledger_question import LedgerQuestion
from gputally.questions.parameter import Declared, InQuery, Question, declared
from gputally.questions.pending import Pending
from gputally.questions.preemptions import Preemptions
from gputally.questions.report import Report
from gputally.questions.waits import Waits
from gputally.questions.what_if import WhatIfPods
from gputally.questions.why import Why
from gputally.reports.disruptions import PreemptionRow, TierTotal
from gputally.reports.preemption_records import JobPreemptionRow
from gputally.reports.unbilled import MostUnaccounted
from gputally.reports.waits import WaitReportRow
from gputally.web.report_requests import DEFAULT_LIMIT, MAX_LIMIT, filter_names, in_queries, in_query

MEDIA_TYPES: Final = {
    "json": "application/json",
    "csv": "text/csv",
    "markdown": "text/markdown",
    "html": "text/html",
    "table": "text/plain",
}
"""Media types by the values of `format`."""
_TEXT: Final = {"type": "string"}
SCHEMA_REF: Final = "#/components/schemas/{name}"
_TIMES: Final = {
    "type": "object",
    "properties": {end: {"type": "string", "format": "date-time"} for end in ("from", "to")},
}
_REPORT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "version": {"type": "integer", "description": "raised when a field is removed or changes its meaning"},
        "cluster": _TEXT,
        "window": _TIMES,
        "compared_to": {"anyOf": [_TIMES, {"type": "null"}]},
        "accounted": _TIMES,
        "cut_off": {"type": "string", "format": "date-time", "description": "nothing after it counts"},
        "records_from": {
            "type": ["string", "null"],
            "format": "date-time",
            "description": "from when on there are such records: before, nothing is known; null without any",
        },
        "by": {"type": "array", "items": _TEXT},
        "where": {"type": "object"},
        "unmatched": {
            "type": "array",
            "items": _TEXT,
            "description": "of an empty document, the values of filters that no record has: check the spelling",
        },
        "rows": {"type": "array", "items": {"type": "object"}},
        "totals": {"type": "array", "items": {"type": "object"}},
        "unaccounted": {"type": ["array", "null"], "items": {"$ref": SCHEMA_REF.format(name="MostUnaccounted")}},
        "row_count": {"type": "integer", "description": "rows of all pages"},
        "next": {"type": ["string", "null"], "description": "address of the next page"},
    },
}


_OF_REPORTS: Final = ("compared_to", "by", "unaccounted")
_WAIT_ROWS: Final = {"type": "array", "items": {"$ref": SCHEMA_REF.format(name="WaitReportRow")}}
"""Besides, rows have the columns that `by` names instead of `labels`."""
_NOT_FOUND: Final = {"404": {"description": "no such pod with GPUs, as far as the user may know"}}
_OF_MANIFEST: Final = f"A manifest of {KIND_NAMES}, or a List of them, as JSON."


class Described(NamedTuple):
    """More of the API: operations by method, by path, and the types of their documents."""

    paths: Mapping[str, Mapping[str, Any]] = {}
    types: Sequence[type] = ()


NOTHING_MORE: Final = Described()


def openapi(version: str, *, more: Described = NOTHING_MORE) -> dict[str, Any]:
    """The document for this version of the program."""
    allocations, at_risk = map(document_content, ("AllocationsDocument", "AtRiskDocument"))
    return {
        "openapi": "3.1.0",
        "info": {"title": "gputally aggregator", "version": version},
        "paths": {
            ALLOCATIONS_PATH: operation("Who holds or wants which GPUs now.", filter_parameters(FILTERS), allocations),
            AT_RISK_PATH: operation(
                "The work that a preemption would destroy now, by job and by node.",
                filter_parameters(AT_RISK_FILTERS),
                at_risk,
            ),
            REPORT_PATH: _question("GPU-hours and cost of a period.", Report, "Report"),
            PREEMPTIONS_PATH: _question(
                "Pods that were preempted, evicted or lost with their node; other tenants' pods only as tiers.",
                Preemptions,
                "Preemptions",
            ),
            WAITS_PATH: _question(
                "How long pods waited for GPUs, for what and at what cost; other tenants that hold GPUs only as tiers.",
                Waits,
                "Waits",
            ),
            **more.paths,
        },
        "components": {"schemas": _schemas(more)},
    }


def _schemas(more: Described) -> dict[str, Any]:
    """The types of all documents, by name."""
    types = [
        AllocationsDocument,
        AtRiskDocument,
        PreemptionRow,
        JobPreemptionRow,
        TierTotal,
        WaitReportRow,
        MostUnaccounted,
        *more.types,
    ]
    _, components = msgspec.json.schema_components([*types, *more.types], ref_template=SCHEMA_REF)
    found = {name: each for name, each in _REPORT["properties"].items() if name not in _OF_REPORTS}
    for name, kinds in (("rows", ("PreemptionRow", "JobPreemptionRow")), ("totals", ("TierTotal",))):
        found[name] = {"type": "array", "items": {"anyOf": [{"$ref": SCHEMA_REF.format(name=each)} for each in kinds]}}
    waits = _REPORT["properties"] | dict.fromkeys(("rows", "totals"), _WAIT_ROWS)
    waits = {name: each for name, each in waits.items() if name not in ("compared_to", "unaccounted")}
    schemas = components | {"Report": _REPORT, "Preemptions": {"type": "object", "properties": found}}
    schemas["Waits"] = {"type": "object", "properties": waits}
    return schemas


def document_content(name: str) -> dict[str, Any]:
    """The content of a response with a document of the named type."""
    return {"application/json": {"schema": {"$ref": SCHEMA_REF.format(name=name)}}}


def operation(summary: str, parameters: list[dict[str, Any]], content: dict[str, Any]) -> dict[str, Any]:
    """A path that is read by GET."""
    responses = {
        "200": {"description": "the document", "content": content},
        "400": {"description": "a parameter is wrong; the text says how to write it"},
        "429": {"description": "too many requests of this client wait; Retry-After says when to try again"},
        "503": {"description": "cannot be served now; the text says why"},
    }
    return {"get": {"summary": summary, "parameters": parameters, "responses": responses}}


def _question(summary: str, question: type[LedgerQuestion], document: str) -> dict[str, Any]:
    """The path of a question, with the named document as JSON and texts in the other formats."""
    formats = next(each.parameter.query for each in declared(question) if each.name == "output")
    assert formats
    texts = {MEDIA_TYPES[each]: {"schema": _TEXT} for each in formats.choices}
    return operation(summary, question_parameters(question), texts | document_content(document))


def question_parameters(question: type[LedgerQuestion]) -> list[dict[str, Any]]:
    """The parameters of a question: its own, those of the rows to send, and filters."""
    return [
        *map(_described, in_queries(question)),
        parameter("limit", f"rows of a page, up to {MAX_LIMIT} (JSON only)", default=str(DEFAULT_LIMIT)),
        parameter("offset", "rows to skip (JSON only)", default="0"),
        *filter_parameters(filter_names(question)),
    ]


def _described(each: Declared) -> dict[str, Any]:
    """A parameter of a question."""
    own, query = each.parameter, each.parameter.query or InQuery()
    default = "false" if each.is_switch else query.default or each.default_text
    text = query.description or own.help
    text = f"{text}; by default {own.default}" if own.default and not default else text
    found = parameter(in_query(each.name), text, default=default or None)
    if choices := query.choices or own.choices:
        found["schema"] = found["schema"] | {"enum": list(choices)}
    if own.is_repeated:
        found["schema"] = {"type": "array", "items": found["schema"]}
    return found


def parameter(name: str, description: str, *, default: str | None = None) -> dict[str, Any]:
    """A parameter that may be given once."""
    schema = _TEXT if default is None else _TEXT | {"default": default}
    return {"name": name, "in": "query", "description": description, "schema": schema}


def filter_parameters(names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Parameters that may be repeated."""
    return [
        {
            "name": name,
            "in": "query",
            "description": f"only this {name.replace('_', ' ')}; may be repeated",
            "schema": {"type": "array", "items": _TEXT},
        }
        for name in names
    ]


def _plain(summary: str, question: type[Question], document: str) -> dict[str, Any]:
    """The path of a question about now."""
    return operation(summary, [*map(_described, in_queries(question))], document_content(document))


def _why() -> dict[str, Any]:
    summary = "Why a pod waits, or when and why it waited; other tenants' pods only as tier and GPUs."
    found = _plain(summary, Why, "WhyDocument")
    found["get"]["responses"] |= _NOT_FOUND
    return found


def _what_if() -> dict[str, Any]:
    summary = "Whether pods would fit now, where, and whom they would evict. Creates nothing."
    body = {"description": _OF_MANIFEST, "content": {"application/json": {"schema": {"type": "object"}}}}
    posted = operation(summary, [], document_content("WhatIfDocument"))["get"] | {"requestBody": body}
    return _plain(summary, WhatIfPods, "WhatIfDocument") | {"post": posted}


PENDING_DESCRIBED: Final = Described(
    paths={
        PENDING_PATH: _plain(
            "Which pods wait for GPUs, which workloads lack pods, and why.", Pending, "PendingDocument"
        ),
        WHY_PATH: _why(),
        WHAT_IF_PATH: _what_if(),
        FITS_PATH: _plain("What pod sizes fit now, and which free GPUs are stranded.", Fits, "FitsDocument"),
    },
    types=(PendingDocument, WhyDocument, WhatIfDocument, FitsDocument),
)
