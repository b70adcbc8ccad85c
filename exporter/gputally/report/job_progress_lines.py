"""The progress of jobs in the lines of a bill, and where the cost of a line is all that its job has cost."""

from collections import Counter
from collections.abc import Callable, Iterable

from gputally.ledger.records import JOB, ReachedProgress, Window
from gputally.report.bill import Bill, LineProgress
from gputally.report.report_query import ReportQuery


def add_progress(bill: Bill, query: ReportQuery, read: Callable[[Window], Iterable[ReachedProgress]]) -> None:
    """Add the progress to the lines of jobs; `read` is called for reports by job alone. Raises: LedgerError.

    The cost of a line is all that its job has cost if the job began in the window, and if no other line, no filter and
    no missing price takes a part of it.
    """
    columns = query.columns
    if not set(JOB) <= set(columns) or query.window.start_us >= query.window.end_us:
        return
    places = [columns.index(column) for column in JOB]
    jobs = [tuple(line.labels[place] for place in places) for line in bill.lines]
    lines_of = Counter(jobs)
    is_unfiltered = all(limit.column in JOB for limit in query.filters)
    found = dict[tuple[str, ...], ReachedProgress]()
    for each in read(query.window):
        found[each.namespace, each.job_kind, each.job] = each
    for job, line in zip(jobs, bill.lines, strict=True):
        if reached := found.get(job):
            is_alone = lines_of[job] == 1 and is_unfiltered and bool(line.currency) and not line.unpriced
            line.progress = LineProgress(
                micro=reached.micro, unit=reached.unit, is_cost_whole=reached.is_whole and is_alone
            )
