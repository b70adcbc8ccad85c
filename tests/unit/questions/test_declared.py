"""One declaration of a question yields its flags, its parameters of HTTP, their description and its checks."""

from argparse import ArgumentParser

import pytest
from msgspec import json

from gputally.answers.parameters import InvalidRequest
from gputally.commands.question_flags import add_question_flags
from gputally.commands.question_flags import asked as asked_by_flags
from gputally.model.api.paths import PREEMPTIONS_PATH, REPORT_PATH, WAITS_PATH
from gputally.questions.explain import Explain
from gputally.questions.ledger_question import DECIMALS, LedgerQuestion, top_rows
from gputally.questions.parameter import InvalidQuestion, Parameter, declared
from gputally.questions.preemptions import Preemptions
from gputally.questions.report import Report
from gputally.questions.rerate import Rerate
from gputally.questions.waits import Waits
from gputally.web.openapi import openapi
from gputally.web.report_requests import asked, in_query, parameter_names

SERVED: dict[str, type[Report | Waits | Preemptions]] = {
    REPORT_PATH: Report,
    WAITS_PATH: Waits,
    PREEMPTIONS_PATH: Preemptions,
}
GIVEN = {
    "window": "7d",
    "cut_off": "2026-10-01T06:00",
    "time_zone": "Europe/Berlin",
    "hours": "night=Mon-Sun 22-6",
    "compare": "previous",
    "unallocated": "even",
    "output": "csv",
    "top": "3",
    "cause": "preemption",
}
"""A valid text of each parameter, unless `by` or a switch."""


def parsed(kind: type[LedgerQuestion], *flags: str) -> LedgerQuestion:
    parser = ArgumentParser()
    add_question_flags(parser, kind)
    return asked_by_flags(parser.parse_args(flags), kind)


@pytest.mark.parametrize("kind", SERVED.values())
def test_a_flag_and_a_parameter_of_http_say_the_same(kind: type[Report | Waits | Preemptions]) -> None:
    for each in declared(kind):
        if each.parameter.query is None or each.parameter.columns:
            continue
        text = "true" if each.is_switch else GIVEN.get(each.name, "job" if kind is Preemptions else "tenant,day")
        name = each.name.replace("_", "-")
        flag = f"--{name}" if each.is_switch else f"--{name}={text}"

        by_query = asked(kind, {in_query(each.name): [text], "format": ["csv"]}, tenants=None).question

        assert by_query == parsed(kind, flag, "--output=csv") != kind(output="json"), each.name


@pytest.mark.parametrize("kind", [Report, Waits, Preemptions])
def test_a_filter_by_flag_is_a_parameter_by_its_column(kind: type[Report | Waits | Preemptions]) -> None:
    by_flags = parsed(kind, "--where=tenant=red,b*", "--where=pod=a[,]b", "--output=csv")
    query = {"tenant": ["red", "b*"], "pod": ["a[,]b"], "format": ["csv"]}

    assert asked(kind, query, tenants=None).question == by_flags


@pytest.mark.parametrize("path", SERVED)
def test_the_description_has_each_parameter_that_is_read_and_no_other(path: str) -> None:
    described = {each["name"]: each for each in openapi("1")["paths"][path]["get"]["parameters"]}

    assert set(described) == set(parameter_names(SERVED[path]))
    for name, each in described.items():
        assert each["description"], name
        assert "--" not in each["description"], name
        for default in filter(None, [each["schema"].get("default")]):
            assert asked(SERVED[path], {name: [default]}, tenants=None)


def test_the_description_says_which_values_there_are() -> None:
    described = {each["name"]: each["schema"] for each in openapi("1")["paths"][PREEMPTIONS_PATH]["get"]["parameters"]}

    formats = ["json", "table", "markdown", "html", "csv"]
    assert described["format"] == {"type": "string", "default": "json", "enum": formats}
    assert described["by"]["enum"] == ["pod", "job"]
    assert described["cause"]["type"] == "array"
    assert "eviction" in described["cause"]["items"]["enum"]


@pytest.mark.parametrize(
    ("question", "by_flags", "by_query"),
    [
        (
            Report(waterfall=True, by=("day",)),
            "--waterfall: cannot be divided by day; choose the period with --window, or hours with --where",
            "waterfall: cannot be divided by day; choose the period with window, or hours with a filter",
        ),
        (
            Report(preset="team", by=("job",)),
            "--preset: cannot be combined with --by; omit one of them",
            "preset: cannot be combined with by; omit one of them",
        ),
        (
            Report(compare="previous", output="focus"),
            "--compare: cannot be combined with --output focus; omit one of them",
            "compare: cannot be combined with format focus; omit one of them",
        ),
    ],
)
def test_an_error_has_the_words_of_who_asked(question: Report, by_flags: str, by_query: str) -> None:
    with pytest.raises(InvalidQuestion) as error:
        question.check()

    assert (str(error.value), error.value.spelled(in_query)) == (by_flags, by_query)


def test_what_a_user_wrote_is_never_taken_for_a_name() -> None:
    with pytest.raises(InvalidRequest, match=r"^window: '\{\}' is not a period; use today"):
        asked(Report, {"window": ["{}"]}, tenants=None)


@pytest.mark.parametrize("kind", [Report, Waits, Preemptions, Explain, Rerate])
def test_a_question_is_the_same_after_json(kind: type[LedgerQuestion]) -> None:
    question = parsed(kind, "--where=tenant=a,b", "--hours=Mon-Fri 9-17").restricted_to({"b", "a*"})

    assert json.decode(json.encode(question), type=kind) == question


@pytest.mark.parametrize(
    ("parameter", "remedy"), [(top_rows("largest"), "a number from 1 to 999999999"), (DECIMALS, "a number from 0 to 9")]
)
@pytest.mark.parametrize("digits", [10, 5000])
def test_a_number_of_too_many_digits_is_rejected_as_any_other(parameter: Parameter, remedy: str, digits: int) -> None:
    with pytest.raises(ValueError, match=f"^'9{{{min(digits, 40)}}}' is not valid; use {remedy}$"):
        parameter.value("9" * digits)
