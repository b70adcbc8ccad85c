"""Jobs of Slurm, from `sacct --allocations --duplicates --parsable2 --format ...`.

Source: https://slurm.schedmd.com/sacct.html (job states); SchedMD/slurm src/sacct/sacct.c (columns) and
src/plugins/accounting_storage/mysql/as_mysql_job.c, which adds a row for each run, and for each size of a resized job.
"""

import re
from typing import Final

from gputally.importing.imported_job import ImportedJob
from gputally.importing.row_cells import CellError, Cells, shown
from gputally.importing.slurm_gpus import COLUMN, SlurmGpus, SlurmShares, gpus_of
from gputally.model.allocation import Outcome

COLUMNS: Final = ("JobIDRaw", "Account", "QOS", "State", "Submit", "Start", "End", COLUMN)
"""Required columns."""
OPTIONAL: Final = ("Partition", "NodeList", "Restarts")
FREE_TEXTS: Final = (
    *("JobName", "Comment", "Constraints", "Container", "Extra", "Licenses", "QOSREQ", "StdErr", "StdIn", "StdOut"),
    *("SubmitLine", "WCKey", "WorkDir"),
)
"""Columns whose texts users choose: they may look like other cells or rows."""
_JOB_ID: Final = re.compile(r"\d{1,20}(?P<step>\..*)?", re.ASCII)
_MOST_RESTARTS: Final = 1_000_000
_OTHERS: Final = 10
"""Names of resources that are not GPUs which are kept."""
_NOT_STARTED: Final = ("PENDING", "REVOKED")
_OUTCOMES: Final = {
    "COMPLETED": Outcome.SUCCEEDED,
    "FAILED": Outcome.FAILED,
    "OUT_OF_MEMORY": Outcome.FAILED,
    "TIMEOUT": Outcome.FAILED,
    "DEADLINE": Outcome.FAILED,
    "CANCELLED": Outcome.DELETED,
    "REQUEUED": Outcome.DELETED,
    "PREEMPTED": Outcome.PREEMPTED,
    "NODE_FAIL": Outcome.LOST,
    "BOOT_FAIL": Outcome.LOST,
    **dict.fromkeys(("RUNNING", "COMPLETING", "SUSPENDED", "RESIZING", "STOPPED", "SIGNALING"), Outcome.RUNNING),
    **dict.fromkeys(_NOT_STARTED, Outcome.RUNNING),
}


class SlurmJobs:
    """Reads rows, and remembers what they say of others."""

    def __init__(self, shares: SlurmShares) -> None:
        self._shares = shares
        self._others = set[str]()
        self._runs, self._earlier_runs = set[int](), set[int]()

    def job(self, cells: Cells) -> ImportedJob | None:
        """The run of a row; None for a step, without GPUs, or if it never started. Raises: CellError."""
        job_id = cells.name("JobIDRaw")
        if not (number := _JOB_ID.fullmatch(job_id)):
            raise CellError("JobIDRaw", f"'{shown(job_id)}' is not the number of a job")
        if number["step"] or not (gpus := self._gpus(job_id, cells)).quantity:
            return None
        state, times = _state(cells), cells.times("Submit", "Start", "End", submit_is_reset=True)
        if times.start_us is None:
            return None
        if (outcome := _outcome(state, cells, has_ended=times.end_us is not None)) is None:
            return None
        return ImportedJob(
            id=job_id,
            tenant=cells.text("Account"),
            priority_class=cells.text("QOS"),
            queue=cells.text("Partition"),
            gpu_model=gpus.model,
            node=cells.text("NodeList"),
            quantity=gpus.quantity,
            submit_us=min(times.submit_us, times.start_us),
            start_us=times.start_us,
            end_us=times.end_us,
            outcome=outcome,
            reason="" if state in ("COMPLETED", "FAILED") else state,
            run_us=times.run_us,
        )

    def notes(self) -> list[str]:
        """What the rows say of GPU time that is not in the result."""
        found = []
        if self._others:
            found.append(f"not counted as GPUs: {', '.join('gres/' + name for name in sorted(self._others))}")
        if missing := len(self._earlier_runs - self._runs):
            remedy = "export with sacct --duplicates, and from before they began"
            found.append(f"{missing:,} earlier runs of its jobs, which Restarts counts, are not in the file; {remedy}")
        return found

    def _gpus(self, job_id: str, cells: Cells) -> SlurmGpus:
        """The GPUs of a run, which is in the file also if the row is rejected."""
        tres = cells.text(COLUMN)
        try:
            gpus = gpus_of(tres, self._shares)
        except CellError:
            self._note_run(job_id, cells)
            raise
        if gpus.quantity:
            self._note_run(job_id, cells)
        if len(self._others) < _OTHERS:
            self._others |= gpus.others
        return gpus

    def _note_run(self, job_id: str, cells: Cells) -> None:
        if not cells.text("Restarts"):
            return
        restarts = cells.number("Restarts", most=_MOST_RESTARTS)
        self._runs.add(hash((job_id, restarts)))
        if restarts:
            self._earlier_runs.add(hash((job_id, restarts - 1)))


def _state(cells: Cells) -> str:
    state = cells.name("State").split()[0].rstrip("+")  # CANCELLED by 1000
    if state not in _OUTCOMES:
        raise CellError("State", f"unknown '{shown(state)}'; use the names of sacct, such as COMPLETED")
    return state


def _outcome(state: str, cells: Cells, *, has_ended: bool) -> Outcome | None:
    """The outcome of a run; None if it never started. Raises: CellError."""
    if state in _NOT_STARTED and not has_ended:
        return None
    if state == "RESIZING" and has_ended:
        return Outcome.UNKNOWN  # the job goes on in another row
    outcome = _OUTCOMES[state]
    if has_ended is (outcome is Outcome.RUNNING):
        raise CellError("End", f"'{cells.text('End')}' does not fit the state {state}")
    return outcome
