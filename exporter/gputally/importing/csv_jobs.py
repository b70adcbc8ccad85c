"""Jobs from CSV.

Columns are id, tenant, qos, queue, gpu_type, gpu_count, gpu_milli, submit, start, end, node and status; others are
ignored.
"""

from typing import Final

from gputally.importing.imported_job import ImportedJob
from gputally.importing.row_cells import MOST_GPUS, CellError, Cells, shown
from gputally.model.allocation import Outcome
from gputally.model.units import GPU

COLUMNS: Final = ("id", "submit", "start", "end", "status")
"""Required columns; of `gpu_milli` and `gpu_count`, one is."""
OPTIONAL: Final = ("gpu_milli", "gpu_count", "tenant", "qos", "queue", "gpu_type", "node")
_MILLI: Final = 1000
_UGPU_PER_MILLI: Final = GPU // _MILLI
_OUTCOMES: Final = {
    "succeeded": Outcome.SUCCEEDED,
    "completed": Outcome.SUCCEEDED,
    "pass": Outcome.SUCCEEDED,
    "failed": Outcome.FAILED,
    "killed": Outcome.DELETED,
    "cancelled": Outcome.DELETED,
    "deleted": Outcome.DELETED,
    "preempted": Outcome.PREEMPTED,
    "lost": Outcome.LOST,
    "running": Outcome.RUNNING,
    "pending": Outcome.RUNNING,
    "unknown": Outcome.UNKNOWN,
}


def csv_job(cells: Cells) -> ImportedJob | None:
    """The job of a row; None if it had no GPU, or never started. Raises: CellError."""
    job_id, quantity = cells.name("id"), _quantity(cells)
    if not quantity:
        return None
    times, outcome = cells.times("submit", "start", "end"), _outcome(cells)
    end_us = times.end_us
    if times.start_us is None:
        return None
    if end_us is not None and outcome is Outcome.RUNNING:
        outcome = Outcome.DELETED  # it ran until it was deleted
    if end_us is None and outcome is not Outcome.RUNNING:
        raise CellError("end", f"is empty, but the status is {cells.text('status')}")
    return ImportedJob(
        id=job_id,
        tenant=cells.text("tenant"),
        priority_class=cells.text("qos"),
        queue=cells.text("queue"),
        gpu_model=cells.text("gpu_type"),
        node=cells.text("node"),
        quantity=quantity,
        submit_us=times.submit_us,
        start_us=times.start_us,
        end_us=end_us,
        outcome=outcome,
        reason="",
    )


def _quantity(cells: Cells) -> int:
    """µGPU: `gpu_milli` is the sum for the job, in thousandths of a GPU."""
    if cells.text("gpu_milli"):
        return cells.number("gpu_milli", most=MOST_GPUS * _MILLI) * _UGPU_PER_MILLI
    return cells.number("gpu_count", most=MOST_GPUS) * GPU


def _outcome(cells: Cells) -> Outcome:
    text = cells.text("status")
    if (found := _OUTCOMES.get(text.lower())) is None:
        raise CellError("status", f"unknown '{shown(text)}'; use one of {', '.join(_OUTCOMES)}")
    return found
