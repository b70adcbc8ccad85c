"""Counts the work that was lost as containers restarted: the pod kept its GPUs, and did it again."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from gputally.accounting.facts.allocation import held
from gputally.accounting.jobs.checkpoints import Checkpoints, declared_interval, has_work
from gputally.accounting.lost_work.container_restarts import ContainerRestarts, LostRun
from gputally.accounting.lost_work.loss_book import LossBook, PodLoss
from gputally.accounting.lost_work.work_since_checkpoint import PodWork, merged, spans_of, within
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals
from gputally.model.disruptions import Cause, Victim
from gputally.model.lost_work import WorkCheckpoint, WorkSpan
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

_CAUSE: Final = Cause.CONTAINER_RESTART
_TOGETHER_US: Final = US_PER_HOUR
"""Restarts of a pod so long after one are in its row: a crash loop has 24 rows a day, however often it restarts."""


class RestartLosses:
    """Losses by pod and time, in the same book as those of disruptions.

    The losses of one pod in an hour are charged to the first of them, which the ledger has as one row.
    `shared` returns the checkpoints that the group of a pod stated.
    """

    def __init__(
        self,
        restarts: ContainerRestarts,
        book: LossBook,
        totals: Totals,
        *,
        checkpoints: Checkpoints,
        shared: Callable[[str], Iterable[WorkCheckpoint]],
        rules: Rules,
    ) -> None:
        self._restarts = restarts
        self._book = book
        self._totals = totals
        self._checkpoints = checkpoints
        self._shared = shared
        self._rules = rules
        self._of_pod: dict[str, set[str]] = {}
        """The losses in the book, by UID of the pod."""
        self._rows: dict[str, Victim] = {}
        """The last row of each pod, by its UID; after a start of the process, each pod begins another one."""
        self._unwritten: dict[str, Victim | None] = {}

    def restore(self, uids: Iterable[str]) -> None:
        """Restore the losses with these UIDs, which are in the book."""
        for each in uids:
            self._of_pod.setdefault(each.partition("/")[0], set()).add(each)

    def account(self, records: Mapping[str, PodRecord], *, at_us: int) -> None:
        """Account the runs of these pods that ended since the last call."""
        for uid in [uid for uid in self._restarts.lost if uid in records]:
            for run in self._restarts.lost.pop(uid):
                self._add(run, records[uid], at_us)

    def revise(self, record: PodRecord, *, at_us: int) -> None:
        """A pod has other segments, or other prices."""
        for uid in self._of_pod.get(record.uid, ()):
            loss = self._book.known.get(uid)
            if loss and loss.work.has_work:
                work = loss.work
                spans = _spans(record, work.started_us or 0, work.end_us)
                self._book.keep(replace(loss, work=replace(work, spans=spans)), at_us=at_us)

    def forget(self) -> None:
        """Drop what the book has forgotten."""
        known = self._book.known.keys()
        self._of_pod = {uid: kept for uid, each in self._of_pod.items() if (kept := each & known)}
        self._rows = {uid: row for uid, row in self._rows.items() if row.victim_uid in known}

    def drain_rows(self) -> dict[str, Victim | None]:
        """New losses since the last call, as the ledger has disruptions."""
        unwritten, self._unwritten = self._unwritten, {}
        return unwritten

    def _add(self, run: LostRun, record: PodRecord, at_us: int) -> None:
        work = self._work_of(run, record)
        if not work.has_work or run.to_us <= self._totals.accounting_start_us or work.uid in self._book.known:
            return
        shared = [each for each in self._shared(run.uid) if each.at_us <= run.to_us]
        row = self._row_of(work.uid, run, record)
        loss = PodLoss(
            work=work,
            is_victim=row.victim_uid == work.uid,
            noticed_us=run.noticed_us,
            charged_to=row.victim_uid,
            cause=_CAUSE,
            shared=tuple(sorted(shared, key=lambda each: each.at_us)[-1:]),
            is_final=True,
        )
        self.restore((work.uid,))
        self._book.keep(loss, at_us=at_us)
        self._totals.count(Total.DISRUPTIONS, (*record.terms[-1].labels[:2], _CAUSE.value), 1, at_us=at_us)

    def _row_of(self, uid: str, run: LostRun, record: PodRecord) -> Victim:
        """The row that this loss counts in: that of the last hour, unless the pod has other terms since."""
        last, new = self._rows.get(run.uid), _row(uid, run, record)
        if last and last.decided_us <= run.to_us < last.decided_us + _TOGETHER_US and _terms(last) == _terms(new):
            return last
        self._rows[run.uid] = self._unwritten[uid] = new
        return new

    def _work_of(self, run: LostRun, record: PodRecord) -> PodWork:
        stated = self._checkpoints.of(run.uid)
        works = bool(record.terms) and has_work(record, stated, self._rules)
        return PodWork(
            uid=f"{run.uid}/restart-{run.to_us // US_PER_SECOND}",
            created_us=record.created_us,
            started_us=run.from_us,
            requested_us=None,
            end_us=run.to_us,
            has_work=works,
            spans=_spans(record, run.from_us, run.to_us) if works else (),
            saved=(run.saved,) if run.saved else (),
            interval_us=stated.interval_us or declared_interval(record, self._rules),
        )


def _spans(record: PodRecord, from_us: int, to_us: int) -> tuple[WorkSpan, ...]:
    return merged(within(spans_of(record, until_us=to_us), [(from_us, to_us)]))


def _terms(row: Victim) -> tuple[str, ...]:
    """The columns by which reports filter and group restarts; a row has one value of each."""
    return row.victim_tier, row.victim_tenant, row.job_kind, row.job, str(row.quantity)


def _row(uid: str, run: LostRun, record: PodRecord) -> Victim:
    terms = record.terms[-1]
    return Victim(
        victim_uid=uid,
        victim_namespace=record.namespace,
        victim_name=record.name,
        victim_tier=terms.tier,
        victim_tenant=terms.tenant,
        job_kind=record.job_kind,
        job=record.job,
        node=record.node,
        node_uid=record.node_uid,
        quantity=sum(quantity for _, quantity in held(record, terms)),
        cause=_CAUSE,
        decided_us=run.to_us,
        stopped_us=run.to_us,
        exit_code=run.exit_code,
        reported=_CAUSE,
        noticed_us=run.noticed_us,
    )
