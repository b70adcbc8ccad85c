"""How people give one value of a question: with a flag of a command, or with a parameter of an address."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, get_type_hints

from msgspec import Struct, structs

from gputally.errors import ConfigError, Problem

_MOST_DIGITS: Final = 18
"""How long a number may be: Python rejects thousands of digits itself, without a remedy."""
MOST_SHOWN: Final = 40
"""Characters of a wrong value that its error repeats."""


class InQuery(Struct, frozen=True, kw_only=True):
    """What is different over HTTP: another `name`, `description`, `choices` or `default`, where given."""

    name: str = ""
    description: str = ""
    choices: tuple[str, ...] = ()
    default: str = ""


class Parameter(Struct, frozen=True, kw_only=True):
    """One value of a question, declared as annotation of its field; a field without one is set by the program alone.

    `help` says what it is. `read` returns the value of a text, or raises ValueError with what to write instead, and
    `choices` are all texts that are valid. A value that `is_repeated` may be given several times. `default` says in
    words what holds without a value, unless it is the default of the field. A flag may be given without a value if
    there is a `bare` one, which it then means. `columns` are those that filters can name: over HTTP, each is a
    parameter. Without `query`, only commands have it. `short` is the letter of a second flag.
    """

    help: str = ""
    read: Callable[[str], Any] = str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    is_repeated: bool = False
    default: str = ""
    bare: str | None = None
    columns: tuple[str, ...] = ()
    query: InQuery | None = InQuery()
    short: str = ""

    def value(self, text: str, *, choices: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - each parameter has its type
        """The value of a text, one of `choices` or those of the parameter. Raises: ValueError."""
        known = choices or self.choices
        if known and text not in known:
            raise ValueError(f"'{text}' is not valid; use {', '.join(known)}")
        return self.read(text)


class Question(Struct, frozen=True, kw_only=True):
    """What is asked; each value that people give is declared as a `Parameter`."""

    def check(self) -> None:
        """Raises: InvalidQuestion for values that exclude each other, or are missing."""


class Declared(NamedTuple):
    """A parameter of a question, with its name, and its field with the value without one.

    The names of both differ where that of the parameter is a word of Python.
    """

    name: str
    field: str
    parameter: Parameter
    default: Any

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off."""
        return self.default is False

    @property
    def default_text(self) -> str:
        """The default of the field as people write it; "" if it has no such form."""
        match self.default:
            case bool():
                return ""
            case str() | int():
                return str(self.default)
            case (str(), *_):
                return ",".join(self.default)
        return ""


def declared(question: type[Question]) -> tuple[Declared, ...]:
    """The parameters of a question, in the order of its fields."""
    hints = get_type_hints(question, include_extras=True)
    return tuple(
        Declared(field.encode_name, field.name, each, field.default)
        for field in structs.fields(question)
        for each in getattr(hints[field.name], "__metadata__", ())
        if isinstance(each, Parameter)
    )


def texts_of(question: Question) -> dict[str, list[str]]:
    """The values of a question that are not the usual ones, as texts by the name of their parameter."""
    given = ((each, getattr(question, each.field)) for each in declared(type(question)))
    return {each.name: _texts(value) for each, value in given if value != each.default}


def _texts(value: Any) -> list[str]:  # noqa: ANN401 - each parameter has its type
    if isinstance(value, tuple):
        return [str(each) for each in value]
    return [str(value).lower() if isinstance(value, bool) else str(value)]


def whole_number(first: int, last: int) -> Callable[[str], int]:
    """Reads a number from `first` to `last`."""

    def read(text: str) -> int:
        if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and first <= int(text) <= last:
            return int(text)
        raise ValueError(f"'{text[:MOST_SHOWN]}' is not valid; use a number from {first} to {last}")

    return read


class InvalidQuestion(ConfigError):
    """A question that cannot be answered: which parameter is wrong, and what to give instead.

    Each `{}` of the text stands for another parameter among `names`, such as `window` or `where node`; without names,
    braces are text. The message of the error has the flags of a command; see `spelled` for others.
    """

    def __init__(self, parameter: str, text: str, *names: str) -> None:
        self.parameter = parameter
        self.text = text
        self.names = names
        super().__init__([Problem("", flag(parameter), self._named(flag))])

    def spelled(self, name: Callable[[str], str]) -> str:
        """The message, with the names of parameters as `name` spells them."""
        return f"{name(self.parameter)}: {self._named(name)}"

    def _named(self, name: Callable[[str], str]) -> str:
        return self.text.format(*map(name, self.names)) if self.names else self.text


def flag(name: str) -> str:
    """A parameter as flag: `--time-zone`, or `--where node`."""
    return f"--{name.replace('_', '-')}"
