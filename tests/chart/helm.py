"""Helm as users run it, but without a cluster."""

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
"""Values with the image: the chart has no default until an image is published."""
REMEDY = "helm is not built: python -m hack.build helm kubeconform"


class Refused(Exception):
    """Helm failed; carries its error output."""


def rendered(values: object, scratch: Path, *, release: str = RELEASE, chart: Path = CHART) -> str:
    """All manifests of the chart, including its tests. Raises: Refused."""
    file = scratch / "values.yaml"
    file.write_text(values if isinstance(values, str) else yaml.safe_dump(values))
    return run("template", release, str(chart), "--namespace", NAMESPACE, *IMAGED, "--values", str(file))


def run(*arguments: str) -> str:
    """Run Helm and return its output. Raises: Refused."""
    result = subprocess.run([str(HELM.path), *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        raise Refused(result.stderr)
    return result.stdout


def objects(manifests: str) -> list[Json]:
    """The objects in the manifests."""
    found: list[Json] = [each for each in yaml.load_all(manifests, yaml.CSafeLoader) if each]
    return found


def of_kind(found: list[Json], kind: str, suffix: str = "") -> Json:
    """The only object of that kind whose name ends with `suffix`."""
    [only] = [each for each in found if each["kind"] == kind and each["metadata"]["name"].endswith(suffix)]
    return only


def pods(found: list[Json]) -> dict[str, Json]:
    """Pods by name, and pod templates by the name of their workload."""
    specs = [(each["metadata"]["name"], each.get("spec", {})) for each in found]
    jobs = [(name, spec.get("jobTemplate", {}).get("spec", spec)) for name, spec in specs]
    templates = {name: spec["template"] for name, spec in jobs if "template" in spec}
    return templates | {each["metadata"]["name"]: each for each in found if each["kind"] == "Pod"}


def container(pod: Json) -> dict[str, Any]:
    """Its only container."""
    [only] = pod["spec"]["containers"]
    assert isinstance(only, dict)
    return only
