"""Checks before the watches start: read permissions and the cluster's identity."""

import asyncio
import logging
from typing import Final

from msgspec import Struct

from gputally.errors import ApiError, ApiForbidden, ApiUnreachable
from gputally.kube.api import Api
from gputally.kube.failures import LoginRefused, is_unavailable, remedy
from gputally.kube.watched import Resource, resources
from gputally.model.kube.meta import Meta
from gputally.model.rules import Rules

logger = logging.getLogger(__name__)

_RETRY_S: Final = 1.0
_WARM_UP_S: Final = 3.0
"""A server that has just started forbids everything until its RBAC roles are loaded."""


class _Item(Struct, frozen=True):
    metadata: Meta


class _Items(Struct, frozen=True):
    items: list[_Item]


async def identify(api: Api, rules: Rules, *, patience_s: float) -> str:
    """The cluster's UID, that is the UID of namespace kube-system, once all watched resources can be listed.

    Raises: ApiUnreachable if the server does not respond within `patience_s`; ApiForbidden with all missing rights.
    """
    problem = f"{api.server}: no response"
    now = asyncio.get_running_loop().time
    warm_from_s = now() + _WARM_UP_S
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    return await _identify_once(api, rules)
                except ApiUnreachable as error:
                    if problem != str(error):
                        logger.warning("waiting for the API server: %s", error)
                    problem = str(error)
                    warm_from_s = now() + _WARM_UP_S
                except ApiForbidden as error:
                    if isinstance(error, LoginRefused) or now() >= warm_from_s:
                        raise
                await asyncio.sleep(_RETRY_S)
    except TimeoutError:
        raise ApiUnreachable(
            f"{problem}; gave up after {patience_s:g} s, check the server of the kubeconfig and the network"
        ) from None


async def _identify_once(api: Api, rules: Rules) -> str:
    await _check_rights(api, rules)
    found = await api.get_json("/api/v1/namespaces", {"fieldSelector": "metadata.name=kube-system"}, _Items)
    return found.items[0].metadata.uid if found.items else api.server


async def _check_rights(api: Api, rules: Rules) -> None:
    """Check all rights, so that the error lists all missing ones; a rejected login is reported alone.

    An unavailable optional resource is no error: its watch logs it.
    """
    each_right = {remedy(each.path): each for each in reversed(resources(rules))}  # Events are watched by reason
    requested = [*reversed(each_right.values())]
    errors = await asyncio.gather(*(_list_error(api, each) for each in requested))
    failures = [(resource, error) for resource, error in zip(requested, errors, strict=True) if error]
    for resource, error in failures:
        if not is_unavailable(error) or not (resource.without or isinstance(error, ApiForbidden)):
            raise error
    if not all(resource.without for resource, _ in failures):
        raise ApiForbidden("\n".join(str(error) for _, error in failures if isinstance(error, ApiForbidden)))


async def _list_error(api: Api, resource: Resource) -> ApiError | None:
    """The error when one object of `resource` is listed; None if that succeeds."""
    try:
        await api.get_json(resource.path, {"limit": "1"}, _Items)
    except ApiError as error:
        return error
    return None
