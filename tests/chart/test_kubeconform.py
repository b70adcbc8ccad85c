"""Every object is valid in every supported version of Kubernetes."""

from pathlib import Path

import pytest
import yaml

from tests.chart.helm import CHART, rendered
from tests.chart.matrix import MATRIX, MONITORED
from tests.chart.schemas import SUPPORTED, problems


@pytest.fixture(scope="session")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rendered manifests of all sets of values."""
    scratch = tmp_path_factory.mktemp("manifests")
    file = scratch / "manifests.yaml"
    file.write_text("".join(rendered(values, scratch) for values in (*MATRIX.values(), MONITORED)))
    return file


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schemas")


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_object_is_valid_in(version: str, manifests: Path, schemas: Path) -> None:
    assert problems(manifests, version=version, folder=schemas) == ""


def test_an_unknown_field_is_reported(manifests: Path, schemas: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(manifests.read_text().replace("enableServiceLinks:", "enableServiceLink:"))

    assert "additional properties 'enableServiceLink' not allowed" in problems(
        wrong, version=SUPPORTED[0], folder=schemas
    )


def test_the_chart_requires_the_oldest_supported_version() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"] == f">={SUPPORTED[0]}.0-0"
