"""Workloads of a file that request GPUs, but whose pods are not modelled."""

from collections.abc import Iterable
from typing import Any

from gputally.model.printable import printable
from gputally.pending_api.forecasts.manifest_pods import READERS
from gputally.posture_command.manifest_documents import ManifestObject


def not_evaluated(found: Iterable[ManifestObject]) -> list[str]:
    """Their kinds and names, such as `DaemonSet ml/agent`."""
    others = (each.value for each in found if each.value["kind"] not in READERS)
    return [_named(each) for each in others if _requests_gpus(each)]


def _named(value: dict[str, Any]) -> str:
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return printable(f"{value['kind']} {place}{metadata.get('name') or 'unnamed'}")


def _requests_gpus(value: Any) -> bool:  # noqa: ANN401 - any value of a manifest
    """Whether any `resources` inside name a GPU."""
    if isinstance(value, list):
        return any(map(_requests_gpus, value))
    if not isinstance(value, dict):
        return False
    resources = value.get("resources")
    kinds = [resources.get(kind) for kind in ("limits", "requests")] if isinstance(resources, dict) else []
    names = (str(name) for each in kinds if isinstance(each, dict) for name in each)
    return any("gpu" in name.rpartition("/")[2] or "nvidia.com/" in name for name in names) or any(
        map(_requests_gpus, value.values())
    )
