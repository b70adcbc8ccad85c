"""The Workloads of Kueue that are kept since it may preempt others for them."""

import pytest

from gputally.accounting.disruptions.queues import queue_preemptors
from tests.core.kueue import kueue_workload, unreserved
from tests.unit.accounting.test_preemptions import counted
from tests.unit.accounting.test_queue_preemptors import (
    ADMITTED,
    END,
    EVICTED,
    HIGH,
    HIGH_OWNER,
    HIGH_UID,
    LATER,
    PREEMPTED,
    WAITING,
    WORKLOADS,
    running,
    says,
    stop,
)


def test_a_preemptor_that_is_deleted_meanwhile_has_its_tier() -> None:
    replay = running()
    says(replay, WAITING, PREEMPTED, at=EVICTED)
    replay.lose_object(WORKLOADS, WAITING, at=EVICTED + 1)
    stop(replay)

    assert counted(replay, LATER) == HIGH


def test_a_preemptor_without_gpus_has_its_tier() -> None:
    replay = running()
    cpu = kueue_workload(
        unreserved(900), name="wl-high", uid=HIGH_UID, owner=HIGH_OWNER, tier="high", gpus={"worker": 0}
    )
    says(replay, cpu, PREEMPTED, at=EVICTED)
    stop(replay)

    assert counted(replay, LATER) == HIGH


def test_workloads_that_wait_no_longer_are_forgotten_after_an_hour() -> None:
    replay = running()
    says(replay, WAITING, at=901)
    says(replay, ADMITTED, at=END)
    known = replay.fleet.ends.preemptions._workloads.known
    replay.scrape(END + 3500)
    assert HIGH_UID in known

    replay.scrape(END + 3700)

    assert HIGH_UID not in known
    says(replay, ADMITTED, at=END + 4000)
    assert HIGH_UID not in known, "an old one is listed"


def test_a_namespace_with_many_workloads_displaces_only_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_preemptors, "MOST", 3)
    replay = running()
    says(replay, *(kueue_workload(unreserved(900), name=f"w{n}", uid=f"uid-{n}") for n in range(4)), at=901)

    assert list(replay.fleet.ends.preemptions._workloads.known) == ["uid-1", "uid-2", "uid-3"]
