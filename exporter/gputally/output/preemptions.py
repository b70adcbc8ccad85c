"""Preemptions and other disruptions, by pod or by job."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from msgspec import Struct, structs

from gputally.formatting.csv_cells import Row
from gputally.formatting.times import iso
from gputally.model.disruptions import Cause
from gputally.model.units import GPU_HOUR, US_PER_SECOND, duration_text
from gputally.output.answer import Answer, Section
from gputally.output.scope import Scope, document_head
from gputally.reports.disruptions import PLACES, DisruptionLine, PreemptionRow, TierTotal, preemption_row, tier_totals
from gputally.reports.job_preemptions import JobPreemption, total_loss
from gputally.reports.preemption_records import JobPreemptionRow, record_row
from gputally.reports.rounding import decimal_of

_MOST_CASCADES: Final = 10
"""Lines about them in the table."""
VERSION: Final = 2
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
_HEAD: Final = ("decided", "cause", "victim", "tier", "gpus", "by tier", "stop s", "replaced s", "lost GPU-h", "cost")

_TOTAL_HEAD: Final = ("by tier", "pods", "gpus", "bought GPU-h", "lost GPU-h", "stalled GPU-h", "stranded GPU-h")
_JOB_HEAD: Final = ("decided", "job", "tier", "pods", "gpus", "by tier", "permitted", "lost GPU-h", "cost", "advice")
_PERMITTED: Final = {True: "yes", False: "no", None: ""}


def preemptions_answer(lines: Sequence[DisruptionLine], scope: Scope, *, tiers_only: bool) -> Answer:
    """Disrupted pods, with the cascades and the totals of tiers; with `tiers_only` without names of preemptors."""
    rows = [preemption_row(line, scope.query.calendar.zone, tiers_only=tiers_only) for line in lines]
    if tiers_only:
        rows = list(_linked_among(rows))
    totals = tier_totals(lines, tiers_only=tiers_only)
    return Answer(
        title="Disrupted pods",
        about=f"From {scope.about}",
        heading=f"Disrupted pods from {scope.about}",
        sections=[
            _section(_HEAD, map(_cells, rows), [_total(rows), *lost_notes(lines, scope)], scope),
            *_cascades(rows),
            *([Section(head=_TOTAL_HEAD, rows=[*map(_total_cells, totals)])] if totals else []),
        ],
        notes=scope.notes,
        columns=PreemptionRow.__struct_fields__,
        records=map(_plain, rows),
        document=lambda: document(rows, scope) | {"totals": totals},
    )


def _section(head: Sequence[str], rows: Iterable[Row], notes: Sequence[str], scope: Scope) -> Section:
    """The list with what it sums up to, or that it is empty."""
    if found := list(rows):
        return Section(head=head, rows=found, notes=["\n".join(notes)])
    return Section(notes=[scope.nothing])


def _linked_among(rows: Sequence[PreemptionRow]) -> Iterator[PreemptionRow]:
    """Without the victims of others in links."""
    shown = {row.id for row in rows}
    for row in rows:
        yield structs.replace(
            row,
            follows=row.follows if row.follows in shown else None,
            cascade=row.cascade if row.cascade in shown else None,
        )


def _cascades(rows: Sequence[PreemptionRow]) -> Iterator[Section]:
    """The preemptions by pods that replace a victim, if there are any."""
    by_id = {row.id: row for row in rows}
    linked = [(by_id[row.follows], row) for row in rows if row.follows in by_id]
    texts = [_cascade(before, row) for before, row in linked[:_MOST_CASCADES]]
    if len(linked) > _MOST_CASCADES:
        texts.append(f"{len(linked) - _MOST_CASCADES} more; --output json has all of them")
    if texts:
        yield Section(title="Cascades: preemptions by pods that replace a victim", lines=texts)


def _cascade(before: PreemptionRow, row: PreemptionRow) -> str:
    to = f"to {before.preemptor_tier}" if before.preemptor_tier else f"({before.cause})"
    return (
        f"{before.decided:%m-%d %H:%M:%S} {before.namespace}/{before.pod} ({before.tier}) lost its GPUs {to}; "
        f"{row.decided:%m-%d %H:%M:%S} its replacement preempted {row.namespace}/{row.pod} ({row.tier})"
    )


def document(rows: Sequence[Struct], scope: Scope) -> dict[str, Any]:
    """The document with these rows."""
    return document_head(scope, version=VERSION) | {"rows": rows}


def _total(rows: Sequence[PreemptionRow]) -> str:
    pods = [row for row in rows if row.cause != Cause.CONTAINER_RESTART]
    restarted = [row for row in rows if row.cause == Cause.CONTAINER_RESTART]
    texts = [_total_pods(pods)] if pods else []
    if restarted:
        count = sum(row.lost_pods or 1 for row in restarted)
        texts.append(f"{count:,} restarts of containers, whose pods kept their GPUs")
    return "; ".join(texts)


def _total_pods(rows: Sequence[PreemptionRow]) -> str:
    taken = sum((row.gpus for row in rows), Decimal(0))
    doubtful = sum(not row.is_certain for row in rows)
    violating = sum(row.budget_violated is True for row in rows)
    text = f"{len(rows):,} pods with {taken:f} GPUs"
    text += f", {doubtful:,} of an uncertain cause (?)" if doubtful else ""
    return text + (f", {violating:,} against a disruption budget" if violating else "")


def lost_notes(lines: Iterable[DisruptionLine], scope: Scope) -> list[str]:
    """What all of them lost, and would have lost with other checkpoint intervals; empty if none of it is known."""
    known = [line.lost for line in lines if line.lost]
    if not known:
        return []
    loss = total_loss(known)
    text = f"lost {'up to ' if loss.is_upper_bound else ''}{_hours(loss.gpu_time)} GPU-h"
    others = [
        f"every {duration_text(every_us // US_PER_SECOND)} {_hours(amount)}"
        for every_us, amount in sorted(loss.at_intervals.items(), reverse=True)
    ]
    with_checkpoints = f"; with checkpoints {', '.join(others)}" if others else ""
    return [f"{text}{with_checkpoints}", scope.lost_note]


def _hours(gpu_time: int) -> str:
    return f"{decimal_of(Fraction(gpu_time, GPU_HOUR), 2):.2f}"


def _total_cells(total: TierTotal) -> Sequence[object]:
    bought = "" if total.bought_gpu_hours is None else f"{total.bought_gpu_hours:.2f}"
    lost_hours = f"{'<' if total.is_lost_upper_bound else ''}{total.lost_gpu_hours:.2f}"
    amounts = bought, lost_hours, f"{total.stalled_gpu_hours:.2f}", f"{total.stranded_gpu_hours:.2f}"
    return total.preemptor_tier, total.preemptions, total.preempted_gpus, *amounts


def _cells(row: PreemptionRow) -> Sequence[object]:
    return (
        f"{row.decided:%m-%d %H:%M:%S}",
        row.cause + ("" if row.is_certain else "?"),
        f"{row.namespace}/{row.pod}",
        row.tier,
        row.gpus,
        row.preemptor_tier or "",
        row.stop_seconds,
        row.replace_seconds,
        lost(row),
        lost_costs(row),
    )


def lost(row: PreemptionRow | JobPreemptionRow) -> str:
    """Lost GPU-hours, with a mark at an upper bound."""
    if row.lost_gpu_hours is None:
        return ""
    return f"{'<' if row.is_lost_upper_bound else ''}{row.lost_gpu_hours:.2f}"


def lost_costs(row: PreemptionRow | JobPreemptionRow) -> str:
    """The costs of lost work for people, with a mark at upper bounds."""
    mark = "<" if row.is_lost_upper_bound else ""
    return ", ".join(f"{mark}{cost:.2f} {currency}" for currency, cost in (row.lost_costs or {}).items())


def costs(row: PreemptionRow | JobPreemptionRow) -> str:
    """The costs of lost work for programs."""
    return ", ".join(f"{cost:.{PLACES}f} {currency}" for currency, cost in (row.lost_costs or {}).items())


def _plain(row: PreemptionRow) -> Sequence[object]:
    at = ", ".join(f"{every} {hours:f}" for every, hours in (row.lost_gpu_hours_at or {}).items())
    values = structs.asdict(row) | {"lost_costs": costs(row), "lost_gpu_hours_at": at}
    return list(map(plain, values.values()))


def plain(value: object) -> object:
    """A value of a row as one of CSV."""
    return iso(value) if isinstance(value, datetime) else value


def job_preemptions_answer(found: Sequence[JobPreemption], scope: Scope, *, tiers_only: bool) -> Answer:
    """Preempted jobs; with `tiers_only` without names and priorities of preemptors."""
    zone, now_us = scope.query.calendar.zone, scope.state.accounted_us
    rows = [record_row(each, zone, now_us=now_us, tiers_only=tiers_only) for each in found]
    notes = [_job_total(rows), *lost_notes((line for each in found for line in each.victims), scope)]
    return Answer(
        title="Preempted jobs",
        about=f"From {scope.about}",
        heading=f"Preempted jobs from {scope.about}",
        sections=[_section(_JOB_HEAD, map(_job_cells, rows), notes, scope)],
        notes=scope.notes,
        columns=JobPreemptionRow.__struct_fields__,
        records=map(_plain_job, rows),
        document=lambda: document(rows, scope),
    )


def _job_total(rows: Sequence[JobPreemptionRow]) -> str:
    taken = sum((row.gpus for row in rows), Decimal(0))
    pods = sum(len(row.pods) for row in rows)
    return f"preempted jobs: {len(rows):,}, pods: {pods:,}, GPUs: {taken:f}"


def _job_cells(row: JobPreemptionRow) -> Sequence[object]:
    return (
        f"{row.decided:%m-%d %H:%M:%S}",
        f"{row.namespace}/{row.job}",
        row.tier,
        len(row.pods),
        row.gpus,
        ", ".join(row.preemptor_tiers),
        _PERMITTED[row.is_permitted],
        lost(row),
        lost_costs(row),
        ", ".join(each.name for each in row.advice),
    )


def _plain_job(row: JobPreemptionRow) -> Sequence[object]:
    """Lists are separated by semicolons."""
    values = structs.asdict(row) | {
        "lost_costs": costs(row),
        "advice": [each.text for each in row.advice],
    }
    return ["; ".join(each) if isinstance(each, list) else plain(each) for each in values.values()]
