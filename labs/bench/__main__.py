"""Benchmarks gputally and its peers on a real API server: `python -m labs.bench --help`."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hack import build
from labs.bench import (
    machine,
    measure_latency,
    measure_peer,
    measure_pending,
    measure_scrape,
    measure_start,
    measure_watch,
    micro_exposition,
    micro_ledger,
    micro_pending_api,
    micro_pipeline,
    micro_placement,
)
from labs.bench.churn import EVENTS_PER_LIFE
from labs.bench.figure import STATED_PODS, Figure
from labs.bench.load import Loader
from labs.bench.record import record
from labs.bench.results import Results
from labs.bench.server import ApiServer
from labs.bench.subject import Aggregator, resident_mib
from labs.bench.waiting import add_others, block_spare_nodes, wait_for_gpus
from tests.behaviour.conftest import grant_documented_rights
from tests.cluster.api import Api

LIVES = 2000
"""Number of pods created and deleted while a watch is recorded."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """The measured cluster; all files are written below `folder`."""

    server: ApiServer
    loader: Loader
    folder: Path


def main() -> int:
    """Return 0 if all measurements succeed, even if goals are missed; else 1."""
    plan = parser().parse_args()
    results = Results(plan.output)
    results.add(machine.describe())
    if plan.micro:
        for module in (micro_pipeline, micro_exposition, micro_ledger, micro_placement, micro_pending_api):
            with results.attempt(module.__name__):
                results.add(module.measure())
    if plan.steps:
        build.build_missing((build.ETCD, build.API_SERVER, *([build.KUBE_STATE_METRICS] if plan.ksm else [])))
        asyncio.run(on_cluster(plan, results))
    results.save()
    return 1 if results.failed else 0


def parser() -> argparse.ArgumentParser:
    """The command line; by default everything is measured."""
    parser = argparse.ArgumentParser(prog="python -m labs.bench", description=__doc__)
    add = parser.add_argument
    add(
        "--steps",
        type=int,
        nargs="*",
        default=[1000, 5000, 20_000],
        metavar="PODS",
        help="how many pods the cluster grows to, one after the other; none: no cluster [default: 1000 5000 20000]",
    )
    add(
        "--settle",
        type=float,
        default=60,
        metavar="SECONDS",
        help="how long after ready memory is measured again, at each step [default: 60]",
    )
    add(
        "--events",
        type=int,
        default=100_000,
        metavar="N",
        help="how many events of a recorded watch to play, 0 for none; at the last step up to 20000 [default: 100000]",
    )
    add(
        "--pending",
        type=int,
        default=2000,
        metavar="PODS",
        help="how many pods wait for GPUs as verdicts are timed at the last step, 0 for none [default: 2000]",
    )
    add(
        "--others",
        type=int,
        default=0,
        metavar="PODS",
        help="how many pods without GPUs there are then, such as 100000 (some three minutes more) [default: 0]",
    )
    add("--output", type=Path, default=Path("build/bench.json"), metavar="FILE", help="default: %(default)s")
    for name, what in (
        ("ksm", "kube-state-metrics"),
        ("latency", "the time from event to metric"),
        ("micro", "stages"),
    ):
        add(f"--no-{name}", dest=name, action="store_false", help=f"leave out {what}")
    return parser  # fmt: skip


async def on_cluster(plan: argparse.Namespace, results: Results) -> None:
    """Grow one cluster step by step, and measure at each step."""
    with TemporaryDirectory(prefix="gputally-bench-") as scratch:
        folder = Path(scratch)
        async with ApiServer(folder) as server, Api(server.url, server.token("admin"), server.ca_file) as api:
            await grant_documented_rights(api)
            site = Site(server=server, loader=Loader(api), folder=folder)
            await site.loader.prepare()
            for pods in sorted(plan.steps):
                await site.loader.grow(pods)
                await at_size(plan, results, site)
                if pods == compared_at(plan.steps):
                    await compared(plan, results, site)
            if plan.pending:
                await with_pending(plan, results, site)


async def at_size(plan: argparse.Namespace, results: Results, site: Site) -> None:
    """Run the measurements of each step."""
    pods = site.loader.pods
    results.add([machine.rest(pods)])
    with Aggregator(site.folder / str(pods), site.server.kubeconfig("gputally")) as aggregator:
        with results.attempt(f"start@{pods}"):
            results.add(measure_start.measure(site.server, aggregator, pods))
        with results.attempt(f"scrape@{pods}"):
            results.add(measure_scrape.measure(aggregator, pods, settle_seconds=plan.settle))
        if plan.latency:
            with results.attempt(f"latency@{pods}"):
                results.add(await measure_latency.measure(site.loader, aggregator))
    results.add([Figure(f"apiserver.memory_mib@{pods}", resident_mib(site.server.pid), "MiB")])


async def with_pending(plan: argparse.Namespace, results: Results, site: Site) -> None:
    """Measure verdicts with pods that wait, at the size of the last step; then again beside pods without GPUs."""
    await block_spare_nodes(site.loader)
    await wait_for_gpus(site.loader, plan.pending)
    for others in dict.fromkeys((0, plan.others)):
        if others:
            await add_others(site.loader, others)
        folder, kubeconfig = site.folder / f"pending-{others}", site.server.kubeconfig("gputally")
        with results.attempt(f"pending, {others} others"), Aggregator(folder, kubeconfig) as aggregator:
            measured = await measure_pending.measure(site.loader, aggregator, waiting=plan.pending, others=others)
            results.add(measured)


async def compared(plan: argparse.Namespace, results: Results, site: Site) -> None:
    """Run the measurements that are done once, and those of peers."""
    pods = site.loader.pods
    if plan.ksm:
        with results.attempt("kube-state-metrics"):
            results.add(measure_peer.measure(site.server, site.folder, pods))
    if plan.events:
        with results.attempt("recorded watch"):
            recording = site.folder / "recorded"
            recording.mkdir()
            await record(site.server, site.loader, recording, lives=min(LIVES, plan.events // EVENTS_PER_LIFE))
            results.add(measure_watch.measure(recording, pods, events=plan.events))


def compared_at(steps: Sequence[int]) -> int:
    """The step for the one-time measurements: the largest that does not exceed the size of the goals."""
    return max((pods for pods in steps if pods <= STATED_PODS), default=min(steps))


if __name__ == "__main__":
    sys.exit(main())
