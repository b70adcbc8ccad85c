"""The single writer of the fleet: applies observations, and returns snapshots and changes."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from gputally.accounting.changes import Changes
from gputally.accounting.fleet.active_pods import Active, read_active
from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.fleet.snapshot import Snapshot, publish
from gputally.accounting.fleet.work_at_risk import RiskNow, read_risk
from gputally.accounting.totals.total import Lines
from gputally.errors import MalformedObject
from gputally.model.health import Health
from gputally.model.observation import Bookmark, Deleted, Observation, OtherPod, Upserted, UsageReported
from gputally.model.unaccounted import REMEDIES, WORDS, Unaccounted
from gputally.process.log import Once

if TYPE_CHECKING:
    from gputally.model.node_record import LabelConflict

logger = logging.getLogger(__name__)

LINGER_SECONDS: Final = 0.1
"""How long pod updates stay pending, to be accounted together; each read accounts them first."""
_REPEATED: Final = (Bookmark, OtherPod, UsageReported)
"""What a process that resumes from an earlier checkpoint gets again, from the API server and from agents."""


class Accountant:
    """The fleet, changed by one task only.

    After any error except a malformed object, the fleet may be inconsistent: further calls raise RuntimeError.
    """

    def __init__(self, fleet: Fleet, health: Health) -> None:
        self.fleet = fleet
        self.changed = asyncio.Event()
        """Set after each observation; the ledger writer clears it."""
        self.must_write_soon = asyncio.Event()
        """Set after an observation that is lost in a crash, as neither API server nor agent repeats it."""
        self.reconciled = asyncio.Event()
        """Wakes its waiters after updates were accounted; it never stays set. Replaces polling."""
        self.is_sound = True
        self._health = health
        self._updated = asyncio.Event()
        self._warned_nodes: set[str] = set()
        self._warned_conflicts: set[tuple[str, LabelConflict]] = set()
        self._limit_overflow = Once(logger, "a limit is reached")
        self._warned_reasons: set[Unaccounted] = set()
        self._malformed = Once(logger, "excluded from the accounting")
        self._unaccounted = Once(logger, "not accounted")

    def take(self, observations: Sequence[Observation]) -> None:
        """Observe `observations`. A malformed one is counted, logged and skipped."""
        with self._exclusive():
            for observation in observations:
                try:
                    self.fleet.observe(observation)
                except MalformedObject as error:
                    self._skip(observation, error)
        self._warn_of_faulty_agents()
        self._warn_of_label_conflicts()
        self._updated.set()
        self.changed.set()
        if not all(isinstance(observation, _REPEATED) for observation in observations):
            self.must_write_soon.set()

    async def keep_reconciled(self, then: Callable[[], None]) -> None:
        """Forever: account pending updates after LINGER_SECONDS, then call `then`.

        While the verdicts that follow from them take long to renew, they are renewed less often.
        """
        linger_s = LINGER_SECONDS
        while True:
            await self._updated.wait()
            updated = time.monotonic()
            self._updated.clear()
            await asyncio.sleep(linger_s)
            with self._exclusive():
                self.fleet.reconcile()
                started = time.monotonic()
                self.fleet.judge()
            ended = time.monotonic()
            self._health.verdicts.renewed(ended - updated)
            linger_s = max(LINGER_SECONDS, ended - started)
            self._continue_judging()
            self._warn_of_unaccounted()
            then()
            self.reconciled.set()
            self.reconciled.clear()

    def advance(self, *, now_us: int) -> None:
        """Account everything up to `now_us`, also if nothing changed since."""
        with self._exclusive():
            self.fleet.advance(now_us)
        self._continue_judging()

    def publish(self, *, now_us: int, differences: Lines) -> Snapshot:
        """The snapshot to export at `now_us`. `differences` are from the ledger, see `snapshot.publish`."""
        with self._exclusive():
            snapshot = publish(self.fleet, now_us=now_us, ledger=differences)
        self._continue_judging()
        self._warn_beyond_limits(snapshot)
        return snapshot

    def read_active(self, *, now_us: int) -> Active:
        """The pods that hold GPUs or wait for them, and the nodes, at `now_us`."""
        with self._exclusive():
            return read_active(self.fleet, now_us=now_us)

    def read_risk(self, *, now_us: int) -> RiskNow:
        """The running pods, whose work a preemption would destroy at `now_us`."""
        with self._exclusive():
            return read_risk(self.fleet, now_us=now_us)

    def drain(self) -> Changes:
        """Changes to write to the ledger, since the last call."""
        with self._exclusive():
            return self.fleet.drain()

    def _continue_judging(self) -> None:
        """Renew the remaining verdicts soon, also those that follow from the time alone."""
        if self.fleet.is_behind:
            self._updated.set()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if not self.is_sound:
            raise RuntimeError("the accounting has failed; its error ends the process")
        self.is_sound = False
        yield
        self.is_sound = True

    def _skip(self, observation: Observation, error: MalformedObject) -> None:
        if isinstance(observation, Upserted | Deleted):
            skipped = self._health.skipped
            skipped[observation.kind] = skipped.get(observation.kind, 0) + 1
        self._malformed.warn(str(error))

    def _warn_beyond_limits(self, snapshot: Snapshot) -> None:
        """Log each kind and namespace once of which not all objects are kept."""
        for kind, overflow in snapshot.limit_overflow.items():
            if overflow.count:
                self._limit_overflow.warn(f"not all {kind} of the namespace {overflow.namespace} are kept")

    def _warn_of_faulty_agents(self) -> None:
        """Log each agent with implausible usage once."""
        faulty = self.fleet.faulty_agents
        if len(faulty) > len(self._warned_nodes):
            for node in faulty.keys() - self._warned_nodes:
                logger.warning("some usage that the agent on %s reports is excluded: %s", node, faulty[node].value)
            self._warned_nodes.update(faulty)

    def _warn_of_label_conflicts(self) -> None:
        """Log each node whose GPU labels contradict its units once, and again if they do so in another way."""
        for uid, node, conflict in self.fleet.take_label_conflicts():
            if (uid, conflict) not in self._warned_conflicts:
                self._warned_conflicts.add((uid, conflict))
                logger.warning("node %s: %s", node, conflict.sentence)

    def _warn_of_unaccounted(self) -> None:
        """Log each reason once, with a pod, and each unknown device that nodes offer."""
        for reason, named in self.fleet.unaccounted_examples():
            if reason not in self._warned_reasons:
                self._warned_reasons.add(reason)
                what = f"GPUs that pods request ({WORDS[reason]}), for example {named}"
                self._unaccounted.warn(f"{what}: {REMEDIES[reason]}")
        for resource in self.fleet.unknown_devices():
            self._unaccounted.warn(f"{resource}, which nodes offer: no rule weighs it; add one if it is a GPU")
