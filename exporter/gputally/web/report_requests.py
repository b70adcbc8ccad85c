"""Questions in the query of a request: the names of their parameters, and how their values are read and checked.

Questions to a ledger have filters as well, and parameters that say which rows to send.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

from gputally.answers.parameters import InvalidRequest, expect_known, number, only
from gputally.model.printable import printable
from gputally.process.clock import zone_named
from gputally.questions.ledger_question import LedgerQuestion, globs_of
from gputally.questions.parameter import Declared, InvalidQuestion, Question, declared
from gputally.questions.times import check_times
from gputally.reports.choices import Filter

MAX_LIMIT: Final = 10_000
DEFAULT_LIMIT: Final = 1_000
PAGING: Final = ("limit", "offset")
"""Parameters that say which rows of JSON to send."""
_SWITCH: Final = ("true", "false")
OfLedger = TypeVar("OfLedger", bound=LedgerQuestion)
Plain = TypeVar("Plain", bound=Question)


class Asked(NamedTuple, Generic[OfLedger]):
    """A question, and which rows of its answer to send."""

    question: OfLedger
    limit: int
    offset: int


def asked(
    kind: type[OfLedger],
    query: Mapping[str, Sequence[str]],
    *,
    tenants: Collection[str] | None,
    fields: Mapping[str, Any] = MappingProxyType({}),
) -> Asked[OfLedger]:
    """What a user restricted to `tenants`, None for all, asks with these parameters, and with `fields` that none sets.

    Raises: InvalidRequest.
    """
    expect_known(query, parameter_names(kind))
    found = kind(**dict(_values(in_queries(kind), query)), where=tuple(_filters(kind, query)), **fields)
    try:
        if tenants is not None:
            found = found.restricted_to(tenants)
        found.check()
        check_times(found, zone_named)
    except InvalidQuestion as error:
        raise rejected(error) from None
    paging = {name: only(name, query[name]) for name in PAGING if name in query}
    return Asked(found, number(paging, "limit", DEFAULT_LIMIT, MAX_LIMIT), number(paging, "offset", 0, 10**9))


def plainly_asked(kind: type[Plain], query: Mapping[str, Sequence[str]]) -> Plain:
    """The question with these parameters; empty ones, which forms send too, are none. Raises: InvalidRequest."""
    own = in_queries(kind)
    expect_known(query, [each.name for each in own])
    given = {name: texts for name, values in query.items() if (texts := [each for each in values if each])}
    found = kind(**dict(_values(own, given)))
    try:
        found.check()
    except InvalidQuestion as error:
        raise rejected(error) from None
    return found


def rejected(error: InvalidQuestion) -> InvalidRequest:
    """The answer to a question that is not valid, in words of HTTP."""
    return InvalidRequest(printable(error.spelled(in_query)))


def in_queries(kind: type[Question]) -> list[Declared]:
    """The parameters of a question that requests may have, without its filters by columns."""
    return [each for each in declared(kind) if each.parameter.query and not each.parameter.columns]


def parameter_names(kind: type[LedgerQuestion]) -> tuple[str, ...]:
    """The parameters of a question: its own, those of the rows to send, and a filter by each column."""
    own = [in_query(each.name) for each in in_queries(kind)]
    return (*own, *PAGING, *filter_names(kind))


def filter_names(kind: type[LedgerQuestion]) -> tuple[str, ...]:
    """The columns by which a request may filter; one that is named as another parameter, such as `hours`, is not."""
    parameters = declared(kind)
    taken = {each.name for each in parameters}
    return tuple(name for each in parameters for name in each.parameter.columns if name not in taken)


def in_query(name: str) -> str:
    """The parameter of a request for a field of a question, or for `where node` the parameter `node`."""
    field, _, value = name.partition(" ")
    match field:
        case "where":
            return value or "a filter"
        case "output":
            return f"format {value}".rstrip()
    return name


def _values(parameters: Sequence[Declared], query: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Any]]:
    """The fields that are given, or that have another default than as a flag."""
    for each in parameters:
        name, default = in_query(each.name), each.parameter.query.default if each.parameter.query else ""
        if name in query:
            yield each.field, _value(each, name, query[name])
        elif default:
            yield each.field, default


def _value(each: Declared, name: str, texts: Sequence[str]) -> Any:  # noqa: ANN401 - each parameter has its type
    parameter = each.parameter
    choices = _SWITCH if each.is_switch else parameter.query.choices if parameter.query else ()
    try:
        if parameter.is_repeated:
            return tuple(parameter.value(text) for text in texts)
        found = parameter.value(only(name, texts), choices=choices)
    except InvalidRequest:
        raise
    except ValueError as error:
        raise InvalidRequest(printable(f"{name}: {error}")) from None
    return found == _SWITCH[0] if each.is_switch else found


def _filters(kind: type[LedgerQuestion], query: Mapping[str, Sequence[str]]) -> Iterator[Filter]:
    return (Filter(column, globs_of(",".join(query[column]))) for column in filter_names(kind) if column in query)
