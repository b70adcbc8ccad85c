"""Addresses to listen on, as the flag `--web.listen-address` names them."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from gputally.errors import ConfigError, Problem

FLAG: Final = "--web.listen-address"
_PATTERN: Final = re.compile(r"(?:\[(?P<six>[^\[\]]+)\]|(?P<host>[^:\[\]\s]*)):(?P<port>\d{1,5})", re.ASCII)
_LAST_PORT: Final = 65_535


class Address(NamedTuple):
    """Where to listen: an empty host means all interfaces, port 0 any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse(text: str) -> Address:
    """`HOST:PORT`, `[IPV6]:PORT` or `:PORT`; ValueError says what to use instead."""
    found = _PATTERN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not an address; use HOST:PORT, [IPV6]:PORT or :PORT")
    port = int(found["port"])
    if port > _LAST_PORT:
        raise ValueError(f"{text!r}: the port is above {_LAST_PORT}")
    return Address(found["six"] or found["host"] or "", port)


def parse_all(texts: Iterable[str]) -> list[Address]:
    """Each address once, in order.

    Raises: ConfigError with all problems, or if there is no address.
    """
    addresses: dict[Address, None] = {}
    problems: list[Problem] = []
    for text in texts:
        try:
            addresses[parse(text)] = None
        except ValueError as error:
            problems.append(problem(str(error)))
    if not addresses and not problems:
        problems.append(problem("no address to listen on; use HOST:PORT, [IPV6]:PORT or :PORT"))
    if problems:
        raise ConfigError(problems)
    return list(addresses)


def problem(text: str) -> Problem:
    """What is wrong with an address, and how to fix it."""
    return Problem(file="", field=FLAG, text=text)
