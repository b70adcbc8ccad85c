"""Asks an aggregator where pods would run, without sending secrets of their manifests, and prints the forecast."""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from gputally.answers.planned_pods import KIND_NAMES, PRIORITY_CLASS, is_class, pod_kind_of, unknown_workload
from gputally.client.access import access_problems, credentials_from, service_from, text_problems
from gputally.client.aggregator import InvalidQuestion, connected, of_version
from gputally.commands.question_flags import rejected
from gputally.errors import ConfigError, Problem
from gputally.files.manifests import ManifestObject, manifest_objects
from gputally.model.api.paths import WHAT_IF_PATH
from gputally.model.api.what_if import BODY_BYTES, WHAT_IF_VERSION, WhatIfDocument
from gputally.model.printable import printable
from gputally.output.what_if import what_if_answer
from gputally.output.writer import write_answer
from gputally.questions.parameter import flag, texts_of
from gputally.questions.what_if import WhatIfPods

_OF_CONTAINERS: Final = frozenset({"name", "resources", "restartPolicy", "ports"})
"""Fields of a container that decide where a pod may run. Commands and environments may contain secrets."""
_CONTAINERS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})
_LEFT_OUT: Final = frozenset({"status", "managedFields"})


def run_what_if(asked: WhatIfPods, parsed: Namespace) -> int:
    """Print the forecast. Raises: ConfigError, AggregatorUnreachable."""
    if problems := [*text_problems(parsed), *access_problems(parsed), *_problems(asked, parsed.file)]:
        raise ConfigError(problems)
    found = list(manifest_objects(parsed.file)) if parsed.file else []
    try:
        body = asyncio.run(_answered(asked, parsed, _manifests(parsed, found) if parsed.file else None))
    except InvalidQuestion as error:
        raise ConfigError([_rejected(parsed.file, error.answer)]) from None
    document = of_version(body, WhatIfDocument, WHAT_IF_VERSION)
    write_answer(sys.stdout, what_if_answer(document, body), output=parsed.output)
    sys.stdout.flush()
    if others := ", ".join(map(printable, document.not_modelled)):
        sys.stderr.write(f"gputally: not evaluated, as pods of their kinds are not modelled: {others}\n")
    return 0


def _rejected(file: Path | None, answer: str) -> Problem:
    """What the aggregator says of FILE, or of a flag."""
    if file:
        return Problem(str(file), "", answer)
    return Problem("", "--class", answer) if answer.startswith(PRIORITY_CLASS) else rejected(answer, WhatIfPods)


def _problems(asked: WhatIfPods, file: Path | None) -> list[Problem]:
    chosen = [name for name in texts_of(asked) if name != "namespace"]
    if file and chosen:
        return [Problem("", flag(chosen[0]), "cannot be combined with FILE; omit one of them")]
    if not file and asked.gpus is None:
        return [Problem("", "--gpus", "is missing; say how many GPUs a pod needs, or name a FILE")]
    return []


async def _answered(asked: WhatIfPods, parsed: Namespace, manifests: bytes | None) -> bytes:
    service = service_from(parsed, namespace=parsed.aggregator_namespace)
    async with connected(parsed.url, service, credentials_from(parsed)) as client:
        if manifests is not None:
            return await client.post(WHAT_IF_PATH, manifests)
        return await client.get(f"{WHAT_IF_PATH}?{urlencode(texts_of(asked), doseq=True)}")


def _manifests(parsed: Namespace, found: Sequence[ManifestObject]) -> bytes:
    """The workloads of the file as one list, without what must not leave this machine. Raises: ConfigError."""
    known = [each for each in found if pod_kind_of(each.value["apiVersion"], each.value["kind"])]
    others = [each.value for each in found if unknown_workload(each.value)]
    if not known and not others:
        text = f"has no object that creates pods; use one of {KIND_NAMES}"
        raise ConfigError([Problem(str(parsed.file), "", text)])
    classes = [each for each in found if is_class(each.value["apiVersion"], each.value["kind"])]
    sent = [*(_reduced(each, parsed.namespace) for each in (*known, *classes)), *map(_requests_only, others)]
    body = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": sent})
    if len(body) > BODY_BYTES:  # the aggregator would close the connection before it has read all of it
        text = f"has {len(body):,} bytes of pod templates, and the aggregator reads {BODY_BYTES:,} at most; split it"
        raise ConfigError([Problem(str(parsed.file), "", text)])
    return body


def _reduced(found: ManifestObject, namespace: str) -> dict[str, Any]:
    reduced: dict[str, Any] = _without_secrets(found.value)
    if namespace and isinstance(metadata := reduced.setdefault("metadata", {}), dict):
        metadata.setdefault("namespace", namespace)
    return reduced


def _requests_only(value: dict[str, Any]) -> dict[str, Any]:
    """An object of a kind that is not known, with nothing but its name and what its pods request."""
    metadata = value.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    named = {key: given[key] for key in ("name", "namespace") if key in given}
    return {"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": named, "pods": _kept(value)}


def _kept(value: Any) -> Any:  # noqa: ANN401 - any value of a manifest
    """The containers and requests inside, with the names of the fields that lead to them; None without any."""
    if isinstance(value, list):
        return [found for each in value if (found := _kept(each)) is not None] or None
    if not isinstance(value, dict):
        return None
    found = {key: kept for key, inner in value.items() if (kept := _kept(inner)) is not None}
    if isinstance(resources := value.get("resources"), dict):
        found["resources"] = {key: resources[key] for key in ("limits", "requests") if key in resources}
    if value.get("resourceClaims"):
        found["resourceClaims"] = [{}]
    if isinstance(value.get("containers"), list):
        found.setdefault("containers", [])
    return found or None


def _without_secrets(value: Any) -> Any:  # noqa: ANN401 - any value of a manifest
    if isinstance(value, dict):
        return {
            key: [_container(each) for each in inner]
            if key in _CONTAINERS and isinstance(inner, list)
            else _without_secrets(inner)
            for key, inner in value.items()
            if key not in _LEFT_OUT
        }
    return [_without_secrets(each) for each in value] if isinstance(value, list) else value


def _container(value: Any) -> Any:  # noqa: ANN401 - any value of a manifest
    if not isinstance(value, dict):
        return value
    return {key: inner for key, inner in value.items() if key in _OF_CONTAINERS}
