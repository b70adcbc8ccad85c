"""A runner of commands, and a folder that also shows what they leave."""

import pytest

from tests.unit.ledger_commands.sample import Runner


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)
