"""The chart and the image on a real control plane and a real kubelet, from the installation to the removal."""

import asyncio
import csv
import json
import logging
import re
from collections.abc import AsyncIterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.model.units import GPU_HOUR, GPU_SECOND, US_PER_SECOND, to_us
from tests.behaviour.product import Samples, total
from tests.chart.helm import CHART
from tests.cluster.api import Api
from tests.cluster.manifests import GPU, Json, path, priority_class
from tests.node.gpus import ScriptedGpus
from tests.node.installation import NAMESPACE, Installation, mounts_of, process_of, status_of
from tests.node.node import Node, eventually, node_pod
from tests.node.pod_network import PodNetwork
from tests.node.pods import deleted, running
from tests.node.product_image import ProductImage

pytestmark = pytest.mark.node
logger = logging.getLogger(__name__)

TIER = "installed-training"
TENANT = "research"
ALLOCATED = "gputally_allocated_gpu_seconds_total"
USED = "gputally_used_gpu_seconds_total"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
CLOSED = "SELECT pod_uid, start_us, end_us, quantity, tier, tenant FROM current_segments WHERE end_us NOT NULL"
OPEN = "SELECT pod_uid FROM current_segments WHERE end_us IS NULL"
CONTAINER_USED = "gputally_container_used_gpu_seconds_total"
AGENT_INTERVAL_S = 1
AT_WORK_S = 10
KERNELS = re.compile(r"/(proc|sys|dev)(/|$)|/etc/(hosts|hostname|resolv.conf)$")
"""Places of the kernel and of the kubelet, which every container has."""


class Segment(NamedTuple):
    """A piece of a pod's allocation."""

    pod_uid: str
    start_us: int
    end_us: int
    quantity: int
    tier: str
    tenant: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installation(
    node: Node, image: ProductImage, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    scratch = tmp_path_factory.mktemp("installation")
    (scratch / "scripts").mkdir()
    installation = Installation(node, ScriptedGpus(scratch / "scripts" / "gpus.txt", node), scratch)
    async with node.api() as api:
        await api.create(priority_class(TIER, 100))
    with PodNetwork(node.control_plane.port):
        await installation.prepare(image)
        await installation.install()
        yield installation
        await installation.uninstall()


@pytest.fixture
async def tenant(api: Api, place: str) -> str:
    await api.patch(f"/api/v1/namespaces/{place}", {"metadata": {"labels": {"team": TENANT}}})
    return place


async def test_both_run_with_no_right_that_they_do_not_need(installation: Installation) -> None:
    for component, user in (("aggregator", "65532"), ("agent", "0")):
        process = process_of(await installation.pod(component))
        status, mounts = status_of(process), mounts_of(process)
        logger.info("%s: %s KiB in memory", component, status["VmRSS"][0])
        assert set(status["Uid"]) == {user}  # the kubelet's socket is root's, so the agent is, but without a power
        assert {int(status[field][0], 16) for field in ("CapEff", "CapPrm", "CapBnd")} == {0}
        assert (status["NoNewPrivs"], status["Seccomp"]) == (["1"], ["2"])
        assert "ro" in mounts["/"]
        assert (SERVICE_ACCOUNT in mounts) is (component == "aggregator")
        writable = {place for place, options in mounts.items() if "rw" in options and not KERNELS.match(place)}
        assert writable == ({"/var/lib/gputally", "/tmp"} if component == "aggregator" else set())


async def test_the_agent_loads_nothing_of_the_aggregators(installation: Installation) -> None:
    loaded = {
        component: (process_of(await installation.pod(component)) / "maps").read_text()
        for component in ("aggregator", "agent")
    }

    assert {name for name in ("libsqlite3", "_yaml") if name in loaded["aggregator"]} == {"libsqlite3", "_yaml"}
    assert not re.search("libsqlite3|_yaml", loaded["agent"])
    assert "libnvidia-ml.so.1" in loaded["agent"]
    assert not re.search("libnvidia-ml|cygrpc", loaded["aggregator"])


async def test_a_gpu_pod_is_accounted_and_measured(
    installation: Installation, node: Node, api: Api, tenant: str
) -> None:
    before = await installation.scrape("aggregator")
    pod = await running(api, await api.create(node_pod("train", tenant, gpus=1, priorityClassName=TIER)))
    [device] = node.held()[f"{tenant}/train"][GPU]
    await installation.until("aggregator", lambda samples: gained(samples, before, ALLOCATED) > AT_WORK_S)

    await api.delete(path(pod))
    await deleted(api, pod)

    pieces = await charged(installation, pod)
    allocated = sum(each.quantity * (each.end_us - each.start_us) for each in pieces) / GPU_SECOND
    scripted = float(installation.gpus.percent_us(device, pieces[0].start_us, pieces[-1].end_us)) / 100 / US_PER_SECOND
    assert {(each.tier, each.tenant) for each in pieces} == {(TIER, TENANT)}
    assert allocated > AT_WORK_S

    used = await measured(installation, tenant, "train")
    await installation.until("aggregator", lambda samples: abs(gained(samples, before, USED) - used) < 1e-6)
    after = await installation.scrape("aggregator")  # a series that has just begun was shown as 0
    shown = gained(after, before, ALLOCATED)
    logger.info("allocated %.3f, by the ledger %.3f; used %.3f, by the script %.3f", shown, allocated, used, scripted)
    assert abs(shown - allocated) < 0.5  # what was shown before its end was known stays
    assert abs(used - scripted) < 1.5  # by the ledger it is held from its binding on, by the agent when it has devices


async def test_the_ledger_is_inspected_reported_and_backed_up_in_the_shipped_image(
    installation: Installation, tmp_path: Path
) -> None:
    facts = json.loads(await installation.in_aggregator("gputally", "ledger", "info", "--output", "json"))
    assert facts["is_written"] is True
    known = facts["rows"]["open_allocations"] + facts["rows"]["ended_allocations"]

    assert b"no damage" in await installation.in_aggregator("gputally", "ledger", "check")
    query = ("gputally", "ledger", "query", "--output", "csv", "-")
    shown = await installation.in_aggregator(*query, given=b"SELECT count(DISTINCT pod_uid) AS pods FROM allocations")
    assert shown.decode().split() == ["pods", str(known)]

    report = ("gputally", "report", "--window", "all", "--time-zone", "Asia/Kathmandu", "--output", "json")
    bill = json.loads(await installation.in_aggregator(*report), parse_float=Decimal)
    assert bill["window"]["from"].endswith("+05:45")

    copy = tmp_path / "backup.db"
    copy.write_bytes(await installation.in_aggregator("gputally", "backup", "-"))
    with open_reader(str(copy)) as reader:
        assert reader.state().cluster == facts["cluster"]
        window = Window(*(to_us(datetime.fromisoformat(bill["window"][each])) for each in ("from", "to")))
        gpu_time = sum(each.gpu_time for each in reader.allocated(window, ()))
    assert sum(each["gpu_hours"] for each in bill["totals"]) == round(Decimal(gpu_time) / GPU_HOUR, 6)
    assert [each.name for each in installation.volume.glob("*.partial")] == []


async def test_an_upgrade_goes_on_counting(installation: Installation, api: Api, tenant: str) -> None:
    pod = await running(api, await api.create(node_pod("steady", tenant, gpus=2, priorityClassName=TIER)))
    before = await installation.until("aggregator", lambda samples: total(samples, "gputally_allocated_gpus") == 2)
    old, rows = await installation.pod("aggregator"), closed(installation)

    await installation.helm(
        "upgrade",
        "gputally",
        str(CHART),
        "--reuse-values",
        "--set=aggregator.agentsInterval=2",
        "--wait",
        "--timeout=2m",
    )

    new = await installation.pod("aggregator")
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert "--agents.interval=2" in new["spec"]["containers"][0]["args"]
    after = await installation.until("aggregator", lambda samples: gained(samples, before, ALLOCATED) > 0)
    fallen = {name for name in before if is_counter(name) and after.get(name, 0) < before[name]}
    assert fallen == set()
    assert rows <= closed(installation)
    await api.delete(path(pod))
    pieces = await charged(installation, pod)
    assert [each.end_us for each in pieces[:-1]] == [each.start_us for each in pieces[1:]]


async def test_the_reports_of_tenants_are_delivered_over_http(installation: Installation, api: Api) -> None:
    folder = await installation.claim("showback")
    chosen = ("--set=reports.enabled=true", "--set=reports.existingClaim=showback", "--set=reports.window=all")
    await installation.helm("upgrade", "gputally", str(CHART), "--reuse-values", *chosen, "--wait", "--timeout=2m")
    name = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/gputally-reports"
    job = (await api.get(name))["spec"]["jobTemplate"]
    address = (await installation.pod("aggregator"))["status"]["podIP"]
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["args"] = [  # no DNS here
        f"--url=http://{address}:9836" if each.startswith("--url=") else each for each in container["args"]
    ]
    metadata = {"name": "reports-now", "namespace": NAMESPACE}

    created = await api.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job["spec"]})
    await api.wait_for(path(created), lambda found: bool(found and found["status"].get("succeeded")), within=60)

    [period] = folder.iterdir()
    assert {each.suffix for each in period.glob(f"{TENANT}.*")} == {".html", ".md", ".csv"}
    rows = list(csv.DictReader((period / f"{TENANT}.csv").read_text().splitlines()))
    assert {row["job"] for row in rows} == {"train", "steady"}
    assert sum(Decimal(row["cost"]) for row in rows) > 0
    await api.delete(path(created))


async def test_the_charts_own_test_passes(installation: Installation) -> None:
    said = await installation.helm("test", "gputally", "--timeout=1m")

    assert re.search(r"Phase:\s+Succeeded", said)


async def test_the_books_outlive_the_release(installation: Installation) -> None:
    before, rows = await installation.scrape("aggregator"), closed(installation)

    await installation.uninstall()

    assert rows
    assert closed(installation) == rows
    await installation.install()
    after = await installation.scrape("aggregator")
    books = {name: value for name, value in before.items() if name[0] in (ALLOCATED, USED) and value}
    assert books.items() <= after.items()
    assert closed(installation) == rows


def gained(samples: Samples, before: Samples, name: str) -> float:
    """By the tests' pods since."""
    return total(samples, name, tier=TIER, tenant=TENANT) - total(before, name, tier=TIER, tenant=TENANT)


def is_counter(sample: tuple[str, frozenset[tuple[str, str]]]) -> bool:
    """Of the books: those of the process begin anew with it."""
    return sample[0].endswith("_gpu_seconds_total")


async def measured(installation: Installation, namespace: str, pod: str) -> float:
    """GPU-seconds that the pod used, as the agent says when it has told the last of it."""
    told = -1.0
    async with asyncio.timeout(30):
        while told != (now := total(await installation.scrape("agent"), CONTAINER_USED, namespace=namespace, pod=pod)):
            told = now
            await asyncio.sleep(3 * AGENT_INTERVAL_S)
    return told


async def charged(installation: Installation, pod: Json) -> list[Segment]:
    """How the pod was charged, once all of it is."""
    uid = pod["metadata"]["uid"]
    await eventually(lambda: any(segment.pod_uid == uid for segment in closed(installation)))
    await eventually(lambda: not [row for row in installation.ledger(OPEN) if row[0] == uid])
    return sorted(segment for segment in closed(installation) if segment.pod_uid == uid)


def closed(installation: Installation) -> set[Segment]:
    """All that has ended."""
    return {Segment(*row) for row in installation.ledger(CLOSED)}
