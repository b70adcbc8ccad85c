"""Requests of `gputally top`, and what it says if they fail."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from aiohttp import ClientSession, web

from gputally.client.access import Credentials, Service, forwarded
from gputally.client.aggregator import AggregatorClient, InvalidQuestion
from gputally.errors import AggregatorUnreachable, ConfigError
from gputally.model.api.paths import ALLOCATIONS_PATH
from tests.unit.output.allocations_documents import document

Handler = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def client(handler: Handler, credentials: Credentials | None = None) -> AsyncIterator[AggregatorClient]:
    """A client of a server that answers with the handler."""
    app = web.Application()
    app.router.add_get(ALLOCATIONS_PATH, handler)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        async with ClientSession() as session:
            yield AggregatorClient(session, f"http://127.0.0.1:{runner.addresses[0][1]}/", credentials or Credentials())
    finally:
        await runner.cleanup()


def answering(body: bytes = b"", status: int = 200) -> Handler:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=body, status=status)

    return answer


async def test_the_document_is_read() -> None:
    async with client(answering(msgspec.json.encode(document()))) as found:
        assert await found.allocations() == document()


@pytest.mark.parametrize("status", [400, 413])
async def test_a_request_that_can_never_be_answered_says_what_to_change(status: int) -> None:
    async with client(answering(b"send fewer objects", status=status)) as found:
        with pytest.raises(InvalidQuestion, match=f"HTTP {status}: send fewer objects") as error:
            await found.read()

    assert error.value.answer == "send fewer objects"


@pytest.mark.parametrize(
    ("handler", "remedy"),
    [
        (answering(status=401), "use --token-file, or --user with --password-file"),
        (answering(status=403), "this user or certificate may not read it"),
        (answering(status=404), "this is no aggregator of gputally, or an older one; check --url"),
        (answering(b"the disk is on fire", status=500), "the disk is on fire"),
        (answering(b"<html>"), "not an answer of gputally"),
        (answering(msgspec.json.encode(document()).replace(b'"version":1', b'"version":9')), "answers in version 9"),
    ],
)
async def test_a_failure_names_the_remedy(handler: Handler, remedy: str) -> None:
    async with client(handler) as found:
        with pytest.raises(AggregatorUnreachable) as failure:
            await found.allocations()

    assert remedy in str(failure.value)


async def test_an_address_without_a_server_names_the_flag() -> None:
    async with ClientSession() as session:
        with pytest.raises(AggregatorUnreachable, match="--url or the port-forward"):
            await AggregatorClient(session, "http://127.0.0.1:9", Credentials()).read()


async def test_credentials_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("opensesame\n")
    sent = []

    async def note(request: web.Request) -> web.Response:
        sent.append(request.headers["Authorization"])
        return web.Response(body=b"{}")

    for credentials in (
        Credentials(token_file=tmp_path / "secret"),
        Credentials(user="anna", password_file=tmp_path / "secret"),
    ):
        async with client(note, credentials) as found:
            await found.read()

    assert sent == ["Bearer opensesame", "Basic YW5uYTpvcGVuc2VzYW1l"]
    with pytest.raises(ConfigError, match="--token-file: cannot be read: No such file"):
        Credentials(token_file=tmp_path / "none").headers()


def kubectl(folder: Path, script: str) -> str:
    """A program that stands for kubectl."""
    path = folder / "kubectl"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


async def test_kubectl_forwards_a_port_and_ends_with_the_context(tmp_path: Path) -> None:
    program = kubectl(
        tmp_path,
        f"trap 'touch {tmp_path}/ended; exit' TERM\n"
        f'echo "$@" > {tmp_path}/arguments; echo "Forwarding from 127.0.0.1:41234 -> 9836"\n'
        "while :; do sleep 0.05; done",
    )
    async with forwarded(Service(context="lab"), program=program) as port:
        assert port == 41234

    assert (tmp_path / "ended").exists()
    assert (tmp_path / "arguments").read_text().split() == [
        *("--context=lab", "--namespace=gputally", "port-forward", "service/gputally-aggregator", ":9836"),
    ]


async def test_what_kubectl_says_is_passed_on(tmp_path: Path) -> None:
    program = kubectl(tmp_path, 'echo noise >&2; echo "Error: services \\"x\\" not found" >&2; exit 1')
    with pytest.raises(AggregatorUnreachable) as failure:
        async with forwarded(Service(), program=program):
            pass

    assert str(failure.value).endswith('Error: services "x" not found; use --namespace and --service, or --url')


async def test_a_missing_kubectl_names_the_alternative(tmp_path: Path) -> None:
    with pytest.raises(AggregatorUnreachable, match="--url http://HOST:9836"):
        async with forwarded(Service(), program=str(tmp_path / "kubectl")):
            pass
