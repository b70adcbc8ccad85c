"""A small site on loopback with a web configuration, and a client for it."""

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

from gputally.web.access_policy import policy_source
from gputally.web.server import Readiness, Scrape, Site, serve

PAGE = b"""# HELP gputally_gpus GPUs.
# TYPE gputally_gpus gauge
gputally_gpus{pool="a",tenant="vision"} 8.0
gputally_gpus{pool="a",tenant="serving"} 4.0
gputally_nodes 3.0
"""


class Answer(NamedTuple):
    """A response; status 0 if the connection failed."""

    status: int
    text: str = ""
    headers: Mapping[str, str] = {}


class Received(NamedTuple):
    """The data received on one connection, and whether the server closed it."""

    data: bytes
    hung_up: bool

    @property
    def statuses(self) -> list[int]:
        """The status codes of all responses."""
        return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", self.data)]


class SiteClient:
    """A client of the site, with a new connection for each request."""

    def __init__(self, scheme: str, host: str, port: int) -> None:
        self.url = f"{scheme}://{host}:{port}"
        self.host = host
        self.port = port

    async def get(self, path: str = "/metrics", *, shown: str = "", tls: ssl.SSLContext | None = None) -> Answer:
        """Send one request on a new connection, with `shown` as the Authorization header."""
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

    async def send(self, data: bytes, *, within: float = 5) -> Received:
        """Send raw bytes; returns the data received until the server closes the connection or time is up."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        received = bytearray()
        try:
            writer.write(data)
            async with asyncio.timeout(within):
                while chunk := await reader.read(65_536):
                    received += chunk
        except TimeoutError:
            return Received(bytes(received), hung_up=False)
        except ConnectionError:  # the server closed it during the send
            pass
        finally:
            writer.close()
        return Received(bytes(received), hung_up=True)


async def page(openmetrics: bool) -> bytes:  # noqa: FBT001 - the signature of Scrape
    return PAGE + b"# EOF\n" if openmetrics else PAGE


@asynccontextmanager
async def policies(
    config: Path | None = None,
    *,
    tokens: Mapping[str, Callable[[], str]] | None = None,
    scrape: Scrape | None = None,
) -> AsyncIterator[SiteClient]:
    """Serve the site while the context is open."""

    async def usage(_request: web.Request) -> web.Response:
        return web.Response(text="usage of all pods")

    site = Site(
        title="t",
        about="a",
        version="1",
        scrapes={"/metrics": scrape or page},
        ready=Readiness,
        routes=[web.get("/v1/usage", usage)],
        tokens=tokens or {},
    )
    entered = policy_source(config)
    async with serve(site, addresses=["127.0.0.1:0"], policy_source=entered) as [address]:
        yield SiteClient(entered().scheme, address.host, address.port)


def basic(user: str, password: str) -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def hashed(password: str, *, cost: int = 4) -> str:
    """A bcrypt hash as htpasswd writes it."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode().replace("$2b$", "$2y$")


def config(folder: Path, text: str) -> Path:
    """Write a web configuration file in that folder."""
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
