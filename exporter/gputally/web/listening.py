"""Opens the listening sockets for `--web.listen-address`."""

import errno
import re
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final, NamedTuple

from gputally.errors import AddressTaken, ConfigError, Problem

FLAG: Final = "--web.listen-address"
BACKLOG: Final = 128
_PATTERN: Final = re.compile(r"(?:\[(?P<six>[^\[\]]+)\]|(?P<host>[^:\[\]\s]*)):(?P<port>\d{1,5})", re.ASCII)
_LAST_PORT: Final = 65_535
_ALL: Final = ("", "::")
_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


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
            problems.append(_problem(str(error)))
    if not addresses and not problems:
        problems.append(_problem("no address to listen on; use HOST:PORT, [IPV6]:PORT or :PORT"))
    if problems:
        raise ConfigError(problems)
    return list(addresses)


def listen(texts: Iterable[str]) -> list[socket.socket]:
    """Listening sockets, one for each address; the caller closes them.

    `:PORT` and `[::]:PORT` accept IPv4 and IPv6 if the machine has both. A host name resolves to its first IPv4
    address, as in Go, or else to its first address.

    Raises: AddressTaken, or ConfigError for an address that cannot be parsed, resolved or bound. No socket stays open.
    """
    with ExitStack() as opened:
        sockets = [opened.enter_context(_open(address)) for address in parse_all(texts)]
        opened.pop_all()
    return sockets


def bound(listener: socket.socket) -> Address:
    """The address of `listener`, with the assigned port for port 0."""
    host, port, *_ = listener.getsockname()
    return Address(host, port)


def _open(address: Address) -> socket.socket:
    try:
        return _all_interfaces(address.port) if address.host in _ALL else _one_interface(address)
    except socket.gaierror as error:
        raise ConfigError([_problem(f"{address}: {error.strerror}; use a name or address of this machine")]) from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressTaken(f"{address} is in use by another process; stop it or choose another {FLAG}") from error
        raise ConfigError([_problem(f"{address}: {_remedy(error)}")]) from error


def _all_interfaces(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
        except OSError as error:
            if error.errno not in _NO_IPV6:  # compiled in but switched off, as in many containers
                raise
    return socket.create_server(("", port), backlog=BACKLOG)


def _one_interface(address: Address) -> socket.socket:
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, target = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return socket.create_server(target, family=family, backlog=BACKLOG)


def _remedy(error: OSError) -> str:
    remedies = {
        errno.EACCES: "permission denied; choose a port of 1024 or above",
        errno.EADDRNOTAVAIL: "not an address of this machine; choose one that is, or :PORT for all",
    }
    return remedies.get(error.errno or 0, error.strerror or str(error))


def _problem(text: str) -> Problem:
    return Problem(file="", field=FLAG, text=text)
