"""Authentication and authorization of all requests."""

import asyncio
import base64
import hmac
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from gputally.model.api.paths import (
    ALLOCATIONS_PATH,
    AT_RISK_PATH,
    FITS_PATH,
    PENDING_PATH,
    PREEMPTIONS_PATH,
    REPORT_PATH,
    WAITS_PATH,
    WHAT_IF_PATH,
    WHY_PATH,
)
from gputally.web.access_policy import AccessPolicy, digest
from gputally.web.connections import Connection
from gputally.web.turns import CLIENT, RETRY_AFTER, client_address

MOST_SOURCES: Final = 16
"""Maximum of client addresses with queued checks."""
MOST_PER_SOURCE: Final = 2
"""Maximum of queued checks of one client address. With one, of two scrapers behind it that scrape at the same moments,
one with a wrong password would always have the only place."""
OPEN: Final = frozenset({"/healthz", "/readyz"})
"""For kubelet probes, which have no credentials; the responses contain nothing about the cluster's pods."""
FILTERED: Final = frozenset(
    {
        "/",
        "/metrics",
        "/metrics/pods",
        ALLOCATIONS_PATH,
        AT_RISK_PATH,
        "/report",
        REPORT_PATH,
        PREEMPTIONS_PATH,
        WAITS_PATH,
        PENDING_PATH,
        WHY_PATH,
        WHAT_IF_PATH,
        FITS_PATH,
        "/pending",
        "/pending/why",
        "/api/v1/openapi.json",
    }
)
"""The only pages for a user who is restricted to tenants."""
TENANTS: Final = ContextVar[frozenset[str] | None]("tenants", default=None)
"""The tenants that the current request is restricted to, None for all."""
_LOG_INTERVAL_SECONDS: Final = 60.0
logger = logging.getLogger(__name__)


class TooMany(Exception):
    """Too many passwords are being checked; this one is not."""


class Passwords:
    """Checks one password at a time in a separate thread, so that attempts do not block the event loop.

    Each client address has few checks in the queue, so that a client with many attempts does not block others.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._known: dict[str, bytes] = {}
        self._running: dict[bytes, asyncio.Task[bool]] = {}
        self._queued: Counter[str] = Counter()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passwords")

    async def verify(self, user: str, password: str, hashes: Mapping[str, str], *, source: str) -> bool:
        """Whether the password is correct. Rejecting an unknown user takes as long as rejecting a wrong password.

        Raises: TooMany.
        """
        hashed = hashes.get(user) or _decoy(hashes)
        fingerprint = hmac.digest(self._key, f"{user}\0{hashed}\0{password}".encode(), "sha256")
        if hmac.compare_digest(self._known.get(user, b""), fingerprint):
            return True
        task = self._running.get(fingerprint)
        if task is None:
            self._enqueue(source)
            task = self._running[fingerprint] = asyncio.create_task(
                self._check(password, hashed, fingerprint, source=source)
            )
        if not await asyncio.shield(task) or user not in hashes:
            return False
        self._known[user] = fingerprint
        return True

    def _enqueue(self, source: str) -> None:
        """Raises: TooMany."""
        queued = self._queued.get(source, 0)
        if queued >= MOST_PER_SOURCE or (not queued and len(self._queued) >= MOST_SOURCES):
            raise TooMany
        self._queued[source] += 1

    def close(self) -> None:
        """Stop checking passwords."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _check(self, password: str, hashed: str, fingerprint: bytes, *, source: str) -> bool:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, _matches, password, hashed)
        finally:
            self._queued.subtract([source])
            self._queued += Counter()  # without addresses that have no checks
            del self._running[fingerprint]


def _decoy(hashes: Mapping[str, str]) -> str:
    """The hash with the highest cost (its second part), so that rejecting a known user never takes longer."""
    return max(hashes.values(), key=lambda hashed: hashed.split("$")[2])


def _matches(password: str, hashed: str) -> bool:
    import bcrypt  # noqa: PLC0415 - only where users have passwords

    try:
        return bcrypt.checkpw(password.encode(), hashed.encode())
    except ValueError:  # longer than bcrypt's limit of 72 bytes
        return False


class Authenticator:
    """`policy_source` returns the current access policy. The paths of `own` require their own tokens instead.

    Only requests for paths of `bodies` may have a body, up to that many bytes, stated in advance.
    """

    def __init__(
        self,
        policy_source: Callable[[], AccessPolicy],
        own: Mapping[str, Callable[[], str]],
        bodies: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._policy_source = policy_source
        self._own = own
        self._bodies = bodies
        self._passwords = Passwords()
        self._unlogged = 0
        self._logged_at = -_LOG_INTERVAL_SECONDS

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The handler's response, or a rejection."""
        policy = self._policy_source()
        CLIENT.set(client_address(request.remote))
        rejection = await self._rejection(request, policy)
        if rejection is None:
            response = await handler(request)
            if isinstance(request.protocol, Connection) and request.protocol.tls is not policy.tls:
                response.force_close()  # its TLS context has been replaced
            return response
        rejection.force_close()  # ignore any further requests on this connection
        self._log(request, rejection.status)
        return rejection

    async def add_headers(self, _request: web.Request, response: web.StreamResponse) -> None:
        """Add the configured headers, which replace the default ones."""
        response.headers.update(self._policy_source().headers)

    async def close(self, _app: web.Application) -> None:
        """Stop checking passwords."""
        self._passwords.close()

    async def _rejection(self, request: web.Request, policy: AccessPolicy) -> web.Response | None:
        page = _page(request)
        if request.body_exists and (problem := _body_problem(request, self._bodies.get(page))):
            return _rejected(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem)
        if policy.names and policy.names.isdisjoint(_names(request)):
            return _rejected(HTTPStatus.FORBIDDEN, "the client certificate has none of the allowed names")
        if page in OPEN:
            return None
        if page in self._own:
            is_valid = hmac.compare_digest(_token_digest(request), digest(self._own[page]()))
            return None if is_valid else _unauthorized("Bearer")
        return await self._user_rejection(request, policy) if policy.requires_user else None

    async def _user_rejection(self, request: web.Request, policy: AccessPolicy) -> web.Response | None:
        try:
            user = policy.tokens.get(_token_digest(request)) or await self._user(request, policy)
        except TooMany:
            text = "other passwords are being checked; try again"
            return _rejected(HTTPStatus.TOO_MANY_REQUESTS, text, RETRY_AFTER)
        if user is None:
            return _unauthorized(*["Basic"] * bool(policy.passwords), *["Bearer"] * bool(policy.tokens))
        TENANTS.set(policy.tenants.get(user))
        CLIENT.set(f"user {user}")
        if user in policy.tenants and _page(request) not in FILTERED:
            return _rejected(HTTPStatus.FORBIDDEN, "this page shows more than the tenants of this user")
        return None

    async def _user(self, request: web.Request, policy: AccessPolicy) -> str | None:
        """The user whose password is correct, if any. Raises: TooMany."""
        credentials = _basic_credentials(request)
        if credentials is None or not policy.passwords:
            return None
        user, password = credentials
        is_valid = await self._passwords.verify(user, password, policy.passwords, source=CLIENT.get())
        return user if is_valid else None

    def _log(self, request: web.Request, status: int) -> None:
        """Log no paths and credentials: they may contain secrets or forge log lines."""
        logger.debug("request from %s was rejected with %d", request.remote, status)
        self._unlogged += 1
        if time.monotonic() - self._logged_at >= _LOG_INTERVAL_SECONDS:
            logger.warning("rejected requests: %d, the last from %s", self._unlogged, request.remote)
            self._unlogged, self._logged_at = 0, time.monotonic()


def _page(request: web.Request) -> str:
    """The path of the matched route, since a path can be spelled in many ways; "" without a match."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else ""


def _body_problem(request: web.Request, most: int | None) -> str:
    """Why the body is not read, "" if it may be. A body in chunks does not say its length."""
    if most is None or request.method != "POST":
        return "requests with a body are rejected"
    length = request.content_length
    if length is None:
        return f"the body must state its length, up to {most:,} bytes"
    return "" if length <= most else f"the body has {length:,} bytes, and {most:,} at most are read; send fewer objects"


def _names(request: web.Request) -> list[str]:
    """The names in the client's certificate."""
    certificate = request.get_extra_info("peercert") or {}
    return [name for _, name in certificate.get("subjectAltName", ())]


def _credentials(request: web.Request, kind: str) -> str:
    """The credentials of that scheme, "" for none."""
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    return credentials.strip() if scheme.lower() == kind else ""


def _token_digest(request: web.Request) -> bytes:
    return digest(_credentials(request, "bearer"))


def _basic_credentials(request: web.Request) -> tuple[str, str] | None:
    try:
        user, colon, password = base64.b64decode(_credentials(request, "basic"), validate=True).decode().partition(":")
    except ValueError:
        return None
    return (user, password) if colon else None


def _unauthorized(*schemes: str) -> web.Response:
    challenge = ", ".join(f'{scheme} realm="gputally"' for scheme in schemes)
    return _rejected(HTTPStatus.UNAUTHORIZED, "credentials are required", {"WWW-Authenticate": challenge})


def _rejected(status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(text=f"{text}\n", status=status, headers=headers)
