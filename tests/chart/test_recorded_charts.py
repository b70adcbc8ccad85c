"""An upgrade from a released chart works, as recorded without dashboards: nothing that Kubernetes refuses to change."""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.chart.helm import CHART, IMAGED, RELEASE, objects, rendered, run
from tests.cluster.manifests import Json

RECORDED: Final = sorted((Path(__file__).parent / "recorded").glob("*.tgz"))
IMMUTABLE: Final = {
    "Deployment": ("selector",),
    "DaemonSet": ("selector",),
    "PersistentVolumeClaim": ("accessModes", "storageClassName", "volumeName"),
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
}
"""Fields that an upgrade cannot change, of the object or its spec."""


def fixed(manifests: str) -> dict[tuple[str, str], Json]:
    """The immutable fields by kind and name."""
    found = (each for each in objects(manifests) if each["kind"] in IMMUTABLE)
    return {(each["kind"], each["metadata"]["name"]): _fields(each) for each in found}


def _fields(each: Json) -> dict[str, Any]:
    whole = each | each.get("spec", {})
    return {name: whole.get(name) for name in IMMUTABLE[each["kind"]]}


@pytest.mark.parametrize("chart", RECORDED, ids=lambda chart: chart.stem)
def test_an_upgrade_changes_no_field_that_kubernetes_keeps(chart: Path, tmp_path: Path) -> None:
    before, after = fixed(rendered({}, tmp_path, chart=chart)), fixed(rendered({}, tmp_path))

    assert ("PersistentVolumeClaim", "gputally-ledger") in before
    assert {key: value for key, value in after.items() if key in before} == before


@pytest.mark.parametrize("chart", RECORDED, ids=lambda chart: chart.stem)
def test_all_values_of_a_recorded_chart_are_valid_in_this_one(chart: Path, tmp_path: Path) -> None:
    """`helm upgrade --reuse-values` passes them all, with the defaults of the older chart."""
    (values := tmp_path / "values.yaml").write_text(run("show", "values", str(chart)))

    assert objects(run("template", RELEASE, str(CHART), "--values", str(values), *IMAGED))
