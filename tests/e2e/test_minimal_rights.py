"""Every permission of the chart's role is necessary, and together they are sufficient for the aggregator."""

from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import count
from pathlib import Path

import pytest

from gputally.kube.watched import resources
from gputally.model.kube.kinds import OPTIONAL_RESOURCES
from gputally.model.rules import Rules
from tests.behaviour.product import Product, Samples, total
from tests.chart.helm import objects, of_kind, rendered
from tests.chart.matrix import MATRIX
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.e2e.owned import KINDS, furnish
from tests.e2e.rights import Right, allowed, bind, grant, logged_in, revoke, rights_of, until_granted

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets of killed servers
]

NUMBERS = count(1)
REQUIRED = ("pods", "nodes", "namespaces")
OPTIONAL = ("events", "jobs", "priorityclasses")
LISTED = REQUIRED + OPTIONAL
SERVED = [each for each in OPTIONAL_RESOURCES if "." not in each]
"""Those of Kubernetes itself: this server has no resources of other projects."""
WATCHED = [each.kind for each in resources(Rules())]


def watches_of(*resources: str) -> list[str]:
    """Events are watched by reason."""
    return [kind.value for kind in WATCHED if kind.value.partition("/")[0] in resources]


JOBS = """
SELECT job_kind, job FROM allocations a WHERE namespace = '{place}'
AND revision = (SELECT max(revision) FROM allocations b WHERE b.pod_uid = a.pod_uid) ORDER BY job
"""
WALKED = {kind: f"{kind.lower()}s" for kind in KINDS}

Started = Callable[..., Coroutine[None, None, Product]]
"""Called with permissions, and optionally the name of the account."""


@pytest.fixture
def rights(tmp_path: Path) -> list[Right]:
    """All permissions that the chart grants."""
    return rights_of(of_kind(objects(rendered({}, tmp_path)), "ClusterRole")["rules"])


@pytest.fixture
async def launch(api: Api, control_plane: ControlPlane, place: str, tmp_path: Path) -> AsyncIterator[Started]:
    """Launches the aggregator as a ServiceAccount with exactly the given permissions."""
    made = []
    products: list[Product] = []

    async def launched(rights: list[Right], name: str = "") -> Product:
        name = name or f"minimal-{next(NUMBERS)}"
        made.extend(await grant(api, name, place, rights))
        await until_granted(api, name, place, rights)
        kubeconfig = await logged_in(api, control_plane, name, place, tmp_path / "kubeconfig")
        products.append(Product(tmp_path, kubeconfig))
        await products[-1].launch()
        return products[-1]

    yield launched
    for product in products:
        await product.kill()
    await revoke(api, made)


def without(rights: list[Right], resource: str, verb: str) -> list[Right]:
    kept = [right for right in rights if right[1:] != (resource, verb)]
    assert len(kept) == len(rights) - 1
    return kept


async def test_all_features_work_with_all_permissions(
    launch: Started, rights: list[Right], api: Api, place: str
) -> None:
    await furnish(api, place)

    product = await launch(rights)
    await product.ready()

    await product.query_until(JOBS.format(place=place), lambda rows: rows == expected_jobs())
    samples = await product.scrape()
    assert refused_watches(samples) == 0
    assert total(samples, "gputally_capacity_gpus") == 8
    assert await product.stop() == 0


def expected_jobs(**others: tuple[str, str]) -> list[tuple[str, str]]:
    """The jobs of the pods; `others` overrides them by kind of workload."""
    jobs = {kind: ("ConfigMap", f"top-{kind.lower()}") for kind in KINDS} | others
    return sorted(jobs.values(), key=lambda job: job[1])


def refused_watches(samples: Samples, **labels: str) -> float:
    return total(samples, "gputally_watch_errors_total", reason="forbidden", **labels)


@pytest.mark.parametrize("resource", REQUIRED)
async def test_the_aggregator_does_not_start_without_a_required_list_permission(
    resource: str, launch: Started, rights: list[Right]
) -> None:
    product = await launch(without(rights, resource, "list"))

    assert await product.ended() == 3
    assert f"grant list,watch on {resource} in API group" in product.log.read_text()


@pytest.mark.parametrize("resource", OPTIONAL)
async def test_the_aggregator_starts_without_optional_permissions_and_uses_them_once_granted(
    resource: str, launch: Started, rights: list[Right], api: Api, place: str
) -> None:
    account = f"without-{resource}"
    product = await launch([right for right in rights if right[1] != resource], account)
    await product.ready()

    samples = await product.scrape()
    assert total(samples, "gputally_watch_available", resource=resource) == 0
    missing = watches_of(resource)
    assert total(samples, "gputally_watch_synced") == len(WATCHED) - len(missing)
    assert f"grant list,watch on {resource} in API group" in product.log.read_text()
    more = await bind(api, account, place, [right for right in rights if right[1] == resource], role=f"{account}-more")
    samples = await product.until(lambda samples: total(samples, "gputally_watch_synced") == len(WATCHED))
    assert all(total(samples, "gputally_watch_available", resource=each) == 1 for each in missing)
    await revoke(api, more)


async def test_optional_watches_work_with_what_the_chart_grants_for_them(
    launch: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUTALLY_WATCH", ",".join(OPTIONAL_RESOURCES))
    values = {"watch": MATRIX["guarded"]["watch"]}
    product = await launch(rights_of(of_kind(objects(rendered(values, tmp_path)), "ClusterRole")["rules"]))
    await product.ready()

    await product.until(lambda samples: all(is_connected(samples, each) for each in (*WATCHED, *SERVED)))
    samples = await product.scrape()
    assert refused_watches(samples) == 0


def is_connected(samples: Samples, resource: str) -> bool:
    """Whether a watch is connected; which others are depends on the CRDs that tests have installed."""
    return total(samples, "gputally_watch_connected", resource=resource) == 1


async def test_optional_watches_without_a_right_take_nothing_else_down(
    launch: Started, rights: list[Right], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUTALLY_WATCH", ",".join(OPTIONAL_RESOURCES))
    product = await launch(rights)
    await product.ready()

    with_refusals = len(WATCHED) + 1  # they are Events, on which it has the right
    samples = await product.until(lambda samples: total(samples, "gputally_watch_connected") == with_refusals)
    for resource, group in (("poddisruptionbudgets", "policy"), ("resourcequotas", "")):
        assert total(samples, "gputally_watch_available", resource=resource) == 0
        assert f"grant list,watch on {resource} in API group '{group}'" in product.log.read_text()


@pytest.mark.parametrize("resource", LISTED)
async def test_a_missing_watch_permission_is_reported(resource: str, launch: Started, rights: list[Right]) -> None:
    product = await launch(without(rights, resource, "watch"))
    await product.ready()

    missing = watches_of(resource)
    connected = len(WATCHED) - len(missing)
    await product.until(lambda samples: all(refused_watches(samples, resource=each) > 0 for each in missing))
    samples = await product.until(lambda samples: total(samples, "gputally_watch_connected") == connected)
    assert refused_watches(samples) == sum(refused_watches(samples, resource=each) for each in missing)
    assert all(total(samples, "gputally_watch_connected", resource=each) == 0 for each in missing)


@pytest.mark.parametrize(
    ("kind", "jobs"),
    [
        (
            "ReplicaSet",
            {"ReplicaSet": ("ReplicaSet", "replicaset"), "Deployment": ("ReplicaSet", "hand-made")},
        ),
        ("Deployment", {"Deployment": ("Deployment", "deployment")}),
        ("StatefulSet", {"StatefulSet": ("StatefulSet", "statefulset")}),
        ("DaemonSet", {"DaemonSet": ("DaemonSet", "daemonset")}),
    ],
)
async def test_without_a_get_permission_the_owner_walk_ends_at_the_kind_below(
    kind: str, jobs: dict[str, tuple[str, str]], launch: Started, rights: list[Right], api: Api, place: str
) -> None:
    await furnish(api, place)

    product = await launch(without(rights, WALKED[kind], "get"))
    await product.ready()

    await product.query_until(JOBS.format(place=place), lambda rows: rows == expected_jobs(**jobs))
    assert f"those of kind {kind} stay unknown" in product.log.read_text()


async def test_every_permission_has_a_test(rights: list[Right]) -> None:
    tested = {(resource, verb) for resource in LISTED for verb in ("list", "watch")}

    assert {right[1:] for right in rights} == tested | {(resource, "get") for resource in WALKED.values()}


async def test_the_account_cannot_change_pods_or_read_secrets(
    launch: Started, rights: list[Right], api: Api, place: str
) -> None:
    await launch(rights)
    account = f"minimal-{next(NUMBERS) - 1}"

    for verb in ("create", "update", "patch", "delete"):
        assert not await allowed(api, account, place, ("", "pods", verb))
    for resource in ("secrets", "configmaps", "serviceaccounts"):
        assert not await allowed(api, account, place, ("", resource, "get"))
