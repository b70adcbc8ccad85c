"""Keys of `gputally top`."""

import asyncio
import os
import pty

import pytest

from gputally.commands.from_aggregator.top import _keys


async def test_keys_are_read_without_enter_and_a_closed_terminal_quits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its input is ready forever, and `gputally top` would use a whole core after its window was closed."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with _keys() as keys:
            os.write(ours, b"nj")
            pressed = [await asyncio.wait_for(keys.get(), 10) for _ in "nj"]
            os.close(ours)
            last = await asyncio.wait_for(keys.get(), 10)

    assert (pressed, last) == (["n", "j"], "q")
