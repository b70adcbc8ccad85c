"""From observations to metrics and ledger: the four parts that these pass."""

import sys
from collections.abc import Iterable
from typing import NamedTuple

from gputally import __version__
from gputally.accounting.fleet import Fleet
from gputally.aggregator.accountant import Accountant
from gputally.aggregator.exposition import Exposition
from gputally.aggregator.intake import LIMIT, Intake
from gputally.aggregator.ledger_writer import LedgerWriter
from gputally.ledger.protocol import Ledger
from gputally.model.health import Health, LedgerHealth, WatchHealth
from gputally.model.kube import Kind
from gputally.process.clock import Clock


class Pipeline(NamedTuple):
    """The parts of an aggregator.

    Watches, agents and lookups fill the `intake`, the `accountant` takes it in; what follows from it is written by the
    `writer` and shown by the `exposition`. All of them write `health`.
    """

    intake: Intake
    accountant: Accountant
    writer: LedgerWriter
    exposition: Exposition
    health: Health

    @property
    def fleet(self) -> Fleet:
        """The state that all is shown of."""
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
    """The parts for a fleet and its ledger; see `Intake` for `first` and `limit`."""
    health = Health(version=__version__, python=sys.version.split()[0], watches=watches, ledger=LedgerHealth())
    intake, accountant = Intake(first, limit=limit), Accountant(fleet, health)
    writer = LedgerWriter(
        ledger, accountant, health.ledger, clock=clock, is_busy=lambda: bool(intake.size) or fleet.coverage.is_listing
    )
    exposition = Exposition(intake, accountant, writer, health, clock=clock)
    return Pipeline(intake, accountant, writer, exposition, health)
