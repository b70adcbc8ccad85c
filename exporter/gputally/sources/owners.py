"""Who owns an object: one metadata-only request per owner, remembered."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from gputally.errors import ApiError, ApiForbidden
from gputally.model.kube import OwnerMeta, OwnerReference
from gputally.model.observation import OwnerSeen
from gputally.sources.api import Api
from gputally.sources.failures import RequestRefused, remedy
from gputally.sources.once import Once

logger = logging.getLogger(__name__)

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
"""Servers that cannot cut an object down send it whole: its metadata has the same shape."""
CLUSTER_KINDS: Final = frozenset({"Node", "Namespace", "PersistentVolume", "ClusterQueue", "NodeClaim", "NodePool"})
"""Kinds without a namespace that own something."""


def path_of(reference: OwnerReference, namespace: str) -> str:
    """Where the owner is served: /apis/batch/v1/namespaces/ml/jobs/train.

    A kind's plural is guessed as its definitions are; a wrong guess ends in 404, the walk one step early.
    Source: k8s.io/apimachinery pkg/api/meta/restmapper.go, UnsafeGuessKindToResource.
    """
    root = "apis" if "/" in reference.api_version else "api"
    scope = "" if reference.kind in CLUSTER_KINDS else f"/namespaces/{namespace}"
    return f"/{root}/{reference.api_version}{scope}/{plural(reference.kind)}/{reference.name}"


def plural(kind: str) -> str:
    """`ReplicaSet` is served as replicasets, `Policy` as policies."""
    singular = kind.lower()
    if singular.endswith("s"):
        return f"{singular}es"
    if singular.endswith("y"):
        return f"{singular[:-1]}ies"
    return f"{singular}s"


async def fetch_owner(
    api: Api,
    reference: OwnerReference,
    *,
    namespace: str,
    clock: Callable[[], int],
    forbidden: Callable[[str], None] = logger.warning,
) -> OwnerSeen:
    """The owner and its own controller; without one when it is gone, replaced, or not ours to read.

    Raises: RequestFailed when the server gives no answer; the same call may succeed later.
    """
    path = path_of(reference, namespace)
    owner = None
    try:
        owner = await api.get_json(path, {}, OwnerMeta, accept=METADATA_ONLY)
    except ApiForbidden:
        forbidden(f"those of kind {reference.kind} stay unknown: {remedy(path)}")
    except RequestRefused as error:
        logger.debug("owner %s %s: %s", reference.kind, reference.name, error)
    return _seen(reference, owner if owner and owner.metadata.uid == reference.uid else None, clock())


def _seen(reference: OwnerReference, owner: OwnerMeta | None, at_us: int) -> OwnerSeen:
    references = (owner and owner.metadata.owner_references) or ()
    parent = next((r for r in references if r.controller), None)
    return OwnerSeen(
        uid=reference.uid,
        kind=reference.kind,
        name=reference.name,
        parent_uid=parent.uid if parent else None,
        parent_kind=parent.kind if parent else "",
        parent_name=parent.name if parent else "",
        parent_api_version=parent.api_version if parent else "",
        at_us=at_us,
    )


class _Fetch:
    """A request under way that others wait for."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self.error: ApiError | None = None


class Owners:
    """Remembers the `size` owners last asked for; asks once per owner, for at most `concurrency` at a time.

    An owner's controller never changes, so what was seen stays true; a missing permission does too,
    until the next start.
    """

    def __init__(self, api: Api, *, clock: Callable[[], int], size: int = 20_000, concurrency: int = 8) -> None:
        self._api = api
        self._clock = clock
        self._size = size
        self._slots = asyncio.Semaphore(concurrency)
        self._known: OrderedDict[str, OwnerSeen] = OrderedDict()
        self._under_way: dict[str, _Fetch] = {}
        self._forbidden = Once(logger, "owners")

    async def owner(self, reference: OwnerReference, *, namespace: str) -> OwnerSeen:
        """What is known of the owner, or what the server says. Raises: RequestFailed."""
        while (seen := self._known.get(reference.uid)) is None:
            fetch = self._under_way.get(reference.uid)
            if fetch is None:
                return await self._fetch(reference, namespace)
            await fetch.done.wait()  # whoever asks may be cancelled: then one of those who wait asks again
            if fetch.error:
                raise fetch.error
        self._known.move_to_end(reference.uid)
        return seen

    async def _fetch(self, reference: OwnerReference, namespace: str) -> OwnerSeen:
        fetch = self._under_way[reference.uid] = _Fetch()
        try:
            async with self._slots:
                seen = await fetch_owner(
                    self._api, reference, namespace=namespace, clock=self._clock, forbidden=self._forbidden.warn
                )
            self._remember(seen)
        except ApiError as error:
            fetch.error = error
            raise
        finally:
            del self._under_way[reference.uid]
            fetch.done.set()
        return seen

    def _remember(self, seen: OwnerSeen) -> None:
        self._known[seen.uid] = seen
        while len(self._known) > self._size:
            self._known.popitem(last=False)
