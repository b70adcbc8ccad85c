"""The JSON schemas of Kubernetes objects by version, in the format that kubeconform reads."""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from hack.build import KUBECONFORM, MODULES, required

SUPPORTED = tuple(f"1.{minor}" for minor in range(30, 37))
_OPERATOR = "github.com/prometheus-operator/prometheus-operator"


def problems(manifests: Path, *, version: str, folder: Path) -> str:
    """The problems that kubeconform finds in a file for that version, or ""; writes the schemas to `folder`.

    Skips objects of the Prometheus Operator: tests with a real API server check these.
    """
    target = folder / version
    target.mkdir(parents=True, exist_ok=True)
    kinds = set(re.findall(r"^kind: (\w+)", manifests.read_text(), re.MULTILINE))
    for schema in published(version, kinds):
        (target / schema.name).write_text(localised(schema.read_text()))
    monitoring = ",".join(
        f"monitoring.coreos.com/v1/{kind}" for kind in ("PodMonitor", "PrometheusRule", "ServiceMonitor")
    )
    arguments = [
        "-strict",
        f"-skip={monitoring}",
        f"-schema-location={target}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json",
    ]
    result = subprocess.run([KUBECONFORM.path, *arguments, manifests], capture_output=True, text=True, check=False)
    return result.stdout + result.stderr


def published(version: str, kinds: Iterable[str]) -> Iterator[Path]:
    """The strict schemas of these kinds in the package kubernetes-validate, and the definitions they refer to."""
    found = find_spec("kubernetes_validate")
    assert found, "kubernetes-validate is not installed"
    assert found.origin
    [folder] = Path(found.origin).parent.glob(f"kubernetes-json-schema/v{version}.*-local-strict")
    yield folder / "_definitions.json"
    for kind in kinds:
        yield from folder.glob(f"{kind.lower()}-*.json")


def localised(schema: str) -> str:
    """Make the schema refer to the local definitions file, not to one on the network."""
    document = json.loads(schema)
    document.pop("$id", None)
    return json.dumps(document).replace('"/api/_definitions.json#', '"_definitions.json#')


@cache
def operator_crds() -> Path:
    """The folder of CustomResourceDefinitions in the pinned module of the Prometheus Operator; fetches it once."""
    return module_folder(_OPERATOR, "prometheus-operator") / "example" / "prometheus-operator-crd"


def module_folder(module: str, folder: str) -> Path:
    """The sources of a module that `binaries/<folder>` pins; fetches them once."""
    fetched = subprocess.run(
        ["go", "mod", "download", "-json", f"{module}@{required(module, folder)}"],
        cwd=MODULES / folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(json.loads(fetched.stdout)["Dir"])
