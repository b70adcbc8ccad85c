"""Reads manifests as the objects of a posture, and reports all problems of all files at once."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gputally.errors import ConfigError, Problem
from gputally.placement.unknown_workload import UnknownWorkload, group_of
from gputally.posture.objects import KINDS, AnyObject, NotRead, PostureInput, PostureKind, PostureResource
from gputally.posture_command.manifest_documents import ManifestObject, manifest_files, manifest_objects

_BY_KIND: Final[Mapping[tuple[str, str], PostureKind]] = {(each.group, each.kind): each for each in KINDS}
_AT: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<field>.*)`)?", re.DOTALL)
"""A message of msgspec: `Expected `int`, got `str` - at `$.spec.backoffLimit``."""


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
