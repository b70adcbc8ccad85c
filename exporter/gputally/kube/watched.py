"""What is asked of an API server before the watches begin, and what is watched."""

import asyncio
import logging
from functools import partial
from typing import Final

from msgspec import Struct

from gputally.accounting.agents import is_watched
from gputally.errors import ApiForbidden, ApiUnreachable
from gputally.kube.api import Api
from gputally.kube.failures import LoginRefused
from gputally.kube.reflector.feed import Resource
from gputally.model.kube import Event, Kind, Meta, Namespace, Node, Pod, PriorityClass
from gputally.model.rules import Rules

logger = logging.getLogger(__name__)

_EVENTS_IDLE_S: Final = 900.0
"""Servers send no bookmarks for Events, and end a watch after ten minutes at the latest."""
_RETRY_S: Final = 1.0
_WARM_UP_S: Final = 3.0
"""A server that has just started forbids everything until it has read its own roles."""


class _Item(Struct, frozen=True):
    metadata: Meta


class _Items(Struct, frozen=True):
    items: list[_Item]


def resources(rules: Rules) -> dict[Kind, Resource]:
    """The watches of the aggregator. Pods without GPUs that are no agents are decoded and dropped."""
    return {
        Kind.NAMESPACES: Resource(kind=Kind.NAMESPACES, path="/api/v1/namespaces", type=Namespace),
        Kind.PRIORITY_CLASSES: Resource(
            kind=Kind.PRIORITY_CLASSES, path="/apis/scheduling.k8s.io/v1/priorityclasses", type=PriorityClass
        ),
        Kind.NODES: Resource(kind=Kind.NODES, path="/api/v1/nodes", type=Node),
        Kind.PODS: Resource(kind=Kind.PODS, path="/api/v1/pods", type=Pod, keep=partial(is_watched, rules=rules)),
        Kind.EVENTS: Resource(
            kind=Kind.EVENTS,
            path="/api/v1/events",
            type=Event,
            field_selector="reason=Preempted",
            idle_seconds=_EVENTS_IDLE_S,
        ),
    }


async def identify(api: Api, rules: Rules, *, patience_s: float) -> str:
    """The UID of the cluster, which is that of its namespace kube-system, once everything to be watched can be listed.

    Raises: ApiUnreachable when the server does not answer within `patience_s`; ApiForbidden with every missing right.
    """
    trouble = f"{api.server}: no answer"
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
            f"{trouble}; given up after {patience_s:g} s, check the server of the kubeconfig and the network"
        ) from None


async def _answered(api: Api, rules: Rules) -> str:
    await _check_rights(api, rules)
    found = await api.get_json("/api/v1/namespaces", {"fieldSelector": "metadata.name=kube-system"}, _Items)
    return found.items[0].metadata.uid if found.items else api.server


async def _check_rights(api: Api, rules: Rules) -> None:
    """Ask for everything before refusing, so that all missing rights are named; without a login nothing else counts."""
    checks = (api.get_json(resource.path, {"limit": "1"}, _Items) for resource in resources(rules).values())
    errors = [each for each in await asyncio.gather(*checks, return_exceptions=True) if isinstance(each, BaseException)]
    for error in errors:
        if isinstance(error, LoginRefused) or not isinstance(error, ApiForbidden):
            raise error
    if errors:
        raise ApiForbidden("\n".join(map(str, errors)))
