"""Owner lookup: one metadata-only request per owner, only to paths from API discovery."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import quote

from gputally.errors import ApiForbidden, VersionExpired
from gputally.kube.api import Api
from gputally.kube.discovery import LIFETIME_SECONDS, Discovery, Served
from gputally.kube.failures import AnswerTooLarge, LoginRefused, RequestRefused, remedy
from gputally.model.kube.meta import Lookup, Owner, OwnerMeta, can_exist, controller_of
from gputally.model.observation import OwnerResolved
from gputally.process.log import Once

logger = logging.getLogger(__name__)

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
"""Servers without PartialObjectMetadata send the whole object; its metadata has the same shape."""
MOST_BYTES: Final = 1 << 20
"""Limit for one owner. Metadata has about 5 kB; a tenant can inflate it to the server's limit of 1.5 MB."""
DEADLINE_SECONDS: Final = 15.0
FORBIDDEN_SECONDS: Final = 600.0
"""How long a forbidden kind is not requested again: people grant rights."""


class OwnerAnswer(NamedTuple):
    """Result of a lookup; without `seen`, the owner may be looked up again after `pause_s`."""

    result: Lookup
    seen: OwnerResolved | None = None
    pause_s: float = 0.0


def path_of(served: Served, owner: Owner) -> str:
    """The owner's path, each part one quoted segment: /apis/batch/v1/namespaces/ml/jobs/train.

    Raises: ValueError for an invalid reference, which must never become part of a path.
    """
    if not can_exist(owner.reference):
        raise ValueError("a reference to an owner that cannot exist")
    scope = f"/namespaces/{quote(owner.namespace, safe='')}" if served.namespaced else ""
    return f"{served.root}{scope}/{served.plural}/{quote(owner.reference.name, safe='')}"


class Owners:
    """Looks up one owner per call; `clock` is the server's time (µs), `now` monotonic (s)."""

    def __init__(self, api: Api, *, clock: Callable[[], int], now: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._now = now
        self._discovery = Discovery(api, now=now)
        self._forbidden_until_s: dict[tuple[str, str], float] = {}
        self._missing_rights = Once(logger, "owners")

    async def look_up(self, owner: Owner) -> OwnerAnswer:
        """The owner's controller, or why it is unknown. Raises: ApiError if a retry may succeed."""
        if not can_exist(owner.reference):
            return self.unknown(Lookup.REFUSED, owner)
        try:
            served = await self._discovery.served(owner.reference.api_version, owner.reference.kind)
        except LoginRefused:
            raise
        except ApiForbidden as error:
            self._missing_rights.warn(f"all stay unknown: {error}")
            return OwnerAnswer(Lookup.FORBIDDEN, pause_s=FORBIDDEN_SECONDS)
        if served is None:
            return OwnerAnswer(Lookup.UNKNOWN_KIND, pause_s=LIFETIME_SECONDS)
        pause_s = self._forbidden_until_s.get(served.resource, 0.0) - self._now()
        if pause_s > 0:
            return OwnerAnswer(Lookup.FORBIDDEN, pause_s=pause_s)
        return await self._fetch(served, owner)

    async def _fetch(self, served: Served, owner: Owner) -> OwnerAnswer:
        path = path_of(served, owner)
        try:
            found = await self._api.get_json(
                path, {}, OwnerMeta, accept=METADATA_ONLY, most_bytes=MOST_BYTES, deadline_s=DEADLINE_SECONDS
            )
        except LoginRefused:
            raise
        except ApiForbidden:
            self._missing_rights.warn(f"those of kind {owner.reference.kind} stay unknown: {remedy(path)}")
            self._forbidden_until_s[served.resource] = self._now() + FORBIDDEN_SECONDS
            return OwnerAnswer(Lookup.FORBIDDEN, pause_s=FORBIDDEN_SECONDS)
        except AnswerTooLarge:
            return self.unknown(Lookup.OVERSIZED, owner)
        except RequestRefused as error:
            return self.unknown(Lookup.GONE if error.status == HTTPStatus.NOT_FOUND else Lookup.REFUSED, owner)
        except VersionExpired:  # 410 is not a valid status for a GET of one object
            return self.unknown(Lookup.REFUSED, owner)
        return self._resolved(owner, found)

    def unknown(self, result: Lookup, owner: Owner) -> OwnerAnswer:
        """A final result: the owner's controller stays unknown."""
        return OwnerAnswer(result, OwnerResolved(owner=owner, parent=None, at_us=self._clock()))

    def _resolved(self, owner: Owner, found: OwnerMeta) -> OwnerAnswer:
        if found.metadata.uid != owner.reference.uid:
            return self.unknown(Lookup.GONE, owner)
        parent = controller_of(found.metadata.owner_references)
        return OwnerAnswer(Lookup.FOUND, OwnerResolved(owner=owner, parent=parent, at_us=self._clock()))
