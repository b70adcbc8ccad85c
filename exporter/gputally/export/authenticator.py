"""Who may ask for what: every request passes here first."""

import base64
import hmac
import logging
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from gputally.export.access_policy import AccessPolicy, digest
from gputally.export.connection import Connection
from gputally.export.passwords import Passwords, TooMany

OPEN: Final = frozenset({"/healthz", "/readyz"})
"""Kubelets ask for these and have no credentials; they tell of the process, and nothing of the cluster's pods."""
FILTERED: Final = frozenset({"/", "/metrics"})
"""All that a user sees who is restricted to tenants."""
TENANTS: Final = ContextVar[frozenset[str] | None]("tenants", default=None)
"""Those that the request under way is restricted to, None for all."""
_TOLD_EVERY_SECONDS: Final = 60.0

logger = logging.getLogger(__name__)


class Authenticator:
    """`doors` tells who is let in as of now. `own` are paths that a token of their own opens, and nothing else."""

    def __init__(self, doors: Callable[[], AccessPolicy], own: Mapping[str, Callable[[], str]]) -> None:
        self._doors = doors
        self._own = own
        self._passwords = Passwords()
        self._unheard = 0
        self._told_at = -_TOLD_EVERY_SECONDS

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The handler's answer, or why there is none."""
        door = self._doors()
        refusal = await self._refusal(request, door)
        if refusal is None:
            response = await handler(request)
            if isinstance(request.protocol, Connection) and request.protocol.tls is not door.tls:
                response.force_close()  # it came in by certificates that are no longer asked for
            return response
        refusal.force_close()  # nothing that follows on this connection is worth reading
        self._tell(request, refusal.status)
        return refusal

    async def add_headers(self, _request: web.Request, response: web.StreamResponse) -> None:
        """Those of the configuration replace ours."""
        response.headers.update(self._doors().headers)

    async def close(self, _app: web.Application) -> None:
        """Check no more passwords."""
        self._passwords.close()

    async def _refusal(self, request: web.Request, door: AccessPolicy) -> web.Response | None:
        if request.body_exists:
            return _refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "requests with a body are rejected")
        if door.names and door.names.isdisjoint(_names(request)):
            return _refused(HTTPStatus.FORBIDDEN, "the client certificate has none of the allowed names")
        page = _page(request)
        if page in OPEN:
            return None
        if page in self._own:
            right = hmac.compare_digest(_shown_token(request), digest(self._own[page]()))
            return None if right else _unauthorized("Bearer")
        return await self._refusal_by_user(request, door) if door.asks else None

    async def _refusal_by_user(self, request: web.Request, door: AccessPolicy) -> web.Response | None:
        try:
            user = door.tokens.get(_shown_token(request)) or await self._user(request, door)
        except TooMany:
            text = "other passwords are being checked; try again"
            return _refused(HTTPStatus.TOO_MANY_REQUESTS, text, {"Retry-After": "1"})
        if user is None:
            return _unauthorized(*["Basic"] * bool(door.passwords), *["Bearer"] * bool(door.tokens))
        TENANTS.set(door.tenants.get(user))
        if user in door.tenants and _page(request) not in FILTERED:
            return _refused(HTTPStatus.FORBIDDEN, "this page shows more than the tenants of this user")
        return None

    async def _user(self, request: web.Request, door: AccessPolicy) -> str | None:
        """Whoever shows a right password. Raises: TooMany."""
        shown = _shown_password(request)
        if shown is None or not door.passwords:
            return None
        user, password = shown
        right = await self._passwords.right(user, password, door.passwords, source=request.remote or "")
        return user if right else None

    def _tell(self, request: web.Request, status: int) -> None:
        """What was asked for and shown stays out of the log: it may hold a secret, or be meant to forge a line."""
        logger.debug("request from %s was rejected with %d", request.remote, status)
        self._unheard += 1
        if time.monotonic() - self._told_at >= _TOLD_EVERY_SECONDS:
            logger.warning("rejected requests: %d, the last from %s", self._unheard, request.remote)
            self._unheard, self._told_at = 0, time.monotonic()


def _page(request: web.Request) -> str:
    """What will answer: that of the route, as a path can be written in many ways; "" for nothing."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else ""


def _names(request: web.Request) -> list[str]:
    """Those of the client's certificate."""
    certificate = request.get_extra_info("peercert") or {}
    return [name for _, name in certificate.get("subjectAltName", ())]


def _shown(request: web.Request, kind: str) -> str:
    """What is shown in that scheme, "" for nothing."""
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    return shown.strip() if scheme.lower() == kind else ""


def _shown_token(request: web.Request) -> bytes:
    return digest(_shown(request, "bearer"))


def _shown_password(request: web.Request) -> tuple[str, str] | None:
    try:
        user, colon, password = base64.b64decode(_shown(request, "basic"), validate=True).decode().partition(":")
    except ValueError:
        return None
    return (user, password) if colon else None


def _unauthorized(*schemes: str) -> web.Response:
    challenge = ", ".join(f'{scheme} realm="gputally"' for scheme in schemes)
    return _refused(HTTPStatus.UNAUTHORIZED, "credentials are required", {"WWW-Authenticate": challenge})


def _refused(status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(text=f"{text}\n", status=status, headers=headers)
