"""The four stages from observations to metrics and ledger."""

import sys
from collections.abc import Iterable
from typing import NamedTuple

from gputally import __version__
from gputally.accounting.fleet.fleet import Fleet
from gputally.aggregator.accountant import Accountant
from gputally.aggregator.exposition import Exposition
from gputally.aggregator.intake import LIMIT, Intake
from gputally.aggregator.ledger_writer import LedgerWriter
from gputally.kube.watched import Resource, resources
from gputally.ledger.protocol import Ledger
from gputally.model.health import Health, LedgerHealth, WatchHealth
from gputally.model.kube.kinds import Kind
from gputally.process.clock import Clock


class Pipeline(NamedTuple):
    """The parts of an aggregator.

    Watches, agents and lookups put observations into the `intake`; the `accountant` applies them; the `writer` stores
    the changes; the `exposition` exports the state. All of them update `health`.
    """

    intake: Intake
    accountant: Accountant
    writer: LedgerWriter
    exposition: Exposition
    health: Health

    @property
    def fleet(self) -> Fleet:
        """The state of the accounting."""
        return self.accountant.fleet


def assemble(
    fleet: Fleet,
    ledger: Ledger,
    *,
    clock: Clock,
    watches: tuple[WatchHealth, ...] = (),
    first: Iterable[Kind] = (),
    limit: int = LIMIT,
) -> Pipeline:
    """Create the parts for a fleet and its ledger; see `Intake` for `first` and `limit`."""
    health = Health(version=__version__, python=sys.version.split()[0], watches=watches, ledger=LedgerHealth())
    intake = Intake(first, kinds=[each.kind for each in watches] or Kind, limit=limit)
    accountant = Accountant(fleet, health)
    writer = LedgerWriter(
        ledger, accountant, health.ledger, clock=clock, is_busy=lambda: bool(intake.size) or fleet.is_listing
    )
    exposition = Exposition(intake, accountant, writer, health, clock=clock)
    return Pipeline(intake, accountant, writer, exposition, health)


def watched_by(fleet: Fleet) -> tuple[Resource, ...]:
    """The resources that the fleet needs."""
    return resources(fleet.rules, matters=fleet.matters if fleet.explains_waits else None)
