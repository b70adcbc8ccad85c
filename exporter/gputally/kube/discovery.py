"""API discovery: which kinds the server has and where it serves them, read on demand.

Source: k8s.io/apimachinery pkg/apis/meta/v1/types.go, APIGroupList and APIResourceList.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

from gputally.errors import ApiError
from gputally.kube.api import Api
from gputally.kube.failures import RequestRefused

LIFETIME_SECONDS: Final = 300.0
"""How long a document is cached; new kinds appear after that."""
RETRY_SECONDS: Final = 60.0
"""How long to wait before a failed document is requested again."""
MOST_BYTES: Final = 8 << 20
"""About a hundred times the size in a cluster with many operators."""
DEADLINE_SECONDS: Final = 15.0
_CORE: Final = "v1"
_PLURAL: Final = re.compile("[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")

T = TypeVar("T")


class Served(NamedTuple):
    """Where the objects of a kind are served."""

    api_version: str
    plural: str
    namespaced: bool

    @property
    def root(self) -> str:
        """`/api/v1`, `/apis/batch/v1`."""
        return _root(self.api_version)

    @property
    def resource(self) -> tuple[str, str]:
        """API group and plural name, as in RBAC rules."""
        return self.api_version.rpartition("/")[0], self.plural


class _Version(Struct, rename="camel", frozen=True):
    group_version: str


class _Group(Struct, frozen=True):
    versions: tuple[_Version, ...] = ()


class _GroupList(Struct, frozen=True):
    groups: tuple[_Group, ...]


class _Resource(Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ()


class _ResourceList(Struct, frozen=True):
    resources: tuple[_Resource, ...]


class Discovery:
    """The kinds of one server. Only listed group-versions are requested, which bounds the cache."""

    def __init__(self, api: Api, *, now: Callable[[], float]) -> None:
        self._api = api
        self._now = now
        self._groups = _Cached(self._read_groups, now=now)
        self._kinds: dict[str, _Cached[Mapping[str, Served]]] = {}

    async def served(self, api_version: str, kind: str) -> Served | None:
        """Where `kind` is served; None if the server has no such kind, or no `get` for it.

        Raises: ApiError if the documents cannot be read, cached for RETRY_SECONDS.
        """
        if api_version != _CORE and api_version not in await self._groups.value():
            self._kinds.pop(api_version, None)
            return None
        if api_version not in self._kinds:
            self._kinds[api_version] = _Cached(lambda: self._read_kinds(api_version), now=self._now)
        return (await self._kinds[api_version].value()).get(kind)

    async def _read_groups(self) -> frozenset[str]:
        found = await self._read("/apis", _GroupList)
        return frozenset(version.group_version for group in found.groups for version in group.versions)

    async def _read_kinds(self, api_version: str) -> Mapping[str, Served]:
        try:
            found = await self._read(_root(api_version), _ResourceList)
        except RequestRefused as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return {}  # removed since the groups were listed
            raise
        readable = (each for each in found.resources if "get" in each.verbs and _PLURAL.fullmatch(each.name))
        return {each.kind: Served(api_version, each.name, each.namespaced) for each in reversed(tuple(readable))}

    async def _read(self, path: str, shape: type[T]) -> T:
        return await self._api.get_json(path, {}, shape, most_bytes=MOST_BYTES, deadline_s=DEADLINE_SECONDS)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


class _Cached(Generic[T]):
    """The result of `read`, called on first use and again after its lifetime; errors are cached too."""

    def __init__(self, read: Callable[[], Awaitable[T]], *, now: Callable[[], float]) -> None:
        self._read = read
        self._now = now
        self._value: T | None = None
        self._error: ApiError | None = None
        self._expires_s = 0.0
        self._lock = asyncio.Lock()

    async def value(self) -> T:
        """The cached or a new value; an expired one while `read` fails. Raises: ApiError if there is none."""
        async with self._lock:
            if self._expires_s <= self._now():
                await self._refresh()
        if self._value is not None:
            return self._value
        assert self._error
        raise self._error.with_traceback(None)

    async def _refresh(self) -> None:
        try:
            self._value, lifetime_s = await self._read(), LIFETIME_SECONDS
        except ApiError as error:
            self._error, lifetime_s = error, RETRY_SECONDS
        self._expires_s = self._now() + lifetime_s
