"""Helm on a real API server: install, upgrade, and what an uninstall leaves."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tests.behaviour.product import Product
from tests.chart.helm import CHART, IMAGED, Refused, run
from tests.chart.test_recorded_charts import RECORDED
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import Json, namespace
from tests.e2e.rights import logged_in

pytestmark = pytest.mark.e2e

NUMBERS = count(1)
Helm = Callable[..., str]


@pytest.fixture
async def place(api: Api) -> AsyncIterator[str]:
    name = f"installed-{next(NUMBERS)}"
    await api.create(namespace(name))
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def helm(control_plane: ControlPlane, place: str) -> Iterator[Helm]:
    """Helm in that namespace; afterwards it uninstalls the release `gputally`."""
    here = partial(run, "--kubeconfig", str(control_plane.kubeconfig("admin")), "--namespace", place)
    yield here
    here("uninstall", "gputally", "--ignore-not-found")


async def test_an_installation_has_all_its_objects(helm: Helm, api: Api, place: str) -> None:
    said = helm("install", "gputally", str(CHART), *IMAGED)

    assert "port-forward service/gputally-aggregator 9836" in said
    deployment = await api.get(f"/apis/apps/v1/namespaces/{place}/deployments/gputally-aggregator")
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    await api.get(f"/apis/apps/v1/namespaces/{place}/daemonsets/gputally-agent")


async def test_a_bad_value_fails_the_installation_and_leaves_nothing(helm: Helm, api: Api, place: str) -> None:
    with pytest.raises(Refused, match=r"at '/priceBook/currency': value must be one of"):
        helm("install", "gputally", str(CHART), *IMAGED, "--set", "priceBook.currency=EURO")

    assert (await api.list(f"/apis/apps/v1/namespaces/{place}/deployments"))["items"] == []


async def test_an_upgrade_keeps_the_token(helm: Helm, api: Api, place: str) -> None:
    helm("install", "gputally", str(CHART), *IMAGED)
    first = await token(api, place)

    helm("upgrade", "gputally", str(CHART), *IMAGED)

    assert len(first) == 64
    assert await token(api, place) == first


async def token(api: Api, place: str) -> str:
    secret = await api.get(f"/api/v1/namespaces/{place}/secrets/gputally-token")
    return str(secret["data"]["token"])


@pytest.mark.parametrize("older_values", ["{}", "{agent: {port: 9000}, ledger: {size: 1Gi}}"])
async def test_an_upgrade_that_reuses_the_values_of_an_older_chart_works(
    older_values: str, helm: Helm, api: Api, place: str, tmp_path: Path
) -> None:
    older = shutil.copytree(CHART, tmp_path / "gputally")
    (older / "values.yaml").write_text(older_values)
    helm("install", "gputally", str(older), *IMAGED, "--set", "log.level=debug")

    helm("upgrade", "gputally", str(CHART), "--reuse-values")

    arguments = await aggregator_arguments(api, place)
    assert "--log.level=debug" in arguments
    assert f"--agents.port={9000 if 'agent' in older_values else 9837}" in arguments


@pytest.mark.parametrize("chart", RECORDED, ids=lambda chart: chart.stem)
async def test_an_upgrade_from_a_recorded_chart_works(chart: Path, helm: Helm, api: Api, place: str) -> None:
    helm("install", "gputally", str(chart), *IMAGED, "--set", "log.level=debug")

    helm("upgrade", "gputally", str(CHART), "--reuse-values")

    assert "--log.level=debug" in await aggregator_arguments(api, place)


async def aggregator_arguments(api: Api, place: str) -> list[str]:
    found = await api.get(f"/apis/apps/v1/namespaces/{place}/deployments/gputally-aggregator")
    [container] = found["spec"]["template"]["spec"]["containers"]
    arguments: list[str] = container["args"]
    return arguments


async def test_the_ledger_outlives_the_release_and_is_used_again(helm: Helm, api: Api, place: str) -> None:
    helm("install", "gputally", str(CHART), *IMAGED)
    kept = await claim(api, place)

    helm("uninstall", "gputally")
    await api.wait_for_items(f"/apis/apps/v1/namespaces/{place}/deployments", lambda items: not items)
    helm("install", "gputally", str(CHART), *IMAGED)

    assert (await claim(api, place))["metadata"]["uid"] == kept["metadata"]["uid"]


async def test_the_installed_service_account_is_sufficient_for_the_aggregator(
    helm: Helm, api: Api, control_plane: ControlPlane, place: str, tmp_path: Path
) -> None:
    helm("install", "gputally", str(CHART), *IMAGED)

    kubeconfig = await logged_in(api, control_plane, "gputally", place, tmp_path / "kubeconfig")
    product = Product(tmp_path, kubeconfig)
    await product.start()

    assert await product.stop() == 0


async def claim(api: Api, place: str) -> Json:
    return await api.get(f"/api/v1/namespaces/{place}/persistentvolumeclaims/gputally-ledger")
