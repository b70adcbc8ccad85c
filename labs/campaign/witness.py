"""Records every update of every pod from the store behind the API server, independent of API server outages."""

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

import aiohttp

from gputally_sim.api.store import Change, Store
from tests.behaviour.recorder import Record
from tests.cluster.api import LONGEST_LINE
from tests.cluster.manifests import Json

FIRST_POD, AFTER_PODS = (base64.b64encode(key).decode() for key in (b"/registry/pods/", b"/registry/pods0"))
WATCHED = {"key": FIRST_POD, "range_end": AFTER_PODS}


@contextmanager
def store_witness(store: Store) -> Iterator[Record]:
    """Record each write of the simulated cluster's store."""
    record = Record()

    def record_change(change: Change) -> None:
        record.take(str(change.verb), change.now.doc)

    unsubscribe = store.subscribe("pods", record_change)
    yield record
    unsubscribe()


class EtcdWitness(Record):
    """Watches etcd, which keeps its history across restarts; the API server must store JSON.

    Every change is in etcd, so nothing is missed while the API server is down.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._uids: dict[str, str] = {}
        """UIDs of existing pods by etcd key."""
        self._revision = 0

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(self._url, read_bufsize=LONGEST_LINE, timeout=aiohttp.ClientTimeout())
        async with self._session.post("/v3/kv/range", json={**WATCHED, "count_only": True}) as response:
            answer = await response.json()
        assert int(answer.get("count", 0)) == 0, "the cluster should hold no pods yet"
        self._revision = int(answer["header"]["revision"])
        self._task = asyncio.create_task(self._record())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._session.close()

    def is_complete(self) -> bool:
        if self._task.done():
            self._task.result()  # raises the error that ended it
        return super().is_complete()

    async def _record(self) -> None:
        while True:
            with suppress(aiohttp.ClientError):  # etcd is restarting
                await self._watch()
            await asyncio.sleep(0.02)

    async def _watch(self) -> None:
        request = {"create_request": {**WATCHED, "start_revision": str(self._revision + 1)}}
        async with self._session.post("/v3/watch", json=request) as response:
            async for line in response.content:
                for event in json.loads(line)["result"].get("events", ()):
                    self._take_event(event)

    def _take_event(self, event: Json) -> None:
        entry = event["kv"]
        self._revision = int(entry["mod_revision"])
        if event.get("type") == "DELETE":
            uid = self._uids.pop(entry["key"])
            self.take("DELETED", self.forms[uid][-1][1])
            return
        pod = json.loads(base64.b64decode(entry["value"]))
        kind = "MODIFIED" if entry["key"] in self._uids else "ADDED"
        self._uids[entry["key"]] = pod["metadata"]["uid"]
        self.take(kind, pod)
