"""What is asked of an API server before the watches begin: whether all may be read, and which cluster it is."""

import asyncio
import logging
from typing import Final

from msgspec import Struct

from gputally.errors import ApiError, ApiForbidden, ApiUnreachable
from gputally.kube.api import Api
from gputally.kube.failures import LoginRefused, is_unavailable
from gputally.kube.reflector.reflector import Resource
from gputally.kube.watched import resources
from gputally.model.kube import Meta
from gputally.model.rules import Rules

logger = logging.getLogger(__name__)

_RETRY_S: Final = 1.0
_WARM_UP_S: Final = 3.0
"""A server that has just started forbids everything until it has read its own roles."""


class _Item(Struct, frozen=True):
    metadata: Meta


class _Items(Struct, frozen=True):
    items: list[_Item]


async def identify(api: Api, rules: Rules, *, patience_s: float) -> str:
    """The UID of the cluster, which is that of its namespace kube-system, once everything to be watched can be listed.

    Raises: ApiUnreachable when the server does not answer within `patience_s`; ApiForbidden with every missing right.
    """
    trouble = f"{api.server}: no response"
    now = asyncio.get_running_loop().time
    warm_from_s = now() + _WARM_UP_S
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    return await _answered(api, rules)
                except ApiUnreachable as error:
                    if trouble != str(error):
                        logger.warning("waiting for the API server: %s", error)
                    trouble = str(error)
                    warm_from_s = now() + _WARM_UP_S
                except ApiForbidden as error:
                    if isinstance(error, LoginRefused) or now() >= warm_from_s:
                        raise
                await asyncio.sleep(_RETRY_S)
    except TimeoutError:
        raise ApiUnreachable(
            f"{trouble}; gave up after {patience_s:g} s, check the server of the kubeconfig and the network"
        ) from None


async def _answered(api: Api, rules: Rules) -> str:
    await _check_rights(api, rules)
    found = await api.get_json("/api/v1/namespaces", {"fieldSelector": "metadata.name=kube-system"}, _Items)
    return found.items[0].metadata.uid if found.items else api.server


async def _check_rights(api: Api, rules: Rules) -> None:
    """Ask for everything before refusing, so that all missing rights are named; without a login nothing else counts.

    What can be done without is left to its watch, which says so.
    """
    asked = resources(rules)
    answers = await asyncio.gather(*(_trouble(api, each) for each in asked))
    troubles = [(resource, error) for resource, error in zip(asked, answers, strict=True) if error]
    for resource, error in troubles:
        if not is_unavailable(error) or not (resource.without or isinstance(error, ApiForbidden)):
            raise error
    if not all(resource.without for resource, _ in troubles):
        raise ApiForbidden("\n".join(str(error) for _, error in troubles if isinstance(error, ApiForbidden)))


async def _trouble(api: Api, resource: Resource) -> ApiError | None:
    """Why not one object of `resource` can be listed."""
    try:
        await api.get_json(resource.path, {"limit": "1"}, _Items)
    except ApiError as error:
        return error
    return None
