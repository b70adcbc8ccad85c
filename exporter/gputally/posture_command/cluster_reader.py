"""Reads the objects of a posture from an API server: lists in pages, never a change.

A resource that is forbidden or missing is noted, and the others are read.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field

from gputally.errors import ApiError, ApiForbidden
from gputally.kube.api import Api
from gputally.kube.discovery import Discovery
from gputally.kube.failures import is_unavailable
from gputally.model.rules import Rules
from gputally.posture.objects import KINDS, AnyObject, NotRead, PostureInput, PostureKind, PosturePod
from gputally.shares.request import holds_gpu

_PAGE: Final = "250"
_MOST_BYTES: Final = 64 << 20
"""Of a page; objects have 10 kB on average, and 1.5 MB at most."""


class _PageMeta(Struct, frozen=True):
    next: str = field(default="", name="continue")


class _ListPage(Struct, frozen=True):
    metadata: _PageMeta = _PageMeta()
    items: list[Raw] | None = None


async def read_cluster(api: Api, rules: Rules) -> PostureInput:
    """The objects of the cluster; pods without GPUs are dropped.

    Raises: ApiError if the server cannot be reached, rejects the credentials, or lets the caller list nothing.
    """
    found: dict[str, Any] = {}
    missing: list[NotRead] = []
    keep = partial(_is_relevant, rules=rules)
    discovery = Discovery(api, now=time.monotonic)
    for kind in KINDS:
        try:
            items, broken = await _read(api, discovery, kind, keep)
        except ApiError as error:
            if not is_unavailable(error):
                raise
            missing.append(NotRead(resource=kind.resource, why=_reason(error, api.server)))
            continue
        found[kind.resource] = items
        missing += [NotRead(resource=kind.resource, why=why) for why in broken]
    if not any(kind.resource in found for kind in KINDS if not kind.extension):
        raise ApiForbidden(f"{api.server}{missing[0].why}")
    return PostureInput(source=api.server, not_read=tuple(missing), **found)


async def _read(
    api: Api, discovery: Discovery, kind: PostureKind, keep: Callable[[AnyObject], bool]
) -> tuple[tuple[AnyObject, ...], list[str]]:
    """The objects of a kind, and what was wrong with those that cannot be decoded."""
    if kind.extension and await discovery.served(f"{kind.group}/v1", kind.kind) is None:
        return (), []
    decode = msgspec.json.Decoder(kind.type).decode
    items: list[AnyObject] = []
    broken: list[str] = []
    following = ""
    while True:
        parameters = {"limit": _PAGE} | ({"continue": following} if following else {})
        page = await api.get_json(kind.path, parameters, _ListPage, most_bytes=_MOST_BYTES)
        for each in page.items or ():
            try:
                item = decode(each)
            except (ValueError, RecursionError) as error:
                broken.append(f"skipped an object that cannot be decoded: {error}")
                continue
            if keep(item):
                items.append(item)
        following = page.metadata.next
        if not following:
            return tuple(items), broken


def _is_relevant(found: AnyObject, *, rules: Rules) -> bool:
    return not isinstance(found, PosturePod) or holds_gpu(found, rules)


def _reason(error: ApiError, server: str) -> str:
    """The message without the address, which the document has once; nothing is watched."""
    return str(error).removeprefix(server).replace("grant list,watch on", "grant list on")
