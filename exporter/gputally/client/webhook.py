"""Posts documents to a webhook, whose URL is a secret."""

from collections.abc import Container, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout

from gputally.errors import ConfigError, DeliveryFailed, DeliveryRejected, Problem

_TIMEOUT: Final = ClientTimeout(total=30)
_JSON: Final = {"Content-Type": "application/json"}
ANY_REFUSAL: Final = frozenset(range(HTTPStatus.MULTIPLE_CHOICES, HTTPStatus.INTERNAL_SERVER_ERROR)) - {
    HTTPStatus.TOO_MANY_REQUESTS
}
"""Statuses of whoever repeats only what may help within minutes."""
BAD_DOCUMENT: Final = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)
"""Statuses about the document itself. Others end once somebody corrects the URL, its token or the receiver."""


def webhook_url(path: Path, *, flag: str) -> str:
    """The URL in the file that `flag` names. Raises: ConfigError that does not show it."""
    try:
        url = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text"
        raise ConfigError([Problem(str(path), flag, f"cannot be read: {reason}")]) from None
    if not url.startswith(("https://", "http://")) or len(url.split()) != 1:
        problem = "does not contain one URL that begins with https:// or http://"
        raise ConfigError([Problem(str(path), flag, problem)])
    return url


async def post(
    session: ClientSession,
    url: str,
    document: bytes,
    *,
    headers: Mapping[str, str] | None = None,
    final: Container[int] = ANY_REFUSAL,
) -> None:
    """Post a JSON document; redirects are not followed.

    Raises: DeliveryFailed, or DeliveryRejected for a status that is `final`; they show no URL.
    """
    sent = {**_JSON, **(headers or {})}
    try:
        async with session.post(url, data=document, headers=sent, timeout=_TIMEOUT, allow_redirects=False) as response:
            status = response.status
    except (ClientError, TimeoutError) as error:
        raise DeliveryFailed(f"the webhook cannot be reached: {type(error).__name__}; check its URL") from None
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return
    if status in final:
        raise DeliveryRejected(f"the webhook answered HTTP {status}; check its URL and what it accepts")
    remedy = "check its URL" if status in ANY_REFUSAL else "try again later"
    raise DeliveryFailed(f"the webhook answered HTTP {status}; {remedy}")
