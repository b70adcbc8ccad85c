"""Opens the listening sockets for `--web.listen-address`."""

import errno
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final

from gputally.errors import AddressTaken, ConfigError
from gputally.process.addresses import FLAG, Address, parse_all, problem

BACKLOG: Final = 128
_ALL: Final = ("", "::")
_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


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
        raise ConfigError([problem(f"{address}: {error.strerror}; use a name or address of this machine")]) from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressTaken(f"{address} is in use by another process; stop it or choose another {FLAG}") from error
        raise ConfigError([problem(f"{address}: {_remedy(error)}")]) from error


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
