"""Runs `gputally what-if`."""

import asyncio
from argparse import Namespace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from gputally.errors import ConfigError, Problem
from gputally.model.placement.what_if_document import WHAT_IF_PATH, WHAT_IF_VERSION, WhatIfDocument
from gputally.pending_api.forecasts.manifest_pods import READERS
from gputally.posture_command.manifest_documents import ManifestObject, manifest_objects
from gputally.top.client import connected
from gputally.top.flags import access_problems, credentials_from, service_from
from gputally.why_command.run_why import decoded, print_json, print_lines, width
from gputally.why_command.what_if_text import what_if_lines

_OF_CONTAINERS: Final = frozenset({"name", "resources", "restartPolicy", "ports"})
"""Fields of a container that decide where a pod may run. Commands and environments may contain secrets."""
_CONTAINERS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})
_LEFT_OUT: Final = frozenset({"status", "managedFields"})


def run_what_if(parsed: Namespace) -> int:
    """Print the forecast. Raises: ConfigError, AggregatorUnreachable."""
    chosen = _parameters(parsed)
    problems = [*access_problems(parsed), *_problems(parsed, chosen)]
    if problems:
        raise ConfigError(problems)
    body = asyncio.run(_asked(parsed, chosen, _manifests(parsed.file, parsed.namespace) if parsed.file else None))
    if parsed.output == "json":
        print_json(body)
    else:
        print_lines(what_if_lines(decoded(body, WhatIfDocument, WHAT_IF_VERSION), width=width()))
    return 0


def _parameters(parsed: Namespace) -> dict[str, str]:
    """Those that describe a pod, without a namespace."""
    given = {
        "gpus": parsed.gpus,
        "model": parsed.model,
        "class": parsed.class_name,
        "cpu": parsed.cpu,
        "memory": parsed.memory,
        "count": parsed.count,
    }
    return {name: str(value) for name, value in given.items() if value not in (None, "")}


def _problems(parsed: Namespace, chosen: dict[str, str]) -> list[Problem]:
    if parsed.file and chosen:
        return [Problem("", f"--{next(iter(chosen))}", "cannot be combined with FILE; omit one of them")]
    if not parsed.file and "gpus" not in chosen:
        return [Problem("", "--gpus", "is missing; say how many GPUs a pod needs, or name a FILE")]
    return []


async def _asked(parsed: Namespace, chosen: dict[str, str], manifests: bytes | None) -> bytes:
    service = service_from(parsed, namespace=parsed.aggregator_namespace)
    async with connected(parsed.url, service, credentials_from(parsed)) as client:
        if manifests is not None:
            return await client.post(WHAT_IF_PATH, manifests)
        query = chosen | ({"namespace": parsed.namespace} if parsed.namespace else {})
        return await client.get(f"{WHAT_IF_PATH}?{urlencode(query)}")


def _manifests(path: Path, namespace: str) -> bytes:
    """The workloads of the file as one list, without what must not leave this machine. Raises: ConfigError."""
    found = [_reduced(each, namespace) for each in manifest_objects(path) if each.value["kind"] in READERS]
    if not found:
        text = f"has no object that creates pods; use one of {', '.join(READERS)}"
        raise ConfigError([Problem(str(path), "", text)])
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": found})


def _reduced(found: ManifestObject, namespace: str) -> dict[str, Any]:
    reduced: dict[str, Any] = _without_secrets(found.value)
    if namespace and isinstance(metadata := reduced.setdefault("metadata", {}), dict):
        metadata.setdefault("namespace", namespace)
    return reduced


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
