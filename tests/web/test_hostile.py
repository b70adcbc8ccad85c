"""Hostile requests, over real sockets, each with its outcome; after each the server lives and is scraped."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.docs.pages import TEXTS, table
from tests.fakes.certificates import Certificates
from tests.fakes.policies import MUTUAL, PAGE, TLS, SiteClient, basic, config, hashed, policies
from tests.web.hostile import END, GET, REQUESTS, target

HUNG_UP = 0
"""For a status: the connection ended without an answer."""
WEBSOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YWJj\r\n\r\n"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("tls"))
    made.self_signed("stranger")
    made.expired("expired")
    return made


@pytest.fixture
async def door() -> AsyncIterator[SiteClient]:
    """Open to all, as by default."""
    async with policies() as door:
        yield door
        assert (await door.get())[:2] == (200, PAGE.decode())


@pytest.mark.parametrize("what", REQUESTS)
async def test_it_is_refused_and_the_connection_ends(door: SiteClient, what: str) -> None:
    data, status = REQUESTS[what]

    heard = await door.send(data)

    assert (heard.statuses, heard.hung_up) == ([status], True)
    assert not any(each in heard.data for each in (b"usage of all pods", b"Set-Cookie", b"passwd", b"aiohttp", b"aaa"))


@pytest.mark.parametrize(
    ("path", "status"), [(b"http://evil.example/metrics", 200), (b"/%6detrics", 200), (b"http://a/v1/usage", 401)]
)
async def test_a_page_is_the_same_however_its_path_is_written(path: bytes, status: int) -> None:
    async with policies(tokens={"/v1/usage": lambda: "own"}) as door:
        assert (await door.send(target(path))).statuses == [status]


async def test_a_wish_for_another_protocol_is_not_granted(door: SiteClient) -> None:
    heard = await door.send(GET + WEBSOCKET, within=0.5)

    assert heard.statuses == [200]
    assert b"Upgrade" not in heard.data


async def test_many_requests_on_one_connection_are_answered_in_turn(door: SiteClient) -> None:
    heard = await door.send((GET + b"\r\n") * 300 + GET + END)

    assert heard.statuses == [200] * 301


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([], id="nothing"),
        pytest.param([b"GET /met"], id="half a line"),
        pytest.param([GET], id="half the headers"),
        pytest.param([GET, *[b"A: b\r\n"] * 100], id="a header now and then"),
        pytest.param([GET + b"\r\n"], id="nothing more after an answer"),
    ],
)
async def test_who_keeps_us_waiting_is_hung_up_on(
    door: SiteClient, pieces: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(monkeypatch)
    reader, writer = await asyncio.open_connection(door.host, door.port)
    began = time.monotonic()

    async def trickle() -> None:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.05)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        trickling = tasks.create_task(trickle())
        while await until_reset(reader):
            pass
        trickling.cancel()
    writer.close()

    assert 0.2 < time.monotonic() - began < 1.5


async def test_who_does_not_read_the_answer_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)

    async def large(_openmetrics: bool) -> bytes:  # noqa: FBT001 - the shape of Scrape
        return b"# " + b"a" * 20_000_000 + b"\n"

    async with policies(scrape=large) as door:
        with socket.create_connection((door.host, door.port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(GET + b"\r\n")
            await asyncio.sleep(1)
            connection.settimeout(5)
            heard = await asyncio.to_thread(until_the_end, connection)

        assert heard < 20_000_000
        assert (await door.get("/healthz")).status == 200


@pytest.mark.parametrize("tls", [False, True])
async def test_idle_connections_do_not_keep_a_scrape_out(certificates: Certificates, *, tls: bool) -> None:
    file = config(certificates.folder, TLS) if tls else None
    async with policies(file) as door, AsyncExitStack() as opened:
        for _ in range(300):  # of plain bytes: with TLS, half-open handshakes
            _, writer = await asyncio.open_connection(door.host, door.port)
            opened.callback(writer.close)
        context = certificates.client_context() if tls else None

        began = time.monotonic()
        assert (await door.get(tls=context)).status == 200
        assert time.monotonic() - began < 1


async def test_wrong_passwords_at_a_high_rate_do_not_keep_a_scrape_out(tmp_path: Path) -> None:
    file = config(tmp_path, f"basic_auth_users: {{anna: {hashed('right', cost=10)}}}\n")
    async with policies(file) as door:
        assert (await door.get(shown=basic("anna", "right"))).status == 200
        statuses: list[int] = []

        async def guess(number: int) -> None:
            while True:
                answer = await door.get(shown=basic("anna", f"{number}-{len(statuses)}"))
                statuses.append(answer.status)

        guessing = [asyncio.create_task(guess(number)) for number in range(20)]
        slowest = 0.0
        for _ in range(10):
            await asyncio.sleep(0.1)
            began = time.monotonic()
            assert (await door.get(shown=basic("anna", "right"))).status == 200
            slowest = max(slowest, time.monotonic() - began)
        for task in guessing:
            task.cancel()
        await asyncio.gather(*guessing, return_exceptions=True)

    assert slowest < 1
    assert set(statuses) == {401, 429}
    assert statuses.count(429) > statuses.count(401) > 0


async def test_a_first_scrape_gets_in_while_another_address_guesses(tmp_path: Path) -> None:
    file = config(tmp_path, f"basic_auth_users: {{anna: {hashed('right', cost=10)}}}\n")
    async with policies(file) as door:
        guessing = asyncio.create_task(guess_from("127.0.0.2", door))
        await asyncio.sleep(0.3)

        began = time.monotonic()
        answer = await door.get(shown=basic("anna", "right"))
        took = time.monotonic() - began
        guessing.cancel()
        await asyncio.gather(guessing, return_exceptions=True)

    assert (answer.status, took < 1) == (200, True)


async def guess_from(source: str, door: SiteClient) -> None:
    """For ever."""
    for number in range(1_000_000):
        reader, writer = await asyncio.open_connection(door.host, door.port, local_addr=(source, 0))
        shown = basic("anna", str(number)).encode()
        writer.write(GET + b"Authorization: " + shown + b"\r\n" + END)
        try:
            await reader.read()
        finally:
            writer.close()


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(GET + END, id="plain HTTP"),
        pytest.param(b"\x16\x03\x01" + b"\xff" * 500, id="a broken handshake"),
        pytest.param(b"\0" * 5000, id="NUL"),
        pytest.param(b"\x80\x2e\x01\x00\x02" + b"\0" * 50, id="SSL 2"),
    ],
)
async def test_what_is_no_tls_is_hung_up_on(certificates: Certificates, garbage: bytes) -> None:
    async with policies(config(certificates.folder, TLS)) as door:
        heard = await door.send(garbage)

        assert (heard.statuses, heard.hung_up) == ([], True)
        assert (await door.get(tls=certificates.client_context())).status == 200


async def test_a_handshake_that_does_not_go_on_is_ended(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gputally.web.connections.HANDSHAKE_SECONDS", 0.3)
    async with policies(config(certificates.folder, TLS)) as door:
        assert await door.send(b"\x16\x03\x01\x02\x00", within=2) == (b"", True)


@pytest.mark.parametrize("name", ["", "stranger", "expired"])
async def test_without_a_sound_certificate_nobody_gets_in(certificates: Certificates, name: str) -> None:
    async with policies(config(certificates.folder, MUTUAL)) as door:
        assert (await door.get(tls=certificates.client_context(name))).status == HUNG_UP
        assert (await door.get(tls=certificates.client_context("client"))).status == 200


async def test_broken_versions_of_tls_are_not_spoken(certificates: Certificates) -> None:
    hello = bytes.fromhex("160301002f0100002b0301") + b"\x55" * 32 + bytes.fromhex("000004002f00ff0100")
    async with policies(config(certificates.folder, TLS)) as door:
        heard = await door.send(hello)

    assert (heard.data.startswith(b"\x16"), heard.hung_up) == (False, True), "it said hello"


def test_the_documentation_has_all_of_these_with_their_outcomes() -> None:
    rows = table(TEXTS["docs/contributing/hostile-requests.md"], "Request")
    documented = {what: outcome.partition(" ")[0] for what, outcome in rows}

    assert documented == {what: str(status) for what, (_, status) in REQUESTS.items()}


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputally.web.connections.IDLE_SECONDS", 0.3)
    monkeypatch.setattr("gputally.web.connections._SWEEP_SECONDS", 0.05)


async def until_reset(reader: asyncio.StreamReader) -> bytes:
    """What comes; nothing once the connection has ended, however it did."""
    try:
        return await reader.read(1000)
    except ConnectionError:
        return b""


def until_the_end(connection: socket.socket) -> int:
    """How many bytes come."""
    heard = 0
    try:
        while chunk := connection.recv(65_536):
            heard += len(chunk)
    except ConnectionError:
        pass
    return heard
