"""Errors of the API server, classified for the caller, and the backoff before a retry."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from http import HTTPStatus
from random import Random
from typing import Final

from gputally.errors import ApiError, ApiForbidden, ApiUnreachable, VersionExpired
from gputally.model.kube.meta import Status

_MAX_CHARACTERS: Final = 500
"""Limit of the server's message, which repeats the request."""
FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 30.0


class Failure(StrEnum):
    """Why a request or a stream failed, as `WatchHealth.errors` counts it."""

    UNREACHABLE = "unreachable"
    FORBIDDEN = "forbidden"
    IDLE = "idle"
    THROTTLED = "throttled"
    SERVER = "server"
    REFUSED = "refused"


class RequestFailed(ApiUnreachable):
    """ApiUnreachable with its kind, and the pause in seconds that the server requests (0: none)."""

    def __init__(self, text: str, failure: Failure, *, retry_after_seconds: float = 0.0) -> None:
        super().__init__(text)
        self.failure = failure
        self.retry_after_seconds = retry_after_seconds


class AnswerTooLarge(RequestFailed):
    """The response exceeds the size limit; a later one may be smaller."""


class LoginRefused(ApiForbidden):
    """The server rejects the credentials (401): RBAC rules do not help."""


class RequestRefused(ApiError):
    """The server rejects the request (400, 404, 422, ...); `status` is the HTTP status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def failure_of(error: ApiError) -> Failure:
    """The failure kind under which `error` is counted."""
    match error:
        case RequestFailed():
            return error.failure
        case ApiForbidden():
            return Failure.FORBIDDEN
        case RequestRefused():
            return Failure.REFUSED
        case _:
            return Failure.UNREACHABLE


def is_missing(error: ApiError) -> bool:
    """Whether the server lacks the resource, or this version of it."""
    return isinstance(error, RequestRefused) and error.status == HTTPStatus.NOT_FOUND


def is_unavailable(error: ApiError) -> bool:
    """Whether the resource is missing or forbidden, which only a cluster administrator can change."""
    if is_missing(error):
        return True
    return isinstance(error, ApiForbidden) and not isinstance(error, LoginRefused)


def error_of(status: Status, server: str, path: str, *, retry_after_seconds: float = 0.0) -> ApiError:
    """The error for a Status, from a response body or an ERROR event of a watch."""
    message = (status.message or "no message")[:_MAX_CHARACTERS]
    text = f"{server}{path}: {status.code} {status.reason or ''}".rstrip() + f": {message}"
    if status.code == HTTPStatus.GONE or _is_version_too_large(status):
        return VersionExpired(text)
    if status.code == HTTPStatus.UNAUTHORIZED:
        return LoginRefused(text)
    if status.code == HTTPStatus.FORBIDDEN:
        return ApiForbidden(f"{text}; {remedy(path)}")
    throttled = status.code == HTTPStatus.TOO_MANY_REQUESTS
    if throttled or status.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        pause = max(retry_after_seconds, float((status.details or {}).get("retryAfterSeconds", 0)))
        return RequestFailed(text, Failure.THROTTLED if throttled else Failure.SERVER, retry_after_seconds=pause)
    return RequestRefused(text, status.code)


def _is_version_too_large(status: Status) -> bool:
    """Whether the requested version is newer than the server's, as after a restore from a backup: do not wait for it.

    Source: k8s.io/apiserver pkg/storage/errors.go, NewTooLargeResourceVersionError.
    """
    causes = (status.details or {}).get("causes") or ()
    return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes)


def remedy(path: str) -> str:
    """The RBAC rule that allows a GET of `path`: `grant list,watch on nodes in API group ''`."""
    match path.strip("/").split("/"):
        case ["api", _, _, *_] as parts:
            return _grant("", parts[2:])
        case ["apis", group, _, _, *_] as parts:
            return _grant(group, parts[3:])
        case _:
            return f"grant get on the non-resource URL '{path}'"


def _grant(group: str, rest: list[str]) -> str:
    match rest:
        case ["namespaces", _, resource, _] | [resource, _]:
            return f"grant get on {resource} in API group '{group}'"
        case ["namespaces", _, resource] | [resource]:
            return f"grant list,watch on {resource} in API group '{group}'"
        case _:
            return f"grant get on {'/'.join(rest)} in API group '{group}'"


class Backoff:
    """Exponential backoff with full jitter, so that many clients do not retry a failed server at the same time.

    Source: Exponential Backoff and Jitter, AWS Architecture Blog; the bounds are client-go's for reflectors.
    """

    def __init__(
        self, random: Random | None = None, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self.random = random or Random()  # noqa: S311 - spreads load, guards nothing
        self._sleep = sleep
        self._ceiling = FIRST_SECONDS

    async def wait(self, at_least_seconds: float = 0.0) -> None:
        """Sleep for `at_least_seconds`, which the server requested, plus jitter; then double the ceiling."""
        delay = at_least_seconds + self.random.uniform(0, self._ceiling)
        self._ceiling = min(2 * self._ceiling, LONGEST_SECONDS)
        await self._sleep(delay)

    def reset(self) -> None:
        """Reset the ceiling after progress."""
        self._ceiling = FIRST_SECONDS
