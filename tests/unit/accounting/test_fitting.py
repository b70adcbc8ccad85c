"""What fits now agrees with what is free."""

from dataclasses import replace

import pytest

from gputally.accounting.waiting import fitting as fitting_module
from gputally.model.kube.kinds import Kind
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay

POD = PodForm(name="a", gpus=8, node="n1", scheduled=5, started=6)


def full(*names: str) -> Replay:
    replay = Replay()
    replay.relist(Kind.NODES, *(NodeForm(name=name) for name in names), at=1, since=None)
    replay.relist(Kind.PODS, *(replace(POD, name=f"on-{name}", node=name) for name in names), at=10, since=None)
    replay.fleet.waiting.judge(at_us=us(11))
    return replay


def fitting(replay: Replay) -> int:
    """Pods of 8 GPUs, without any renewal of the verdicts."""
    found = replay.fleet.waiting.read()
    assert found
    return sum(count for (*_, size), count in found.fits.items() if size == 8)


def test_a_scrape_right_after_a_change_shows_what_fits_then() -> None:
    replay = full("n1")
    assert fitting(replay) == 0

    replay.lose(replace(POD, name="on-n1"), at=20)
    assert fitting(replay) == 1
    replay.see(replace(POD, name="next", scheduled=20, started=21), at=21)
    assert fitting(replay) == 0


def test_a_scrape_looks_only_at_some_of_many_changed_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting_module, "MOST_AT_READ", 1)
    replay = full("n1", "n2")

    replay.lose(*(replace(POD, name=f"on-{name}", node=name) for name in ("n1", "n2")), at=20)

    assert fitting(replay) == 1
    replay.fleet.waiting.judge(at_us=us(21))
    assert fitting(replay) == 2
