"""Helm, as the people who install the chart use it, but without a cluster."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from hack.build import HELM
from tests.cluster.manifests import Json

CHART = Path(__file__).parents[2] / "helm" / "gputally"
RELEASE = "gputally"
NAMESPACE = "gpu-accounting"
IMAGED = ("--values", str(Path(__file__).parent / "image.yaml"))
"""Where the image is: the chart has no default as long as none is published."""
REMEDY = "helm is not built: python -m hack.build helm kubeconform"


class Refused(Exception):
    """What Helm said instead of rendering."""


def rendered(values: object, scratch: Path, *, release: str = RELEASE, chart: Path = CHART) -> str:
    """All manifests of the chart, tests too. Raises: Refused."""
    file = scratch / "values.yaml"
    file.write_text(values if isinstance(values, str) else yaml.safe_dump(values))
    return run("template", release, str(chart), "--namespace", NAMESPACE, *IMAGED, "--values", str(file))


def run(*arguments: str) -> str:
    """What Helm prints. Raises: Refused."""
    ended = subprocess.run([str(HELM.path), *arguments], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Refused(ended.stderr)
    return ended.stdout


def objects(manifests: str) -> list[Json]:
    """The objects in them."""
    found: list[Json] = [each for each in yaml.load_all(manifests, yaml.CSafeLoader) if each]
    return found


def of_kind(found: list[Json], kind: str, suffix: str = "") -> Json:
    """The only object of that kind, of those whose names end so."""
    [only] = [each for each in found if each["kind"] == kind and each["metadata"]["name"].endswith(suffix)]
    return only


def pods(found: list[Json]) -> dict[str, Json]:
    """The pods, or what pods are made of, by the name of what has or makes them."""
    templates = {
        each["metadata"]["name"]: each["spec"]["template"] for each in found if "template" in each.get("spec", {})
    }
    return templates | {each["metadata"]["name"]: each for each in found if each["kind"] == "Pod"}


def container(pod: Json) -> dict[str, Any]:
    """Its only container."""
    [only] = pod["spec"]["containers"]
    assert isinstance(only, dict)
    return only
