"""Reads the objects of a posture: from an API server, with lists and never a change, or from manifests.

A resource that an API server forbids or lacks is noted, and the others are read. All problems of manifests are
reported at once.
"""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field

from gputally.errors import ApiError, ApiForbidden, ConfigError, Problem
from gputally.files.manifests import ManifestObject, manifest_files, manifest_objects
from gputally.kube.api import Api
from gputally.kube.discovery import Discovery
from gputally.kube.failures import is_unavailable
from gputally.model.rules import Rules
from gputally.placement.unknown_workload import UnknownWorkload, group_of
from gputally.posture.objects import KINDS, AnyObject, NotRead, PostureInput, PostureKind, PosturePod, PostureResource
from gputally.shares.request import holds_gpu

_PAGE: Final = "250"
_MOST_BYTES: Final = 64 << 20
"""Maximum size of a page; objects have 10 kB on average, and 1.5 MB at most."""
_BY_KIND: Final[Mapping[tuple[str, str], PostureKind]] = {(each.group, each.kind): each for each in KINDS}
_AT: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<field>.*)`)?", re.DOTALL)
"""A message of msgspec: `Expected `int`, got `str` - at `$.spec.backoffLimit``."""


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


class ManifestReader:
    """Collects objects and problems."""

    def __init__(self) -> None:
        self._objects = defaultdict[PostureResource, list[AnyObject]](list)
        self._places: dict[tuple[str, str, str], str] = {}
        self._ignored: Counter[str] = Counter()
        self._unknown: list[UnknownWorkload] = []
        self._problems: list[Problem] = []

    def read(self, path: Path) -> None:
        """Read one file."""
        try:
            for each in manifest_objects(path):
                self._add(each)
        except ConfigError as error:
            self._problems += error.problems

    def finish(self, source: str) -> PostureInput:
        """All objects. Raises: ConfigError with all problems."""
        if self._problems:
            raise ConfigError(self._problems)
        unknown = {each.resource for each in KINDS if each.unknown_if_absent and not self._objects[each.resource]}
        known = [each.resource for each in KINDS if each.resource not in unknown]
        return PostureInput(
            source=source,
            from_files=True,
            not_read=tuple(
                NotRead(resource=each.resource, why=f"the files have no {each.kind}")
                for each in KINDS
                if each.resource in unknown
            ),
            ignored=dict(sorted(self._ignored.items())),
            unknown=tuple(self._unknown),
            **{each.value: tuple(self._objects[each]) for each in known},  # type: ignore[arg-type]  # the table has the types
        )

    def _add(self, found: ManifestObject) -> None:
        kind = _BY_KIND.get((group_of(found.value["apiVersion"]), found.value["kind"]))
        other = UnknownWorkload(found.value)
        if kind is None and other.has_pods:
            self._unknown.append(other)
        elif kind is None:
            self._ignored[other.kind] += 1
        elif self._is_new(found, kind):
            try:
                self._objects[kind.resource].append(msgspec.convert(found.value, kind.type))
            except msgspec.ValidationError as error:
                self._problems.append(_problem(found, error))

    def _is_new(self, found: ManifestObject, kind: PostureKind) -> bool:
        """Whether the object has a name, and none before has the same."""
        metadata = found.value.setdefault("metadata", {})
        if not isinstance(metadata, dict):
            return True  # decoding it reports that
        name = metadata.setdefault("name", metadata.get("generateName"))
        if not name:
            self._problems.append(found.problem("metadata.name", "is missing; add it"))
            return False
        key = (kind.kind, str(metadata.get("namespace", "default")), str(name))
        here = ": ".join(part for part in (found.file, found.place) if part)
        if key in self._places and "generateName" not in metadata:
            text = f"{kind.kind} {name} is also in {self._places[key]}; keep one, or name the files of one environment"
            self._problems.append(found.problem("metadata.name", text))
            return False
        self._places[key] = here
        return True


def read_manifests(arguments: Iterable[Path]) -> PostureInput:
    """The objects of the files and folders. Raises: ConfigError with all problems."""
    paths = list(arguments)
    reader = ManifestReader()
    for path in manifest_files(paths):
        reader.read(path)
    return reader.finish(", ".join("standard input" if str(path) == "-" else str(path) for path in paths))


def _problem(found: ManifestObject, error: msgspec.ValidationError) -> Problem:
    match = _AT.fullmatch(str(error))
    what: dict[str, Any] = match.groupdict() if match else {"what": str(error), "field": ""}
    text = what["what"].replace("`", "").replace(" | null", "")
    remedy = "quote it" if "expected str" in text.lower() else "write it as the Kubernetes API defines the field"
    return found.problem(what["field"] or "", f"{text[0].lower()}{text[1:]}; {remedy}")
