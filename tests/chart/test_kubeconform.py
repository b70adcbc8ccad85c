"""Every object is one of every version of Kubernetes that is supported."""

from pathlib import Path

import pytest
import yaml

from tests.chart.helm import CHART, rendered
from tests.chart.matrix import MATRIX, MONITORED
from tests.chart.schemas import SUPPORTED, problems


@pytest.fixture(scope="session")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that the chart makes of all sets of values."""
    scratch = tmp_path_factory.mktemp("manifests")
    file = scratch / "manifests.yaml"
    file.write_text("".join(rendered(values, scratch) for values in (*MATRIX.values(), MONITORED)))
    return file


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schemas")


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_object_fits_the_schemas_of(version: str, manifests: Path, schemas: Path) -> None:
    assert problems(manifests, version=version, folder=schemas) == ""


def test_a_field_that_does_not_exist_is_found(manifests: Path, schemas: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(manifests.read_text().replace("enableServiceLinks:", "enableServiceLink:"))

    assert "additional properties 'enableServiceLink' not allowed" in problems(
        wrong, version=SUPPORTED[0], folder=schemas
    )


def test_the_oldest_version_is_the_one_that_the_chart_asks_for() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"] == f">={SUPPORTED[0]}.0-0"
