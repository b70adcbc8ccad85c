"""Delivers the report of a tenant: as files, or to a webhook."""

from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from aiohttp import ClientError, ClientSession, ClientTimeout

from gputally.errors import ConfigError, DeliveryFailed, DeliveryRejected, Problem

_TIMEOUT: Final = ClientTimeout(total=30)


class ReportPeriod(NamedTuple):
    """Both ends of the reports, in ISO 8601."""

    start: str
    end: str

    @property
    def folder(self) -> str:
        """The name of a folder for them: both days."""
        return f"{self.start[:10]}_{self.end[:10]}"


def file_name(tenant: str, extension: str) -> str:
    """The file of a tenant; characters that have a meaning in paths are encoded as in a URL."""
    name = quote(tenant, safe=" @")
    return f"{name.replace('.', '%2E', 1) if name.startswith('.') else name or 'none'}.{extension}"


def write_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write each named file as a whole. Raises: ConfigError if the folder cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, body in files:
            partial = folder / f".{name}.partial"
            partial.write_bytes(body)
            partial.replace(folder / name)
    except OSError as error:
        raise ConfigError([Problem(str(folder), "--directory", f"cannot be written: {error.strerror}")]) from None


def webhook_url(path: Path) -> str:
    """The URL in the file, which is a secret. Raises: ConfigError that does not show it."""
    try:
        url = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text"
        raise ConfigError([Problem(str(path), "--webhook-url-file", f"cannot be read: {reason}")]) from None
    if not url.startswith(("https://", "http://")) or len(url.split()) != 1:
        problem = "does not contain one URL that begins with https:// or http://"
        raise ConfigError([Problem(str(path), "--webhook-url-file", problem)])
    return url


async def post(session: ClientSession, url: str, document: dict[str, str]) -> None:
    """Post the document. Raises: DeliveryFailed, or DeliveryRejected if repeating is of no use; they show no URL."""
    try:
        async with session.post(url, json=document, timeout=_TIMEOUT, allow_redirects=False) as response:
            status = response.status
    except (ClientError, TimeoutError) as error:
        raise DeliveryFailed(f"the webhook cannot be reached: {type(error).__name__}; check its URL") from None
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise DeliveryFailed(f"the webhook answered HTTP {status}; try again later")
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        raise DeliveryRejected(f"the webhook answered HTTP {status}; check its URL and what it accepts")
