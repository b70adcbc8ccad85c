"""What commands, routes and pages say in two scenarios: of pods that wait, and of pods that others preempt."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from gputally.cli import main
from gputally.demo.demo import MONDAY_SIX_US
from gputally_sim.instants import HOUR_US, MINUTE_US
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.workloads import Work
from tests.conftest import Golden
from tests.fakes.stepped import SteppedCluster, stepped
from tests.surfaces.book import fetched
from tests.surfaces.scenario_books import accounted, begun, settings_of, skip

MANIFEST: Final = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "llm", "namespace": "tenant-beta"},
    "spec": {
        "pytorchReplicaSpecs": {
            role: {
                "replicas": replicas,
                "template": {
                    "spec": {
                        "priorityClassName": "gpu-serving",
                        "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 4}}}],
                    }
                },
            }
            for role, replicas in (("Master", 1), ("Worker", 2))
        }
    },
}


class Asked(NamedTuple):
    """A question and the name of its recorded answer; a path is asked over HTTP, anything else is a command."""

    name: str
    what: str


def aggregator(name: str, command: str) -> tuple[Asked, ...]:
    """A command that asks the aggregator, in both of its formats."""
    return Asked(f"{name}.text", command), Asked(f"{name}.json", f"{command} --output json")


def ledger(name: str, command: str, *formats: str) -> tuple[Asked, ...]:
    """A command that reads the ledger."""
    return tuple(Asked(f"{name}.{each}", f"{command} --window all --output {each}") for each in formats)


WAITING: Final = (
    *aggregator("why-capacity", "why ml-training/llm-pretrain-worker-0"),
    *aggregator("why-gang", "why ml-vision/job/vlm-pretrain"),
    *aggregator("why-inversion", "why ml-inference/llm-api-c8hml5cfhk-h4tkp"),
    *aggregator("why-never-preempts", "why ml-vision/evaluate"),
    *aggregator("why-fragmented", "why ml-vision/export"),
    *aggregator("why-impossible", "why ml-training/llm-16-gpus"),
    *aggregator("why-queued", "why ml-training/distributed"),
    *aggregator("why-quota", "why sandbox/job/ablations"),
    *aggregator("why-quota-never", "why sandbox/job/classifier"),
    *aggregator("why-refused", "why sandbox/job/regression"),
    *aggregator("why-past-wait", "why ml-vision/sweep-jhxbc"),
    *aggregator("why-gone", "why ml-vision/sweep-4n8dd"),
    *aggregator("why-namespace", "why sandbox"),
    *aggregator("why-tenant", "why --tenant vision"),
    *aggregator("why-all", "why --all"),
    *aggregator("fits", "fits"),
    *aggregator("fits-large", "fits --cpu 12 --memory 100Gi --model A100"),
    *aggregator("what-if-fits", "what-if --gpus 1 --model A100 --namespace ml-vision"),
    *aggregator("what-if-preempts", "what-if --gpus 8 --model H100 --class inference-critical --count 2"),
    *aggregator("what-if-waits", "what-if --gpus 2 --model T4 --class training-standard"),
    *aggregator("what-if-never", "what-if --gpus 16 --class training-high"),
    Asked("pending.json", "/api/v1/pending?limit=4&helps=true"),
    Asked("pending-filtered.json", "/api/v1/pending?namespace=ml-vision&reason=never_preempts"),
    Asked("pending.html", "/pending"),
    Asked("pending-filtered.html", "/pending?namespace=ml-vision&reason=fragmented"),
    Asked("why-gang.html", "/pending/why?namespace=ml-vision&job=vlm-pretrain"),
    Asked("why-never-preempts.html", "/pending/why?namespace=ml-vision&pod=evaluate"),
    Asked("why-quota.html", "/pending/why?namespace=sandbox&job=ablations"),
    Asked("why-past-wait.html", "/pending/why?namespace=ml-vision&pod=sweep-jhxbc"),
    Asked("why-gone.html", "/pending/why?namespace=ml-vision&pod=sweep-4n8dd"),
    *ledger("waits", "waits", "table", "markdown", "csv", "json", "html"),
    *ledger("waits-by-occupant", "waits --by occupying_tier,occupying_tenant,reason", "table", "csv"),
    *ledger("waits-by-pod", "waits --by namespace,pod,reason --top 6 --decimals 4", "table", "json"),
    Asked("waits-route.json", "/api/v1/waits?window=all&by=tier,cause"),
)
PREEMPTING: Final = (
    *aggregator("why-preempted", "why tenant-alpha/batch-20612-6-g2pwd"),
    *aggregator("why-preempted-job", "why tenant-alpha/job/serving"),
    *aggregator("what-if-quota", "what-if --gpus 8 --class gpu-training --count 3 --namespace tenant-alpha"),
    *aggregator("what-if-manifest", "what-if MANIFEST"),
    *aggregator("fits", "fits"),
    Asked("pending.html", "/pending"),
    *ledger("preemptions-by-pod", "preemptions --by pod", "table", "csv", "json"),
    *ledger("preemptions-by-job", "preemptions --by job", "table", "csv", "json"),
    *ledger("preemptions-of-a-tenant", "preemptions --where tenant=alpha --tiers-only", "table", "csv"),
    *ledger("waits", "waits --by day,tier,cause", "table", "markdown", "csv", "json", "html"),
    Asked("preemptions-by-pod-route.json", "/api/v1/preemptions?window=all"),
    Asked("preemptions-by-job-route.json", "/api/v1/preemptions?window=all&by=job"),
)


class Site(NamedTuple):
    """An aggregator whose time stands still, and its ledger."""

    url: str
    ledger: str


@asynccontextmanager
async def waiting(scratch: Path) -> AsyncIterator[Site]:
    """Ninety minutes of pods that wait; one of two pods of a Job is beyond a quota that the other one uses up."""
    async with begun("waits", seed=2, at_us=MONDAY_SIX_US + 19 * MINUTE_US) as (cluster, agents):
        work = Work(app="ablations", kind="training", tier="training-low", gpu_model="NVIDIA-H100-80GB-HBM3")
        job = workloads.job(work, work.app, parallelism=2, completions=2)
        cluster.registry.create("jobs", job, "sandbox")
        skip(cluster, cluster.now_us() + MINUTE_US)  # it has one pod when the aggregator starts
        settings = settings_of("waits", scratch, cluster, agents)
        async with stepped(cluster, settings) as running:
            await advanced(running, minutes=75)
            cluster.registry.delete("pods", ("ml-vision", "sweep-4n8dd"))  # it has ended
            await advanced(running, minutes=15)
            yield Site(running.url, settings.ledger)


@asynccontextmanager
async def preempting(scratch: Path) -> AsyncIterator[Site]:
    """An hour in which training preempts serving, batch and notebooks, and a replacement preempts others."""
    async with begun("s2", seed=2, at_us=MONDAY_SIX_US + 4 * HOUR_US) as (cluster, agents):
        settings = settings_of("s2", scratch, cluster, agents)
        async with stepped(cluster, settings) as running:
            await advanced(running, minutes=60)
            yield Site(running.url, settings.ledger)


async def advanced(running: SteppedCluster, *, minutes: int) -> None:
    """The ledger and all answers know what happened in this time."""
    for _ in range(minutes // 15):
        await running.advance(running.now_us() + 15 * MINUTE_US)
    await accounted(running)
    await running.written()


Scene = Callable[[Path], AbstractAsyncContextManager[Site]]
SCENES: Final[Mapping[str, tuple[Scene, tuple[Asked, ...]]]] = {
    "waiting": (waiting, WAITING),
    "preempting": (preempting, PREEMPTING),
}
CASES: Final = [(scene, each.name) for scene, (_, asked) in SCENES.items() for each in asked]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], str]:
    """All answers, by scene and name."""
    return {
        (scene, name): text
        for scene, (play, asked) in SCENES.items()
        for name, text in asyncio.run(answered(play, asked, tmp_path_factory.mktemp(scene)))
    }


async def answered(play: Scene, asked: Iterable[Asked], scratch: Path) -> list[tuple[str, str]]:
    manifest = scratch / "manifest.json"
    manifest.write_text(json.dumps(MANIFEST))
    async with play(scratch) as site:
        return [(each.name, await answer(site, each.what.replace("MANIFEST", str(manifest)))) for each in asked]


async def answer(site: Site, what: str) -> str:
    if what.startswith("/"):
        return await fetched(site.url, what)
    command, *flags = what.split()
    if command in {"waits", "preemptions"}:
        return printed(command, f"--ledger={site.ledger}", *flags)
    return await asyncio.to_thread(printed, command, f"--url={site.url}", *flags)


def printed(*arguments: str) -> str:
    """What the command prints, with its line endings."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="utf-8", newline="")
    with contextlib.redirect_stdout(out):
        status = main(arguments)
    out.flush()
    assert status == 0, arguments
    return raw.getvalue().decode()


@pytest.mark.parametrize(("scene", "name"), CASES)
def test_the_answers_in_a_scenario_are_as_recorded(
    scene: str, name: str, answers: Mapping[tuple[str, str], str], golden: Golden
) -> None:
    golden.check(f"{scene}/{name}", answers[scene, name])
