"""A runner of commands, a folder that also shows what they leave, and a Prometheus with pods of the past."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.kube_state import KubeState
from tests.fakes.prometheus_history import FakePrometheus, serving_history
from tests.unit.commands.pod_history import SCRAPES
from tests.unit.commands.sample import Runner


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture
def history() -> Iterator[FakePrometheus]:
    history = FakePrometheus()
    with serving_history(history):
        yield history


@pytest.fixture
def state(history: FakePrometheus) -> KubeState:
    found = KubeState(history, SCRAPES)
    found.node("n1", {"label_nvidia_com_gpu_product": "A100"})
    found.node("n2", {"label_nvidia_com_gpu_product": "H100", "label_agentpool": "big"})
    return found


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "history.db"
