"""Parameters of a request become a question, and none of them becomes anything else."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.answers.parameters import InvalidRequest
from gputally.model.disruptions import Cause
from gputally.questions.ledger_question import LedgerQuestion
from gputally.questions.preemptions import Preemptions
from gputally.questions.report import Report
from gputally.questions.waits import Waits
from gputally.reports.choices import Filter, literal
from gputally.reports.named_hours import parse_hours
from gputally.web.report_requests import asked, parameter_names

KINDS = (Report, Waits, Preemptions)
Query = dict[str, list[str]]


def test_parameters_become_fields_and_filters() -> None:
    query = {
        "window": ["last-month"],
        "by": ["tier,day"],
        "time_zone": ["Europe/Berlin"],
        "tier": ["high", "low-*"],
        "hours": ["Mon-Fri 8-18", "night=Mon-Sun 22-6"],
        "top": ["5"],
        "offset": ["7"],
    }

    found, limit, offset = asked(Report, query, tenants=None)

    assert found == Report(
        window="last-month",
        by=("tier", "day"),
        time_zone="Europe/Berlin",
        where=(Filter("tier", ("high", "low-*")),),
        hours=(parse_hours("Mon-Fri 8-18"), parse_hours("night=Mon-Sun 22-6")),
        top=5,
        output="json",
    )
    assert (limit, offset) == (1_000, 7)


def test_a_restricted_user_gets_a_limit_beside_the_filters_asked_for() -> None:
    found = asked(Report, {"tenant": ["red"], "format": ["csv"]}, tenants={"blue", "gr*en"}).question

    limit = Filter("tenant", ("blue", "gr[*]en"), is_limit=True)
    assert (found.output, found.filters) == ("csv", (Filter("tenant", ("red",)), limit))


def test_a_user_restricted_to_no_tenant_sees_none() -> None:
    [limit] = asked(Report, {}, tenants=()).question.filters

    assert not any(limit.includes(each) for each in ("", "red", "*"))


@pytest.mark.parametrize("kind", [Waits, Preemptions])
def test_a_restricted_user_sees_of_others_only_the_tier(kind: type[Waits | Preemptions]) -> None:
    assert [asked(kind, {}, tenants=each).question.tiers_only for each in (None, {"blue"})] == [False, True]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"widow": ["7d"]}, "unknown parameter widow; use window, "),
        ({"ledger": ["/etc/passwd"]}, "unknown parameter ledger"),
        ({"history": ["/etc/passwd"]}, "unknown parameter history"),
        ({"only_tenants": ["red"]}, "unknown parameter only_tenants"),
        ({"page": ["true"]}, "unknown parameter page"),
        ({"where": ["tenant=red"]}, "unknown parameter where"),
        ({"output": ["json"]}, "unknown parameter output"),
        ({"window": ["7d", "all"]}, "window is given 2 times; give it once"),
        ({"format": ["xls"]}, "format: 'xls' is not valid; use json, table, markdown, html, csv"),
        ({"format": ["focus"]}, "format: 'focus' is not valid"),
        ({"limit": ["10001"]}, "limit '10001' is not valid; use a number up to 10000"),
        ({"offset": ["-1"]}, "offset '-1' is not valid"),
        ({"waterfall": ["yes"]}, "waterfall: 'yes' is not valid; use true, false"),
        ({"job": ["a\0b"]}, "a parameter contains a NUL character; remove it"),
        ({"window": ["never"]}, "window: 'never' is not a period; use today"),
        ({"compare": ["never"]}, "compare: 'never' is not a period; use today"),
        ({"cut_off": ["noon"]}, "cut_off: 'noon' is not a time; use one such as 2026-10-15T06:00"),
        ({"time_zone": ["Nowhere"]}, "time_zone: unknown time zone 'Nowhere'; use a name such as UTC"),
        ({"time_zone": ["/etc/passwd"]}, "time_zone: unknown time zone '/etc/passwd'"),
        ({"hours": ["Mon-Fri"]}, "hours: 'Mon-Fri' is not valid; use [NAME=]DAYS FROM-TO"),
        (
            {"waterfall": ["true"], "by": ["day"]},
            "waterfall: cannot be divided by day; choose the period with window, or hours with a filter",
        ),
        (
            {"waterfall": ["true"], "compare": ["previous"]},
            "waterfall: cannot be combined with compare; omit one",
        ),
        (
            {"unallocated": ["even"], "node": ["a"]},
            "unallocated: even cannot be combined with node: it ",
        ),
        (
            {"by": ["day"], "compare": ["previous"]},
            "compare: by day, two periods have no rows in common",
        ),
    ],
)
def test_what_cannot_be_served_is_rejected_with_the_remedy(query: Query, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=r".*") as caught:
        asked(Report, query, tenants=None)

    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    "period",
    [
        "today",
        "last-year",
        "12h",
        "99999w",
        "all",
        "2026-Q4",
        "2026-10-31",
        "2026-10-01/",
        "2026-10-01/2026-10-15T06:00",
    ],
)
def test_a_period_is_accepted_whatever_the_ledger_accounts(period: str) -> None:
    query = {"window": [period], "compare": [period], "time_zone": ["Asia/Kathmandu"]}

    assert asked(Report, query, tenants=None).question.window == period


def test_a_waterfall_is_on_or_off() -> None:
    found = [asked(Report, {"waterfall": [each]}, tenants=None).question.waterfall for each in ("true", "false")]

    assert found == [True, False]


def test_unallocated_capacity_is_not_for_a_restricted_user() -> None:
    query = {"unallocated": ["even"]}

    assert asked(Report, query, tenants=None).question.unallocated == "even"
    with pytest.raises(InvalidRequest, match="unallocated: such capacity is no tenant's, and your user is restricted"):
        asked(Report, query, tenants={"blue"})


def test_a_cause_may_be_repeated() -> None:
    found = asked(Preemptions, {"cause": ["eviction", "spot_reclaim"]}, tenants=None).question

    assert found.causes == {Cause.EVICTION, Cause.SPOT_RECLAIM}


names = st.text(alphabet="ab*?[],!]-", max_size=6)


@given(tenants=st.lists(names, min_size=1, max_size=3, unique=True), other=names)
def test_a_restriction_includes_its_tenants_and_no_other(tenants: list[str], other: str) -> None:
    [limit] = asked(Report, {}, tenants=tenants).question.filters

    assert all(limit.includes(tenant) for tenant in tenants)
    assert limit.includes(other) == (other in tenants)


@given(kind=st.sampled_from(KINDS), tenants=st.lists(names, min_size=1, max_size=3), data=st.data())
def test_no_parameter_lifts_the_restriction_of_a_user(
    kind: type[LedgerQuestion], tenants: list[str], data: st.DataObject
) -> None:
    texts = st.lists(
        st.sampled_from(["*", "tenant=*", "true", "true,false", "null", "day", "json", "1"]), min_size=1, max_size=2
    )
    chosen = st.sampled_from((*parameter_names(kind), "only_tenants", "tiers_only", "page", "where"))
    query = data.draw(st.dictionaries(chosen, texts, max_size=4))

    try:
        found = asked(kind, query, tenants=tenants).question
    except InvalidRequest:
        return

    assert found.only_tenants == tuple(sorted(tenants))
    assert found.filters[-1] == Filter("tenant", tuple(sorted(map(literal, tenants))), is_limit=True)
    assert getattr(found, "tiers_only", True)


@given(name=names)
def test_a_literal_pattern_matches_its_text(name: str) -> None:
    assert fnmatchcase(name, literal(name))
