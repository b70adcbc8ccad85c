"""What the API server answers instead of the thing asked for: meta/v1 Status.

Texts: k8s.io/apimachinery pkg/api/errors, and the handlers that fill them in.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from gputally_sim.api.resources import Resource
from gputally_sim.documents import Doc

_log = logging.getLogger(__name__)


class StatusError(Exception):
    """A request refused; `code` is the HTTP status and `reason` the machine-readable word for it."""

    def __init__(self, code: int, reason: str, message: str, *, details: Doc | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def document(self) -> Doc:
        """The Status as sent."""
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
    """404 for an object."""
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", f'{resource.qualified} "{name}" not found', details=details)


def no_such_resource() -> StatusError:
    """404 for a path."""
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> StatusError:
    """409 for a name that is taken."""
    message = f'{resource.qualified} "{name}" already exists'
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return StatusError(HTTPStatus.CONFLICT, "AlreadyExists", message, details=details)


def conflict(resource: Resource, name: str, text: str) -> StatusError:
    """409 for a precondition that does not hold."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {text}'
    return StatusError(HTTPStatus.CONFLICT, "Conflict", message)


def forbidden(resource: Resource, name: str, text: str) -> StatusError:
    """403 for an object the server does not admit."""
    return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", f'{resource.qualified} "{name}" is forbidden: {text}')


def access_denied(resource: Resource, verb: str, namespace: str) -> StatusError:
    """403 as RBAC words it."""
    scope = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    user = "system:serviceaccount:gputally:gputally"
    message = (
        f'{resource.qualified} is forbidden: User "{user}" cannot {verb} resource "{resource.plural}" '
        f'in API group "{resource.group}" {scope}'
    )
    details = {"group": resource.group, "kind": resource.plural}
    return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", message, details=details)


def unauthorized() -> StatusError:
    """401 for a missing or wrong token."""
    return StatusError(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")


def bad_request(text: str) -> StatusError:
    """400 for a request that cannot be read."""
    return StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", text)


def method_not_allowed() -> StatusError:
    """405 for a verb the resource does not have."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message)


def unsupported_media_type(text: str) -> StatusError:
    """415 for a patch in a format not served here."""
    message = f"the body of the request was in an unknown format - accepted media types include: {text}"
    return StatusError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)


def invalid(kind: str, name: str, text: str) -> StatusError:
    """422 for an object or option that contradicts the schema."""
    return StatusError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", f'{kind} "{name}" is invalid: {text}')


def expired(text: str) -> StatusError:
    """410: the history asked for is gone."""
    return StatusError(HTTPStatus.GONE, "Expired", text)


def too_large_version(asked: int, current: int) -> StatusError:
    """504: a version the server has not reached."""
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", message, details={"retryAfterSeconds": 1})


def refused(code: int) -> StatusError:
    """What a server under stress or in trouble answers."""
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        message = "the server has received too many requests and has asked us to try again later"
        return StatusError(code, "TooManyRequests", message, details={"retryAfterSeconds": 1})
    return StatusError(code, "InternalError", "Internal error occurred: injected fault")


class ListExpired(StatusError):
    """410 for a continue token; `token` goes on from the same place in the present state, which is inconsistent."""

    def __init__(self, message: str, token: str) -> None:
        super().__init__(HTTPStatus.GONE, "Expired", message)
        self.token = token

    def document(self) -> Doc:
        """The Status as sent."""
        return {**super().document(), "metadata": {"continue": self.token}}


@contextmanager
def outlived() -> Iterator[None]:
    """What a scenario asks for may be refused, as somebody else deleted or created what it is about: it goes on."""
    try:
        yield
    except StatusError as error:
        _log.warning("a request of the scenario failed: %s", error)


def patiently(step: Callable[[], object]) -> None:
    """Do `step`, and outlive its being refused; for the agenda."""
    with outlived():
        step()
