"""The flags of a question, and the question of the parsed flags."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from gputally.errors import Problem
from gputally.questions.parameter import Declared, Parameter, Question, declared, flag

Asked = TypeVar("Asked", bound=Question)

PERIODS: Final = """\
A period is one of
  today, yesterday, week, last-week, month, last-month, year, last-year, all
  12h, 7d, 4w                   the last hours, days or weeks
  2026, 2026-Q4, 2026-10, 2026-10-31   a year, quarter, month or day
  2026-10-01/2026-10-15T06:00   from and to; 2026-10-01/ is up to now
"""
"""What --window accepts, for people."""


class TakesFlags(Protocol):
    """A command, or a group of its flags."""

    def add_argument(self, *names: str, **how: Any) -> Any:  # noqa: ANN401 - as argparse has it
        """Add a flag."""


def add_question_flags(command: TakesFlags, question: type[Question]) -> None:
    """Add a flag for each parameter of the question."""
    for each in declared(question):
        names = [f"-{each.parameter.short}"] if each.parameter.short else []
        command.add_argument(*names, flag(each.name), dest=each.name, help=_help(each), **_how(each))


def add_history_flag(command: ArgumentParser) -> None:
    """Add the flag that names a ledger of the time before."""
    command.add_argument("--history", metavar="FILE", help="imported jobs, for the time before the accounting start")


def asked(parsed: Namespace, question: type[Asked]) -> Asked:
    """The question of the parsed flags. Raises: InvalidQuestion for flags that exclude each other."""
    found = unchecked(parsed, question)
    found.check()
    return found


def unchecked(parsed: Namespace, question: type[Asked]) -> Asked:
    """The question of the parsed flags, in which values may be missing."""
    given = {each.field: getattr(parsed, each.name) for each in declared(question)}
    fields: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in given.items() if each is not None
    }
    return question(**fields)


def rejected(answer: str, question: type[Question]) -> Problem:
    """What an aggregator says of the parameter that it names, as problem of its flag."""
    name, _, text = answer.partition(": ")
    if any(name == each.name for each in declared(question)):
        return Problem("", flag(name), text)
    return Problem("", "", answer)


def _help(each: Declared) -> str:
    default = each.parameter.default or each.default_text
    return " ".join(filter(None, [each.parameter.help, f"[default: {default}]" if default else ""]))


def _how(each: Declared) -> dict[str, Any]:
    """How argparse reads the flag."""
    parameter = each.parameter
    if each.is_switch:
        return {"action": "store_true"}
    if parameter.choices and not parameter.metavar:
        bare = {"nargs": "?", "const": parameter.bare} if parameter.bare else {}
        return {"choices": parameter.choices, "default": each.default, **bare}
    how: dict[str, Any] = {"type": _reader(parameter), "metavar": parameter.metavar}
    return how | ({"action": "append", "default": []} if parameter.is_repeated else {})


def _reader(parameter: Parameter) -> Callable[[str], Any]:
    def read(text: str) -> Any:  # noqa: ANN401 - each parameter has its type
        try:
            return parameter.value(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None

    return read
