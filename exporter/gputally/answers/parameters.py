"""Parameters of requests: which there are, how their values are read, and which values nothing has."""

from collections.abc import Collection, Mapping, Sequence


class InvalidRequest(ValueError):
    """A request that cannot be served; its text says what to change."""


def expect_known(query: Mapping[str, Sequence[str]], parameters: Sequence[str]) -> None:
    """Raises: InvalidRequest for a parameter that does not exist, or a value that no command line can have."""
    if unknown := sorted(query.keys() - set(parameters)):
        raise InvalidRequest(f"unknown parameter {', '.join(unknown)}; use {', '.join(parameters)}")
    if any("\0" in value for values in query.values() for value in values):
        raise InvalidRequest("a parameter contains a NUL character; remove it")


def only(name: str, values: Sequence[str]) -> str:
    """The value of a parameter that may be given once. Raises: InvalidRequest."""
    if len(values) > 1:
        raise InvalidRequest(f"{name} is given {len(values)} times; give it once")
    return values[0]


def number(single: Mapping[str, str], name: str, default: int, most: int) -> int:
    """The number of a parameter, up to `most`. Raises: InvalidRequest."""
    text = single.get(name, str(default))
    if text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and int(text) <= most:
        return int(text)
    raise InvalidRequest(f"{name} '{text}' is not valid; use a number up to {most}")


def unknown_values(filters: Mapping[str, Collection[str]], known: Mapping[str, Collection[str]]) -> list[str]:
    """The values of `filters` that are not among the `known` ones of the same name, such as `tenant visoin`.

    Filters without known values are not checked.
    """
    return [f"{name} {each}" for name, values in known.items() for each in sorted({*filters.get(name, ())} - {*values})]
