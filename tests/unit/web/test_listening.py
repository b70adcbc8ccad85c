import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from gputally.errors import AddressTaken, ConfigError
from gputally.process.addresses import FLAG, Address, parse
from gputally.web.server import bound, listen


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


@contextmanager
def listening(text: str) -> Iterator[Address]:
    [listener] = listen([text])
    with closing(listener):
        yield bound(listener)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9400", Address("127.0.0.1", 9400)),
        ("gpu-node.example:80", Address("gpu-node.example", 80)),
        ("[::1]:9400", Address("::1", 9400)),
        ("[fe80::1%eth0]:9400", Address("fe80::1%eth0", 9400)),
        (":9400", Address("", 9400)),
        (" :0 ", Address("", 0)),
        (":65535", Address("", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: Address) -> None:
    assert parse(text) == address


@pytest.mark.parametrize("text", ["127.0.0.1:9400", "[::1]:9400", ":9400"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "9400", "localhost", "::1:9400", "host:", ":x", "http://a:1", ":123456", "a b:1", ":٣"]
)
def test_what_is_no_address_is_told_the_form(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        parse(text)


def test_a_port_beyond_the_last_is_refused() -> None:
    with pytest.raises(ValueError, match="65535"):
        parse(":65536")


def test_all_bad_addresses_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        listen(["nowhere", ":0", ":70000"])

    assert [problem.field for problem in caught.value.problems] == [FLAG, FLAG]


def test_no_address_at_all_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no address to listen on"):
        listen([])


def test_port_zero_becomes_a_real_port() -> None:
    with listening("127.0.0.1:0") as address:
        assert address.host == "127.0.0.1"
        assert address.port > 0


def test_a_host_name_is_resolved() -> None:
    with listening("localhost:0") as address:
        assert address.host in {"127.0.0.1", "::1"}


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
def test_an_address_without_host_takes_all_interfaces(host: str) -> None:
    with listening(":0") as address, socket.create_connection((host, address.port), timeout=5) as connection:
        assert connection.getpeername()[1] == address.port


@needs_ipv6
def test_an_ipv6_address_is_listened_on() -> None:
    with listening("[::1]:0") as address:
        assert str(address) == f"[::1]:{address.port}"


def test_a_taken_port_is_named_with_the_remedy() -> None:
    with listening("127.0.0.1:0") as taken, pytest.raises(AddressTaken, match=f"^{taken} is in use .*{FLAG}$"):
        listen([str(taken)])


def test_the_same_address_twice_is_listened_on_once() -> None:
    with listening("127.0.0.1:0") as free:
        pass

    [listener] = listen([str(free), str(free)])
    listener.close()


def test_a_failure_leaves_no_socket_open() -> None:
    with listening("127.0.0.1:0") as free:
        pass

    with listening("127.0.0.1:0") as taken, pytest.raises(AddressTaken):
        listen([str(free), str(taken)])

    with listening(str(free)) as again:
        assert again == free


def test_an_address_of_another_machine_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="not an address of this machine"):
        listen(["192.0.2.1:0"])


def test_an_unknown_host_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=FLAG):
        listen(["no-such-host.invalid:0"])
