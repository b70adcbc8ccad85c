"""Error responses of the API server: meta/v1 Status.

Source of the messages: k8s.io/apimachinery pkg/api/errors, and its callers.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from gputally_sim.api.resources import Resource
from gputally_sim.documents import Doc

_log = logging.getLogger(__name__)


class StatusError(Exception):
    """A rejected request; `code` is the HTTP status, `reason` the machine-readable reason."""

    def __init__(self, code: int, reason: str, message: str, *, details: Doc | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def document(self) -> Doc:
        """The Status document."""
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        return {**status, "details": self.details} if self.details else status


def not_found(resource: Resource, name: str) -> StatusError:
    """404 for a missing object."""
    details = {"name": name, "group": resource.group, "kind": resource.served}
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", f'{resource.qualified} "{name}" not found', details=details)


def no_such_resource() -> StatusError:
    """404 for an unknown path."""
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> StatusError:
    """409 for an existing name."""
    message = f'{resource.qualified} "{name}" already exists'
    details = {"name": name, "group": resource.group, "kind": resource.served}
    return StatusError(HTTPStatus.CONFLICT, "AlreadyExists", message, details=details)


def conflict(resource: Resource, name: str, text: str) -> StatusError:
    """409 for a failed precondition."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {text}'
    return StatusError(HTTPStatus.CONFLICT, "Conflict", message)


def forbidden(resource: Resource, name: str, text: str) -> StatusError:
    """403 for an object rejected by admission."""
    return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", f'{resource.qualified} "{name}" is forbidden: {text}')


def access_denied(resource: Resource, verb: str, namespace: str) -> StatusError:
    """403 with RBAC's message."""
    scope = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    user = "system:serviceaccount:gputally:gputally"
    message = (
        f'{resource.qualified} is forbidden: User "{user}" cannot {verb} resource "{resource.served}" '
        f'in API group "{resource.group}" {scope}'
    )
    details = {"group": resource.group, "kind": resource.served}
    return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", message, details=details)


def unauthorized() -> StatusError:
    """401 for a missing or wrong token."""
    return StatusError(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")


def bad_request(text: str) -> StatusError:
    """400 for an unreadable request."""
    return StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", text)


def method_not_allowed() -> StatusError:
    """405 for an unsupported verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message)


def unsupported_media_type(text: str) -> StatusError:
    """415 for an unsupported patch format."""
    message = f"the body of the request was in an unknown format - accepted media types include: {text}"
    return StatusError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)


def invalid(kind: str, name: str, text: str) -> StatusError:
    """422 for an invalid object or option."""
    return StatusError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", f'{kind} "{name}" is invalid: {text}')


def expired(text: str) -> StatusError:
    """410 for an expired version."""
    return StatusError(HTTPStatus.GONE, "Expired", text)


def too_large_version(asked: int, current: int) -> StatusError:
    """504 for a version newer than the server's."""
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", message, details={"retryAfterSeconds": 1})


def refused(code: int) -> StatusError:
    """429 or 5xx of an overloaded or failing server."""
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        message = "the server has received too many requests and has asked us to try again later"
        return StatusError(code, "TooManyRequests", message, details={"retryAfterSeconds": 1})
    return StatusError(code, "InternalError", "Internal error occurred: injected fault")


class ListExpired(StatusError):
    """410 for a continue token; `token` continues the list inconsistently, with the current state."""

    def __init__(self, message: str, token: str) -> None:
        super().__init__(HTTPStatus.GONE, "Expired", message)
        self.token = token

    def document(self) -> Doc:
        """The Status document."""
        return {**super().document(), "metadata": {"continue": self.token}}


@contextmanager
def log_rejections() -> Iterator[None]:
    """Log a rejected request and continue; other clients may have deleted or created the object."""
    try:
        yield
    except StatusError as error:
        _log.warning("a request of the scenario failed: %s", error)


def run_logged(step: Callable[[], object]) -> None:
    """Run `step` as an action of the agenda; a rejected request is only logged."""
    with log_rejections():
        step()
