"""What each step of the accounting may cost, counted in Python calls and bytes: both are the same on any machine.

`CEILINGS` has one number for each step, close to what it costs. A change that needs more raises the number to what is
measured, and says in its commit why that is worth it; one that needs less lowers it, which the test demands. Time
follows calls: some 0.3 µs for each on the machine of docs/contributing/performance.md.
"""

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

from gputally.accounting.fleet.snapshot import publish
from gputally.catalog.all import FLEET
from gputally.catalog.metric import Columns
from gputally.exposition.text_format import render
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Deleted, Upserted
from gputally.reports.bill import bill_of
from gputally.reports.bill_rows import RowChoice, rows_of
from tests.core.manifests import NodeForm, PodForm, as_pod, us
from tests.core.replay import Replay
from tests.fakes.stream import BOOK
from tests.unit.reports.cells import cell, price

ROOT: Final = Path(__file__).parents[2]

CEILINGS: Final[Mapping[str, float]] = {
    "calls for a new pod": 213,
    "calls for a pod that starts": 135,
    "calls for an event that says nothing new": 43,
    "calls for a pod that succeeds": 158,
    "calls for the deletion of a pod that has succeeded": 145,
    "calls for the deletion of a pod that runs": 276,
    "calls for a scrape": 2000,
    "calls for a row of a report": 6.8,
    "bytes for a running pod": 2050,
}
"""The bytes are those that the accounting holds, once the ledger has what it needs. A process of its own measures: in
one that ran other tests, caches are full of what these left."""
_TIGHT: Final = 0.97
"""A ceiling is as low as this part of it is needed."""
_PODS: Final = 400
_WARM: Final = 100
"""Pods before those that count: they fill the caches, and create the series."""
_OF_A_JOB: Final = 4
_numbers = count()
A100: Final = {"nvidia.com/gpu.product": "A100"}

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions of Python call otherwise")


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    """What each step costs now."""
    command, environment = (sys.executable, "-m", __name__), os.environ | {"PYTHONHASHSEED": "0"}
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment).stdout
    return {name: float(each) for name, each in json.loads(printed).items()}


@pytest.mark.parametrize("step", CEILINGS)
def test_a_step_costs_no_more_than_it_did(step: str, found: Mapping[str, float]) -> None:
    ceiling = CEILINGS[step]
    assert found[step] <= ceiling, f"{found[step]:.1f} {step}, more than {ceiling}; make it cheaper, or say why not"
    assert found[step] >= ceiling * _TIGHT, f"{found[step]:.1f} {step}; lower the ceiling of {ceiling}"


def calls(step: Callable[[], object]) -> int:
    """How many Python functions are called, and generators resumed."""
    found = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal found
        found += event == "call"

    gc.disable()  # collectors may have hooks
    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)
        gc.enable()
    return found


def pods() -> list[PodForm]:
    """Bound pods with one GPU, four in each Job, eight on each node."""
    return [
        PodForm(
            name=f"job-{number // _OF_A_JOB}-{number}",
            created=10,
            labels={"team": "red", "batch.kubernetes.io/job-name": f"job-{number // _OF_A_JOB}"},
            tier="training",
            priority=10,
            node=f"n{place // 8}",
            scheduled=11,
            accepted=12,
            owners=(
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": f"job-{number // _OF_A_JOB}",
                    "uid": f"uid-of-job-{number // _OF_A_JOB}",
                    "controller": True,
                },
            ),
        )
        for place in range(_WARM + _PODS)
        for number in [next(_numbers)]
    ]


def started(pod: PodForm) -> PodForm:
    return replace(pod, version=2, started=15)


def ready(pod: PodForm) -> PodForm:
    return replace(started(pod), version=3)


def succeeded(pod: PodForm) -> PodForm:
    return replace(ready(pod), version=4, phase="Succeeded", finished=18)


def cluster() -> Replay:
    replay = Replay(book=BOOK, opened=0)
    replay.see(*(NodeForm(name=f"n{number}", labels=A100) for number in range((_WARM + _PODS) // 8 + 1)), at=1)
    replay.relist_objects(Kind.JOBS, at=2)
    return replay


def calls_for_each(replay: Replay, forms: Iterable[PodForm], *, at: int, is_deleted: bool = False) -> float:
    """Calls to observe and reconcile, for each pod after the first ones."""
    event = Deleted if is_deleted else Upserted
    events = [event(kind=Kind.PODS, object=as_pod(form), at_us=us(at), since_us=us(at)) for form in forms]
    replay.fleet.advance(us(at))  # so that no round is due

    def account(some: Iterable[Upserted | Deleted]) -> None:
        for each in some:
            replay.fleet.observe(each)
        replay.fleet.reconcile()

    account(events[:_WARM])
    found = calls(lambda: account(events[_WARM:])) / _PODS
    replay.flush()
    return found


def life_of_a_pod() -> dict[str, float]:
    replay, forms = cluster(), pods()

    return {
        "calls for a new pod": calls_for_each(replay, forms, at=14),
        "calls for a pod that starts": calls_for_each(replay, map(started, forms), at=16),
        "calls for an event that says nothing new": calls_for_each(replay, map(ready, forms), at=17),
        "calls for a pod that succeeds": calls_for_each(replay, map(succeeded, forms), at=19),
        "calls for the deletion of a pod that has succeeded": calls_for_each(
            replay, map(succeeded, forms), at=20, is_deleted=True
        ),
    }


def deletion_of_a_running_pod() -> float:
    replay, forms = cluster(), [started(pod) for pod in pods()]
    calls_for_each(replay, forms, at=16)

    return calls_for_each(replay, forms, at=19, is_deleted=True)


def a_scrape() -> float:
    replay, forms = cluster(), [started(pod) for pod in pods()]
    calls_for_each(replay, forms, at=16)

    def scrape(at: int) -> bytes:
        replay.fleet.waiting.judge(at_us=us(at))
        snapshot = publish(replay.fleet, now_us=us(at), ledger={})
        rows = ((metric, metric.rows(snapshot)) for metric in FLEET)
        return render(
            ((metric, each if isinstance(each, Columns) else list(each)) for metric, each in rows), openmetrics=False
        )

    scrape(30)
    scrape(31)

    return calls(lambda: scrape(32))


def a_row_of_a_report() -> float:
    paid = price("2.50")

    def report() -> int:
        cells = [cell(1, paid, line=f"line-{number}") for number in range(_PODS)]
        return sum(len(each.rows) for each in rows_of(bill_of(cells), RowChoice(2)))

    assert report() == _PODS
    return calls(report) / _PODS


def bytes_of_a_running_pod() -> float:
    replay, forms = cluster(), [started(pod) for pod in pods()]
    observe = replay.fleet.observe

    def account(some: Iterable[PodForm]) -> None:
        for form in some:
            observe(Upserted(kind=Kind.PODS, object=as_pod(form), at_us=us(16), since_us=us(16)))
        replay.fleet.advance(us(30))
        replay.fleet.drain()
        gc.collect()

    account(forms[:_WARM])
    tracemalloc.start()
    try:
        account(forms[_WARM:])
        found, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    return found / _PODS


if __name__ == "__main__":
    json.dump(
        life_of_a_pod()
        | {
            "calls for the deletion of a pod that runs": deletion_of_a_running_pod(),
            "calls for a scrape": a_scrape(),
            "calls for a row of a report": a_row_of_a_report(),
            "bytes for a running pod": bytes_of_a_running_pod(),
        },
        sys.stdout,
    )
