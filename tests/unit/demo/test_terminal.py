"""The demo on a terminal."""

import asyncio
import errno
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios

import pytest

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
HOME = b"\x1b[H"
"""Each frame begins with it."""


async def read(terminal: int) -> bytes:
    """What the terminal shows next: at most a page of it, however large the read; empty once its program has ended."""
    readable, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(terminal, readable.set)
    try:
        await readable.wait()
        return os.read(terminal, 65_536)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""
    finally:
        loop.remove_reader(terminal)


async def shown(terminal: int, text: bytes) -> bytes:
    """Read what the terminal shows until a whole frame contains the text; that frame."""
    seen = b""
    async with asyncio.timeout(20):
        while True:
            seen += await read(terminal)
            for frame in seen.split(HOME)[1:-1]:
                if text in frame:
                    return ESCAPES.sub(b"", frame)


async def rest(terminal: int) -> bytes:
    """What the terminal shows until its program ends."""
    seen = b""
    while more := await read(terminal):
        seen += more
    return seen


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_it_fits_the_terminal_and_leaves_it_clean(asked: signal.Signals) -> None:
    theirs, ours = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.set_blocking(theirs, False)
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gputally", "demo", "--speed", "3600"),
        stdin=ours,
        stdout=ours,
        env=environment | {"TERM": "xterm"},
    )
    os.close(ours)
    try:
        frame = await shown(theirs, b" allocated")
        process.send_signal(asked)
        async with asyncio.timeout(20):
            with_end = await rest(theirs)
            status = await process.wait()
    finally:
        os.close(theirs)

    lines = frame.decode().splitlines()
    assert len(lines) <= 24
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert re.search(r"^8 GPUs: .* allocated", frame.decode(), re.MULTILINE)
    assert status == 0
    assert b"\x1b[?1049l" in with_end, "the alternate screen is left"
    assert with_end.rstrip().endswith(b"demo ended")
