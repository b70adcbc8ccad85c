"""Looks up the workloads that Events FailedCreate name: what their pods request, and how many of them are missing."""

import asyncio
import logging
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from gputally.accounting.uncreated.evaluation import READABLE
from gputally.aggregator.owner_lookup import OwnerQueue
from gputally.aggregator.pipeline import Pipeline
from gputally.errors import ApiError, ApiForbidden
from gputally.kube.api import Api
from gputally.kube.discovery import Served
from gputally.kube.failures import AnswerTooLarge, LoginRefused, RequestRefused, remedy
from gputally.kube.owners import DEADLINE_SECONDS, FORBIDDEN_SECONDS, MOST_BYTES, path_of
from gputally.model.kube.meta import Owner
from gputally.model.kube.workloads import Workload
from gputally.model.observation import WorkloadResolved
from gputally.process.clock import Clock
from gputally.process.log import Once

logger = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 0.05
"""Between two lookups: whoever creates Events must not make the aggregator send many requests."""
_AGAIN_SECONDS: Final = 20.0


class WorkloadLookup:
    """Looks up one workload after the other, in turns by namespace, and again until it lacks no pods."""

    def __init__(self, api: Api, pipeline: Pipeline, *, clock: Clock) -> None:
        self._api = api
        self._intake = pipeline.intake
        self._uncreated = pipeline.fleet.uncreated
        self._reconciled = pipeline.accountant.reconciled
        self._clock = clock
        self._now = asyncio.get_running_loop().time
        self._queue = OwnerQueue()
        self._forbidden_until_s: dict[str, float] = {}
        self._log = Once(logger, "workloads without pods")

    async def run(self) -> None:
        """Forever: look up what is due."""
        while True:
            for wanted in self._uncreated.drain_wanted():
                self._queue.put(wanted)
            owner = self._queue.take(self._now())
            if owner is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(self._queue.due_s):
                        await self._reconciled.wait()
                continue
            self._queue.done(owner, again_s=await self._again_s(owner))
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _again_s(self, owner: Owner) -> float | None:
        """Look up a workload; returns when to do so again, None for one that lacks no pods."""
        if not self._uncreated.is_refused(owner):
            return None
        forbidden_s = self._forbidden_until_s.get(owner.reference.kind, 0.0)
        if forbidden_s > self._now():
            await self._put(owner, None, is_known=False)
            return forbidden_s
        try:
            await self._put(owner, await self._found(owner))
            self._log.forget()
        except LoginRefused as error:
            self._log.warn(str(error))
        except ApiForbidden:
            self._log.warn(f"those of kind {owner.reference.kind} are known by Events alone: {remedy(_path(owner))}")
            self._forbidden_until_s[owner.reference.kind] = self._now() + FORBIDDEN_SECONDS
            await self._put(owner, None, is_known=False)
        except AnswerTooLarge:
            await self._put(owner, None, is_known=False)
        except ApiError as error:
            self._log.warn(str(error))
        return self._now() + _AGAIN_SECONDS

    async def _found(self, owner: Owner) -> Workload | None:
        """The workload; None if it is gone. Raises: ApiError."""
        try:
            found = await self._api.get_json(
                _path(owner), {}, Workload, most_bytes=MOST_BYTES, deadline_s=DEADLINE_SECONDS
            )
        except RequestRefused as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return found if found.metadata.uid == owner.reference.uid else None

    async def _put(self, owner: Owner, found: Workload | None, *, is_known: bool = True) -> None:
        answer = WorkloadResolved(owner=owner, found=found, at_us=self._clock(), is_known=is_known)
        await self._intake.put([answer])


def _path(owner: Owner) -> str:
    version, kind = owner.reference.api_version, owner.reference.kind
    assert (version, kind) in READABLE
    return path_of(Served(version, f"{kind.lower()}s", namespaced=True), owner)
