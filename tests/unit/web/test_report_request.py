"""Parameters of `/api/v1/report` become arguments of the command, and none of them becomes anything else."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.answers.parameters import InvalidRequest
from gputally.commands.scope_flags import _limit
from gputally.reports.choices import literal
from gputally.web.report_requests import ReportRequest


def test_parameters_become_flags_and_filters() -> None:
    query = {"window": ["last-month"], "by": ["tier,day"], "time_zone": ["Europe/Berlin"], "tier": ["high", "low-*"]}

    found = ReportRequest.of(query, tenants=None)

    assert found.arguments == (
        "--output=json",
        "--window=last-month",
        "--by=tier,day",
        "--time-zone=Europe/Berlin",
        "--where=tier=high,low-*",
    )
    assert (found.format, found.limit, found.offset) == ("json", 1_000, 0)


def test_a_restricted_user_gets_a_filter_beside_those_asked_for() -> None:
    found = ReportRequest.of({"tenant": ["red"], "format": ["csv"]}, tenants={"blue", "gr*en"})

    assert found.arguments == ("--output=csv", "--where=tenant=red", "--only-tenants=blue,gr[*]en")


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"widow": ["7d"]}, "unknown parameter widow; use window, "),
        ({"ledger": ["/etc/passwd"]}, "unknown parameter ledger"),
        ({"window": ["7d", "all"]}, "window is given 2 times; give it once"),
        ({"format": ["xls"]}, "unknown format 'xls'; use json, csv, markdown, html"),
        ({"limit": ["10001"]}, "limit '10001' is not valid; use a number up to 10000"),
        ({"offset": ["-1"]}, "offset '-1' is not valid"),
        ({"waterfall": ["yes"]}, "waterfall 'yes' is not valid; use true or false"),
        ({"job": ["a\0b"]}, "a parameter contains a NUL character; remove it"),
    ],
)
def test_what_cannot_be_served_is_rejected_with_the_remedy(query: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(InvalidRequest, match=r".*") as caught:
        ReportRequest.of(query, tenants=None)

    assert str(caught.value).startswith(problem)


def test_a_waterfall_is_a_flag_without_value() -> None:
    found = [ReportRequest.of({"waterfall": [each]}, tenants=None).arguments for each in ("true", "false")]

    assert found == [("--output=json", "--waterfall"), ("--output=json",)]


def test_unallocated_capacity_is_not_for_a_restricted_user() -> None:
    query = {"unallocated": ["even"]}

    assert ReportRequest.of(query, tenants=None).arguments == ("--output=json", "--unallocated=even")
    with pytest.raises(InvalidRequest, match="unallocated capacity is no tenant's, and your user is restricted"):
        ReportRequest.of(query, tenants={"blue"})


names = st.text(alphabet="ab*?[],!]-", max_size=6)


@given(tenants=st.lists(names, min_size=1, max_size=3, unique=True), other=names)
def test_a_restriction_includes_its_tenants_and_no_other(tenants: list[str], other: str) -> None:
    [*_, argument] = ReportRequest.of({}, tenants=tenants).arguments
    included = _limit(argument.removeprefix("--only-tenants="))

    assert all(included.includes(tenant) for tenant in tenants)
    assert included.includes(other) == (other in tenants)


@given(name=names)
def test_a_literal_pattern_matches_its_text(name: str) -> None:
    assert fnmatchcase(name, literal(name))
