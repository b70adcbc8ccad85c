"""A small site on loopback behind a web configuration, and hands that reach for it."""

import asyncio
import base64
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import bcrypt
from aiohttp import ClientSession, web

from gputally.export.web import Readiness, Scrape, Site, serve
from gputally.serving import policy_source

PAGE = b"""# HELP gputally_gpus GPUs.
# TYPE gputally_gpus gauge
gputally_gpus{pool="a",tenant="vision"} 8.0
gputally_gpus{pool="a",tenant="serving"} 4.0
gputally_nodes 3.0
"""


class Answer(NamedTuple):
    """What came back; status 0 if nothing did."""

    status: int
    text: str = ""
    headers: Mapping[str, str] = {}


class Heard(NamedTuple):
    """What came back on one connection, and whether the server ended it."""

    data: bytes
    hung_up: bool

    @property
    def statuses(self) -> list[int]:
        """Of all answers."""
        return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", self.data)]


class Entrance:
    """Where the site answers. Connections are not kept unless the test keeps them."""

    def __init__(self, scheme: str, host: str, port: int) -> None:
        self.url = f"{scheme}://{host}:{port}"
        self.host = host
        self.port = port

    async def get(self, path: str = "/metrics", *, shown: str = "", tls: ssl.SSLContext | None = None) -> Answer:
        """One request on a connection of its own, which has `shown` in its header Authorization."""
        headers = {"Authorization": shown} if shown else {}
        try:
            connector = aiohttp.TCPConnector(ssl=tls or True)
            async with (
                ClientSession(connector=connector) as session,
                session.get(self.url + path, headers=headers) as response,
            ):
                return Answer(response.status, await response.text(), response.headers)
        except (aiohttp.ClientError, OSError):
            return Answer(0)

    async def say(self, data: bytes, *, within: float = 5) -> Heard:
        """What comes back to these bytes until the server hangs up, or that time is over."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        heard = bytearray()
        try:
            writer.write(data)
            async with asyncio.timeout(within):
                while chunk := await reader.read(65_536):
                    heard += chunk
        except TimeoutError:
            return Heard(bytes(heard), hung_up=False)
        except ConnectionError:  # it hung up on what was still being sent
            pass
        finally:
            writer.close()
        return Heard(bytes(heard), hung_up=True)


async def page(openmetrics: bool) -> bytes:  # noqa: FBT001 - the shape of Scrape
    return PAGE + b"# EOF\n" if openmetrics else PAGE


@asynccontextmanager
async def policies(
    config: Path | None = None,
    *,
    tokens: Mapping[str, Callable[[], str]] | None = None,
    scrape: Scrape | None = None,
) -> AsyncIterator[Entrance]:
    """The site is served while the context is open."""

    async def usage(_request: web.Request) -> web.Response:
        return web.Response(text="what every pod did")

    site = Site(
        title="t",
        about="a",
        version="1",
        scrape=scrape or page,
        ready=Readiness,
        routes=[web.get("/v1/usage", usage)],
        tokens=tokens or {},
    )
    entered = policy_source(config)
    async with serve(site, addresses=["127.0.0.1:0"], policy_source=entered) as [address]:
        yield Entrance(entered().scheme, address.host, address.port)


def basic(user: str, password: str) -> str:
    """The value of a header Authorization."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def hashed(password: str, *, cost: int = 4) -> str:
    """By bcrypt, as htpasswd writes it."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode().replace("$2b$", "$2y$")


def config(folder: Path, text: str) -> Path:
    """A web configuration in that folder."""
    file = folder / "web.yml"
    file.write_text(text)
    return file


TLS = """
tls_server_config:
  cert_file: server.crt
  key_file: server.key
"""
MUTUAL = (
    TLS
    + """\
  client_ca_file: ca.crt
  client_auth_type: RequireAndVerifyClientCert
"""
)
