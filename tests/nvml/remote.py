"""pynvml in a process of its own, for which library it loads is settled once."""

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, Self

from tests.nvml.build import environment
from tests.nvml.script import Script

CALLER: Final = Path(__file__).with_name("caller.py")
PATIENCE_SECONDS: Final = 20
"""No test waits this long; it turns a hang into a failure."""


class Refused(Exception):
    """NVML answered with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"NVML answered {code}")
        self.code = code


class Remote:
    """A node with the GPUs of a script, and a process that has initialised NVML on it."""

    def __init__(self, path: Path) -> None:
        self.errors = path.with_suffix(".stderr")
        self._path = path
        self._numbers = itertools.count()
        self._pending: dict[int, Future[Any]] = {}

    def __enter__(self) -> Self:
        with self.errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(CALLER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | environment(self._path),
                text=True,
            )
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        self._listener.join(PATIENCE_SECONDS)
        self._process.stdout.close()

    def play(self, script: Script) -> None:
        """From its next call on the process sees this."""
        script.write(self._path)

    def start(self, expression: str) -> "Future[Any]":
        """Evaluate it in a new thread over there."""
        assert self._process.stdin
        number = next(self._numbers)
        answer = self._pending[number] = Future[Any]()
        self._process.stdin.write(json.dumps([number, expression]) + "\n")
        self._process.stdin.flush()
        return answer

    def ask(self, expression: str) -> Any:  # noqa: ANN401 - the test knows what it asks for
        """Raises: Refused."""
        return self.start(expression).result(PATIENCE_SECONDS)

    def code(self, expression: str) -> int:
        """What NVML answers, 0 for success."""
        try:
            self.ask(expression)
        except Refused as refused:
            return refused.code
        return 0

    def until(self, condition: Callable[[], bool]) -> None:
        """Return once it holds: the library goes by the real clock."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            reply = json.loads(line)
            pending = self._pending.pop(reply["number"])
            if "code" in reply:
                pending.set_exception(Refused(reply["code"]))
            elif "mistake" in reply:
                pending.set_exception(AssertionError(reply["mistake"]))
            else:
                pending.set_result(reply["value"])
