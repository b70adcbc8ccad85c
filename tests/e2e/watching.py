"""The aggregator with optional watches, and the rights that the chart grants for them."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.behaviour.product import Product
from tests.chart.helm import objects, of_kind, rendered
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.e2e.rights import grant, logged_in, revoke, rights_of, until_granted


@asynccontextmanager
async def watching(
    api: Api,
    control_plane: ControlPlane,
    place: str,
    scratch: Path,
    *,
    values: Iterable[str],
    environment: Mapping[str, str],
) -> AsyncIterator[Product]:
    """One with this `environment` that is not started yet: `values` of `watch` in the chart are on."""
    role = of_kind(objects(rendered({"watch": dict.fromkeys(values, True)}, scratch)), "ClusterRole")
    rights, account = rights_of(role["rules"]), f"watching-{place}"
    made = await grant(api, account, place, rights)
    await until_granted(api, account, place, rights)
    kubeconfig = await logged_in(api, control_plane, account, place, scratch / "kubeconfig")
    found = Product(scratch, kubeconfig, environment=environment)
    yield found
    await found.kill()
    await revoke(api, made)
