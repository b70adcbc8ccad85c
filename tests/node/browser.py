"""A headless Chromium, driven by the DevTools protocol.

Source: chromedevtools.github.io/devtools-protocol (Target, Page, Runtime, Emulation, Input, Accessibility, Network).
"""

import asyncio
import re
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import ClientSession, ClientWebSocketResponse

from tests.fakes.until import PATIENCE_SECONDS
from tests.node.packages import CHROMIUM, install_missing

_LISTENING: Final = re.compile(rb"DevTools listening on (ws://\S+)")
Json = dict[str, Any]


class Page:
    """One page; `requests` are the URLs that it has loaded, `messages` what it wrote to the console."""

    def __init__(self, socket: ClientWebSocketResponse, session: str) -> None:
        self.requests: list[str] = []
        self.messages: list[str] = []
        self._socket = socket
        self._session = session
        self._number = 0

    async def call(self, method: str, **parameters: Any) -> Json:  # noqa: ANN401 - as the protocol has them
        """Call a method; events on the way are recorded."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters, "sessionId": self._session}
        await self._socket.send_json(message)
        return await self._until(lambda found: found.get("id") == number)

    async def open(self, url: str) -> None:
        """Load `url`, and wait until it is shown."""
        for domain in ("Page", "Network", "Log", "Runtime", "Accessibility"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=url)
        await self._until(lambda found: found.get("method") == "Page.loadEventFired")

    async def evaluate(self, expression: str) -> Any:  # noqa: ANN401 - a value of JavaScript
        """The JSON value of an expression."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"]["result"]["value"]

    async def press(self, key: str, code: int) -> None:
        """Press and release a key."""
        for kind in ("rawKeyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    async def accessible(self) -> list[tuple[str, str]]:
        """Role and name of everything that a screen reader finds, in order."""
        found = await self.call("Accessibility.getFullAXTree")
        nodes = (each for each in found["result"]["nodes"] if not each.get("ignored"))
        return [(each["role"]["value"], each.get("name", {}).get("value", "")) for each in nodes]

    async def _until(self, is_it: Any) -> Json:  # noqa: ANN401 - a condition of a message
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                found: Json = await self._socket.receive_json()
                self._record(found)
                if is_it(found):
                    return found

    def _record(self, found: Json) -> None:
        match found.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(found["params"]["request"]["url"])
            case "Log.entryAdded":
                self.messages.append(found["params"]["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.messages.append(found["params"]["exceptionDetails"]["text"])


@asynccontextmanager
async def browsing(scratch: Path) -> AsyncIterator[Page]:
    """An empty page of a Chromium that is installed if needed, and ends with the block."""
    install_missing(CHROMIUM)
    process = await asyncio.create_subprocess_exec(
        CHROMIUM["chromium"],
        "--headless=new",
        "--no-sandbox",  # root has none
        "--disable-gpu",
        "--remote-debugging-port=0",
        f"--user-data-dir={scratch}",
        "about:blank",
        stderr=PIPE,
    )
    try:
        async with ClientSession() as session, session.ws_connect(await _address(process), max_msg_size=0) as socket:
            yield await _page(socket)
    finally:
        process.kill()
        await process.wait()


async def _address(process: Process) -> str:
    assert process.stderr
    async with asyncio.timeout(PATIENCE_SECONDS):
        while line := await process.stderr.readline():
            if match := _LISTENING.search(line):
                return match[1].decode()
    raise RuntimeError("Chromium ended before it was ready")


async def _page(socket: ClientWebSocketResponse) -> Page:
    browser = Page(socket, "")
    target = await browser.call("Target.createTarget", url="about:blank")
    attached = await browser.call("Target.attachToTarget", targetId=target["result"]["targetId"], flatten=True)
    return Page(socket, attached["result"]["sessionId"])
